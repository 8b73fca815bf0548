//! The resources that the driver of another one reads.

use kiln_resource::{Driver, Facts, Observed, Resource};
use kiln_value::Value;

use crate::{Kind, Model, facts};

/// Adds to `facts` the resources that the driver of `row` observes: current rows of the stack, by what `get_resource`
/// gives for them.
pub fn observe(
    model: &Model,
    row: &Resource,
    driver: &dyn Driver,
    kind_of: impl Fn(&Resource) -> Option<Kind>,
    facts: &mut Facts,
) {
    let wanted = driver.observes(facts);
    let wanted: Vec<&Value> = wanted.iter().filter(|id| !id.is_null()).collect();
    let types = driver.observed_types();
    if wanted.is_empty() && types.is_empty() {
        return;
    }
    // A reference in the template makes it a dependency; only a literal ID has to be searched for.
    let required = row.requires.iter().filter_map(|id| model.row(*id));
    let mut found = matching(required, &wanted, &kind_of, facts);
    if found.len() < wanted.len() {
        found = matching(model.rows(), &wanted, &kind_of, facts);
    }
    for row in model.rows().filter(|row| types.contains(&row.implementation.as_str())) {
        if found.iter().all(|other| other.id != row.id.to_string()) {
            found.push(seen(row, &row.implementation));
        }
    }
    facts.observed = found;
}

fn seen(row: &Resource, resource_type: &str) -> Observed {
    Observed {
        id: row.id.to_string(),
        name: row.name.clone(),
        physical_id: row.physical_id.clone(),
        resource_type: resource_type.to_owned(),
        metadata: row.metadata.clone(),
        properties: row.properties().clone(),
        data: row.data.clone(),
    }
}

fn matching<'a>(
    rows: impl Iterator<Item = &'a Resource>,
    wanted: &[&Value],
    kind_of: impl Fn(&Resource) -> Option<Kind>,
    observer: &Facts,
) -> Vec<Observed> {
    let mut found = Vec::new();
    for row in rows.filter(|row| row.physical_id.is_some()) {
        let Some(kind) = kind_of(row) else { continue };
        let Some(entry) = kind.entry() else { continue };
        if wanted.contains(&&entry.driver.reference(&facts(row, &kind, &observer.stack))) {
            found.push(seen(row, &kind.resource_type().name));
        }
    }
    found
}
