//! Slices of collections; replacing, inserting and deleting items.

use num_traits::{Signed, ToPrimitive};

use crate::Error;
use crate::call::Call;
use crate::cursor::Cursor;
use crate::object::{List, Object};
use crate::parameter::Type::{Any, Int, Iterable, Lambda, Ordered, Sequence};
use crate::parameter::{Default, Overload, Param, method, p};

use super::collections::to_list;

const COLLECTION: Param = p("collection", Iterable);
const POSITION: Param = p("position", Int);
const COUNT: Param = p("count", Int).or(Default::Int(1));
const PREDICATE: &[Param] = &[COLLECTION, p("predicate", Lambda)];

pub(super) const FUNCTIONS: &[Overload] = &[
    method("slice", &[COLLECTION, p("length", Int)], slice),
    method("splitWhere", PREDICATE, split_where),
    method("sliceWhere", PREDICATE, slice_where),
    method("splitAt", &[COLLECTION, p("index", Int)], split_at),
    method("delete", &[COLLECTION, POSITION, COUNT], |call| {
        let range = Range::new(call, 1, 2)?;
        replace_range(call, range, None)
    }),
    method("replace", &[COLLECTION, POSITION, p("value", Any), COUNT], |call| {
        let range = Range::new(call, 1, 3)?;
        let values = Object::tuple(vec![call.take(2)])?;
        replace_range(call, range, Cursor::over(&values))
    }),
    method("replaceMany", &[COLLECTION, POSITION, p("values", Iterable), COUNT], |call| {
        let range = Range::new(call, 1, 3)?;
        let values = call.cursor(2)?;
        replace_range(call, range, Some(values))
    }),
    method("insert", &[p("collection", Ordered), POSITION, p("value", Any)], insert),
    method("insert", &[p("collection", Sequence), POSITION, p("value", Any)], insert_in_list),
    method("insertMany", &[COLLECTION, POSITION, p("values", Iterable)], insert_many),
];

/// Lists of a fixed number of items.
fn slice(call: &mut Call<'_>) -> Result<Object, Error> {
    let (mut cursor, length) = (call.cursor(0)?, call.size(1, true));
    call.iterator(move |engine| {
        let length = length.clone()?;
        let mut part = Vec::new();
        while part.len() < length {
            let Some(item) = cursor.next(engine)? else { break };
            part.push(item);
        }
        if part.is_empty() { Ok(None) } else { Object::tuple(part).map(Some) }
    })
}

fn whole(call: &mut Call<'_>) -> Result<List, Error> {
    match to_list(call)? {
        Object::List(list) => Ok(list),
        _ => call.list(0),
    }
}

/// The lists between items for which the predicate is true.
fn split_where(call: &mut Call<'_>) -> Result<Object, Error> {
    let (list, predicate) = (whole(call)?, call.lambda(1)?);
    let (mut start, mut end) = (0, 0);
    let depth = Object::List(list.clone()).measure().depth().max(predicate.depth());
    crate::cursor::Iter::stream(depth, move |engine| {
        while let Some(item) = list.get(end) {
            let here = end;
            end += 1;
            if predicate.test(engine, std::slice::from_ref(item))? {
                let part = list.slice(start, here)?;
                start = end;
                return Ok(Some(part));
            }
        }
        if start == end {
            return Ok(None);
        }
        let part = list.slice(start, end)?;
        start = end;
        Ok(Some(part))
    })
}

/// The longest lists for whose items the predicate has the same result.
fn slice_where(call: &mut Call<'_>) -> Result<Object, Error> {
    let (list, predicate) = (whole(call)?, call.lambda(1)?);
    let (mut start, mut end) = (0, 0);
    let mut group: Option<Object> = None;
    let depth = Object::List(list.clone()).measure().depth().max(predicate.depth());
    crate::cursor::Iter::stream(depth, move |engine| {
        while let Some(item) = list.get(end) {
            let value = predicate.call(engine, std::slice::from_ref(item))?;
            let here = end;
            end += 1;
            let changed = group.as_ref().is_some_and(|group| *group != value);
            group = Some(value);
            if changed {
                let part = list.slice(start, here)?;
                start = here;
                return Ok(Some(part));
            }
        }
        if start == end {
            return Ok(None);
        }
        let part = list.slice(start, end)?;
        start = end;
        Ok(Some(part))
    })
}

fn split_at(call: &mut Call<'_>) -> Result<Object, Error> {
    let list = whole(call)?;
    let len = list.items().len();
    let index = call.integer(1)?;
    let from_end = if index.is_negative() { &index + len } else { index };
    let at = from_end.to_usize().unwrap_or(if from_end.is_negative() { 0 } else { len }).min(len);
    Object::list(vec![list.slice(0, at)?, list.slice(at, len)?])
}

/// Positions from a start: a number of them, or all if the count is negative.
#[derive(Clone, Copy, Debug)]
struct Range {
    position: i64,
    count: i64,
}

impl Range {
    fn new(call: &Call<'_>, position: usize, count: usize) -> Result<Self, Error> {
        Ok(Self { position: call.int(position)?, count: call.int(count)? })
    }

    fn contains(self, index: i64) -> bool {
        index >= self.position && (self.count < 0 || index < self.position.saturating_add(self.count))
    }
}

/// The collection with a range replaced by other values.
fn replace_range(call: &mut Call<'_>, range: Range, mut values: Option<Cursor>) -> Result<Object, Error> {
    let mut cursor = call.cursor(0)?;
    let mut index = 0;
    let mut open: Option<Cursor> = None;
    call.iterator(move |engine| {
        loop {
            if let Some(inserted) = &mut open {
                if let Some(item) = inserted.next(engine)? {
                    return Ok(Some(item));
                }
                open = None;
            }
            let Some(item) = cursor.next(engine)? else { return Ok(None) };
            index += 1;
            if !range.contains(index - 1) {
                return Ok(Some(item));
            }
            open = values.take();
        }
    })
}

fn insert(call: &mut Call<'_>) -> Result<Object, Error> {
    let position = call.int(1)?;
    let values = Object::tuple(vec![call.take(2)])?;
    insert_at(call, position, Cursor::over(&values), false)
}

fn insert_many(call: &mut Call<'_>) -> Result<Object, Error> {
    let position = call.int(1)?;
    let values = call.cursor(2)?;
    insert_at(call, position, Some(values), true)
}

/// Inserts values before a position, or at the end if the collection is shorter. For a negative position, a single
/// value is dropped and several are kept, as in the reference.
fn insert_at(
    call: &mut Call<'_>,
    position: i64,
    mut values: Option<Cursor>,
    before_first: bool,
) -> Result<Object, Error> {
    let mut cursor = call.cursor(0)?;
    let mut open: Option<Cursor> = if position < 0 && before_first { values.take() } else { None };
    let mut waiting: Option<Object> = None;
    let mut index = 0;
    call.iterator(move |engine| {
        loop {
            if let Some(inserted) = &mut open {
                if let Some(item) = inserted.next(engine)? {
                    return Ok(Some(item));
                }
                open = None;
            }
            if let Some(item) = waiting.take() {
                return Ok(Some(item));
            }
            match cursor.next(engine)? {
                Some(item) => {
                    index += 1;
                    if index - 1 == position {
                        open = values.take();
                        waiting = Some(item);
                        continue;
                    }
                    return Ok(Some(item));
                }
                None if position > index - 1 && values.is_some() => open = values.take(),
                None => return Ok(None),
            }
        }
    })
}

/// Like `list.insert`: negative positions count from the end.
fn insert_in_list(call: &mut Call<'_>) -> Result<Object, Error> {
    let list = call.list(0)?;
    let mut items = list.items().to_vec();
    let position = call.int(1)?;
    let distance = usize::try_from(position.unsigned_abs()).unwrap_or(usize::MAX);
    let at = if position < 0 { items.len().saturating_sub(distance) } else { distance.min(items.len()) };
    items.insert(at, call.take(2));
    Object::list(items)
}
