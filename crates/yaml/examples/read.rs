//! Parses texts, with the protocol of `tests/python/peer.py`: one JSON list `["yaml" or "json", text]` per input line,
//! one `{"value": repr}` or `{"error": message}` per output line. `tests/peer/yaml_tree.py` compares the results with
//! Python.

use std::io::{self, BufRead, Write};

use kiln_value::{Value, text, value};

fn answer(question: &str) -> Result<Value, String> {
    let question = kiln_yaml::json::parse(question).map_err(|error| error.to_string())?;
    let [Value::Str(operation), Value::Str(input)] = question.as_list().unwrap_or_default() else {
        return Err("a question is a list of an operation and a text".to_owned());
    };
    match operation.as_str() {
        "yaml" => kiln_yaml::parse(input).map(|document| document.value).map_err(|error| error.message),
        "json" => kiln_yaml::json::parse(input).map_err(|error| error.to_string()),
        _ => Err(format!("no such operation: {operation}")),
    }
}

fn main() -> io::Result<()> {
    let mut out = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let said = match answer(&line?) {
            Ok(value) => value!({"value": (text::repr(&value))}),
            Err(message) => value!({"error": message}),
        };
        writeln!(out, "{}", text::json(&said))?;
        out.flush()?;
    }
    Ok(())
}
