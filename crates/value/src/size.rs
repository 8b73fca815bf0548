//! The memory that values take, for limits.

use crate::{Map, Value};

impl Value {
    /// About how many bytes the value takes in memory: its texts, and a constant for each item and entry. Takes as long as
    /// a copy.
    pub fn size(&self) -> usize {
        let own = size_of::<Self>();
        match self {
            Self::Str(text) => own + text.len(),
            Self::List(items) => own + items.iter().map(Self::size).sum::<usize>(),
            Self::Map(map) => own + map.size(),
            _ => own,
        }
    }
}

impl Map {
    /// About how many bytes the entries take in memory; see [`Value::size`].
    pub fn size(&self) -> usize {
        self.iter().map(|(key, value)| size_of::<String>() + key.len() + value.size()).sum()
    }
}

#[cfg(test)]
mod tests {
    use crate::value;

    #[test]
    fn sizes_grow_with_texts_items_and_keys() {
        let size = |value: &crate::Value| value.size();
        assert_eq!(size(&value!("")) + 1000, size(&"x".repeat(1000).into()));
        assert!(size(&value!([1, 2])) > size(&value!([1])));
        assert_eq!(size(&value!({"a": 1})) + 3, size(&value!({"aaaa": 1})));
    }
}
