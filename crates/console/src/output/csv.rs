//! Comma-separated values, as Python's `csv` writes them for cliff.

use clap::ValueEnum;
use kiln_value::{Value, text};

use super::List;

/// Which values are quoted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Quote {
    /// All.
    All,
    /// Values with special characters.
    Minimal,
    /// All except numbers.
    #[default]
    Nonnumeric,
    /// None; separators are escaped.
    None,
}

/// The list with the column names in the first line.
pub(super) fn written(list: &List, quote: Quote) -> String {
    let mut out = String::new();
    let names: Vec<Value> = list.columns.iter().map(Value::from).collect();
    line(&mut out, &names, quote);
    for row in &list.rows {
        let values: Vec<Value> = row.iter().map(|cell| cell.value.clone()).collect();
        line(&mut out, &values, quote);
    }
    out
}

fn line(out: &mut String, values: &[Value], quote: Quote) {
    for (i, value) in values.iter().enumerate() {
        if i > 0 {
            out.push(',');
        }
        let number = matches!(value, Value::Int(_) | Value::BigInt(_) | Value::Float(_));
        let text = if value.is_null() { String::new() } else { text::str(value) };
        let needed = text.contains([',', '"', '\n', '\r']);
        let quoted = match quote {
            Quote::All => true,
            Quote::Minimal => needed,
            Quote::Nonnumeric => !number,
            Quote::None => false,
        };
        if quoted {
            out.push('"');
            out.push_str(&text.replace('"', "\"\""));
            out.push('"');
        } else if quote == Quote::None {
            for c in text.chars() {
                if matches!(c, ',' | '"' | '\\' | '\n' | '\r') {
                    out.push('\\');
                }
                out.push(c);
            }
        } else {
            out.push_str(&text);
        }
    }
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_by_mode() {
        let list = List { columns: vec!["A".into(), "B".into()], rows: vec![vec!["x,\"y".into(), 1.into()]] };
        assert_eq!(written(&list, Quote::Nonnumeric), "\"A\",\"B\"\n\"x,\"\"y\",1\n");
        assert_eq!(written(&list, Quote::Minimal), "A,B\n\"x,\"\"y\",1\n");
        assert_eq!(written(&list, Quote::None), "A,B\nx\\,\\\"y,1\n");
    }
}
