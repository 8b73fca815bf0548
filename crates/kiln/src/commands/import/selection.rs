//! Which objects of a project are meant.

use clap::Args;
use kiln_value::Value;

/// Options that choose objects. Without any: all.
#[derive(Args, Clone, Debug, Default)]
pub(super) struct SelectionArgs {
    /// Only objects of this type (OS::Nova::Server), or with this last part (server); may be repeated
    #[arg(long = "type", value_name = "TYPE")]
    types: Vec<String>,
    /// Only objects with this name; * stands for any text; may be repeated
    #[arg(long, value_name = "NAME")]
    name: Vec<String>,
    /// Only objects with this tag; may be repeated
    #[arg(long, value_name = "TAG")]
    tag: Vec<String>,
}

impl SelectionArgs {
    /// Whether nothing is chosen.
    pub(super) fn is_empty(&self) -> bool {
        self.types.is_empty() && self.name.is_empty() && self.tag.is_empty()
    }

    /// Whether an object of a scan is meant.
    pub(super) fn has(&self, object: &Value) -> bool {
        let text = |key: &str| object.str_at(key).unwrap_or_default();
        let last = |name: &str| name.rsplit("::").next().unwrap_or_default().to_lowercase();
        let resource_type = text("resource_type");
        let is_type = |wanted: &String| {
            wanted == resource_type || !wanted.contains("::") && wanted.to_lowercase() == last(resource_type)
        };
        let tags = object.get("tags").and_then(Value::as_list).unwrap_or_default();
        let has_tag = |wanted: &String| tags.iter().any(|tag| tag.as_str() == Some(wanted));
        (self.types.is_empty() || self.types.iter().any(is_type))
            && (self.name.is_empty() || self.name.iter().any(|pattern| fits(pattern, text("name"))))
            && (self.tag.is_empty() || self.tag.iter().any(has_tag))
    }
}

/// Whether a name fits a pattern in which `*` stands for any text.
fn fits(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = name.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        let Some((_, after)) = rest.split_once(part) else { return false };
        rest = after;
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use kiln_value::value;

    use super::*;

    #[test]
    fn patterns_fit_whole_names() {
        for (pattern, name) in [("web", "web"), ("web*", "web-1"), ("*", ""), ("*-1", "web-1"), ("a*b*c", "aXbYbZc")] {
            assert!(fits(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [("web", "web-1"), ("", "a"), ("a*a", "a"), ("*b", "ba"), ("a*b*c", "acb")] {
            assert!(!fits(pattern, name), "{pattern} {name}");
        }
    }

    #[test]
    fn types_are_meant_by_their_last_part_too() {
        let server = value!({ "resource_type": "OS::Nova::Server", "name": "web", "tags": ["blue"] });
        let chosen = |types: &[&str], tag: &[&str]| {
            let of = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
            SelectionArgs { types: of(types), name: Vec::new(), tag: of(tag) }.has(&server)
        };
        assert!(chosen(&[], &[]) && chosen(&["server"], &["blue"]) && chosen(&["OS::Nova::Server"], &[]));
        assert!(!chosen(&["port"], &[]) && !chosen(&["server"], &["red"]) && !chosen(&["Nova::Server"], &[]));
    }
}
