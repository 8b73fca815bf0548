//! Rows as JSON objects in order of creation, with indexes.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::{Map, Value};

/// An object of a service. Keys that start with `_` are internal and never returned.
pub(crate) type Row = Map<String, Value>;

/// Accessors for rows; missing values and values of other types are empty.
pub(crate) trait Fields {
    fn text(&self, field: &str) -> &str;
    fn int(&self, field: &str) -> i64;
    fn flag(&self, field: &str) -> bool;
    fn list(&self, field: &str) -> &[Value];
    fn texts(&self, field: &str) -> Vec<String> {
        self.list(field).iter().filter_map(Value::as_str).map(str::to_owned).collect()
    }
    fn put(&mut self, field: &str, value: impl Into<Value>);
    /// Appends to a list, which is created if it is missing.
    fn push(&mut self, field: &str, value: impl Into<Value>);
    /// Removes the items that match `unwanted` from a list.
    fn drop_from(&mut self, field: &str, unwanted: impl Fn(&Value) -> bool);
}

impl Fields for Row {
    fn text(&self, field: &str) -> &str {
        self.get(field).and_then(Value::as_str).unwrap_or_default()
    }

    fn int(&self, field: &str) -> i64 {
        self.get(field).and_then(Value::as_i64).unwrap_or_default()
    }

    fn flag(&self, field: &str) -> bool {
        self.get(field).and_then(Value::as_bool).unwrap_or_default()
    }

    fn list(&self, field: &str) -> &[Value] {
        self.get(field).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    fn put(&mut self, field: &str, value: impl Into<Value>) {
        self.insert(field.to_owned(), value.into());
    }

    fn push(&mut self, field: &str, value: impl Into<Value>) {
        if let Value::Array(list) = self.entry(field).or_insert_with(|| Value::Array(Vec::new())) {
            list.push(value.into());
        }
    }

    fn drop_from(&mut self, field: &str, unwanted: impl Fn(&Value) -> bool) {
        if let Some(Value::Array(list)) = self.get_mut(field) {
            list.retain(|item| !unwanted(item));
        }
    }
}

/// The row without internal keys.
pub(crate) fn public(row: &Row) -> Row {
    row.iter().filter(|(name, _)| !name.starts_with('_')).map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// Objects of one type.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    key: &'static str,
    indexed: &'static [&'static str],
    rows: BTreeMap<u64, Row>,
    places: HashMap<String, u64>,
    index: HashMap<(&'static str, String), BTreeSet<u64>>,
    next: u64,
}

impl Table {
    /// A table with the key `id`, in which [`Table::by`] finds rows by the `indexed` fields without a scan. A list of
    /// strings is indexed by each item.
    pub(crate) fn new(indexed: &'static [&'static str]) -> Self {
        Self::keyed("id", indexed)
    }

    /// Like [`Table::new`], with another key field.
    pub(crate) fn keyed(key: &'static str, indexed: &'static [&'static str]) -> Self {
        Table { key, indexed, rows: BTreeMap::new(), places: HashMap::new(), index: HashMap::new(), next: 0 }
    }

    /// Adds a row, or replaces the row with the same key.
    pub(crate) fn insert(&mut self, row: Row) {
        let id = row.text(self.key).to_owned();
        let place = if let Some(place) = self.places.get(&id) {
            *place
        } else {
            self.next += 1;
            self.next
        };
        if let Some(old) = self.rows.remove(&place) {
            self.unlink(place, &old);
        }
        self.link(place, &row);
        self.places.insert(id, place);
        self.rows.insert(place, row);
    }

    pub(crate) fn get(&self, id: &str) -> Option<&Row> {
        self.rows.get(self.places.get(id)?)
    }

    /// Updates a row; `None` if it does not exist.
    pub(crate) fn edit<T>(&mut self, id: &str, change: impl FnOnce(&mut Row) -> T) -> Option<T> {
        let place = *self.places.get(id)?;
        let mut row = self.rows.remove(&place)?;
        self.unlink(place, &row);
        let answer = change(&mut row);
        self.link(place, &row);
        self.rows.insert(place, row);
        Some(answer)
    }

    pub(crate) fn remove(&mut self, id: &str) -> Option<Row> {
        let place = self.places.remove(id)?;
        let row = self.rows.remove(&place)?;
        self.unlink(place, &row);
        Some(row)
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &Row> {
        self.rows.values()
    }

    /// The rows whose indexed `field` equals or contains `value`.
    pub(crate) fn by(&self, field: &'static str, value: &str) -> impl DoubleEndedIterator<Item = &Row> {
        debug_assert!(self.indexed.contains(&field), "no index on {field}");
        let places = self.index.get(&(field, value.to_owned()));
        places.into_iter().flatten().filter_map(|place| self.rows.get(place))
    }

    /// The indexed field with this name, for [`Table::by`].
    pub(crate) fn index_of(&self, field: &str) -> Option<&'static str> {
        self.indexed.iter().find(|name| **name == field).copied()
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    fn link(&mut self, place: u64, row: &Row) {
        for field in self.indexed {
            for value in values(row, field) {
                self.index.entry((*field, value)).or_default().insert(place);
            }
        }
    }

    fn unlink(&mut self, place: u64, row: &Row) {
        for field in self.indexed {
            for value in values(row, field) {
                let entry = (*field, value);
                if let Some(places) = self.index.get_mut(&entry) {
                    places.remove(&place);
                    if places.is_empty() {
                        self.index.remove(&entry);
                    }
                }
            }
        }
    }
}

fn values(row: &Row, field: &str) -> Vec<String> {
    match row.get(field) {
        Some(Value::String(text)) => vec![text.clone()],
        Some(Value::Array(_)) => row.texts(field),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn row(value: Value) -> Row {
        let Value::Object(row) = value else { panic!("an object") };
        row
    }

    #[test]
    fn edits_keep_order_and_index() {
        let mut table = Table::new(&["name", "groups"]);
        table.insert(row(json!({"id": "a", "name": "x", "groups": ["g", "h"]})));
        table.insert(row(json!({"id": "b", "name": "x", "groups": ["g"]})));
        assert_eq!(table.by("name", "x").count(), 2);
        table.edit("a", |row| row.put("name", "y"));
        assert_eq!(table.by("name", "x").map(|row| row.text("id")).collect::<Vec<_>>(), ["b"]);
        assert_eq!(table.by("groups", "h").count(), 1);
        table.remove("a");
        assert_eq!(table.by("groups", "g").map(|row| row.text("id")).collect::<Vec<_>>(), ["b"]);
        assert_eq!(table.len(), 1);
    }

    #[test]
    fn internal_fields_are_kept() {
        let seen = public(&row(json!({"id": "a", "_password": "secret"})));
        assert_eq!(seen.len(), 1);
    }
}
