//! Writes a template that a program has made, as a person would.

use std::collections::BTreeMap;

use kiln_value::Value;

use crate::emit::{entry, has_value};

/// The text of a template. `comments` are the lines above a resource, by its name. `None` if parsing the text would not
/// return the template.
pub fn template(value: &Value, comments: &BTreeMap<String, Vec<String>>) -> Option<String> {
    let sections = value.as_map()?.iter().map(|(key, section)| match section.as_map() {
        Some(resources) if key == "resources" && !resources.is_empty() => {
            let resources = resources.iter().map(|(name, resource)| {
                let lines = comments.get(name).into_iter().flatten().map(|line| format!("  # {line}\n"));
                format!("{}  {}", lines.collect::<String>(), entry(name, resource, 2))
            });
            format!("resources:\n{}", resources.collect::<Vec<_>>().join("\n\n"))
        }
        _ => entry(key, section, 0),
    });
    let text = sections.collect::<Vec<_>>().join("\n\n") + "\n";
    has_value(&text, value).then_some(text)
}

#[cfg(test)]
mod tests {
    use kiln_value::value;

    use super::*;

    #[test]
    fn resources_have_comments_and_the_form_of_the_formatter() {
        let made = value!({
            "heat_template_version": "2018-08-31",
            "parameters": {"image": {"type": "string", "default": "i"}},
            "resources": {
                "net": {"type": "OS::Neutron::Net", "properties": {"name": "a: b", "tags": ["x"]}},
                "server": {"type": "OS::Nova::Server", "properties": {
                    "image": {"get_param": "image"}, "networks": [{"port": {"get_resource": "port"}}],
                }},
            },
        });
        let comments = BTreeMap::from([("server".to_owned(), vec!["web 1234".to_owned(), "second".to_owned()])]);
        let text = template(&made, &comments).expect("YAML");
        assert!(text.contains("\n\n  # web 1234\n  # second\n  server:\n    type: OS::Nova::Server\n"), "{text}");
        assert_eq!(crate::format::format(&text).expect("valid"), text);
    }
}
