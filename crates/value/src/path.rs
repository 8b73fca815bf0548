//! Paths in documents: `resources.server.properties.networks[0]`.

use std::fmt;

/// One step of a [`Path`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Segment {
    /// A key of a map.
    Key(String),
    /// An index of a list.
    Index(usize),
}

/// A path from the root of a document. Printed as in Heat's messages: keys joined by dots, indexes in brackets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Path(pub Vec<Segment>);

impl Path {
    /// The root.
    pub fn root() -> Self {
        Self::default()
    }

    /// Appends a key.
    #[must_use]
    pub fn key(&self, key: impl Into<String>) -> Self {
        self.with(Segment::Key(key.into()))
    }

    /// Appends an index.
    #[must_use]
    pub fn index(&self, index: usize) -> Self {
        self.with(Segment::Index(index))
    }

    /// In one allocation: validation makes several paths for each resource.
    fn with(&self, last: Segment) -> Self {
        let mut segments = Vec::with_capacity(self.0.len() + 1);
        segments.extend_from_slice(&self.0);
        segments.push(last);
        Self(segments)
    }

    /// Whether this is the root.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, segment) in self.0.iter().enumerate() {
            match segment {
                // A numeric name looks like an index, as in Heat's texts.
                Segment::Key(key) if !key.is_empty() && key.chars().all(|c| c.is_ascii_digit()) => {
                    write!(f, "[{key}]")?;
                }
                Segment::Key(key) if i == 0 => f.write_str(key)?,
                Segment::Key(key) => write!(f, ".{key}")?,
                Segment::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_names_of_digits_as_indexes() {
        let path = Path::root().key("resources").key("0").key("properties").key("nets").index(1).key("é1");
        assert_eq!(path.to_string(), "resources[0].properties.nets[1].é1");
        assert_eq!(Path::root().key("1").to_string(), "[1]");
    }
}
