//! Errors, with the names of the reference implementation.

use kiln_value::steps::Exhausted;

use crate::object::Object;
use crate::repr;

/// An error of parsing or evaluation.
///
/// `class` is the name of the exception in the reference implementation (or in Python), such as
/// `NoMatchingFunctionException` or `KeyError`; `message` is the text of that exception.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    /// The name of the exception.
    pub class: &'static str,
    /// Its text.
    pub message: String,
}

impl Error {
    /// An error of a class.
    pub(crate) fn new(class: &'static str, message: impl Into<String>) -> Self {
        Self { class, message: message.into() }
    }

    pub(crate) fn value(message: impl Into<String>) -> Self {
        Self::new("ValueError", message)
    }

    pub(crate) fn type_error(message: impl Into<String>) -> Self {
        Self::new("TypeError", message)
    }

    pub(crate) fn not_iterable(value: &Object) -> Self {
        Self::type_error(format!("'{}' object is not iterable", value.type_name()))
    }

    pub(crate) fn key(key: &Object) -> Self {
        Self::new("KeyError", repr::repr(key))
    }

    pub(crate) fn stop() -> Self {
        Self::new("StopIteration", "")
    }

    pub(crate) fn overflow() -> Self {
        Self::new("OverflowError", "Python int too large to convert to C ssize_t")
    }

    /// Whether the expression is syntactically invalid.
    pub fn is_syntax(&self) -> bool {
        matches!(self.class, "YaqlGrammarException" | "YaqlLexicalException")
    }

    pub(crate) fn lexical(character: char, position: usize) -> Self {
        let message = format!("Lexical error: illegal character '{character}' at position {position}");
        Self::new("YaqlLexicalException", message)
    }

    pub(crate) fn grammar(value: &str, position: usize, expression: &str) -> Self {
        let message = format!("Parse error: unexpected '{value}' at position {position} of expression '{expression}'");
        Self::new("YaqlGrammarException", message)
    }

    pub(crate) fn unexpected_end() -> Self {
        Self::new("YaqlGrammarException", "Parse error: unexpected end of statement")
    }

    pub(crate) fn collection_too_large(limit: usize) -> Self {
        Self::new("CollectionTooLargeException", format!("Collection length exceeds {limit} elements"))
    }

    pub(crate) fn too_much_memory() -> Self {
        Self::new("MemoryQuotaExceededException", "Expression consumed too much memory")
    }

    pub(crate) fn recursion() -> Self {
        Self::new("RecursionError", "maximum recursion depth exceeded")
    }

    pub(crate) fn exhausted(exhausted: Exhausted) -> Self {
        Self::new("RequestLimitExceeded", exhausted.to_string())
    }

    pub(crate) fn too_many_steps(limit: u64) -> Self {
        Self::new("YaqlException", format!("Expression takes more than {limit} steps"))
    }

    /// There is no overload with that name.
    pub(crate) fn not_registered(name: &str, receiver: Option<&Object>) -> Self {
        match receiver {
            None => Self::new("NoFunctionRegisteredException", format!("Unknown function \"{name}\"")),
            Some(receiver) => Self::new(
                "NoMethodRegisteredException",
                format!("Unknown method \"{name}\" for receiver {}", repr::text(receiver)),
            ),
        }
    }

    /// No overload accepts these arguments.
    pub(crate) fn not_matching(name: &str, receiver: Option<&Object>) -> Self {
        match receiver {
            None => {
                Self::new("NoMatchingFunctionException", format!("No function \"{name}\" matches supplied arguments"))
            }
            Some(receiver) => Self::new(
                "NoMatchingMethodException",
                format!("No method \"{name}\" for receiver {} matches supplied arguments", repr::text(receiver)),
            ),
        }
    }

    /// Several overloads match equally well.
    pub(crate) fn ambiguous(name: &str, receiver: Option<&Object>) -> Self {
        match receiver {
            None => Self::new("AmbiguousFunctionException", format!("Ambiguous function \"{name}\"")),
            Some(receiver) => Self::new(
                "AmbiguousMethodException",
                format!("Ambiguous method \"{name}\" for receiver {}", repr::text(receiver)),
            ),
        }
    }

    pub(crate) fn mapping_translation() -> Self {
        Self::new("MappingTranslationException", "Cannot convert mapping to keyword argument")
    }

    /// Whether a group aggregator may be retried in its old form after this error (see `groupBy`).
    pub(crate) fn allows_fallback(&self) -> bool {
        matches!(self.class, "NoMatchingMethodException" | "NoMatchingFunctionException" | "IndexError")
    }
}
