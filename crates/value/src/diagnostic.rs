//! Errors as values with a place.

use std::borrow::Cow;
use std::fmt;
use std::ops::{Deref, DerefMut};

use crate::{Path, Span};

/// What is wrong in a template, an environment or a property, and where. Its parts are those of [`Details`].
///
/// One pointer wide, since almost every function of the languages may return one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic(Box<Details>);

/// The parts of a [`Diagnostic`].
///
/// `class` and `message` are what the wire carries: the class names of `reference/errors.json` and the text
/// Heat's clients match on. `path`, `span`, `file` and `hints` are what Kiln knows besides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Details {
    /// Error class, as `StackValidationFailed`.
    pub class: Cow<'static, str>,
    /// Heat's text, whole: with its path where Heat shows one.
    pub message: String,
    /// Where in the document.
    pub path: Path,
    /// Where in the text, once known.
    pub span: Option<Span>,
    /// The file, if it is not the template itself.
    pub file: Option<String>,
    /// What may help: "did you mean …".
    pub hints: Vec<String>,
    /// Nothing is wrong: a value is asked for that is not known yet, since a parameter without a default has none.
    pub not_known_yet: bool,
}

impl Diagnostic {
    /// An error of a class with a text.
    pub fn new(class: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Self(Box::new(Details {
            class: class.into(),
            message: message.into(),
            path: Path::root(),
            span: None,
            file: None,
            hints: Vec::new(),
            not_known_yet: false,
        }))
    }

    /// The same, standing at a place.
    #[must_use]
    pub fn at(mut self, path: Path) -> Self {
        self.path = path;
        self
    }

    /// The same, for a value that is not known yet.
    #[must_use]
    pub fn of_unknown_value(mut self) -> Self {
        self.not_known_yet = true;
        self
    }

    /// The same with one more hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }
}

impl Deref for Diagnostic {
    type Target = Details;

    fn deref(&self) -> &Details {
        &self.0
    }
}

impl DerefMut for Diagnostic {
    fn deref_mut(&mut self) -> &mut Details {
        &mut self.0
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Diagnostic {}
