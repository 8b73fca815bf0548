//! Style.

use kiln_template::hint::nearest;
use kiln_template::version::Dialect;
use kiln_template::{Release, functions};
use kiln_value::{Path, Segment, Value};

use super::{Findings, Subject};
use crate::walk::{calls, visit};

const NEWEST: Release = Release::Hot20210416;

pub(super) fn old_version(subject: &Subject, findings: &mut Findings) {
    let release = subject.page.release();
    if release == NEWEST {
        return;
    }
    let path = Path::root().key(release.dialect().version_key());
    let span = subject.page.value_span(&path);
    let message = format!("{} is older than {}", subject.page.template.version(), NEWEST.name());
    findings.add(message, path, span, Some("'kiln template upgrade' rewrites it".to_owned()));
}

/// CFN functions in HOT and their replacements.
const SUCCESSORS: [(&str, &str); 8] = [
    ("Fn::Join", "list_join"),
    ("Fn::Split", "str_split"),
    ("Fn::Replace", "str_replace"),
    ("Fn::Select", "a path in get_attr or get_param"),
    ("Fn::Base64", "its argument: the function does not change it"),
    ("Fn::MemberListToMap", "a map"),
    ("Fn::ResourceFacade", "resource_facade"),
    ("Ref", "get_resource or get_param"),
];

/// Common YAQL expressions and the functions that replace them.
const INSTEAD_OF_YAQL: [(&str, &str); 5] = [
    (".mergeWith(", "map_merge"),
    (".join(", "list_join"),
    (".split(", "str_split"),
    (".distinct()", "list_concat_unique"),
    (".replace(", "str_replace"),
];

pub(super) fn simpler(subject: &Subject, findings: &mut Findings) {
    let (page, release) = (subject.page, subject.page.release());
    if release.dialect() != Dialect::Hot {
        return;
    }
    for call in calls(page, &[]) {
        let span = page.span(&call.path);
        let successor = SUCCESSORS.iter().find(|(name, _)| *name == call.function);
        if let Some((name, instead)) = successor {
            let message = format!("{name} does not exist in newer versions");
            findings.add(message, call.path, span, Some(format!("use {instead} instead")));
            continue;
        }
        let advice = match call.function {
            "yaql" => of_yaql(call.args),
            "if" => of_if(call.args, &call.path),
            "str_replace" => of_replace(call.args),
            _ => None,
        };
        let Some((function, message)) = advice else { continue };
        let newer = since(function).filter(|since| *since > release);
        let hint = newer.map(|since| format!("available since {}", since.name()));
        findings.add(message, call.path, span, hint);
    }
}

/// The release that introduced the current form of a function.
fn since(function: &str) -> Option<Release> {
    if function == "if" {
        return Some(NEWEST);
    }
    let hot = Release::ALL.into_iter().filter(|release| release.dialect() == Dialect::Hot);
    hot.into_iter().find(|release| functions(*release, true).iter().any(|known| known.name == function))
}

fn of_yaql(args: &Value) -> Option<(&'static str, String)> {
    let expression = args.str_at("expression")?;
    // One step only: longer chains are a good use of YAQL.
    let steps = expression.matches('(').count();
    let (_, function) =
        INSTEAD_OF_YAQL.iter().find(|(step, _)| steps == 1 && expression.contains(step) && is_chain(expression))?;
    Some((function, format!("{function} does this without YAQL")))
}

/// Whether an expression is a single chain of calls on the data, rather than a calculation with chains.
fn is_chain(expression: &str) -> bool {
    let (expression, mut quote, mut depth) = (expression.trim(), None, 0_u32);
    let is_step = |c: char| c.is_alphanumeric() || "$._[]".contains(c);
    for c in expression.chars() {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (None, '\'' | '"' | '`') => quote = Some(c),
            (None, '(') => depth += 1,
            (None, ')') => depth = depth.saturating_sub(1),
            (None, _) if depth == 0 && !is_step(c) => return false,
            _ => {}
        }
    }
    expression.starts_with('$') && expression.ends_with(')')
}

/// In a list, a null item is kept but an absent one is not.
fn of_if(args: &Value, path: &Path) -> Option<(&'static str, String)> {
    let is_null = args.at(2).is_some_and(Value::is_null);
    let in_list = matches!(path.0.iter().rev().nth(1), Some(Segment::Index(_)));
    (is_null && !in_list)
        .then(|| ("if", "an if without an else leaves the property out; the null is not needed".to_owned()))
}

fn of_replace(args: &Value) -> Option<(&'static str, String)> {
    let inner = args.get("template")?.get("str_replace")?;
    inner.get("params")?;
    Some(("str_replace", "combine both into one str_replace".to_owned()))
}

/// A misspelled function name makes the call a plain map.
pub(super) fn misspelt(subject: &Subject, findings: &mut Findings) {
    let page = subject.page;
    let known: Vec<&str> = functions(page.release(), true).iter().map(|function| function.name).collect();
    visit(page.value(), &Path::root(), &mut |value, path| {
        let Some((key, _)) =
            value.as_map().filter(|map| map.len() == 1 && path.0.len() > 2).and_then(|map| map.first())
        else {
            return;
        };
        if known.contains(&key.as_str()) || !(key.contains('_') || key.starts_with("Fn:")) {
            return;
        }
        let Some(near) = nearest(key, known.iter().copied().filter(|name| is_slip(key, name))) else { return };
        let at = path.key(key.as_str());
        let span = page.span(&at);
        findings.add(
            format!("{key} is not a function: this is a map"),
            at,
            span,
            Some(format!("did you mean {near}?")),
        );
    });
}

/// Whether two words differ at one position only, by one or two characters: other words may be similar by chance.
fn is_slip(one: &str, other: &str) -> bool {
    let before = one.chars().zip(other.chars()).take_while(|(a, b)| a == b).count();
    let behind = one.chars().rev().zip(other.chars().rev()).take_while(|(a, b)| a == b).count();
    let (length, others) = (one.chars().count(), other.chars().count());
    length.abs_diff(others) <= 1 && before + behind + 2 >= length.max(others)
}

/// Unquoted words that PyYAML reads as booleans.
const TRUTHS: [&str; 4] = ["yes", "no", "on", "off"];

pub(super) fn surprising(subject: &Subject, findings: &mut Findings) {
    let page = subject.page;
    visit(page.value(), &Path::root(), &mut |value, path| {
        if !matches!(value, Value::Bool(_) | Value::Int(_)) {
            return;
        }
        let span = page.value_span(path);
        let written = page.slice(span);
        let is_octal = written.len() > 1
            && written.starts_with('0')
            && written.bytes().all(|byte| byte.is_ascii_digit())
            && matches!(value, Value::Int(_));
        let is_truth = TRUTHS.iter().any(|word| word.eq_ignore_ascii_case(written));
        if is_octal || is_truth {
            let is = kiln_value::text::json(value);
            let hint = format!("write \"{written}\" for a string, or {is}");
            findings.add(format!("YAML reads the unquoted {written} as {is}"), path.clone(), span, Some(hint));
        }
    });
}

pub(super) fn empty(subject: &Subject, findings: &mut Findings) {
    let (page, words) = (subject.page, subject.page.template.words());
    let sections = [words.parameters, words.conditions, words.outputs, "parameter_groups", "Mappings"];
    let top = sections.into_iter().map(|section| Path::root().key(section));
    let resources = page.section(words.resources).flat_map(|(name, _)| {
        let resource = Path::root().key(words.resources).key(name.as_str());
        [words.properties, words.metadata, words.depends_on].map(|key| resource.key(key))
    });
    for path in top.chain(resources) {
        let Some(value) = crate::walk::value_at(page.value(), &path) else { continue };
        if matches!(value, Value::Null | Value::Map(_) | Value::List(_)) && !value.is_truthy() {
            let span = page.span(&path);
            findings.add("this is empty", path, span, Some("remove it".to_owned()));
        }
    }
}

pub(super) fn undescribed(subject: &Subject, findings: &mut Findings) {
    let (page, words) = (subject.page, subject.page.template.words());
    for section in [words.parameters, words.outputs] {
        for (name, declared) in page.section(section) {
            if !declared.get(words.description).is_some_and(Value::is_truthy) {
                let path = Path::root().key(section).key(name.as_str());
                let span = page.span(&path);
                findings.add(format!("\"{name}\" has no description"), path, span, None);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yaql_with_one_step_can_be_replaced() {
        let advised = |expression: &str| of_yaql(&kiln_value::value!({"expression": expression})).map(|(name, _)| name);
        assert_eq!(advised("$.data.a.mergeWith($.data.b)"), Some("map_merge"));
        assert_eq!(advised("$.data.list.distinct()"), Some("list_concat_unique"));
        assert_eq!(advised("$.data.list.where($ != '').join(',')"), None);
        assert_eq!(advised("$.data.text.split('+ ')"), Some("str_split"));
        assert_eq!(advised("$.data.a+\"x\"+$.data.b.split(',')"), None);
        assert_eq!(advised("$.data.b.split(',') = $.data.a"), None);
        assert_eq!(since("list_concat_unique"), Some(Release::Hot20170901));
    }

    #[test]
    fn a_null_else_can_be_omitted() {
        let of_property = Path::root().key("name").key("if");
        let of_item = Path::root().key("names").index(0).key("if");
        assert!(of_if(&kiln_value::value!(["c", 1, null]), &of_property).is_some());
        assert!(of_if(&kiln_value::value!(["c", 1, 2]), &of_property).is_none());
        assert!(of_if(&kiln_value::value!(["c", 1, null]), &of_item).is_none(), "a null item is an item");
        assert_eq!(since("if"), Some(NEWEST));
    }
}
