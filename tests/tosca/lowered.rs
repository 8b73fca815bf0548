//! The HOT templates that service templates become: compared with those of heat-translator, and validated.

use std::collections::BTreeMap;

use kiln_topology::lower::{Lowered, by_cloud_init, lower};
use kiln_topology::tosca::Template;
use kiln_value::{Map, Value};

use crate::validation::validate;

type Verdict = Option<String>;

/// The fields of a record: `lowered`, `covered` (the resources of heat-translator's template), `valid`.
pub(crate) fn judge(record: &Value, root: &str, template: &Template) -> Vec<(&'static str, Verdict)> {
    if template.graph.nodes.is_empty() {
        return Vec::new();
    }
    let theirs = record.get("translate");
    match lower(&template.graph, root) {
        Err(refusals) => {
            let messages: Vec<String> =
                refusals.iter().map(|refusal| format!("{}: {}", refusal.at, refusal.message)).collect();
            // What neither of the two can express.
            let both = theirs.is_some_and(|theirs| !theirs.get("ok").is_some_and(Value::is_truthy));
            if both { Vec::new() } else { vec![("lowered", Some(messages.join("\n")))] }
        }
        Ok(lowered) => {
            let mut verdicts = vec![("lowered", None)];
            if let Some(theirs) = theirs.filter(|theirs| theirs.get("ok").is_some_and(Value::is_truthy)) {
                verdicts.push(("covered", covered(theirs, &lowered)));
            }
            let given = crate::map_at(record, "parameters");
            verdicts.push(("valid", validate(&lowered, &given)));
            // What requires an agent is refused.
            if let Ok(by_cloud_init) = by_cloud_init(lowered) {
                verdicts.push(("valid_by_cloud_init", validate(&by_cloud_init, &given)));
            }
            verdicts
        }
    }
}

/// Each type must stand as often as in heat-translator's template and those nested in it.
fn covered(theirs: &Value, lowered: &Lowered) -> Verdict {
    let mut expected = BTreeMap::new();
    let nested = theirs.get("files").and_then(Value::as_map);
    theirs.get("hot").into_iter().chain(nested.into_iter().flat_map(Map::values)).for_each(|t| count(t, &mut expected));
    let mut found = BTreeMap::new();
    std::iter::once(&lowered.template).chain(lowered.nested.values()).for_each(|t| count(t, &mut found));
    let missing: Vec<String> = expected
        .iter()
        .filter(|(kind, number)| found.get(*kind).is_none_or(|found| found < *number))
        .map(|(kind, number)| format!("{kind}: {number} expected, {} found", found.get(kind).unwrap_or(&0)))
        .collect();
    (!missing.is_empty()).then(|| missing.join("\n"))
}

fn count(template: &Value, numbers: &mut BTreeMap<String, usize>) {
    let resources = template.get("resources").and_then(Value::as_map);
    for kind in resources.into_iter().flat_map(Map::values).filter_map(|resource| resource.str_at("type")) {
        if kind.starts_with("OS::") {
            *numbers.entry(kind.to_owned()).or_insert(0) += 1;
        }
    }
}
