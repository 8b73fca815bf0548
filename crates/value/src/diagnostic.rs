//! Errors with a position.

use std::borrow::Cow;
use std::fmt;
use std::ops::{Deref, DerefMut};

use crate::{Path, Span};

/// An error in a template, an environment or a property, with its position. Its parts are those of [`Details`].
///
/// The size of one pointer, because almost every function of the languages can return one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic(Box<Details>);

/// The parts of a [`Diagnostic`].
///
/// `class` and `message` are sent to clients: the class names of `reference/errors.json` and the text that Heat's
/// clients match on. `path`, `span`, `file` and `hints` are Kiln's additional data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Details {
    /// Error class, such as `StackValidationFailed`.
    pub class: Cow<'static, str>,
    /// Heat's complete text, with its path if Heat includes one.
    pub message: String,
    /// Path in the document.
    pub path: Path,
    /// Position in the text, if known.
    pub span: Option<Span>,
    /// The file, if it is not the template.
    pub file: Option<String>,
    /// Where the error is in a nested template; `path` is that of the resource that uses it.
    pub nested: Option<NestedPlace>,
    /// What is wrong, where tools must know it.
    pub subject: Option<Subject>,
    /// Hints, such as "did you mean …".
    pub hints: Vec<String>,
    /// Not an error: a value is not known yet, because a parameter without a default has no value.
    pub not_known_yet: bool,
}

/// What is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// The value of this parameter: the error is where the value comes from, which may be an environment.
    Parameter(String),
    /// There is no resource type with this name.
    ResourceType(String),
}

/// The place of an error in a nested template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NestedPlace {
    /// The name of the nested template in the files of the stack.
    pub file: String,
    /// Path in the nested template.
    pub path: Path,
    /// The message without the way to the nested template.
    pub message: String,
}

impl Diagnostic {
    /// An error with a class and a text.
    pub fn new(class: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Self(Box::new(Details {
            class: class.into(),
            message: message.into(),
            path: Path::root(),
            span: None,
            file: None,
            nested: None,
            subject: None,
            hints: Vec::new(),
            not_known_yet: false,
        }))
    }

    /// Sets the path.
    #[must_use]
    pub fn at(mut self, path: Path) -> Self {
        self.path = path;
        self
    }

    /// Sets what is wrong.
    #[must_use]
    pub fn about(mut self, subject: Subject) -> Self {
        self.subject = Some(subject);
        self
    }

    /// The parameter whose value is wrong.
    pub fn parameter(&self) -> Option<&str> {
        match &self.subject {
            Some(Subject::Parameter(name)) => Some(name),
            _ => None,
        }
    }

    /// Marks the error as caused by a value that is not known yet.
    #[must_use]
    pub fn of_unknown_value(mut self) -> Self {
        self.not_known_yet = true;
        self
    }

    /// Adds a hint.
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
