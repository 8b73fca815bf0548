//! Pages for browsers that need no other file.

use std::fmt::Write as _;

use crate::output::{Cell, List, markup};

const STYLE: &str = "\
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem; }
";
const TABLES: &str = "\
table { border-collapse: collapse; }
th, td { border: 1px solid; padding: .2rem .5rem; text-align: left; vertical-align: top; overflow-wrap: anywhere; }
";

/// A page with this title, style and body, which are HTML. It makes no request and runs no script.
pub(crate) fn page(title: &str, style: &str, body: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta http-equiv=\"Content-Security-Policy\" \
         content=\"default-src 'none'; style-src 'unsafe-inline'\">\n<meta name=\"viewport\" \
         content=\"width=device-width\">\n<title>{title}</title>\n<style>\n{STYLE}{style}</style>\n</head>\n<body>\n\
         <h1>{title}</h1>\n{body}</body>\n</html>\n"
    )
}

/// A report: a text, and tables below their headings. A table without rows is left out.
pub fn report(title: &str, text: &str, tables: &[(&str, &List)]) -> String {
    let mut body = format!("<p>{}</p>\n", markup(text));
    for (heading, list) in tables.iter().filter(|(_, list)| !list.rows.is_empty()) {
        _ = write!(body, "<h2>{}</h2>\n<table>\n", markup(heading));
        row(&mut body, "th", list.columns.iter().cloned());
        for cells in &list.rows {
            row(&mut body, "td", cells.iter().map(Cell::shown));
        }
        body += "</table>\n";
    }
    page(&markup(title), TABLES, &body)
}

fn row(body: &mut String, tag: &str, texts: impl Iterator<Item = String>) {
    *body += "<tr>";
    for text in texts {
        _ = write!(body, "<{tag}>{}</{tag}>", markup(&text));
    }
    *body += "</tr>\n";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_others_are_no_tags() {
        let list = List { columns: vec!["A".to_owned()], rows: vec![vec!["<script>".into()]] };
        let empty = List { columns: vec!["B".to_owned()], rows: Vec::new() };
        let page = report("Heat & Kiln", "all", &[("Rows", &list), ("Nothing", &empty)]);
        assert!(page.contains("<h1>Heat &amp; Kiln</h1>\n<p>all</p>\n<h2>Rows</h2>"), "{page}");
        assert!(page.contains("<tr><th>A</th></tr>\n<tr><td>&lt;script&gt;</td></tr>"), "{page}");
        assert!(!page.contains("<script>") && !page.contains("Nothing"), "{page}");
    }
}
