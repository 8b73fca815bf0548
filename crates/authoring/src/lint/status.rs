//! Deprecated and removed features of Heat.

use kiln_resource::{PropertySchema, Support, SupportStatus};
use kiln_value::{Path, Value};

use super::{Findings, Subject};
use crate::mention::Role;

/// The message and hint for a status; `None` if the feature is supported.
fn report(what: &str, status: &SupportStatus) -> Option<(String, Option<String>)> {
    let word = match status.status {
        Support::Supported => return None,
        Support::Deprecated => "deprecated",
        Support::Hidden => "no longer shown to users",
        Support::Unsupported => "not supported",
    };
    let since = status.version.as_deref().map(|version| format!(" since {version}")).unwrap_or_default();
    Some((format!("{what} is {word}{since}"), advice(status)))
}

/// What to use instead: what is hidden today was deprecated before, with the advice.
fn advice(status: &SupportStatus) -> Option<String> {
    std::iter::successors(Some(status), |status| status.previous.as_deref()).find_map(|status| status.message.clone())
}

pub(super) fn types(subject: &Subject, findings: &mut Findings) {
    let (page, words) = (subject.page, subject.page.template.words());
    for (name, resource) in page.section(words.resources) {
        let Some(written) = resource.str_at(words.resource_type) else { continue };
        let Some(found) = page.resource_type(subject.catalog, name) else { continue };
        if let Some((message, hint)) = report(written, &found.support) {
            let path = Path::root().key(words.resources).key(name.as_str()).key(words.resource_type);
            let span = page.value_span(&path);
            findings.add(message, path, span, hint);
        }
    }
}

pub(super) fn unimplemented(subject: &Subject, findings: &mut Findings) {
    let (page, words) = (subject.page, subject.page.template.words());
    for (name, resource) in page.section(words.resources) {
        let Some(written) = resource.str_at(words.resource_type) else { continue };
        let Some(found) = page.resource_type(subject.catalog, name) else { continue };
        if subject.catalog.types.refusal(found, written).is_some() {
            let path = Path::root().key(words.resources).key(name.as_str()).key(words.resource_type);
            let span = page.value_span(&path);
            findings.add(format!("{written} is not implemented by Kiln yet"), path, span, None);
        }
    }
}

pub(super) fn properties(subject: &Subject, findings: &mut Findings) {
    let (page, words) = (subject.page, subject.page.template.words());
    for (name, resource) in page.section(words.resources) {
        let Some(found) = page.resource_type(subject.catalog, name) else { continue };
        let Some(Value::Map(given)) = resource.get(words.properties) else { continue };
        let path = Path::root().key(words.resources).key(name.as_str()).key(words.properties);
        for (property, value) in given {
            if let Some(schema) = found.properties.get(property) {
                judge(subject, findings, property, schema, value, &path.key(property.as_str()));
            }
        }
    }
}

fn judge(subject: &Subject, findings: &mut Findings, name: &str, schema: &PropertySchema, value: &Value, path: &Path) {
    if let Some((message, hint)) = report(&format!("the property \"{name}\""), &schema.support) {
        findings.add(message, path.clone(), subject.page.span(path), hint);
        return;
    }
    match (value, schema.items(), schema.members()) {
        (Value::List(list), Some(items), _) => {
            for (index, value) in list.iter().enumerate() {
                judge(subject, findings, name, items, value, &path.index(index));
            }
        }
        (Value::Map(map), _, Some(members)) => {
            for (key, value) in map {
                if let Some(schema) = members.get(key) {
                    judge(subject, findings, key, schema, value, &path.key(key.as_str()));
                }
            }
        }
        _ => {}
    }
}

pub(super) fn attributes(subject: &Subject, findings: &mut Findings) {
    for mention in &subject.mentions {
        let Role::Attribute(resource) = &mention.role else { continue };
        let found = subject.page.resource_type(subject.catalog, resource);
        let Some(schema) = found.and_then(|found| found.attributes.get(&mention.name)) else { continue };
        if let Some((message, hint)) = report(&format!("the attribute \"{}\"", mention.name), &schema.support) {
            findings.add(message, mention.path.clone(), mention.span, hint);
        }
    }
}
