//! What a preview does, as the checks see it: the resources of all stacks in one list.

use std::collections::{HashMap, HashSet};

use kiln_resource::Resource;
use kiln_value::{Map, Value};

use crate::preview::{PlannedChange, PlannedResource, Preview};

/// What is done with an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Does {
    Keep,
    Create,
    Update,
    Replace,
    Delete,
}

/// A planned resource without a nested stack.
pub(super) struct Planned<'a> {
    pub(super) path: String,
    /// The type that implements it.
    pub(super) kind: &'a str,
    pub(super) does: Does,
    /// Whether this is certainly done.
    pub(super) is_certain: bool,
    /// What has its current object; `None` if there is none.
    pub(super) current: Option<&'a PlannedResource>,
    /// The properties of its object afterwards; `None` if there is none.
    pub(super) after: Option<&'a Map>,
    /// Whether its current object stays in the cloud in any case.
    pub(super) is_retained: bool,
}

impl Planned<'_> {
    /// Whether it makes an object.
    pub(super) fn makes(&self) -> bool {
        matches!(self.does, Does::Create | Does::Replace)
    }

    /// The properties of its current object; `None` if there is none.
    pub(super) fn before(&self) -> Option<Map> {
        self.current.map(PlannedResource::before)
    }

    /// The text of a property afterwards, if it is known.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.after?.get(name).and_then(Value::as_str).filter(|text| !text.is_empty())
    }

    /// The properties of an object that it makes: those that it certainly has.
    pub(super) fn made(&self) -> Option<&Map> {
        self.after.filter(|_| self.makes())
    }
}

/// All of a preview.
pub(super) struct Work<'a> {
    pub(super) resources: Vec<Planned<'a>>,
    /// The refused changes: path and reason.
    pub(super) refused: Vec<(String, &'a str)>,
    /// The IDs of the objects of the tree.
    pub(super) objects: HashSet<&'a str>,
    /// The IDs of the objects that stay as they are.
    pub(super) staying: HashSet<&'a str>,
    /// The number of resources afterwards, also of those with nested stacks.
    pub(super) total: usize,
    by_path: HashMap<String, usize>,
}

impl<'a> Work<'a> {
    pub(super) fn of(preview: &'a Preview) -> Self {
        let mut work = Self {
            resources: Vec::new(),
            refused: Vec::new(),
            objects: HashSet::new(),
            staying: HashSet::new(),
            total: 0,
            by_path: HashMap::new(),
        };
        work.add(preview, "");
        let paths = work.resources.iter().enumerate().filter(|(_, one)| one.after.is_some());
        work.by_path = paths.map(|(at, one)| (one.path.clone(), at)).collect();
        work
    }

    fn add(&mut self, preview: &'a Preview, place: &str) {
        for planned in preview.entries.iter().chain(&preview.former) {
            let path = if place.is_empty() { planned.name.clone() } else { format!("{place}/{}", planned.name) };
            self.add_one(planned, &path);
            for nested in planned.nested.as_deref().into_iter().chain(planned.untouched.as_deref()) {
                self.add(nested, &path);
            }
        }
    }

    fn add_one(&mut self, planned: &'a PlannedResource, path: &str) {
        let does = match planned.change.at_most() {
            PlannedChange::Refused(reason) => {
                self.refused.push((path.to_owned(), reason));
                Does::Keep
            }
            PlannedChange::Unchanged | PlannedChange::Undecided { .. } => Does::Keep,
            PlannedChange::Updated(_) => Does::Update,
            PlannedChange::Replaced(_) => Does::Replace,
            PlannedChange::Added => Does::Create,
            PlannedChange::Deleted => Does::Delete,
        };
        self.total += usize::from(does != Does::Delete);
        let object = planned.row.as_ref().and_then(|row| row.physical_id.as_deref());
        self.objects.extend(object);
        if does == Does::Keep {
            self.staying.extend(object);
        }
        let definition = planned.definition.as_deref();
        let is_external = definition.is_some_and(|one| one.external_id.is_some());
        if planned.nested.is_some() || planned.untouched.is_some() || planned.content.is_some() || is_external {
            return;
        }
        self.resources.push(Planned {
            path: path.to_owned(),
            kind: planned.implementation(),
            does,
            is_certain: !matches!(planned.change, PlannedChange::Undecided { .. }),
            current: object.map(|_| planned),
            after: definition.filter(|_| does != Does::Delete).map(|definition| &definition.properties),
            is_retained: planned.is_retained || planned.row.as_deref().is_some_and(Resource::is_retained),
        });
    }

    pub(super) fn changes_something(&self) -> bool {
        !self.refused.is_empty() || self.resources.iter().any(|one| !matches!(one.does, Does::Keep | Does::Delete))
    }

    /// The resources of a type.
    pub(super) fn of_type<'b>(&'b self, kind: &'b str) -> impl Iterator<Item = &'b Planned<'a>> {
        self.resources.iter().filter(move |one| one.kind == kind)
    }

    /// Whether the plan may make a subnet in an existing network.
    pub(super) fn may_add_subnet(&self, network: &str) -> bool {
        self.of_type("OS::Neutron::Subnet").any(|subnet| match subnet.made().and_then(|made| made.get("network")) {
            Some(Value::Str(id)) => id == network,
            Some(value) => self.referred(subnet, value, "OS::Neutron::Net").is_none(),
            None => false,
        })
    }

    /// The resource of a type to which an unknown value in the root stack refers. In a nested stack a value may come from
    /// outside, where the name means another resource.
    pub(super) fn referred(&self, from: &Planned<'_>, value: &Value, kind: &str) -> Option<&Planned<'a>> {
        let Value::Unknown(unknown) = value else { return None };
        if from.path.contains('/') || unknown.place().contains('.') {
            return None;
        }
        let at = *self.by_path.get(unknown.place())?;
        self.resources.get(at).filter(|one| one.kind == kind)
    }
}
