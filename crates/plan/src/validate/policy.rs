//! Deletion and update policies of resources.

use kiln_resource::properties::{self, Judged};
use kiln_template::{Definition, DeletionPolicy};
use kiln_value::{Diagnostic, Map, Path, Value};

use super::{Rules, property_error};
use crate::ResourceTypes;
use crate::blueprint::Blueprint;
use crate::kind::Kind;
use crate::places::Places;
use crate::stack_scope::Draft;

impl Blueprint {
    /// The errors of a resource's policies, in Heat's order.
    pub(super) fn policy_errors(
        &self,
        definition: &Definition,
        kind: &Kind,
        draft: &Draft<'_>,
        rules: &Rules<'_>,
    ) -> Vec<Diagnostic> {
        let mut found: Vec<Diagnostic> = self.snapshot_error(definition, kind, rules.catalog).into_iter().collect();
        found.extend(self.update_policy_errors(definition, kind, draft, rules));
        found
    }

    /// The error of a deletion policy `Snapshot` of a type without snapshots, or of a volume in a cloud without backups.
    fn snapshot_error(&self, definition: &Definition, kind: &Kind, catalog: &ResourceTypes) -> Option<Diagnostic> {
        if definition.deletion_policy() != DeletionPolicy::Snapshot {
            return None;
        }
        let is_volume = || kind.resource_type().service.iter().any(|service| service == "volumev3");
        let why = if !kind.entry().is_some_and(|entry| entry.driver.snapshots()) {
            ""
        } else if !catalog.backups && is_volume() {
            " - volume backup service is not enabled."
        } else {
            return None;
        };
        let at = self.place_of(&definition.name).key(self.bound().template().words().deletion_policy);
        let text = format!("\"Snapshot\" deletion policy not supported{why}");
        Some(Diagnostic::invalid(text).showing(&at).at(at))
    }

    /// Violations of the type's schema, and policies that Kiln does not implement.
    fn update_policy_errors(
        &self,
        definition: &Definition,
        kind: &Kind,
        draft: &Draft<'_>,
        rules: &Rules<'_>,
    ) -> Vec<Diagnostic> {
        let resource_type = kind.resource_type();
        if resource_type.open_properties {
            return Vec::new();
        }
        let at = self.place_of(&definition.name).key(self.bound().template().words().update_policy);
        let partial = match definition.update_policy.partial(draft) {
            Ok(partial) => partial,
            Err(error) if error.not_known_yet => return Vec::new(),
            Err(error) => return vec![property_error(&at, &error.at(Path::root()))],
        };
        let Some(Value::Map(policy)) = partial.value else { return Vec::new() };
        let unknown = Places::of(&partial.unknown);
        let judged = |path: &Path| if unknown.contain(path) { Judged::ByKind } else { Judged::Wholly };
        let mut found = properties::validate(&resource_type.update_policy, &policy, &judged, rules.custom, &at);
        if found.is_empty() && rules.unbuilt {
            found.extend(unbuilt(&policy, kind, &at));
        }
        found
    }
}

/// Policies that the type's driver does not implement yet. Policies without settings have no effect.
fn unbuilt(policy: &Map, kind: &Kind, at: &Path) -> Vec<Diagnostic> {
    let built = kind.entry().map(|entry| entry.driver.update_policies()).unwrap_or_default();
    let asked = policy.iter().filter(|(name, value)| value.is_truthy() && !built.contains(&name.as_str()));
    let errors = asked.map(|(name, _)| {
        Diagnostic::invalid(format!("{name} is not implemented by Kiln yet.")).showing(at).at(at.key(name.as_str()))
    });
    errors.collect()
}
