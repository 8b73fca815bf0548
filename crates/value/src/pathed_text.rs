//! Error texts with a path.

/// The parts of an error text of Heat with a path: `Property error: resources.a.properties: Unknown Property b`.
/// Missing parts are empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathedText<'a> {
    /// The kind of the error: `Property error`, or the class of the cause.
    pub error: &'a str,
    /// The path.
    pub path: &'a str,
    /// The message.
    pub message: &'a str,
}

/// The sections of a template with which paths start.
const SECTIONS: [&str; 9] = [
    "resources",
    "Resources",
    "outputs",
    "Outputs",
    "conditions",
    "Conditions",
    "parameters",
    "Parameters",
    "parameter_groups",
];

impl<'a> PathedText<'a> {
    /// Splits a text.
    pub fn of(text: &'a str) -> Self {
        let whole = Self { error: "", path: "", message: text };
        let Some((head, rest)) = text.split_once(": ") else { return whole };
        if is_path(head) {
            return Self { error: "", path: head, message: rest };
        }
        match rest.split_once(": ") {
            Some((path, message)) if is_error(head) && is_path(path) => Self { error: head, path, message },
            _ if head == "Property error" => Self { error: head, path: "", message: rest },
            _ => whole,
        }
    }

    /// The text with another path and the given colons after error and path.
    fn joined(self, path: &str, colon: &str) -> String {
        let mut text = String::new();
        for part in [self.error, path].into_iter().filter(|part| !part.is_empty()) {
            text.push_str(part);
            text.push_str(colon);
        }
        text.push_str(self.message);
        text
    }

    /// The error as seen from the parent stack: `prefix` is the path of the nested template.
    pub fn below(self, prefix: &str) -> String {
        let path = if self.path.is_empty() { prefix.to_owned() } else { format!("{prefix}.{}", self.path) };
        self.joined(&path, ": ")
    }

    /// The text as Heat's API returns it: the engine sends error and path with their colons, and the API adds them
    /// again.
    pub fn on_the_wire(self) -> String {
        self.joined(self.path, ": : ")
    }
}

/// `Property error`, or a class name.
fn is_error(text: &str) -> bool {
    text == "Property error" || (!text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric()))
}

fn is_path(text: &str) -> bool {
    let rest = SECTIONS.iter().find_map(|section| text.strip_prefix(section));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[', '<']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_split() {
        for (text, wire) in [
            (
                "Property error: resources.random.properties.length: 1000 is out of range (min: 1, max: 512)",
                "Property error: : resources.random.properties.length: : 1000 is out of range (min: 1, max: 512)",
            ),
            ("Property error: Unknown Property a", "Property error: : Unknown Property a"),
            ("outputs.a.value.get_attr: The Referenced", "outputs.a.value.get_attr: : The Referenced"),
            ("ValueError: resources.g.resources[1]: no", "ValueError: : resources.g.resources[1]: : no"),
            ("Invalid: this: that", "Invalid: this: that"),
            ("The Parameter (resources: a) was not provided.", "The Parameter (resources: a) was not provided."),
        ] {
            assert_eq!(PathedText::of(text).on_the_wire(), wire);
        }
        let inner = PathedText::of("Property error: resources[0].properties: Unknown Property a");
        let outer = "Property error: resources.g<nested_stack>.resources[0].properties: Unknown Property a";
        assert_eq!(inner.below("resources.g<nested_stack>"), outer);
        assert_eq!(PathedText::of("no").below("resources.n<n.yaml>"), "resources.n<n.yaml>: no");
    }
}
