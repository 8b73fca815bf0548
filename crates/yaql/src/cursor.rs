//! Iterators and cursors over collections.

use std::cell::RefCell;
use std::rc::Rc;

use crate::Error;
use crate::dict::Dict;
use crate::engine::Engine;
use crate::object::{List, MAX_DEPTH, Object};
use crate::set::Set;

/// Produces the next item.
type Next = Box<dyn FnMut(&Engine) -> Result<Option<Object>, Error>>;

/// A lazy iterator that can be consumed once.
pub(crate) struct Iter {
    depth: u32,
    source: Source,
}

enum Source {
    Stream(RefCell<Next>),
    /// Can be iterated repeatedly: read items are kept.
    Memory(RefCell<Memory>),
}

struct Memory {
    cursor: Cursor,
    read: Vec<Object>,
}

impl std::fmt::Debug for Iter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Iter").field("depth", &self.depth).finish_non_exhaustive()
    }
}

impl Iter {
    fn object(depth: u32, source: Source) -> Result<Object, Error> {
        if depth > 2 * MAX_DEPTH { Err(Error::recursion()) } else { Ok(Object::Iter(Rc::new(Self { depth, source }))) }
    }

    /// An iterator over the results of a closure; `depth` is that of the values it holds.
    pub(crate) fn stream(
        depth: u32,
        next: impl FnMut(&Engine) -> Result<Option<Object>, Error> + 'static,
    ) -> Result<Object, Error> {
        Self::object(depth + 1, Source::Stream(RefCell::new(Box::new(next))))
    }

    /// An iterator over values.
    pub(crate) fn over(values: Vec<Object>) -> Result<Object, Error> {
        let depth = values.iter().map(|value| value.measure().depth()).max().unwrap_or(0);
        let mut values = values.into_iter();
        Self::stream(depth, move |_| Ok(values.next()))
    }

    /// The items of a collection; an error if there are too many.
    pub(crate) fn limited(collection: &Object, most: usize) -> Result<Object, Error> {
        let Some(mut cursor) = Cursor::over(collection) else { return Ok(collection.clone()) };
        let mut count = 0;
        Self::stream(collection.measure().depth(), move |engine| {
            let item = cursor.next(engine)?;
            count += usize::from(item.is_some());
            if count > most { Err(Error::collection_too_large(most)) } else { Ok(item) }
        })
    }

    /// A collection that can be iterated repeatedly; only iterators need it.
    pub(crate) fn memorized(collection: &Object) -> Result<Object, Error> {
        match (collection, Cursor::over(collection)) {
            (Object::Iter(_), Some(cursor)) => {
                let memory = Memory { cursor, read: Vec::new() };
                Self::object(collection.measure().depth() + 1, Source::Memory(RefCell::new(memory)))
            }
            _ => Ok(collection.clone()),
        }
    }

    pub(crate) fn depth(&self) -> u32 {
        self.depth
    }

    /// The item at a position of an iteration that starts here.
    fn next(&self, engine: &Engine, index: usize) -> Result<Option<Object>, Error> {
        let busy = || Error::value("generator already executing");
        match &self.source {
            Source::Stream(next) => {
                let mut next = next.try_borrow_mut().map_err(|_| busy())?;
                engine.walk(|| next(engine))
            }
            Source::Memory(memory) => {
                let mut memory = memory.try_borrow_mut().map_err(|_| busy())?;
                if let Some(item) = memory.read.get(index) {
                    return Ok(Some(item.clone()));
                }
                let item = memory.cursor.next(engine)?;
                if let Some(item) = &item {
                    memory.read.push(item.clone());
                    engine.charge_bytes(56 + 8 * memory.read.len())?;
                }
                Ok(item)
            }
        }
    }
}

/// A cursor over a collection.
#[derive(Debug)]
pub(crate) struct Cursor {
    over: Over,
    index: usize,
}

#[derive(Debug)]
enum Over {
    List(List),
    Set(Set),
    /// The keys.
    Dict(Dict),
    Values(Dict),
    Iter(Rc<Iter>),
    Ordering(Rc<crate::ordering::Ordering>),
}

impl Cursor {
    /// Creates a cursor; `None` if the value is not a collection.
    pub(crate) fn over(collection: &Object) -> Option<Self> {
        let over = match collection {
            Object::List(list) => Over::List(list.clone()),
            Object::Set(set) => Over::Set(set.clone()),
            Object::Dict(dict) => Over::Dict(dict.clone()),
            Object::Values(dict) => Over::Values(dict.clone()),
            Object::Iter(iter) => Over::Iter(iter.clone()),
            Object::Ordering(ordering) => Over::Ordering(ordering.clone()),
            _ => return None,
        };
        Some(Self { over, index: 0 })
    }

    /// The next item; `None` at the end.
    pub(crate) fn next(&mut self, engine: &Engine) -> Result<Option<Object>, Error> {
        engine.step(1)?;
        let index = self.index;
        self.index += 1;
        match &self.over {
            Over::List(list) => Ok(list.get(index).cloned()),
            Over::Set(set) => set.at(index),
            Over::Dict(dict) => Ok(dict.at(index).map(|(key, _)| key.clone())),
            Over::Values(dict) => Ok(dict.at(index).map(|(_, value)| value.clone())),
            Over::Iter(iter) => iter.next(engine, index),
            Over::Ordering(ordering) => Ok(ordering.sorted(engine)?.get(index).cloned()),
        }
    }

    /// The remaining items.
    pub(crate) fn collect(mut self, engine: &Engine) -> Result<Vec<Object>, Error> {
        let mut items = Vec::new();
        while let Some(item) = self.next(engine)? {
            items.push(item);
            // The growth of a list is not charged otherwise.
            engine.charge_bytes(8 * items.len())?;
        }
        Ok(items)
    }
}
