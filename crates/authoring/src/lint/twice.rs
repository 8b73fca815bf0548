//! Redundant definitions.

use std::collections::HashSet;

use kiln_value::{Path, Segment};

use super::{Findings, Subject};
use crate::duplicates::duplicates;
use crate::mention::{Manner, Role};

pub(super) fn keys(subject: &Subject, findings: &mut Findings) {
    for duplicate in duplicates(&subject.page.text) {
        let path = subject.page.at(duplicate.span.start).0;
        findings.add(duplicate.message(), path, duplicate.span, Some(duplicate.hint()));
    }
}

pub(super) fn depends_on(subject: &Subject, findings: &mut Findings) {
    // References by the entry that contains them; only those that do not depend on conditions.
    let not_counted = ["if", "Fn::If", "update_policy", "external_id"];
    let is_sure = |path: &Path| {
        !path.0.iter().any(|step| matches!(step, Segment::Key(key) if not_counted.contains(&key.as_str())))
    };
    let used: HashSet<(&[Segment], &str)> = subject
        .mentions
        .iter()
        .filter(|mention| mention.role == Role::Resource && mention.manner == Manner::Used && is_sure(&mention.path))
        .filter_map(|mention| Some((mention.path.0.get(..2)?, mention.name.as_str())))
        .collect();
    for awaited in subject.mentions.iter().filter(|mention| mention.manner == Manner::Awaited) {
        if awaited.path.0.get(..2).is_some_and(|entry| used.contains(&(entry, awaited.name.as_str()))) {
            let message = format!("depends_on is not needed: the resource refers to \"{}\"", awaited.name);
            findings.add(message, awaited.path.clone(), awaited.span, None);
        }
    }
}
