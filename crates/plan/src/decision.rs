//! The decision about one resource of the template: create, keep, update, replace, refuse or restrict.
//!
//! [`decide`] is a pure function. The engine only gathers its input: the IDs of names, and the state of a failed object
//! in the cloud. Updates, previews and the simulation use the same function.

mod lookups;

use std::collections::BTreeSet;
use std::sync::Arc;

use kiln_resource::constraint::{Judge, OwnConstraints};
use kiln_resource::names::{self, KeptNames};
use kiln_resource::object_drift::Shown;
use kiln_resource::properties::Judged;
use kiln_resource::translation::{self, Answers};
use kiln_resource::{
    Action, Comparison, Converging, Failure, OperationState, PropertyChange, Resource, StackFacts, State, Status,
    StoredDefinition, change, properties,
};
use kiln_value::{Class, Diagnostic, Map, Path, Value};

pub use lookups::Lookups;

use crate::Kind;

/// Why a resource is replaced whose check failed, or that a user has marked as unhealthy.
pub const CHECK_FAILED: &str = "its check failed";

/// The reason of a replacement: there is no object any more.
pub const MISSING: &str = "its object does not exist any more";

/// The decision about a resource, made when all its dependencies are complete.
#[derive(Clone, Debug, PartialEq)]
pub enum Decision {
    /// Create it.
    Create {
        /// The resolved definition.
        definition: Arc<StoredDefinition>,
    },
    /// It is up to date; `definition` is stored if policies or metadata changed.
    Keep {
        /// The new resolved definition, if it differs.
        definition: Option<Arc<StoredDefinition>>,
    },
    /// Update it in place.
    Update {
        /// The resolved definition.
        definition: Arc<StoredDefinition>,
        /// Previous properties.
        before: Map,
        /// Changed properties with their new values.
        changed: Map,
    },
    /// Create a new one and delete this one later.
    Replace {
        /// The resolved definition.
        definition: Arc<StoredDefinition>,
        /// The reasons for the preview: property and reason.
        why: Vec<String>,
        /// Heat's event text, if Heat starts the update before it detects the replacement.
        announce: Option<String>,
    },
    /// Fail: a property cannot be resolved or is invalid.
    Refuse {
        /// The failure.
        failure: Failure,
    },
    /// The environment forbids the action (`restricted_actions`): an event reports it, the state of the resource does
    /// not change.
    Restrict {
        /// The failure.
        failure: Failure,
    },
}

/// Input about the resource.
#[derive(Clone, Debug)]
pub struct Subject {
    /// The current row of the name; `None` if there is none.
    pub row: Option<Resource>,
    /// Whether the last operation on the row belongs to this request: before it failed, an engine may already have
    /// executed this decision.
    pub reached: bool,
    /// The definition that [`crate::Blueprint::resolve`] returns.
    pub definition: StoredDefinition,
    /// Its type.
    pub kind: Kind,
    /// The stack.
    pub stack: StackFacts,
    /// The type that the row's type can be changed to without a replacement.
    pub becomes: Option<String>,
    /// How the object is compared with the stored properties first (`converge`).
    pub converging: Converging,
    /// The properties of an existing object that are never written, because a guard says so.
    pub left: BTreeSet<String>,
    /// The actions that the environment forbids: `update`, `replace`.
    pub restricted: Vec<String>,
    /// The properties of the row that replaced `row` and still exists, in a rollback or after a failed replacement.
    pub replacement: Option<Map>,
}

/// What the cloud shows of the object.
#[derive(Clone, Debug, PartialEq)]
pub enum Live {
    /// It does not exist.
    Missing,
    /// The values of its properties.
    Properties(Shown),
}

/// Input from the cloud.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Gathered {
    /// The IDs of names in properties: those of [`Subject::lookups`], and for [`Decision::Replace`] those of
    /// [`Subject::all_lookups`].
    pub answers: Answers,
    /// Whether the type requires a replacement of the failed object ([`kiln_resource::Driver::needs_replace_failed`]);
    /// requested only if [`Subject::needs_look`] is true.
    pub must_replace_failed: bool,
    /// The object; requested only if [`Subject::needs_live`] is true, `None` if it could not be read.
    pub live: Option<Live>,
    /// Seconds since 1970, for constraints on times.
    pub now: f64,
    /// The constraints of the types and of the operator.
    pub constraints: OwnConstraints,
}

impl Subject {
    /// The row, if its create was at least started.
    fn made(&self) -> Option<&Resource> {
        self.row.as_ref().filter(|row| row.state != State::INIT)
    }

    /// Whether the resource is an existing external object: nothing is gathered for it.
    fn is_external(&self) -> bool {
        let before = self.made().and_then(|row| row.definition.as_ref()).and_then(|held| held.external_id.as_ref());
        self.definition.external_id.is_some() || before.is_some()
    }

    /// The failure of a lookup of the name at `place`, as an error of the property.
    pub fn unresolved(&self, place: &Path, failure: &Failure) -> Failure {
        let mut path = self.properties_path();
        path.0.extend_from_slice(&place.0);
        Failure::other(Class::StackValidationFailed, format!("Property error: {path}: {}", failure.message))
    }

    /// Where the properties stand in errors at create and update: `server.Properties`, `Properties`.
    fn properties_path(&self) -> Path {
        match &self.row {
            Some(row) if self.made().is_none() => Path::root().key(row.name.as_str()).key("Properties"),
            _ => Path::root().key("Properties"),
        }
    }

    /// Whether the failed object must be checked before the decision.
    pub fn needs_look(&self) -> bool {
        !self.is_external()
            && self.made().is_some_and(|row| is_in_doubt(row) && self.reason_to_replace(row).is_none())
            && !self.kind.is_nested()
            && self.kind.entry().is_some()
    }

    /// Whether the object must be read before the decision.
    pub fn needs_live(&self) -> bool {
        self.converging != Converging::None
            && !self.is_external()
            && !self.kind.is_nested()
            && self.kind.entry().is_some_and(|entry| entry.driver.needs_cloud())
            && self.made().is_some_and(|row| self.reason_to_replace(row).is_none())
    }

    /// Reasons to replace that depend neither on properties nor on the cloud (docs/heat-behaviour.md §7, steps 1 to 4).
    fn reason_to_replace(&self, row: &Resource) -> Option<String> {
        let now = self.kind.implementation();
        if row.implementation != now && self.becomes.as_deref() != Some(now) {
            return Some(format!("its type changes from {} to {now}", row.implementation));
        }
        if row.operation == OperationState::MustReplace && !self.is_reverted(row) {
            return Some("the previous update could not be done in place".to_owned());
        }
        if row.state.action == Action::Delete {
            return Some(format!("its state is {}", row.state));
        }
        if !row.state.failed() {
            return None;
        }
        let check_failed = row.state.action == Action::Check;
        // A failed nested stack is repaired by an update, except when its check failed.
        let replace = if self.kind.is_nested() {
            row.physical_id.is_none() || check_failed
        } else {
            check_failed && self.kind.resource_type().replace_on_check_failed
        };
        replace.then(|| CHECK_FAILED.to_owned())
    }

    /// Whether the update that could not be made in place is not wanted any more: the object is still as the row says.
    fn is_reverted(&self, row: &Resource) -> bool {
        row.state.action == Action::Update
            && row.definition.as_ref().is_some_and(|held| held.says_the_same(&self.definition))
    }

    /// The properties after defaults, coercion and translation, and the definition with them.
    fn defined(&self, gathered: &Gathered, kept: &KeptNames) -> Result<(Map, Arc<StoredDefinition>), Failure> {
        let resource_type = self.kind.resource_type();
        let given = self.definition.properties.clone();
        let properties = if resource_type.translation.is_empty() {
            given.clone()
        } else {
            let rules = &resource_type.translation;
            let mut properties = translation::apply(rules, given.clone(), &gathered.answers, &Path::root())
                .map_err(|error| failure_of(&error))?;
            names::keep(&mut properties, kept);
            properties
        };
        if self.made().is_none() && !resource_type.open_properties {
            refuse_unfit(self, &given, &properties, gathered)?;
        }
        let typed = if resource_type.open_properties {
            properties
        } else {
            properties::resolve(&resource_type.properties, &properties).map_err(|error| failure_of(&error))?
        };
        // Nulls mean no value; they are not stored.
        let stored = typed.iter().filter(|(_, value)| !value.is_null()).map(|(k, v)| (k.clone(), v.clone())).collect();
        Ok((typed, Arc::new(self.definition.clone().with_properties(given, stored))))
    }

    /// What is wanted, with the present values of the properties that are not written.
    fn leaving(
        &self,
        row: &Resource,
        mut typed: Map,
        mut definition: Arc<StoredDefinition>,
    ) -> (Map, Arc<StoredDefinition>) {
        for name in &self.left {
            let held = row.properties().get(name);
            typed.insert(name.clone(), held.cloned().unwrap_or_default());
            let properties = &mut Arc::make_mut(&mut definition).properties;
            match held {
                Some(held) => _ = properties.insert(name.clone(), held.clone()),
                None => _ = properties.shift_remove(name),
            }
        }
        (typed, definition)
    }

    fn compare(
        &self,
        row: &Resource,
        definition: Arc<StoredDefinition>,
        after: Map,
        drifted: &Map,
    ) -> Result<Decision, Failure> {
        let stored = row.properties();
        if self.kind.is_nested() {
            if self.reached && row.state.status == Status::Complete && row.definition.as_ref() == Some(&definition) {
                return Ok(Decision::Keep { definition: None });
            }
            if let Some(decision) = self.replaced_group(row, &definition, &after)? {
                return Ok(decision);
            }
            // The content of a nested stack may differ even if the properties do not. An update that failed, or that
            // this one supersedes, may have changed a part of it.
            let mut changed = changed_entries(stored, &after);
            let tried = match &row.operation {
                OperationState::HalfMade(tried) => Some(tried),
                OperationState::Running(running) => match (&running.definition, &running.afterwards) {
                    (Some(tried), _) | (None, OperationState::HalfMade(tried)) => Some(tried),
                    _ => None,
                },
                _ => None,
            };
            changed.extend(tried.map(|tried| changed_entries(&tried.properties, &after)).unwrap_or_default());
            return Ok(Decision::Update { definition, before: stored.clone(), changed });
        }
        let held = row.definition.as_deref();
        if self.kind.entry().is_some_and(|entry| entry.driver.replaced_by_updates()) && !self.reached {
            let why = vec!["every update replaces it".to_owned()];
            return Ok(Decision::Replace { definition, why, announce: self.announce(&row.name) });
        }
        if let OperationState::HalfMade(tried) = &row.operation
            && self.refusal(stored, &tried.properties).is_none()
            && let Some(decision) = self.finish_half_update(row, &tried.properties, &definition, &after)
        {
            return Ok(decision);
        }
        let always = !self.reached && self.kind.entry().is_some_and(|entry| entry.driver.always_updates(&after));
        if held == Some(&*definition) && !row.state.failed() && drifted.is_empty() && !always {
            return Ok(Decision::Keep { definition: None });
        }
        let resource_type = self.kind.resource_type();
        // The template has taken over what the object has: only the definition changes.
        let has_taken_over = !self.left.is_empty() || drifted.iter().any(|(name, live)| after.get(name) == Some(live));
        let held_value = |name: &String| drifted.get(name).or_else(|| stored.get(name));
        let before: Map =
            after.keys().map(|name| (name.clone(), held_value(name).cloned().unwrap_or_default())).collect();
        let comparison = if resource_type.open_properties {
            Comparison::Unchanged
        } else {
            change::compare_resolved(resource_type, &row.name, &before, &after)
        };
        match comparison {
            Comparison::Error(error) => Err(failure_of(&error)),
            Comparison::Replace { reasons } => Ok(self.replace(row, &definition, reasons)),
            Comparison::Unchanged
                if !always
                    && held.is_some_and(|held| {
                        held.says_the_same(&definition)
                            || (has_taken_over && held.says_the_same_beside_properties(&definition))
                    }) =>
            {
                Ok(Decision::Keep { definition: (held != Some(&*definition)).then_some(definition) })
            }
            Comparison::Unchanged => Ok(Decision::Update { definition, before, changed: Map::new() }),
            Comparison::Update { changed } => {
                let names: Vec<String> = changed.keys().cloned().collect();
                let change = PropertyChange { before: before.clone(), after, changed: names.clone() };
                if self.kind.entry().is_some_and(|entry| entry.driver.needs_replace(&change)) {
                    let why =
                        names.iter().map(|name| format!("{name} cannot be changed in place to this value")).collect();
                    return Ok(Decision::Replace { definition, why, announce: self.announce(&self.shown(row)) });
                }
                Ok(Decision::Update { definition, before, changed })
            }
        }
    }

    /// Whether a changed property of a group requires another group. All parameters of a nested template can be
    /// updated.
    fn replaced_group(
        &self,
        row: &Resource,
        definition: &Arc<StoredDefinition>,
        after: &Map,
    ) -> Result<Option<Decision>, Failure> {
        if !matches!(self.kind, Kind::Type(_)) {
            return Ok(None);
        }
        let stored = row.properties();
        let before: Map =
            after.keys().map(|name| (name.clone(), stored.get(name).cloned().unwrap_or_default())).collect();
        match change::compare_resolved(self.kind.resource_type(), &row.name, &before, after) {
            Comparison::Error(error) => Err(failure_of(&error)),
            Comparison::Replace { reasons } => Ok(Some(self.replace(row, definition, reasons))),
            Comparison::Unchanged | Comparison::Update { .. } => Ok(None),
        }
    }

    fn replace(&self, row: &Resource, definition: &Arc<StoredDefinition>, reasons: Vec<(String, String)>) -> Decision {
        let why = reasons.into_iter().map(|(name, why)| format!("{name} {why}")).collect();
        Decision::Replace { definition: Arc::clone(definition), why, announce: self.announce(&row.name) }
    }

    /// If a replaced resource is kept, sets again what it released for its replacement.
    fn given_back(&self, row: &Resource, typed: &Map, decision: Decision) -> Decision {
        let (Some(replacement), Some(entry)) = (&self.replacement, self.kind.entry()) else { return decision };
        let released = entry.driver.collisions(row.properties(), replacement);
        if released.is_empty() {
            return decision;
        }
        let (definition, before, mut changed) = match decision {
            Decision::Keep { definition } => {
                let stored = row.properties();
                let before = typed.keys().map(|key| (key.clone(), stored.get(key).cloned().unwrap_or_default()));
                match definition.or_else(|| row.definition.clone()) {
                    Some(definition) => (definition, before.collect(), Map::new()),
                    None => return Decision::Keep { definition: None },
                }
            }
            Decision::Update { definition, before, changed } => (definition, before, changed),
            other => return other,
        };
        for name in released {
            changed.entry(name.to_owned()).or_insert_with(|| typed.get(name).cloned().unwrap_or_default());
        }
        Decision::Update { definition, before, changed }
    }

    /// Sets the properties of an interrupted update again, if that is possible in place; `None`: it is compared like
    /// any other.
    fn finish_half_update(
        &self,
        row: &Resource,
        tried: &Map,
        definition: &Arc<StoredDefinition>,
        after: &Map,
    ) -> Option<Decision> {
        let (resource_type, stored) = (self.kind.resource_type(), row.properties());
        let differs = |held: &Map, name: &str, value: &Value| held.get(name).unwrap_or(&Value::Null) != value;
        let changed: Map = after
            .iter()
            .filter(|(name, value)| differs(stored, name, value) || differs(tried, name, value))
            .filter(|(name, _)| !self.left.contains(*name))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        let in_place =
            |name: &String| resource_type.properties.get(name).is_some_and(|p| p.update_allowed && !p.immutable);
        if changed.is_empty() || resource_type.open_properties || !changed.keys().all(in_place) {
            return None;
        }
        let before: Map =
            after.keys().map(|name| (name.clone(), tried.get(name).cloned().unwrap_or_default())).collect();
        let names: Vec<String> = changed.keys().cloned().collect();
        let change = PropertyChange { before: before.clone(), after: after.clone(), changed: names };
        if self.kind.entry().is_some_and(|entry| entry.driver.needs_replace(&change)) {
            return None;
        }
        Some(Decision::Update { definition: Arc::clone(definition), before, changed })
    }

    /// Why the driver refuses an update in place between these properties, before it changes anything.
    pub fn refusal(&self, before: &Map, after: &Map) -> Option<Failure> {
        let changed = changed_entries(before, after).into_iter().map(|(name, _)| name).collect();
        let change = PropertyChange { before: before.clone(), after: after.clone(), changed };
        self.kind.entry()?.driver.refuses(&change)
    }

    /// With restricted actions, Heat compares before it starts the update, so there is no event.
    fn announce(&self, resource: &str) -> Option<String> {
        self.restricted.is_empty().then(|| format!("The Resource {resource} requires replacement."))
    }

    /// The resource in Heat's notation.
    fn shown(&self, row: &Resource) -> String {
        let (class, name) = (&self.kind.resource_type().class, &row.name);
        let (stack, id) = (&self.stack.name, &self.stack.id);
        match &row.physical_id {
            Some(physical) => format!("{class} \"{name}\" [{physical}] Stack \"{stack}\" [{id}]"),
            None => format!("{class} \"{name}\""),
        }
    }

    fn restrict(&self, decision: Decision) -> Decision {
        let word = match &decision {
            Decision::Update { .. } => "update",
            Decision::Replace { .. } => "replace",
            _ => return decision,
        };
        if !self.restricted.iter().any(|restricted| restricted == word) {
            return decision;
        }
        let text = format!("{word} is restricted for resource.");
        Decision::Restrict { failure: Failure::other(Class::ResourceActionRestricted, text) }
    }
}

/// Decides about a resource (docs/heat-behaviour.md §7).
pub fn decide(subject: &Subject, gathered: &Gathered) -> Decision {
    match decided(subject, gathered) {
        Ok(decision) => subject.restrict(decision),
        Err(failure) => Decision::Refuse { failure },
    }
}

/// Whether the object must be judged like that of a failed operation. An update that failed before a later operation is
/// finished instead.
fn is_in_doubt(row: &Resource) -> bool {
    let is_of_create =
        matches!(&row.operation, OperationState::HalfMade(tried) if row.definition.as_ref() == Some(tried));
    row.state.failed() || is_of_create
}

fn decided(subject: &Subject, gathered: &Gathered) -> Result<Decision, Failure> {
    let made = subject.made();
    if subject.is_external() {
        let definition = || Arc::new(subject.definition.clone());
        let Some(row) = made else { return Ok(Decision::Create { definition: definition() }) };
        let held = row.definition.as_ref().and_then(|held| held.external_id.as_ref());
        if held == subject.definition.external_id.as_ref() {
            return Ok(Decision::Keep { definition: None });
        }
        let (name, kind) = (&row.name, &row.resource_type);
        let text = format!("Update to property external_id of {name} ({kind}) is not supported.");
        return Err(Failure::other(Class::NotSupported, text));
    }
    let kept = subject.kept_names(gathered);
    let (typed, definition) = subject.defined(gathered, &kept)?;
    let Some(row) = made else { return Ok(Decision::Create { definition }) };
    let reason = subject.reason_to_replace(row).or_else(|| {
        (is_in_doubt(row) && gathered.must_replace_failed).then(|| {
            if row.state.failed() { format!("its state is {}", row.state) } else { "its create failed".to_owned() }
        })
    });
    let reason = reason.or_else(|| (gathered.live == Some(Live::Missing)).then(|| MISSING.to_owned()));
    if let Some(why) = reason {
        let (_, definition) = subject.defined(gathered, &KeptNames::new())?;
        return Ok(Decision::Replace { definition, why: vec![why], announce: None });
    }
    let resource_type = subject.kind.resource_type();
    let (typed, definition) = subject.leaving(row, typed, definition);
    let mut drifted = match &gathered.live {
        Some(Live::Properties(shown)) => shown.drift_from(&typed, resource_type, row.properties()),
        _ => Map::new(),
    };
    let unknown = subject.names_of_unknown_objects(&kept, gathered);
    drifted.retain(|name, _| !subject.left.contains(name) && !unknown.contains(name.as_str()));
    match subject.compare(row, definition, typed.clone(), &drifted)? {
        // A new object gets what the names mean today, and what is left in the old one.
        Decision::Replace { why, announce, .. } if !kept.is_empty() || !subject.left.is_empty() => {
            let (_, definition) = subject.defined(gathered, &KeptNames::new())?;
            Ok(Decision::Replace { definition, why, announce })
        }
        decision => Ok(subject.given_back(row, &typed, decision)),
    }
}

/// As in Heat, the properties are validated once more when the resource is created: only then are all values known.
/// What only the cloud knows, the call will tell.
fn refuse_unfit(subject: &Subject, given: &Map, translated: &Map, gathered: &Gathered) -> Result<(), Failure> {
    let resource_type = subject.kind.resource_type();
    let moved = translation::moved(&resource_type.translation, given, translated);
    let is_moved = |path: &Path| moved.iter().any(|place| path.0.starts_with(&place.0));
    let judged = |path: &Path| if is_moved(path) { Judged::Not } else { Judged::Wholly };
    let judge = Judge::new(gathered.now, &gathered.constraints);
    match properties::validate(&resource_type.properties, translated, &judged, &judge, &subject.properties_path())
        .into_iter()
        .next()
    {
        Some(error) => Err(failure_of(&error)),
        None => Ok(()),
    }
}

fn changed_entries(before: &Map, after: &Map) -> Map {
    let differs = |name: &str, value: &Value| before.get(name).unwrap_or(&Value::Null) != value;
    after.iter().filter(|(name, value)| differs(name, value)).map(|(k, v)| (k.clone(), v.clone())).collect()
}

/// Converts an error of the template language to a failure of the resource.
pub fn failure_of(error: &Diagnostic) -> Failure {
    Failure::other(error.class.clone(), error.to_string())
}
