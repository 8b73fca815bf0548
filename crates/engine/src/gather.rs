//! What becomes of a resource of the template: the definition resolved, names looked up, compared with what is.

use std::sync::Arc;

use kiln_plan::{Decision, Kind, StackScope, facts, given};
use kiln_resource::translation::{self, Answers};
use kiln_resource::{
    Action, Cloud, Comparison, Context, Failure, FailureKind, PropertyChange, Resource, StackFacts, State, change,
    properties,
};
use kiln_store::Stack;
use kiln_value::{Diagnostic, Map, Value};

use crate::actor::stack_facts;
use crate::clock::Clock;
use crate::clouds::{Clouds, NoCloud};
use crate::engine::Backends;

/// Where resources are judged: a stack with what it should be and what it is.
pub(crate) struct Gatherer<'a> {
    pub(crate) backends: &'a Backends,
    pub(crate) scene: &'a StackScope,
    pub(crate) stack: &'a Stack,
    pub(crate) root: Arc<Stack>,
    pub(crate) call_retries: u32,
}

impl Gatherer<'_> {
    /// The question of what becomes of a resource, whose row is `row` now; `None` if the template has no such resource.
    /// A definition that does not resolve is judged already.
    pub(crate) fn question(&self, name: &str, row: Option<Resource>) -> Option<Result<Question, Decision>> {
        let blueprint = self.scene.blueprint();
        let (definition, kind) = (blueprint.definitions().get(name)?, blueprint.kind(name)?);
        let definition = match blueprint.resolve(definition, self.scene) {
            Ok(definition) => definition,
            Err(error) => return Some(Err(Decision::Refuse { failure: failure_of(&error) })),
        };
        let becomes = row
            .as_ref()
            .and_then(|row| self.backends.resource_types.types.get(&row.implementation))
            .and_then(|entry| entry.resource_type.becomes.clone());
        let restricted = blueprint.sources().environment.registry.restricted_actions(name);
        Some(Ok(Question {
            definition,
            kind: kind.clone(),
            row,
            facts: stack_facts(self.stack),
            becomes,
            restricted: restricted.into_iter().map(str::to_owned).collect(),
            clouds: Arc::clone(&self.backends.clouds),
            stack: Arc::clone(&self.root),
            clock: Arc::clone(&self.backends.clock),
            call_retries: self.call_retries,
        }))
    }
}

/// A resource to judge. The definition is resolved; what is left may need the cloud.
pub(crate) struct Question {
    /// The definition as the blueprint resolved it.
    pub(crate) definition: Value,
    pub(crate) kind: Kind,
    /// The row that stands for the name now.
    pub(crate) row: Option<Resource>,
    pub(crate) facts: StackFacts,
    /// The type that the row's type may turn into without a replacement.
    pub(crate) becomes: Option<String>,
    /// What the environment forbids: `update`, `replace`.
    pub(crate) restricted: Vec<String>,
    pub(crate) clouds: Arc<dyn Clouds>,
    pub(crate) stack: Arc<Stack>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) call_retries: u32,
}

impl Question {
    pub(crate) async fn answer(mut self) -> Decision {
        match self.judge().await {
            Ok(verdict) => self.restrict(verdict),
            Err(failure) => Decision::Refuse { failure },
        }
    }

    async fn judge(&mut self) -> Result<Decision, Failure> {
        let made = self.row.as_ref().filter(|row| row.state != State::INIT);
        let external = |definition: &Value| definition.str_at("external_id").map(str::to_owned);
        match (made, external(&self.definition)) {
            (Some(row), id) if external(&row.definition) != id => {
                let (name, kind) = (&row.name, &row.resource_type);
                let text = format!("Update to property external_id of {name} ({kind}) is not supported.");
                return Err(Failure::other("NotSupported", text));
            }
            (Some(_), Some(_)) => return Ok(Decision::Keep { definition: None }),
            (None, Some(_)) => return Ok(Decision::Create { definition: std::mem::take(&mut self.definition) }),
            (_, None) => {}
        }
        let properties = self.translated().await?;
        let resource_type = self.kind.resource_type();
        let typed = if resource_type.open_properties {
            properties
        } else {
            properties::resolve(&resource_type.properties, &properties).map_err(|error| failure_of(&error))?
        };
        // Nulls are what has no value; they need no room in the row.
        let stored: Map =
            typed.iter().filter(|(_, value)| !value.is_null()).map(|(k, v)| (k.clone(), v.clone())).collect();
        let mut definition = std::mem::take(&mut self.definition);
        if let Some(map) = definition.as_map_mut() {
            if map.get("given").and_then(Value::as_map) == Some(&stored) {
                map.shift_remove("given");
            }
            map.insert("properties".to_owned(), Value::Map(stored));
        }
        let Some(row) = self.row.as_ref().filter(|row| row.state != State::INIT) else {
            return Ok(Decision::Create { definition });
        };
        if let Some(why) = self.must_replace(row).await? {
            return Ok(Decision::Replace { definition, why: vec![why], announce: None });
        }
        self.compare(row, definition, typed)
    }

    /// Names to ids, and former property names to present ones.
    async fn translated(&self) -> Result<Map, Failure> {
        let given = self.definition.get("given").and_then(Value::as_map).cloned().unwrap_or_default();
        let rules = &self.kind.resource_type().translation;
        if rules.is_empty() {
            return Ok(given);
        }
        let lookups = translation::lookups(rules, &given);
        let mut answers = Answers::new();
        if !lookups.is_empty() {
            let cloud = self.cloud().await?;
            for lookup in lookups {
                let id = cloud.find(&lookup.finder, &lookup.value).await?;
                answers.insert(lookup, id);
            }
        }
        translation::apply(rules, given, &answers, &kiln_value::Path::root()).map_err(|error| failure_of(&error))
    }

    async fn cloud(&self) -> Result<Arc<dyn Cloud>, Failure> {
        let mut attempt = 0;
        loop {
            match self.clouds.cloud(&self.stack).await {
                Err(failure) if failure.kind == FailureKind::Unavailable && attempt < self.call_retries => {
                    self.clock.sleep(std::time::Duration::from_secs(1 << attempt.min(5))).await;
                    attempt += 1;
                }
                other => return other,
            }
        }
    }

    /// Reasons to replace that are not in the properties (semantics.md §7, steps 1 to 5).
    async fn must_replace(&self, row: &Resource) -> Result<Option<String>, Failure> {
        let now = self.kind.implementation();
        if row.implementation != now && self.becomes.as_deref() != Some(now) {
            return Ok(Some(format!("its type was {} and is {now}", row.implementation)));
        }
        if row.step.get("replace").is_some() {
            return Ok(Some("the update could not be made in place".to_owned()));
        }
        if row.state.action == Action::Delete {
            return Ok(Some(format!("it is {}", row.state)));
        }
        if !row.state.failed() {
            return Ok(None);
        }
        // A nested stack that failed is mended by updating it, but for one that was found broken.
        if self.kind.is_nested() {
            return Ok(
                (row.physical_id.is_none() || row.state.action == Action::Check).then(|| "its check failed".to_owned())
            );
        }
        let resource_type = self.kind.resource_type();
        if row.state.action == Action::Check && resource_type.replace_on_check_failed {
            return Ok(Some("its check failed".to_owned()));
        }
        let Some(entry) = self.kind.entry() else { return Ok(None) };
        let facts = facts(row, &self.kind, &self.facts);
        let cloud: Arc<dyn Cloud> = if entry.driver.is_pure() { Arc::new(NoCloud) } else { self.cloud().await? };
        let cx = Context { cloud: &*cloud, facts: &facts, now: 0.0, seed: [0; 32], polls: 0 };
        let needs = entry.driver.needs_replace_failed(&cx).await?;
        Ok(needs.then(|| format!("it is {}", row.state)))
    }

    fn compare(&self, row: &Resource, definition: Value, after: Map) -> Result<Decision, Failure> {
        let stored = row.definition.get("properties").and_then(Value::as_map).cloned().unwrap_or_default();
        if self.kind.is_nested() {
            // What is inside may differ although nothing outside does.
            let changed = changed_entries(&stored, &after);
            return Ok(Decision::Update { definition, before: stored, changed });
        }
        if row.definition == definition && !row.state.failed() {
            return Ok(Decision::Keep { definition: None });
        }
        let resource_type = self.kind.resource_type();
        let before: Map =
            after.keys().map(|name| (name.clone(), stored.get(name).cloned().unwrap_or_default())).collect();
        let decision = if resource_type.open_properties {
            Comparison::Unchanged
        } else {
            change::compare_resolved(resource_type, &row.name, &before, &after)
        };
        match decision {
            Comparison::Error(error) => Err(failure_of(&error)),
            Comparison::Replace { reasons } => {
                let why = reasons.into_iter().map(|(name, why)| format!("{name} {why}")).collect();
                let announce = self.announce(&row.name);
                Ok(Decision::Replace { definition, why, announce })
            }
            Comparison::Unchanged if same_but_values(&row.definition, &definition) => {
                Ok(Decision::Keep { definition: (row.definition != definition).then_some(definition) })
            }
            Comparison::Unchanged => Ok(Decision::Update { definition, before, changed: Map::new() }),
            Comparison::Update { changed } => {
                let names: Vec<String> = changed.keys().cloned().collect();
                let change = PropertyChange { before: before.clone(), after, changed: names.clone() };
                let replace = self.kind.entry().is_some_and(|entry| entry.driver.needs_replace(&change));
                if replace {
                    let why = names.iter().map(|name| format!("{name} cannot be changed this way in place")).collect();
                    let announce = self.announce(&self.shown(row));
                    return Ok(Decision::Replace { definition, why, announce });
                }
                Ok(Decision::Update { definition, before, changed })
            }
        }
    }

    /// With restricted actions Heat compares before it begins the update, so that no event tells of it.
    fn announce(&self, resource: &str) -> Option<String> {
        self.restricted.is_empty().then(|| format!("The Resource {resource} requires replacement."))
    }

    /// A resource as Heat prints it.
    fn shown(&self, row: &Resource) -> String {
        let (class, name) = (&self.kind.resource_type().class, &row.name);
        let (stack, id) = (&self.facts.name, &self.facts.id);
        match &row.physical_id {
            Some(physical) => format!("{class} \"{name}\" [{physical}] Stack \"{stack}\" [{id}]"),
            None => format!("{class} \"{name}\""),
        }
    }

    fn restrict(&self, verdict: Decision) -> Decision {
        let word = match &verdict {
            Decision::Update { .. } => "update",
            Decision::Replace { .. } => "replace",
            _ => return verdict,
        };
        if !self.restricted.iter().any(|restricted| restricted == word) {
            return verdict;
        }
        let text = format!("{word} is restricted for resource.");
        Decision::Restrict { failure: Failure::other("ResourceActionRestricted", text) }
    }
}

/// Whether two stored definitions say the same but for how property values are written.
fn same_but_values(before: &Value, after: &Value) -> bool {
    let parts = ["type", "metadata", "deletion_policy", "update_policy", "depends_on", "description"];
    parts.iter().all(|part| before.get(part) == after.get(part)) && given(before) == given(after)
}

fn changed_entries(before: &Map, after: &Map) -> Map {
    let differs = |name: &str, value: &Value| before.get(name).unwrap_or(&Value::Null) != value;
    after.iter().filter(|(name, value)| differs(name, value)).map(|(k, v)| (k.clone(), v.clone())).collect()
}

/// An error of the languages as the failure of the resource that it makes impossible.
pub(crate) fn failure_of(error: &Diagnostic) -> Failure {
    Failure::other(error.class.to_string(), error.message.clone())
}
