//! A node of a definition file. Errors are collected instead of returned.

use std::cell::RefCell;

use kiln_template::hint::nearest;
use kiln_value::{Map, Path, Value, text};

/// What is wrong with a value, or with its key, and where.
pub(super) struct Complaint {
    pub(super) path: Path,
    pub(super) at_key: bool,
    pub(super) message: String,
}

/// All that is wrong.
pub(super) type Complaints = RefCell<Vec<Complaint>>;

/// A value of a definition file and its place. Every reader returns what it found and notes what it did not like, so
/// that one pass tells all mistakes.
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

    /// Notes what is wrong with the value.
    pub(super) fn complain(&self, message: impl Into<String>) {
        let complaint = Complaint { path: self.path.clone(), at_key: false, message: message.into() };
        self.complaints.borrow_mut().push(complaint);
    }

    /// Notes what is wrong with the key.
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

    /// The entries of a map; none with a complaint for anything else.
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

    /// Complains of keys that are not known here.
    pub(super) fn only(&self, known: &[&str]) {
        for (key, node) in self.entries() {
            if !known.contains(&key) {
                let near = nearest(key, known.iter().copied());
                let hint = near.map(|near| format!("; did you mean {near}?")).unwrap_or_default();
                node.complain_of_key(format!("unknown key {key}{hint}"));
            }
        }
    }

    /// The items of a list; none with a complaint for anything else.
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

    /// A text.
    pub(super) fn text(&self) -> Option<String> {
        self.value.as_str().map(str::to_owned).or_else(|| self.expected("a string"))
    }

    /// A text, or a number as it is written: releases look like numbers.
    pub(super) fn release(&self) -> Option<String> {
        match self.value {
            Value::Str(release) => Some(release.clone()),
            Value::Int(_) | Value::Float(_) => Some(text::str(self.value)),
            _ => self.expected("a release"),
        }
    }

    /// A truth value.
    pub(super) fn flag(&self) -> Option<bool> {
        self.value.as_bool().or_else(|| self.expected("true or false"))
    }

    /// A whole number from zero.
    pub(super) fn count(&self) -> Option<usize> {
        self.value.as_i64().and_then(|i| usize::try_from(i).ok()).or_else(|| self.expected("an integer"))
    }

    /// A list of texts.
    pub(super) fn texts(&self) -> Vec<String> {
        self.items().iter().filter_map(Self::text).collect()
    }

    /// A map as it is.
    pub(super) fn map(&self) -> Option<Map> {
        self.value.as_map().cloned().or_else(|| self.expected("a map"))
    }

    /// The text under a key.
    pub(super) fn text_at(&self, key: &str) -> Option<String> {
        self.get(key)?.text()
    }

    /// The truth value under a key, or its default.
    pub(super) fn flag_at(&self, key: &str, default: bool) -> bool {
        self.get(key).and_then(|node| node.flag()).unwrap_or(default)
    }

    /// The texts under a key; none if it is not there.
    pub(super) fn texts_at(&self, key: &str) -> Vec<String> {
        self.get(key).map(|node| node.texts()).unwrap_or_default()
    }
}

/// A dotted path in pieces.
pub(super) fn dotted(path: &str) -> Vec<String> {
    path.split('.').map(str::to_owned).collect()
}
