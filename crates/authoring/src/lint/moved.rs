//! Moves of resources to other names.

use std::collections::BTreeSet;

use kiln_value::Path;

use super::{Findings, Subject};

pub(super) fn moves(subject: &Subject, findings: &mut Findings) {
    let page = subject.page;
    let words = page.template.words();
    // What is wrong is an error, and no advice.
    let moves = page.template.moves().unwrap_or_default();
    if moves.is_empty() {
        return;
    }
    let section = Path::root().key(words.moved);
    let remove = "remove the section when all stacks are updated, or for Heat";
    let message = format!("Heat refuses the section {}", words.moved);
    findings.add(message, section.clone(), page.span(&section), Some(remove.to_owned()));
    let known: BTreeSet<&str> =
        page.template.resource_names().chain(moves.iter().map(|one| one.from.as_str())).collect();
    for (index, one) in moves.iter().enumerate().filter(|(_, one)| !known.contains(one.to.as_str())) {
        let path = section.index(index);
        let message = format!("the template has no resource \"{}\", so nothing is moved to it", one.to);
        let span = page.span(&path);
        findings.add(message, path, span, Some("remove this entry".to_owned()));
    }
}
