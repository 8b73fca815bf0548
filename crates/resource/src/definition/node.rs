//! A node of a definition file. Errors are collected instead of returned.

use std::cell::RefCell;

use kiln_template::hint::nearest;
use kiln_value::{Map, Path, Value, text};

/// An error about a value, or about its key, with its position.
pub(super) struct Complaint {
    pub(super) path: Path,
    pub(super) at_key: bool,
    pub(super) message: String,
}

/// All errors.
pub(super) type Complaints = RefCell<Vec<Complaint>>;

/// A value in a definition file with its position. The functions return what they find and collect errors, so that one
/// pass reports all errors.
#[derive(Clone)]
pub(super) struct Node<'a> {
    pub(super) value: &'a Value,
    path: Path,
    complaints: &'a Complaints,
}

impl<'a> Node<'a> {
    pub(super) fn root(value: &'a Value, complaints: &'a Complaints) -> Self {
        Self { value, path: Path::root(), complaints }
    }

    /// Adds an error about the value.
    pub(super) fn complain(&self, message: impl Into<String>) {
        let complaint = Complaint { path: self.path.clone(), at_key: false, message: message.into() };
        self.complaints.borrow_mut().push(complaint);
    }

    /// Adds an error about the key.
    fn complain_of_key(&self, message: String) {
        self.complaints.borrow_mut().push(Complaint { path: self.path.clone(), at_key: true, message });
    }

    fn expected<T>(&self, what: &str) -> Option<T> {
        self.complain(format!("expected {what}, found {}", text::repr(self.value)));
        None
    }

    fn below(&self, key: &str, value: &'a Value) -> Self {
        Self { value, path: self.path.key(key), complaints: self.complaints }
    }

    /// The entries of a map; for other values, no entries and an error.
    pub(super) fn entries(&self) -> Vec<(&'a str, Self)> {
        match self.value.as_map() {
            Some(map) => map.iter().map(|(key, value)| (key.as_str(), self.below(key, value))).collect(),
            None => self.expected("a map").unwrap_or_default(),
        }
    }

    /// The entry of a map.
    pub(super) fn get(&self, key: &str) -> Option<Self> {
        Some(self.below(key, self.value.get(key)?))
    }

    /// Reports unknown keys.
    pub(super) fn only(&self, known: &[&str]) {
        for (key, node) in self.entries() {
            if !known.contains(&key) {
                let near = nearest(key, known.iter().copied());
                let hint = near.map(|near| format!("; did you mean {near}?")).unwrap_or_default();
                node.complain_of_key(format!("unknown key {key}{hint}"));
            }
        }
    }

    /// The items of a list; for other values, no items and an error.
    pub(super) fn items(&self) -> Vec<Self> {
        match self.value.as_list() {
            Some(items) => items
                .iter()
                .enumerate()
                .map(|(i, value)| Self { value, path: self.path.index(i), complaints: self.complaints })
                .collect(),
            None => self.expected("a list").unwrap_or_default(),
        }
    }

    /// A string.
    pub(super) fn text(&self) -> Option<String> {
        self.value.as_str().map(str::to_owned).or_else(|| self.expected("a string"))
    }

    /// A string, or a number as written: releases look like numbers.
    pub(super) fn release(&self) -> Option<String> {
        match self.value {
            Value::Str(release) => Some(release.clone()),
            Value::Int(_) | Value::Float(_) => Some(text::str(self.value)),
            _ => self.expected("a release"),
        }
    }

    /// A boolean.
    pub(super) fn flag(&self) -> Option<bool> {
        self.value.as_bool().or_else(|| self.expected("true or false"))
    }

    /// A non-negative integer.
    pub(super) fn count(&self) -> Option<usize> {
        self.value.as_i64().and_then(|i| usize::try_from(i).ok()).or_else(|| self.expected("an integer"))
    }

    /// A list of strings.
    pub(super) fn texts(&self) -> Vec<String> {
        self.items().iter().filter_map(Self::text).collect()
    }

    /// A map, unchanged.
    pub(super) fn map(&self) -> Option<Map> {
        self.value.as_map().cloned().or_else(|| self.expected("a map"))
    }

    /// The string under a key.
    pub(super) fn text_at(&self, key: &str) -> Option<String> {
        self.get(key)?.text()
    }

    /// The boolean under a key, or its default.
    pub(super) fn flag_at(&self, key: &str, default: bool) -> bool {
        self.get(key).and_then(|node| node.flag()).unwrap_or(default)
    }

    /// The strings under a key; empty if the key is missing.
    pub(super) fn texts_at(&self, key: &str) -> Vec<String> {
        self.get(key).map(|node| node.texts()).unwrap_or_default()
    }
}

/// Splits a dotted path.
pub(super) fn dotted(path: &str) -> Vec<String> {
    path.split('.').map(str::to_owned).collect()
}
