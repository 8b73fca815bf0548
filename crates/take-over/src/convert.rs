//! From a tree of Heat to what Kiln stores.

mod ids;
mod software;
mod stacks;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use jiff::Timestamp;
use kiln_cloud::Credentials;
use kiln_plan::hidden::{Door, HiddenValues};
use kiln_plan::{Kind, Model, ResourceTypes, Sources, StackScope, facts};
use kiln_resource::{Action, Resource, StackFacts, State, Status, StoredDefinition, properties, translation};
use kiln_store::{
    CredentialsId, Event, EventId, Parent, ResourceId, Snapshot, SnapshotId, StackId, TakeOver, TakeOverState,
    TakenStack, TakenTree,
};
use kiln_value::{Map, Path, Secret, Value, text};
use uuid::Uuid;

use crate::Finding;
use crate::finding::{below, is_blocked};
use crate::heat::{
    CipherError, HeatCredentials, HeatKey, HeatProperties, HeatResource, HeatStack, HeatTree, StoredData,
};
use crate::resource_data::data_of;
use crate::trees::Tree;

pub(crate) use self::ids::heat_id;
use self::stacks::Templates;

/// The groups whose members are deployments.
const DEPLOYMENT_GROUPS: [&str; 4] = [
    "OS::Heat::SoftwareDeploymentGroup",
    "OS::Heat::SoftwareDeployments",
    "OS::Heat::StructuredDeploymentGroup",
    "OS::Heat::StructuredDeployments",
];

/// What conversions have in common.
pub struct Converter {
    /// The types of this Kiln.
    pub types: Arc<ResourceTypes>,
    /// Heat's key.
    pub key: HeatKey,
    /// The user to whom the trusts of stacks delegate; `None`: those of stacks are not converted, as in an inventory.
    pub trustee: Option<Credentials>,
    /// At most so many of the newest events of each tree; 0: all.
    pub events: usize,
}

/// The result of a conversion.
#[derive(Debug)]
pub struct Converted {
    /// What Kiln stores; `None` if something stands in the way.
    pub tree: Option<TakenTree>,
    /// What was found.
    pub findings: Vec<Finding>,
}

impl Converted {
    /// Of a tree that cannot be converted.
    pub(crate) fn refused(finding: Finding) -> Self {
        Self { tree: None, findings: vec![finding] }
    }
}

impl Converter {
    /// Converts a tree. All findings are collected, also behind the first that blocks it.
    pub fn convert(&self, tree: &Tree, heat: &HeatTree, now: Timestamp) -> Converted {
        let mut work = Work::new(self, heat);
        let taken = work.tree(tree, now);
        let is_blocked = is_blocked(&work.findings);
        Converted { tree: taken.filter(|_| !is_blocked), findings: work.findings }
    }
}

/// A conversion.
struct Work<'a> {
    converter: &'a Converter,
    heat: &'a HeatTree,
    findings: Vec<Finding>,
    /// The paths of the stacks below the root.
    places: HashMap<&'a str, String>,
    /// The resources by their stacks.
    rows: HashMap<&'a str, Vec<&'a HeatResource>>,
    /// What types have stored, by the numbers of the resources.
    data: HashMap<i64, Vec<&'a StoredData>>,
    /// The tags by stacks.
    tags: HashMap<&'a str, Vec<&'a str>>,
    /// The resources of the converted stacks by their nested stacks; of two, the later one.
    owners: HashMap<StackId, Owner>,
}

/// The resource that a nested stack belongs to.
#[derive(Clone)]
struct Owner {
    parent: Parent,
    /// The depth of the nested stack.
    depth: u32,
    implementation: String,
    definition: Option<Arc<StoredDefinition>>,
}

/// A stack on the way.
struct Member<'a> {
    heat: &'a HeatStack,
    id: StackId,
    rows: Vec<&'a HeatResource>,
}

impl<'a> Work<'a> {
    fn new(converter: &'a Converter, heat: &'a HeatTree) -> Self {
        let (findings, places, owners) = (Vec::new(), HashMap::new(), HashMap::new());
        let (mut rows, mut data, mut tags) = (HashMap::new(), HashMap::new(), HashMap::new());
        for row in &heat.resources {
            rows.entry(row.stack.as_str()).or_insert_with(Vec::new).push(row);
        }
        for stored in &heat.data {
            data.entry(stored.resource).or_insert_with(Vec::new).push(stored);
        }
        for (stack, tag) in &heat.tags {
            tags.entry(stack.as_str()).or_insert_with(Vec::new).push(tag.as_str());
        }
        Self { converter, heat, findings, places, rows, data, tags, owners }
    }

    fn block(&mut self, place: &str, what: impl Into<String>, hint: impl Into<String>) {
        self.findings.push(Finding::blocks(place, what, hint));
    }

    fn tree(&mut self, tree: &Tree, now: Timestamp) -> Option<TakenTree> {
        let heat = self.heat;
        let root = self.id_of(&tree.root)?;
        if tree.namesakes > 0 {
            let others = tree.namesakes;
            self.block(
                "",
                format!("{others} other live stacks of the project have the same name"),
                "Kiln has one live stack of a name: delete or rename the others in Heat",
            );
        }
        self.refuse_backups();
        let mut templates = Templates::new(&self.converter.types);
        let mut taken = TakenTree {
            record: TakeOver {
                root,
                project: tree.project.clone(),
                name: tree.name.clone(),
                digest: heat.digest.clone(),
                state: TakeOverState::Imported,
                reason: String::new(),
                time: now,
            },
            stacks: Vec::new(),
            resources: Vec::new(),
            events: Vec::new(),
            snapshots: Vec::new(),
            credentials: None,
        };
        let mut hidden: Vec<Sources> = Vec::new();
        for stack in &heat.stacks {
            let place = self.place_of(stack);
            let Some(id) = self.id_of(&stack.id) else { continue };
            let rows = self.rows.remove(stack.id.as_str()).unwrap_or_default();
            let member = Member { heat: stack, id, rows };
            if let Some(converted) = self.stack(&member, root, &place, &mut templates) {
                let (stack, resources, sources) = converted;
                self.note_owners(&stack.stack, &resources);
                taken.stacks.push(stack);
                taken.resources.extend(resources);
                hidden.extend(sources);
            }
        }
        self.check_children(&taken);
        taken.credentials = self.credentials(root);
        if let Some((id, _)) = &taken.credentials {
            for one in taken.stacks.iter_mut().filter(|one| one.stack.id == root) {
                one.stack.credentials = Some(*id);
            }
        }
        let hidden = HiddenValues::of(&hidden.iter().collect::<Vec<_>>());
        taken.events = self.events(root, &hidden);
        taken.snapshots = self.snapshots();
        Some(taken)
    }

    fn id_of(&mut self, id: &str) -> Option<StackId> {
        let parsed = id.parse().ok();
        if parsed.is_none() {
            self.block("", format!("the ID {id:?} of a stack is not a UUID"), "report it: Heat makes no such IDs");
        }
        parsed
    }

    /// The path of a stack, which comes after its owner.
    fn place_of(&mut self, stack: &'a HeatStack) -> String {
        let above = stack.owner.as_deref().and_then(|owner| self.places.get(owner));
        let place = match (above, &stack.parent_resource) {
            (Some(above), Some(name)) => below(above, name),
            _ => String::new(),
        };
        self.places.insert(&stack.id, place.clone());
        place
    }

    /// Resources of legacy stacks that are replaced wait in backups. Usually there are none left.
    fn refuse_backups(&mut self) {
        for backup in &self.heat.backups {
            let rows = self.rows.get(backup.id.as_str()).into_iter().flatten();
            let left = rows.filter(|row| row.physical_id.is_some()).count();
            if left > 0 {
                let what = format!("its backup stack still has {left} replaced resources with objects");
                self.findings.push(Finding::blocks("", what, "update the stack in Heat once more, which deletes them"));
            }
        }
    }

    /// Notes the nested stacks of the resources of a stack.
    fn note_owners(&mut self, stack: &kiln_store::Stack, rows: &[Resource]) {
        let owner = |row: &Resource| Owner {
            parent: Parent { stack: stack.id, resource: row.id, resource_name: row.name.clone() },
            depth: stack.depth + 1,
            implementation: row.implementation.clone(),
            definition: row.definition.clone(),
        };
        self.owners.extend(rows.iter().filter_map(|row| Some((row.child?, owner(row)))));
    }

    /// A stack with its rows and its sources, after the stacks above it.
    fn stack(
        &mut self,
        member: &Member<'a>,
        root: StackId,
        place: &str,
        templates: &mut Templates<'a>,
    ) -> Option<(TakenStack, Vec<Resource>, Vec<Sources>)> {
        let heat = member.heat;
        let state = self.state(place, &heat.action, &heat.status)?;
        let owner = self.owners.get(&member.id).cloned();
        if owner.is_none() && heat.owner.is_some() {
            let what = format!("the nested stack {} belongs to no resource", heat.name);
            self.block(place, what, "delete the nested stack in Heat");
            return None;
        }
        let depth = owner.as_ref().map_or(0, |owner| owner.depth);
        let facade = owner.as_ref().and_then(|owner| owner.definition.as_deref());
        let numbers: Vec<i64> = heat.template.into_iter().chain(heat.previous_template).collect();
        let numbers = numbers.into_iter().chain(member.rows.iter().filter_map(|row| row.template));
        for number in numbers {
            if templates.contains(&heat.id, number) {
                continue;
            }
            let Some(template) = self.heat.templates.get(&number) else { continue };
            let is_present = heat.template == Some(number);
            match self.decrypted_environment(&template.environment) {
                Ok(environment) => {
                    let built = templates.build(heat, number, template, &environment, depth, facade);
                    if let Err(error) = built {
                        let which = if is_present { "its template" } else { "a former template of it" };
                        self.block(
                            place,
                            format!("Kiln refuses {which}: {error}"),
                            "update the stack in Heat with a template that Kiln accepts",
                        );
                    }
                }
                Err(error) => {
                    self.block(place, format!("a hidden parameter: {error}"), "set auth_encryption_key of Heat");
                }
            }
        }
        let Some(number) = heat.template.filter(|number| templates.get(&heat.id, *number).is_some()) else {
            if heat.template.is_none_or(|number| !self.heat.templates.contains_key(&number)) {
                self.block(place, "its template is gone", "delete the stack in Heat, or update it with its template");
            }
            return None;
        };
        let rows = self.converted_rows(member, root, place, templates, number, owner.as_ref())?;
        let blueprint = templates.get(&heat.id, number)?;
        let desired = kiln_stack::load::texts(blueprint.sources());
        let previous = heat.previous_template.and_then(|number| templates.get(&heat.id, number));
        let mut sources = vec![blueprint.sources().clone()];
        sources.extend(previous.map(|previous| previous.sources().clone()));
        let previous = previous.map(|previous| kiln_stack::load::texts(previous.sources()));
        let previous = previous.or_else(|| (state.status == Status::Complete).then(|| desired.clone()));
        let tags = self.tags.remove(heat.id.as_str()).unwrap_or_default();
        let trustor = self.heat.credentials.as_ref().and_then(|one| one.trustor.clone());
        let stack = kiln_store::Stack {
            id: member.id,
            name: heat.name.clone(),
            project: heat.project.clone(),
            root,
            depth,
            state,
            reason: heat.reason.clone(),
            desired: desired.digests(),
            previous: previous.as_ref().map(kiln_store::DesiredText::digests),
            details: kiln_store::Details::default(),
            generation: 1,
            settled: 1,
            disable_rollback: heat.disable_rollback,
            timeout_mins: heat.timeout,
            tags: tags.into_iter().map(str::to_owned).collect(),
            username: heat.username.clone(),
            user_id: trustor.unwrap_or_default(),
            credentials: None,
            user_project: heat.user_project.clone(),
            messages: 0,
            created: heat.created,
            updated: heat.updated,
            deleted: None,
            writes: 0,
            guards: 0,
            parent: owner.map(|owner| owner.parent),
        };
        Some((TakenStack { stack, desired, previous }, rows, sources))
    }

    fn state(&mut self, place: &str, action: &str, status: &str) -> Option<State> {
        let (Ok(action), Ok(status)) = (action.parse::<Action>(), status.parse::<Status>()) else {
            self.block(
                place,
                format!("its state is {action}_{status}"),
                "report it: no supported Heat has such a state",
            );
            return None;
        };
        if status == Status::InProgress {
            self.block(
                place,
                format!("its state is {action}_{status}"),
                "wait for its end; if no engine works on it, run 'heat-manage reset_stack_status'",
            );
        }
        Some(State::new(action, status))
    }

    /// The rows of a stack, with their definitions.
    fn converted_rows(
        &mut self,
        member: &Member<'a>,
        root: StackId,
        place: &str,
        templates: &Templates<'a>,
        present: i64,
        owner: Option<&Owner>,
    ) -> Option<Vec<Resource>> {
        let heat = member.heat;
        let facts_of_stack = StackFacts {
            id: heat.id.clone(),
            name: heat.name.clone(),
            project_id: heat.project.clone(),
            user_project_id: heat.user_project.clone(),
            root_id: root.to_string(),
            path: Vec::new(),
        };
        // Heat writes null for what a group of deployments leaves out, and Kiln nothing.
        let is_of_deployments = owner.is_some_and(|owner| DEPLOYMENT_GROUPS.contains(&owner.implementation.as_str()));
        let ids: HashMap<i64, ResourceId> =
            member.rows.iter().filter_map(|row| Some((row.number, row.uuid.parse().ok()?))).collect();
        let mut rows: Vec<Resource> = Vec::new();
        // The template of each row.
        let mut made_by: HashMap<ResourceId, i64> = HashMap::new();
        for old in &member.rows {
            let at = below(place, &old.name);
            let (Some(id), Some(state)) = (ids.get(&old.number), self.state(&at, &old.action, &old.status)) else {
                self.block(&at, "its row has no ID", "report it: Heat writes no such rows");
                continue;
            };
            let own = old.template.filter(|number| templates.get(&heat.id, *number).is_some()).unwrap_or(present);
            let blueprint = templates.get(&heat.id, own)?;
            let (Some(definition), Some(kind)) = (blueprint.definitions().get(&old.name), blueprint.kind(&old.name))
            else {
                self.block(
                    &at,
                    format!("the template with which it was made ({own}) does not have it"),
                    "update the stack in Heat once more, or remove the row with 'openstack stack resource mark unhealthy'",
                );
                continue;
            };
            let mut row = Resource::new(member.id, *id, &old.name, &definition.resource_type, old.created);
            kind.implementation().clone_into(&mut row.implementation);
            row.physical_id.clone_from(&old.physical_id);
            row.state = state;
            row.reason.clone_from(&old.reason);
            row.updated = old.updated.unwrap_or(old.created);
            row.generation = 1;
            row.replaces = old.replaces.and_then(|number| ids.get(&number).copied());
            row.replaced_by = old.replaced_by.and_then(|number| ids.get(&number).copied());
            row.requires = old.requires.iter().filter_map(|number| ids.get(&number.as_i64()?).copied()).collect();
            if kind.is_nested() {
                row.child = old.physical_id.as_deref().and_then(|id| id.parse().ok());
            }
            if state != State::INIT {
                let mut given = self.given(old, &at);
                given.retain(|_, value| !(is_of_deployments && value.is_null()));
                row.definition = Some(Arc::new(self.definition(&definition.resource_type, kind, &at, given)));
            }
            made_by.insert(*id, own);
            if !kind.is_nested() {
                let wanted = blueprint.wanted_names(&old.name);
                row.attributes =
                    self.kept_attributes(old).into_iter().filter(|(name, _)| wanted.contains(name)).collect();
            }
            let mut metadata = old.metadata.clone();
            let values = self.values(old, &at);
            let facts = facts(&row, kind, &facts_of_stack);
            row.data = data_of(&facts, values, &mut metadata, &mut self.findings, &at);
            row.metadata = if metadata.is_empty() { Value::Null } else { metadata.into() };
            ids::complete(&mut row, kind, &facts);
            rows.push(row);
        }
        let references = references(rows.iter(), templates.get(&heat.id, present)?, &facts_of_stack);
        for definition in rows.iter_mut().filter_map(|row| row.definition.as_mut()).filter(|_| !references.is_empty()) {
            let definition = Arc::make_mut(definition);
            let renamed = |map: &Map| -> Map {
                map.iter().map(|(name, value)| (name.clone(), refer(value, &references))).collect()
            };
            let (given, properties) = (renamed(definition.given()), renamed(&definition.properties));
            *definition = definition.clone().with_properties(given, properties);
        }
        if !heat.convergence {
            require_as_in_template(&mut rows, templates.get(&heat.id, present)?);
        }
        ids::complete_attachments(&mut rows);
        ids::complete_addresses(&mut rows);
        // What templates say beside properties is resolved when all rows are known.
        let model = Model::new(rows.clone());
        let mut scopes: BTreeMap<i64, StackScope> = BTreeMap::new();
        for row in &mut rows {
            let number = made_by.get(&row.id).copied().unwrap_or(present);
            let Some(blueprint) = templates.get(&heat.id, number) else { continue };
            let scope = scopes.entry(number).or_insert_with(|| {
                let mut scope = StackScope::new(Arc::clone(blueprint), facts_of_stack.clone());
                model.shown(None).values().for_each(|row| scope.see(row));
                scope
            });
            let (Some(definition), Some(held)) = (blueprint.definitions().get(&row.name), &mut row.definition) else {
                continue;
            };
            let held = Arc::make_mut(held);
            definition.deletion_policy().as_str().clone_into(&mut held.deletion_policy);
            if let Ok(mut resolved) = blueprint.resolve(definition, scope) {
                // What only the cloud knows is as Heat has resolved it.
                for (key, value) in resolved.metadata.iter_mut().filter(|(_, value)| has_null(value)) {
                    if let Some(known) = row.metadata.get(key) {
                        value.clone_from(known);
                    }
                }
                *held = resolved.with_properties(held.given().clone(), held.properties.clone());
            }
        }
        Some(rows)
    }

    /// The properties as the template gave them.
    fn given(&mut self, old: &HeatResource, at: &str) -> Map {
        let Some(number) = old.properties else { return Map::new() };
        let Some(found) = self.heat.properties.get(&number) else { return Map::new() };
        match self.decrypted(found) {
            Ok(given) => given,
            Err(error) => {
                self.block(at, format!("its properties: {error}"), "set auth_encryption_key of Heat");
                Map::new()
            }
        }
    }

    /// The attributes that others have read; those that cannot be read are read again when they are needed.
    fn kept_attributes(&self, old: &HeatResource) -> Map {
        let kept = old.attributes.and_then(|number| self.heat.properties.get(&number));
        kept.and_then(|kept| self.decrypted(kept).ok()).unwrap_or_default()
    }

    /// The definition of a row: its properties after defaults, with names as they are given.
    fn definition(&mut self, name: &str, kind: &Kind, at: &str, given: Map) -> StoredDefinition {
        let resource_type = kind.resource_type();
        let translated = translation::apply(
            &resource_type.translation,
            given.clone(),
            &translation::Answers::default(),
            &Path::root(),
        );
        let typed = translated.and_then(|translated| {
            if resource_type.open_properties {
                Ok(translated)
            } else {
                properties::resolve(&resource_type.properties, &translated)
            }
        });
        let typed = match typed {
            Ok(typed) => typed,
            Err(error) => {
                self.findings.push(Finding::notice(
                    at,
                    format!("its stored property {} is not valid in Kiln", error.path),
                    "the next update compares them as they are",
                ));
                given.clone()
            }
        };
        let stored = typed.into_iter().filter(|(_, value)| !value.is_null()).collect();
        StoredDefinition::of_type(name).with_properties(given, stored)
    }

    fn decrypted(&self, found: &HeatProperties) -> Result<Map, CipherError> {
        if !found.encrypted {
            return Ok(found.data.clone());
        }
        let each = found.data.iter().map(|(name, value)| {
            let text = self.decrypt_pair(value)?;
            // The text of a property is JSON.
            let value = serde_json::from_str(&text).map_err(|_| CipherError::WrongKey)?;
            Ok((name.clone(), value))
        });
        each.collect()
    }

    /// A method and a text.
    fn decrypt_pair(&self, value: &Value) -> Result<String, CipherError> {
        let part = |at: usize| value.at(at).and_then(Value::as_str).ok_or(CipherError::WrongKey);
        self.converter.key.decrypt(part(0)?, part(1)?)
    }

    fn decrypted_environment(&self, environment: &Map) -> Result<Map, CipherError> {
        let mut environment = environment.clone();
        let names: Vec<String> = environment
            .get("encrypted_param_names")
            .and_then(Value::as_list)
            .into_iter()
            .flatten()
            .filter_map(|name| name.as_str().map(str::to_owned))
            .collect();
        // Afterwards none is encrypted.
        environment.shift_remove("encrypted_param_names");
        let Some(parameters) = environment.get_mut("parameters").and_then(Value::as_map_mut) else {
            return Ok(environment);
        };
        for name in names {
            if let Some(value) = parameters.get_mut(&name).filter(|value| value.as_list().is_some()) {
                *value = self.decrypt_pair(value)?.into();
            }
        }
        Ok(environment)
    }

    /// What the type of a resource has stored, decrypted.
    fn values(&mut self, old: &HeatResource, at: &str) -> Vec<(String, String)> {
        let mut values = Vec::new();
        for stored in self.data.remove(&old.number).unwrap_or_default() {
            let value = match &stored.method {
                Some(method) => self.converter.key.decrypt(method, &stored.value),
                None => Ok(stored.value.clone()),
            };
            match value {
                Ok(value) => values.push((stored.key.clone(), value)),
                Err(error) => {
                    let what = format!("its data {}: {error}", stored.key);
                    self.block(at, what, "set auth_encryption_key of Heat");
                }
            }
        }
        values
    }

    /// Each nested stack belongs to a resource whose type has nested stacks in Kiln too.
    fn check_children(&mut self, taken: &TakenTree) {
        let known: HashSet<StackId> = taken.stacks.iter().map(|one| one.stack.id).collect();
        for row in &taken.resources {
            let has_stack = row.child.is_some_and(|child| known.contains(&child));
            if row.child.is_some() && !has_stack && row.state.action != Action::Delete {
                let above = self.places.get(row.stack.to_string().as_str()).map_or("", String::as_str);
                self.findings.push(Finding::blocks(
                    below(above, &row.name),
                    "its nested stack is gone",
                    "mark the resource unhealthy in Heat and update the stack",
                ));
            }
        }
    }

    fn credentials(&mut self, root: StackId) -> Option<(CredentialsId, Secret<String>)> {
        let Some(found) = &self.heat.credentials else {
            self.findings.push(Finding::notice(
                "",
                "the stack has no stored credentials",
                "update it once as its owner after the switch: engines can do nothing for it before",
            ));
            return None;
        };
        let trustee = self.converter.trustee.as_ref();
        let credentials = match self.stored_credentials(found, trustee) {
            Ok(credentials) => credentials?,
            Err(error) => {
                self.block("", format!("its credentials: {error}"), "set auth_encryption_key of Heat");
                return None;
            }
        };
        let mut exposed = credentials.expose();
        if let (Some(entries), Some(trustor)) = (exposed.as_map_mut(), &found.trustor) {
            entries.insert("trustor".to_owned(), trustor.as_str().into());
        }
        let id = Uuid::new_v5(&root.0, format!("credentials {} of Heat", found.number).as_bytes());
        Some((CredentialsId(id), Secret::new(text::json(&exposed))))
    }

    /// The trust of a stack, or the user and the password of its owner.
    fn stored_credentials(
        &self,
        found: &HeatCredentials,
        trustee: Option<&Credentials>,
    ) -> Result<Option<Credentials>, CipherError> {
        let clear = |text: &String| match &found.method {
            Some(method) => self.converter.key.decrypt(method, text),
            None => Ok(text.clone()),
        };
        if let Some(trust) = &found.trust {
            let trust = clear(trust)?;
            return Ok(trustee.map(|trustee| trustee.with_trust(&trust)));
        }
        let (Some(user), Some(password)) = (&found.username, &found.password) else { return Ok(None) };
        let password = clear(password)?;
        let project = found.project_name.clone().unwrap_or_default();
        Ok(Some(Credentials::password(user, &password, &project, "Default")))
    }

    fn events(&self, root: StackId, hidden: &HiddenValues) -> Vec<Event> {
        let limit = self.converter.events;
        let skipped = if limit == 0 { 0 } else { self.heat.events.len().saturating_sub(limit) };
        let event = |old: &crate::heat::HeatEvent| {
            let stack: StackId = old.stack.parse().ok()?;
            let derived = || Uuid::new_v5(&stack.0, format!("event {} of Heat", old.number).as_bytes());
            let properties = old.properties.and_then(|number| self.heat.properties.get(&number));
            let mut properties: Value =
                properties.and_then(|found| self.decrypted(found).ok()).unwrap_or_default().into();
            hidden.mask(Door::Event, &mut properties);
            Some(Event {
                id: EventId(old.uuid.as_deref().and_then(|id| id.parse().ok()).unwrap_or_else(derived)),
                stack,
                root,
                resource_name: old.resource_name.clone(),
                resource_type: old.resource_type.clone(),
                physical_id: old.physical_id.clone(),
                action: old.action.clone(),
                status: old.status.parse().unwrap_or(Status::Complete),
                reason: old.reason.clone(),
                properties,
                operation: None,
                time: old.created,
            })
        };
        self.heat.events.iter().skip(skipped).filter_map(event).collect()
    }

    fn snapshots(&mut self) -> Vec<Snapshot> {
        let mut snapshots = Vec::new();
        for old in &self.heat.snapshots {
            let (Ok(id), Ok(stack)) = (old.id.parse(), old.stack.parse()) else { continue };
            let state = State::new(Action::Snapshot, old.status.parse().unwrap_or(Status::Failed));
            if state.status == Status::InProgress {
                self.findings.push(Finding::blocks("", format!("the snapshot {id} is being made"), "wait for its end"));
            }
            let (name, reason, created) = (old.name.clone(), old.reason.clone(), old.created);
            let data = old.data.clone();
            snapshots.push(Snapshot { id: SnapshotId(id), stack: StackId(stack), name, state, reason, data, created });
        }
        snapshots
    }
}

/// The IDs of the nested stacks of groups by what `get_resource` gives for the groups in Kiln.
pub(crate) fn nested_ids(
    rows: &[&Resource],
    blueprint: &kiln_plan::Blueprint,
    stack: &StackFacts,
) -> HashMap<String, String> {
    let references = references(rows.iter().copied(), blueprint, stack);
    references.into_iter().map(|(id, reference)| (reference, id)).collect()
}

/// By the ID of the nested stack of a group, what `get_resource` gives for the group in Kiln, if that is something else: its
/// name, which stays when the nested stack is replaced.
fn references<'r>(
    rows: impl Iterator<Item = &'r Resource>,
    blueprint: &kiln_plan::Blueprint,
    stack: &StackFacts,
) -> HashMap<String, String> {
    let reference = |row: &Resource| {
        let id = row.physical_id.clone()?;
        let kind = blueprint.kind(&row.name).filter(|kind| kind.is_nested())?;
        let driver = &kind.entry()?.driver;
        let reference = driver.reference(&facts(row, kind, stack));
        let is_other = !driver.refers_by_arn() && reference.as_str() != Some(&id);
        is_other.then(|| (id, text::str(&reference)))
    };
    rows.filter_map(reference).collect()
}

/// The value with other references.
pub(crate) fn refer(value: &Value, references: &HashMap<String, String>) -> Value {
    match value {
        Value::Str(text) => references.get(&**text).map_or_else(|| value.clone(), |name| name.as_str().into()),
        Value::List(items) => items.iter().map(|item| refer(item, references)).collect::<Vec<Value>>().into(),
        Value::Map(map) => {
            map.iter().map(|(name, value)| (name.clone(), refer(value, references))).collect::<Map>().into()
        }
        other => other.clone(),
    }
}

fn has_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::List(items) => items.iter().any(has_null),
        Value::Map(map) => map.values().any(has_null),
        _ => false,
    }
}

/// Rows of legacy stacks do not say what they require: it follows from the template.
fn require_as_in_template(rows: &mut [Resource], blueprint: &kiln_plan::Blueprint) {
    let ids: HashMap<String, ResourceId> = rows.iter().map(|row| (row.name.clone(), row.id)).collect();
    for row in rows {
        row.requires = blueprint.requires(&row.name).iter().filter_map(|name| ids.get(name).copied()).collect();
    }
}
