//! Unused definitions.

use std::collections::BTreeSet;

use kiln_value::{Path, Segment, Value, text};

use super::{Findings, Subject};
use crate::mention::{Manner, Mention, Role};
use crate::walk::{calls, literal_texts};

impl Subject<'_> {
    fn declared(&self, role: &Role) -> impl Iterator<Item = &Mention> {
        self.mentions.iter().filter(move |mention| mention.role == *role && mention.manner == Manner::Declared)
    }

    fn used(&self, role: &Role) -> BTreeSet<&str> {
        let uses = self.mentions.iter().filter(|mention| mention.role == *role);
        uses.filter(|mention| mention.manner == Manner::Used).map(|mention| mention.name.as_str()).collect()
    }

    fn unused(&self, role: &Role) -> Vec<&Mention> {
        let used = self.used(role);
        self.declared(role).filter(|mention| !used.contains(mention.name.as_str())).collect()
    }
}

pub(super) fn parameters(subject: &Subject, findings: &mut Findings) {
    for unused in subject.unused(&Role::Parameter) {
        let hint = "remove it or use it".to_owned();
        let message = format!("the parameter \"{}\" is never used", unused.name);
        findings.add(message, unused.path.clone(), unused.span, Some(hint));
    }
}

pub(super) fn conditions(subject: &Subject, findings: &mut Findings) {
    for unused in subject.unused(&Role::Condition) {
        let message = format!("the condition \"{}\" is never used", unused.name);
        findings.add(message, unused.path.clone(), unused.span, None);
    }
}

pub(super) fn mappings(subject: &Subject, findings: &mut Findings) {
    let page = subject.page;
    let lookups: Vec<Value> = calls(page, &["Fn::FindInMap"]).into_iter().map(|call| call.args.clone()).collect();
    // A computed name may be any name.
    if lookups.iter().any(|args| args.at(0).is_some_and(|name| name.as_str().is_none())) {
        return;
    }
    for (name, _) in page.section("Mappings") {
        if !lookups.iter().any(|args| args.at(0).and_then(Value::as_str) == Some(name)) {
            let path = Path::root().key("Mappings").key(name.as_str());
            let span = page.span(&path);
            findings.add(format!("the mapping \"{name}\" is never used"), path, span, None);
        }
    }
}

pub(super) fn replacements(subject: &Subject, findings: &mut Findings) {
    let names = ["str_replace", "str_replace_strict", "str_replace_vstrict"];
    for call in calls(subject.page, &names) {
        let (Some(template), Some(Value::Map(params))) = (call.args.str_at("template"), call.args.get("params")) else {
            continue;
        };
        // The inserted values may contain other keys.
        let inserted: Vec<&str> = params.values().flat_map(literal_texts).collect();
        let is_there = |key: &str| template.contains(key) || inserted.iter().any(|text| text.contains(key));
        for key in params.keys().filter(|key| !is_there(key)) {
            let path = call.path.key("params").key(key.as_str());
            let span = subject.page.span(&path);
            let message = format!("{} does not occur in the template of this {}", text::quote(key), call.function);
            findings.add(message, path, span, None);
        }
    }
}

/// Finds resources without references in either direction. Servers and similar resources are useful without references,
/// so this rule is advice and disabled by default.
pub(super) fn resources(subject: &Subject, findings: &mut Findings) {
    let mut related: BTreeSet<&str> = BTreeSet::new();
    for mention in subject.mentions.iter().filter(|mention| mention.role == Role::Resource) {
        if mention.manner != Manner::Declared {
            related.insert(&mention.name);
            related.extend(holder(&mention.path).map(String::as_str));
        }
    }
    for resource in subject.declared(&Role::Resource) {
        if !related.contains(resource.name.as_str()) {
            let message = format!("nothing refers to the resource \"{}\", and it refers to nothing", resource.name);
            let hint = "use it in an output or remove it".to_owned();
            findings.add(message, resource.path.clone(), resource.span, Some(hint));
        }
    }
}

/// The resource that contains a path.
fn holder(path: &Path) -> Option<&String> {
    match path.0.as_slice() {
        [Segment::Key(section), Segment::Key(name), ..] if section.eq_ignore_ascii_case("resources") => Some(name),
        _ => None,
    }
}
