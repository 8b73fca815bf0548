//! The members of groups that Kiln cannot create yet: no driver judges them.

use kiln_plan::ResourceTypes;
use kiln_resource::properties::validate_names;
use kiln_value::{Diagnostic, Path, Segment, Value};

use super::surroundings::Surroundings;
use crate::Page;
use crate::types::{below_properties, is_member_key, type_or_child};
use crate::walk::visit;

/// Names of properties that a member's type does not have.
pub(super) fn mistakes(page: &Page, catalog: &ResourceTypes, around: &Surroundings) -> Vec<Diagnostic> {
    let words = page.template.words();
    let mut found = Vec::new();
    for (name, resource) in page.section(words.resources) {
        let Some(written) = resource.str_at(words.resource_type) else { continue };
        let Some(group) = page.resource_type(catalog, name) else { continue };
        let Some(properties) = resource.get(words.properties) else { continue };
        if catalog.types.refusal(group, written).is_none() {
            continue;
        }
        let at = Path::root().key(words.resources).key(name.as_str()).key(words.properties);
        visit(properties, &at, &mut |value, path| {
            let [.., member, Segment::Key(last)] = path.0.as_slice() else { return };
            let (Value::Map(given), true) = (value, last == "properties" && is_member_key(Some(member))) else {
                return;
            };
            let Some(definition) = below_properties(page, path).filter(|one| one.properties == *path) else { return };
            let Some(member) = type_or_child(catalog, around, definition.type_name) else { return };
            if !member.open_properties {
                let names: Vec<String> = given.keys().cloned().collect();
                found.extend(validate_names(&member.properties, &names, path));
            }
        });
    }
    found
}
