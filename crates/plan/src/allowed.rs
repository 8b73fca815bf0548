//! What a saved plan allows in one stack.
//!
//! An operation that executes a plan does at most what the plan says: a resource that is kept is not updated, one that is
//! updated is not replaced, and nothing is created or deleted that the plan does not name. The planner asks before each
//! effect ([`crate::Model::decide`]).
//!
//! A plan names every row that exists when it is made. So a row that it does not name is one that the operation itself has
//! made, and may change or delete again.

use std::collections::{BTreeMap, BTreeSet};

use kiln_plan_document::{Bounds, Decision, Entry, HiddenProperty, Property};
use kiln_resource::{PlanId, StoredDefinition};
use kiln_value::Map;
use uuid::Uuid;

use crate::known_value::KnownValue;

/// What a plan allows in a stack.
#[derive(Clone, Debug, PartialEq)]
pub struct Allowed {
    plan: PlanId,
    /// The key of the digests.
    key: Uuid,
    place: StackInPlan,
    /// The planned resources by name.
    planned: BTreeMap<String, Planned>,
    /// The names of former rows, which are deleted.
    former: BTreeSet<String>,
}

/// How the plan knows a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StackInPlan {
    /// It existed when the plan was made, or it is the root.
    Known,
    /// It existed, and the request is one of several batches of a group: members may be created that a later batch deletes.
    Batch,
    /// The operation has created it. The members of a group have other names than in the plan: these are made from the ID of
    /// the group.
    New,
}

/// What is planned for a resource.
#[derive(Clone, Debug, PartialEq)]
struct Planned {
    resource_type: String,
    decision: Bounds,
    /// The properties that change, with what is known of their values.
    properties: BTreeMap<String, KnownValue>,
    /// Whether the content of its nested stack was not known.
    is_open: bool,
}

/// What would be done with a resource.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Effect<'a> {
    /// It is created with these properties.
    Create(&'a StoredDefinition),
    /// These properties are updated.
    Update(&'a Map),
    /// Its nested stack is updated, which keeps to the plan itself.
    UpdateNested,
    /// It is replaced by an object with these properties.
    Replace(&'a Map),
    /// A row is deleted.
    Delete,
}

impl Allowed {
    /// What a plan allows in a stack with these entries, whose hidden values are apart. The key of the digests is not stored.
    pub fn new(
        plan: PlanId,
        key: Uuid,
        place: StackInPlan,
        entries: impl IntoIterator<Item = Entry>,
        hidden: &[HiddenProperty],
    ) -> Self {
        let (mut planned, mut former) = (BTreeMap::new(), BTreeSet::new());
        let hidden: BTreeMap<_, _> = hidden.iter().map(|one| ((one.path.as_str(), one.name.as_str()), one)).collect();
        for entry in entries {
            let name = entry.name().to_owned();
            if entry.former {
                former.insert(name);
                continue;
            }
            let known = |property: Property| {
                let hidden = hidden.get(&(entry.path.as_str(), property.name.as_str()));
                let shown = property.after.map(|side| side.value).unwrap_or_default();
                let value = hidden.map_or(&shown, |hidden| &hidden.value);
                (property.name, KnownValue::of(value, key))
            };
            let awaited = entry.awaited.into_iter().map(|awaited| (awaited.property, KnownValue::Later));
            let properties = entry.properties.into_iter().map(known).chain(awaited).collect();
            let (resource_type, decision, is_open) = (entry.resource_type, entry.decision, entry.content.is_some());
            planned.insert(name, Planned { resource_type, decision, properties, is_open });
        }
        Self { plan, key, place, planned, former }
    }

    /// The name in the plan of a resource with a nested stack; `None` if the plan does not know what will be in that stack,
    /// so that anything is allowed there. `in_place`: an existing nested stack is updated.
    pub fn inside(&self, name: &str, resource_type: &str, in_place: bool) -> Option<&str> {
        let (name, planned) = self.planned.get_key_value(name).or_else(|| self.member(resource_type))?;
        // The plan lists what is in the new stack, if the resource may be replaced.
        let may_stay = !planned.decision.is_certain() && planned.decision.at_most == Decision::Replace;
        let is_unknown = planned.is_open || (in_place && may_stay);
        (!is_unknown).then_some(name)
    }

    /// A resource of the plan that stands for another member of the group.
    fn member(&self, resource_type: &str) -> Option<(&String, &Planned)> {
        let stands = |planned: &Planned| planned.resource_type == resource_type;
        self.planned.iter().find(|(_, planned)| self.place != StackInPlan::Known && stands(planned))
    }

    /// Checks an effect on a resource.
    ///
    /// # Errors
    /// What would be done, and what the plan allows.
    pub(crate) fn check(&self, name: &str, resource_type: &str, effect: Effect<'_>) -> Result<(), String> {
        let planned = self.planned.get(name);
        let at_most = planned.map(|planned| planned.decision.at_most);
        let is_allowed = match (effect, at_most) {
            (Effect::Create(_), Some(Decision::Create | Decision::Replace)) => true,
            (Effect::Create(_), _) => self.member(resource_type).is_some(),
            // Only the operation can have made it.
            (_, None | Some(Decision::Create)) => true,
            _ if self.place == StackInPlan::New => true,
            (_, Some(Decision::Replace | Decision::Delete))
            | (Effect::UpdateNested, Some(Decision::Keep | Decision::Update)) => true,
            (Effect::Update(changed), Some(Decision::Update)) => {
                changed.keys().all(|name| planned.is_some_and(|planned| planned.properties.contains_key(name)))
            }
            (Effect::Delete, _) => self.former.contains(name),
            _ => false,
        };
        let plan = self.plan;
        if !is_allowed {
            return Err(format!(
                "outside of the plan {plan}: it would be {}; {}",
                words(effect),
                says(planned, effect)
            ));
        }
        let Some(name) = planned.and_then(|planned| self.differing(planned, effect)) else { return Ok(()) };
        let what = words(effect);
        Err(format!("outside of the plan {plan}: it would be {what} with another value of {name} than the plan says"))
    }

    /// A property that would get another value than the planned one.
    fn differing<'a>(&self, planned: &Planned, effect: Effect<'a>) -> Option<&'a str> {
        // The plan shows what the template gives, with IDs for names, and for a replacement what differs.
        let (values, meant) = match effect {
            Effect::Create(new) if planned.decision.at_most == Decision::Create => (new.given(), &new.properties),
            Effect::Update(values) | Effect::Replace(values) => (values, values),
            Effect::Create(_) | Effect::UpdateNested | Effect::Delete => return None,
        };
        let is_other = |(name, value): &(&String, &kiln_value::Value)| {
            let meant = meant.get(*name).unwrap_or(value);
            let is_known = |known: &KnownValue| known.is(value, self.key) || known.is(meant, self.key);
            planned.properties.get(*name).is_some_and(|known| !is_known(known))
        };
        values.iter().find(is_other).map(|(name, _)| name.as_str())
    }
}

/// What the plan says about a resource.
fn says(planned: Option<&Planned>, effect: Effect<'_>) -> String {
    let Some(planned) = planned else { return "the plan does not name it".to_owned() };
    match planned.decision.at_most {
        Decision::Keep => "the plan keeps it".to_owned(),
        Decision::Update if planned.properties.is_empty() => "the plan changes no properties of it".to_owned(),
        Decision::Update if matches!(effect, Effect::Update(_)) => {
            let names: Vec<&str> = planned.properties.keys().map(String::as_str).collect();
            format!("the plan only updates {}", names.join(", "))
        }
        Decision::Update => "the plan only updates it".to_owned(),
        Decision::Replace => "the plan replaces it".to_owned(),
        Decision::Create => "the plan creates it".to_owned(),
        Decision::Delete => "the plan deletes it".to_owned(),
        Decision::Refuse => "the plan refuses to change it".to_owned(),
    }
}

/// An effect in words.
fn words(effect: Effect<'_>) -> String {
    match effect {
        Effect::Create(_) => "created".to_owned(),
        Effect::UpdateNested => "updated".to_owned(),
        Effect::Update(changed) if changed.is_empty() => "updated".to_owned(),
        Effect::Update(changed) => {
            let names: Vec<&str> = changed.keys().map(String::as_str).collect();
            format!("updated ({})", names.join(", "))
        }
        Effect::Replace(_) => "replaced".to_owned(),
        Effect::Delete => "deleted".to_owned(),
    }
}
