//! XML responses: maps are elements, items of lists are `member` elements.

use kiln_value::{Map, Value, text};

/// Elements whose content is data of a template: JSON in a text.
const DATA: [&str; 3] = ["TemplateBody", "Metadata", "OutputValue"];

/// An element with its content. The names of elements are words of the API, never data of users.
pub(crate) fn element(out: &mut String, name: &str, value: &Value) {
    let is_data = DATA.contains(&name) && matches!(value, Value::Map(_) | Value::List(_));
    open(out, name);
    match value {
        data if is_data => escape(out, &text::json(data)),
        Value::Map(entries) => elements(out, entries),
        Value::List(items) => items.iter().for_each(|item| element(out, "member", item)),
        Value::Str(text) => escape(out, text),
        Value::Null => {}
        // Booleans and numbers, as XML Schema writes them.
        scalar => escape(out, &text::json(scalar)),
    }
    close(out, name);
}

/// The elements of a map. Entries without a value have no element: clients could not read it as a number or a time.
pub(crate) fn elements(out: &mut String, entries: &Map) {
    for (name, value) in entries.iter().filter(|(_, value)| !value.is_null()) {
        element(out, name, value);
    }
}

fn open(out: &mut String, name: &str) {
    out.push('<');
    out.push_str(name);
    out.push('>');
}

fn close(out: &mut String, name: &str) {
    out.push_str("</");
    out.push_str(name);
    out.push('>');
}

/// A text as the content of an element. XML has no notation for most control characters: they are replaced.
fn escape(out: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            // A parser would read it as a line feed.
            '\r' => out.push_str("&#13;"),
            '\t' | '\n' => out.push(c),
            '\0'..'\u{20}' | '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use kiln_value::value;
    use proptest::prelude::*;

    use super::*;

    fn of(value: &Value) -> String {
        let mut out = String::new();
        element(&mut out, "R", value);
        out
    }

    #[test]
    fn elements_of_values() {
        let value = value!({
            "Name": "a<b>&\"c\"\u{1}\r",
            "Stacks": [{ "Id": 1 }, { "Id": 2 }],
            "None": null,
            "Empty": [],
            "Rollback": true,
            "OutputValue": { "a.b": ["<"] },
        });
        assert_eq!(
            of(&value),
            "<R><Name>a&lt;b&gt;&amp;\"c\"\u{fffd}&#13;</Name><Stacks><member><Id>1</Id></member><member><Id>2</Id>\
             </member></Stacks><Empty></Empty><Rollback>true</Rollback><OutputValue>{\"a.b\": [\"&lt;\"]}</OutputValue></R>"
        );
    }

    proptest! {
        #[test]
        fn no_text_breaks_out_of_its_element(text in any::<String>()) {
            let out = of(&Value::from(text.as_str()));
            let inner = out.strip_prefix("<R>").and_then(|out| out.strip_suffix("</R>")).expect("one element");
            prop_assert!(!inner.contains(['<', '>']));
            prop_assert!(inner.chars().all(|c| c >= ' ' || c == '\t' || c == '\n'));
            let back = inner.replace("&lt;", "<").replace("&gt;", ">").replace("&#13;", "\r").replace("&amp;", "&");
            let printable = |c: char| if (c < ' ' && !"\t\n\r".contains(c)) || matches!(c, '\u{fffe}' | '\u{ffff}') {
                '\u{fffd}'
            } else {
                c
            };
            prop_assert_eq!(back, text.chars().map(printable).collect::<String>());
        }
    }
}
