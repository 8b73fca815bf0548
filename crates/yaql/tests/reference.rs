//! The vectors of the reference service that consist only of an expression and plain data. `KILN_VECTORS` selects
//! another file.

use kiln_value::{Map, Value, text};
use kiln_yaql::{Limits, parse};

/// The expression and its data; `None` if other template functions are involved.
fn plain(case: &Value) -> Option<(&str, Value)> {
    let snippet = case.get("input")?.get("snippet")?.as_map()?;
    let args = snippet.get("yaql")?.as_map().filter(|args| snippet.len() == 1 && args.contains_key("expression"))?;
    let call = |value: &Value| {
        let names = ["get_param", "get_attr", "get_resource", "list_join", "str_replace", "get_file"];
        value.as_map().is_some_and(|map| map.keys().any(|key| names.contains(&key.as_str())))
    };
    let data = args.get("data").cloned().unwrap_or_else(|| Value::Map(Map::new()));
    let nested = data.as_map().is_some_and(|map| map.values().any(call));
    if call(&data) || nested {
        return None;
    }
    let expect = case.get("expect")?;
    let untouched = expect.get("value") == Some(&Value::Map(snippet.clone()));
    if untouched || expect.get("parse_error").is_some() || expect.get("template_error").is_some() {
        return None;
    }
    Some((args.get("expression")?.as_str()?, data))
}

/// The values for the tagged values of a vector: sets are lists, times are strings.
fn untagged(value: &Value) -> Value {
    match value {
        Value::Map(map) => match map.first() {
            Some((key, inner)) if map.len() == 1 && key.starts_with("__") => untagged(inner),
            _ => map.iter().map(|(key, value)| (key, untagged(value))).collect(),
        },
        Value::List(items) => items.iter().map(untagged).collect(),
        other => other.clone(),
    }
}

fn sorted(value: &Value) -> Value {
    let mut items = value.as_list().unwrap_or_default().to_vec();
    items.sort_by_key(text::repr);
    Value::List(items)
}

fn problem(case: &Value, expression: &str, data: Value) -> Option<String> {
    let data = Value::from_iter([("data", data)]);
    let result = parse(expression).and_then(|parsed| parsed.evaluate(&data, &Limits::default()));
    let expect = case.get("expect")?;
    match (result, expect.get("resolve_error")) {
        (Ok(value), None) => {
            let wanted = expect.get("value").unwrap_or(&Value::Null);
            let is_set = wanted.get("__set__").is_some();
            let wanted = untagged(wanted);
            let (wanted, value) = if is_set { (sorted(&wanted), sorted(&value)) } else { (wanted, value) };
            (text::repr(&wanted) != text::repr(&value) && wanted != value)
                .then(|| format!("expected {}, got {}", text::repr(&wanted), text::repr(&value)))
        }
        (Ok(value), Some(error)) => Some(format!("expected {}, got {}", text::repr(error), text::repr(&value))),
        (Err(error), None) => Some(format!("expected {:?}, got {}: {error}", expect.get("value"), error.class)),
        (Err(error), Some(wanted)) => {
            let message = if error.is_syntax() { format!("Bad expression {error}.") } else { error.message.clone() };
            let class = if error.is_syntax() { "ValueError" } else { error.class };
            let advisory = wanted.get("advisory_message").is_some() || wanted.get("message") == Some(&Value::Null);
            let same = wanted.str_at("class") == Some(class)
                && (advisory || wanted.str_at("message") == Some(message.as_str()));
            (!same).then(|| format!("expected {}, got {class}: {message}", text::repr(wanted)))
        }
    }
}

#[test]
fn results_match_the_reference() {
    let own = || concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/vectors.jsonl").into();
    let file = std::env::var_os("KILN_VECTORS").unwrap_or_else(own);
    let vectors = std::fs::read_to_string(file).unwrap();
    let (mut total, mut problems) = (0, Vec::new());
    for line in vectors.lines().filter(|line| line.contains("\"yaql")) {
        let case = kiln_yaml::json::parse(line).unwrap();
        let Some((expression, data)) = plain(&case) else { continue };
        total += 1;
        if let Some(problem) = problem(&case, expression, data) {
            problems.push(format!("{expression}\n    {problem}"));
        }
    }
    println!("{} of {total}", total - problems.len());
    assert!(total > 500, "only {total} vectors found");
    assert!(problems.is_empty(), "{} of {total} fail:\n{}", problems.len(), problems.join("\n"));
}
