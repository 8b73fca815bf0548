//! Places in a value.

use std::collections::HashSet;

use kiln_value::{Path, Segment};

/// A set of places. A look-up costs as much as the path is deep, however many places there are.
pub(crate) struct Places<'a>(HashSet<&'a [Segment]>);

impl<'a> Places<'a> {
    /// A set of these places.
    pub(crate) fn of(paths: &'a [Path]) -> Self {
        Self(paths.iter().map(|path| path.0.as_slice()).collect())
    }

    /// Whether a path is one of the places, or in one.
    pub(crate) fn contain(&self, path: &Path) -> bool {
        !self.0.is_empty()
            && (0..=path.0.len()).any(|end| path.0.get(..end).is_some_and(|start| self.0.contains(start)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_contains_what_is_below_it() {
        let place = [Path::root().key("a").index(1), Path::root().key("b")];
        let places = Places::of(&place);
        assert!(places.contain(&place[0]) && places.contain(&place[0].key("c")) && places.contain(&place[1]));
        assert!(!places.contain(&Path::root().key("a")) && !places.contain(&Path::root().key("a").index(2)));
        assert!(!Places::of(&[]).contain(&Path::root()) && Places::of(&[Path::root()]).contain(&place[0]));
    }
}
