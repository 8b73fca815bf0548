//! Errors with a position.

use std::borrow::Cow;
use std::fmt;
use std::ops::{Deref, DerefMut};

use crate::{Class, Path, Span};

/// An error in a template, an environment or a property, with its position. Its parts are those of [`Details`].
///
/// The size of one pointer, because almost every function of the languages can return one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic(Box<Details>);

/// The parts of a [`Diagnostic`].
///
/// Heat's sentence consists of `cause`, `shown` and `text`: see the implementation of [`fmt::Display`]. The other parts,
/// except for the class, are Kiln's additional data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Details {
    /// Its class.
    pub class: Class,
    /// What Heat names first: `Property error`, or the class of an error in a nested template. Empty if nothing.
    pub cause: Cow<'static, str>,
    /// The path in Heat's sentence, which may be less precise than `path`. Empty if there is none.
    pub shown: String,
    /// The text, without the path.
    pub text: String,
    /// Path in the document.
    pub path: Path,
    /// Position in the text, if known.
    pub span: Option<Span>,
    /// The file, if it is not the template.
    pub file: Option<String>,
    /// Where the error is in a nested template; `path` is that of the resource that uses it.
    pub nested: Option<NestedPlace>,
    /// What is wrong, where others must know it.
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
    /// There is no parameter, resource, attribute or condition with this name.
    Name(String),
    /// There is no resource type with this name.
    ResourceType(String),
    /// There is no property with this name.
    UnknownProperty(String),
    /// This property is required and has no value.
    MissingProperty(String),
    /// Kiln does not implement this property.
    UnbuiltProperty(String),
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
    pub fn new(class: Class, text: impl Into<String>) -> Self {
        Self(Box::new(Details {
            class,
            cause: Cow::Borrowed(""),
            shown: String::new(),
            text: text.into(),
            path: Path::root(),
            span: None,
            file: None,
            nested: None,
            subject: None,
            hints: Vec::new(),
            not_known_yet: false,
        }))
    }

    /// A failed validation.
    pub fn invalid(text: impl Into<String>) -> Self {
        Self::new(Class::StackValidationFailed, text)
    }

    /// A failed validation of the property at a path, or of one in it.
    pub fn of_property(path: &Path, text: impl Into<String>) -> Self {
        Self::invalid(text).because("Property error").showing(path).at(path.clone())
    }

    /// Sets what Heat names first.
    #[must_use]
    pub fn because(mut self, cause: impl Into<Cow<'static, str>>) -> Self {
        self.cause = cause.into();
        self
    }

    /// Sets the path in Heat's sentence.
    #[must_use]
    pub fn showing(mut self, path: impl fmt::Display) -> Self {
        self.shown = path.to_string();
        self
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

    /// Heat's sentence as its API returns it: the engine sends cause and path of a failed validation with their colons, and
    /// the API adds them again.
    pub fn on_the_wire(&self) -> String {
        if self.class == Class::StackValidationFailed { self.sentence(": : ") } else { self.to_string() }
    }

    fn sentence(&self, colon: &str) -> String {
        let leading = [&*self.cause, &self.shown].into_iter().filter(|part| !part.is_empty());
        leading.flat_map(|part| [part, colon]).chain([&*self.text]).collect()
    }

    /// Whether the sentences are the same.
    pub fn says(&self, other: &Self) -> bool {
        (&self.text, &self.shown, &self.cause) == (&other.text, &other.shown, &other.cause)
    }

    /// The parameter whose value is wrong.
    pub fn parameter(&self) -> Option<&str> {
        match &self.subject {
            Some(Subject::Parameter(name)) => Some(name),
            _ => None,
        }
    }

    /// The name that nothing has: of a parameter, a resource, an attribute or a condition.
    pub fn unknown_name(&self) -> Option<&str> {
        match &self.subject {
            Some(Subject::Name(name)) => Some(name),
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

/// Heat's sentence, on which its clients depend: `Property error: resources.a.properties: Unknown Property b`.
impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence(": "))
    }
}

impl std::error::Error for Diagnostic {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_api_repeats_the_colons_after_cause_and_path() {
        let path = Path::root().key("resources").key("a");
        for (error, wire) in [
            (Diagnostic::of_property(&path, "it: is wrong"), "Property error: : resources.a: : it: is wrong"),
            (Diagnostic::of_property(&Path::root(), "no"), "Property error: : no"),
            (Diagnostic::invalid("no: no").showing(&path), "resources.a: : no: no"),
            (Diagnostic::invalid("").because("StopIteration"), "StopIteration: : "),
            (Diagnostic::new(Class::ValueError, "no: no").at(path), "no: no"),
        ] {
            assert_eq!(error.on_the_wire(), wire);
            assert_eq!(error.to_string(), wire.replace(": : ", ": "));
        }
    }
}
