//! The reason of a failure, with the path of the resource that caused it.

use std::fmt;

use kiln_resource::{Action, Failure};
use kiln_value::Class;

/// The reason of a resource failure: Heat's `<class>: <path>: <message>`, where the path goes through nested stacks to
/// the root cause (docs/heat-behaviour.md §1 and §14).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blame {
    /// Error class of the root cause; empty if unknown.
    pub class: Class,
    /// Resource names from the outermost stack inwards: `["g", "1"]`.
    pub path: Vec<String>,
    /// What stands behind the path where Heat reads the beginning of a text as a part of it; empty in all other
    /// reasons.
    pub beyond: String,
    /// Text of the root cause.
    pub message: String,
}

impl Blame {
    /// A failure of a resource itself.
    pub fn of(name: &str, failure: &Failure) -> Self {
        Self {
            class: failure.class.clone(),
            path: vec![name.to_owned()],
            beyond: String::new(),
            message: failure.message.clone(),
        }
    }

    /// A failure with a text that names no class and no path.
    pub fn plain(name: &str, message: &str) -> Self {
        Self::of(name, &Failure::other(Class::of(""), message))
    }

    /// The failure as seen from the parent stack, where the resource `name` owns the nested stack.
    #[must_use]
    pub fn below(mut self, name: &str) -> Self {
        self.path.insert(0, name.to_owned());
        self
    }

    /// Parses the reason of a failed nested stack: `Resource CREATE failed: ValueError: resources.inner: text`. As in
    /// Heat, the texts before the first two colons are the class and the path, even if there is no class:
    /// `resources[2]: Property error: resources.port.properties: text`.
    pub fn from_stack_reason(reason: &str) -> Option<Self> {
        let (_, rest) = reason.strip_prefix("Resource ")?.split_once(" failed: ")?;
        let (class, rest) = rest.split_once(": ")?;
        let (path, message) = rest.split_once(": ")?;
        let (class, message) = (Class::of(class.to_owned()), message.to_owned());
        Some(match path.strip_prefix("resources").and_then(parse_path) {
            Some(path) => Self { class, path, beyond: String::new(), message },
            None => Self { class, path: Vec::new(), beyond: path.to_owned(), message },
        })
    }

    /// The reason of the stack failure; `action` is the action on the resource.
    pub fn stack_reason(&self, action: Action) -> String {
        format!("Resource {action} failed: {self}")
    }
}

/// Parses `.a.resources[1]` to `["a", "1"]`.
fn parse_path(text: &str) -> Option<Vec<String>> {
    let mut path = Vec::new();
    for part in text.split(".resources") {
        let name = match part.strip_prefix('[') {
            Some(index) => index.strip_suffix(']')?,
            None => part.strip_prefix('.')?,
        };
        path.push(name.to_owned());
    }
    Some(path)
}

impl fmt::Display for Blame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.class.name().is_empty() {
            write!(f, "{}: ", self.class)?;
        }
        for (i, name) in self.path.iter().enumerate() {
            let dot = if i == 0 { "" } else { "." };
            let is_index = !name.is_empty() && name.bytes().all(|b| b.is_ascii_digit());
            if is_index {
                write!(f, "{dot}resources[{name}]")?;
            } else {
                write!(f, "{dot}resources.{name}")?;
            }
        }
        if !self.beyond.is_empty() {
            write!(f, ".{}", self.beyond)?;
        }
        write!(f, ": {}", self.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_back_what_a_nested_stack_says() {
        let inner = Blame::of("inner", &Failure::other(Class::ValueError, "no: good"));
        let stack = inner.stack_reason(Action::Create);
        assert_eq!(stack, "Resource CREATE failed: ValueError: resources.inner: no: good");
        let outer = Blame::from_stack_reason(&stack).unwrap().below("1").below("g");
        assert_eq!(outer.to_string(), "ValueError: resources.g.resources[1].resources.inner: no: good");
        let read = Blame::from_stack_reason(&outer.stack_reason(Action::Update)).unwrap();
        assert_eq!(read, outer);
    }

    /// As Heat shows it three stacks further up.
    #[test]
    fn a_reason_without_a_class_is_read_as_heat_reads_it() {
        let inner = Blame::plain("2", "Property error: resources.port.properties.network: no: such");
        let stack = inner.stack_reason(Action::Create);
        assert_eq!(
            stack,
            "Resource CREATE failed: resources[2]: Property error: resources.port.properties.network: no: such"
        );
        let outer = Blame::from_stack_reason(&stack).unwrap().below("osd");
        assert_eq!(
            outer.to_string(),
            "resources[2]: resources.osd.Property error: resources.port.properties.network: no: such"
        );
        let outermost = Blame::from_stack_reason(&outer.stack_reason(Action::Create)).unwrap().below("top");
        assert_eq!(
            outermost.to_string(),
            "resources[2]: resources.top.resources.osd.Property error: resources.port.properties.network: no: such"
        );
    }

    #[test]
    fn other_reasons_have_no_path() {
        assert_eq!(Blame::from_stack_reason("Timed out"), None);
        assert_eq!(Blame::from_stack_reason("Resource CREATE failed: x"), None);
        assert_eq!(Blame::from_stack_reason("Resource CREATE failed: resources.x: y"), None);
    }
}
