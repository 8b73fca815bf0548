//! The result of `orderBy`: a collection that is sorted lazily.

use std::cell::RefCell;
use std::cmp::Ordering as Order;
use std::rc::Rc;

use crate::Error;
use crate::context::Context;
use crate::cursor::Cursor;
use crate::engine::Engine;
use crate::lambda::Lambda;
use crate::number;
use crate::object::Object;
use crate::overload::Arg;

/// A collection with sort keys.
#[derive(Debug)]
pub(crate) struct Ordering {
    collection: Object,
    context: Context,
    keys: RefCell<Vec<Key>>,
    sorted: RefCell<Option<Rc<Vec<Object>>>>,
}

/// A sort key.
#[derive(Clone, Debug)]
pub(crate) struct Key {
    pub selector: Lambda,
    pub ascending: bool,
}

/// An item with the keys that were already evaluated.
struct Keyed {
    item: Object,
    keys: Vec<Option<Object>>,
}

impl Ordering {
    pub(crate) fn new(collection: Object, context: Context, key: Key) -> Self {
        Self { collection, context, keys: RefCell::new(vec![key]), sorted: RefCell::default() }
    }

    /// Adds a secondary key.
    pub(crate) fn then(&self, key: Key) {
        self.keys.borrow_mut().push(key);
    }

    pub(crate) fn depth(&self) -> u32 {
        let keys = self.keys.borrow();
        let deepest = keys.iter().map(|key| key.selector.depth()).max().unwrap_or(0);
        deepest.max(self.collection.measure().depth()) + 1
    }

    /// The sorted items.
    pub(crate) fn sorted(&self, engine: &Engine) -> Result<Rc<Vec<Object>>, Error> {
        if let Some(sorted) = &*self.sorted.borrow() {
            return Ok(sorted.clone());
        }
        let Some(cursor) = Cursor::over(&self.collection) else { return Ok(Rc::default()) };
        let keys = self.keys.borrow().clone();
        let items = engine.nested(|| cursor.collect(engine))?;
        let items = items.into_iter().map(|item| Keyed { item, keys: vec![None; keys.len()] }).collect();
        let sorted = self.sort(engine, &keys, items)?;
        let sorted: Rc<Vec<_>> = Rc::new(sorted.into_iter().map(|keyed| keyed.item).collect());
        *self.sorted.borrow_mut() = Some(sorted.clone());
        Ok(sorted)
    }

    /// A stable merge sort with fallible comparison.
    fn sort(&self, engine: &Engine, keys: &[Key], mut items: Vec<Keyed>) -> Result<Vec<Keyed>, Error> {
        if items.len() < 2 {
            return Ok(items);
        }
        let right = items.split_off(items.len() / 2);
        let left = self.sort(engine, keys, items)?;
        let right = self.sort(engine, keys, right)?;
        let mut merged = Vec::with_capacity(left.len() + right.len());
        let (mut left, mut right) = (left.into_iter().peekable(), right.into_iter().peekable());
        while let (Some(a), Some(b)) = (left.peek_mut(), right.peek_mut()) {
            let next = if self.compare(engine, keys, b, a)? == Order::Less { right.next() } else { left.next() };
            merged.extend(next);
        }
        merged.extend(left);
        merged.extend(right);
        Ok(merged)
    }

    fn compare(&self, engine: &Engine, keys: &[Key], a: &mut Keyed, b: &mut Keyed) -> Result<Order, Error> {
        for (i, key) in keys.iter().enumerate() {
            let (a, b) = (a.key(engine, i, key)?, b.key(engine, i, key)?);
            let order = self.order(engine, &a, &b)?;
            if order != Order::Equal {
                return Ok(if key.ascending { order } else { order.reverse() });
            }
        }
        Ok(Order::Equal)
    }

    /// The order of two keys, with yaql's operators `<` and `>`.
    fn order(&self, engine: &Engine, a: &Object, b: &Object) -> Result<Order, Error> {
        engine.step(1)?;
        if let (Object::Str(a), Object::Str(b)) = (a, b) {
            return Ok(a.cmp(b));
        }
        if number::is_number(a) && number::is_number(b) {
            return Ok(number::compare(a, b).unwrap_or(Order::Equal));
        }
        let holds = |name| {
            let args = vec![Arg::Value(a.clone()), Arg::Value(b.clone())];
            Ok::<_, Error>(engine.call_by_name(name, None, args, &self.context)?.is_truthy())
        };
        if holds("#operator_<")? {
            Ok(Order::Less)
        } else if holds("#operator_>")? {
            Ok(Order::Greater)
        } else {
            Ok(Order::Equal)
        }
    }
}

impl Keyed {
    fn key(&mut self, engine: &Engine, index: usize, key: &Key) -> Result<Object, Error> {
        if let Some(Some(known)) = self.keys.get(index) {
            return Ok(known.clone());
        }
        let value = key.selector.call(engine, std::slice::from_ref(&self.item))?;
        if let Some(slot) = self.keys.get_mut(index) {
            *slot = Some(value.clone());
        }
        Ok(value)
    }
}
