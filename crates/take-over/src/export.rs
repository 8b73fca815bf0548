//! From what Kiln stores to a tree of Heat: the reverse of a conversion.

use std::collections::{HashMap, HashSet};

use jiff::Timestamp;
use kiln_cloud::Credentials;
use kiln_plan::{Blueprint, Nesting, ResourceTypes};
use kiln_resource::{Resource, ResourceId, SoftwareConfig, Status};
use kiln_stack::clock::Chance;
use kiln_stack::load;
use kiln_store::{CredentialsId, DesiredText, Event, Snapshot, Stack, StackId, TakenSoftware, TakenStack, TakenTree};
use kiln_template::Template;
use kiln_value::{Map, Secret, Value, text, value};

use crate::Finding;
use crate::convert::{heat_id, nested_ids, refer};
use crate::finding::{below, is_blocked};
use crate::heat::{
    CipherError, FERNET, HeatConfig, HeatCredentials, HeatDeployment, HeatEvent, HeatKey, HeatProperties, HeatResource,
    HeatSnapshot, HeatSoftware, HeatStack, HeatTemplate, HeatTree, Release, StoredData,
};
use crate::resource_data::heat_data;

/// What exports have in common.
pub struct Exporter<'a> {
    /// The types of this Kiln.
    pub types: &'a ResourceTypes,
    /// Heat's key.
    pub key: &'a HeatKey,
    /// Whether Heat encrypts parameters and properties.
    pub encrypts: bool,
    /// The release of Heat.
    pub release: Release,
    /// The time of the rows that are written.
    pub now: Timestamp,
    /// Where the vectors of ciphers come from.
    pub chance: &'a Chance,
}

/// The result of an export.
#[derive(Debug)]
pub struct Exported {
    /// The tree as Heat stores it; `None` if something stands in the way.
    pub tree: Option<HeatTree>,
    /// What was found.
    pub findings: Vec<Finding>,
}

impl Exporter<'_> {
    /// [`CipherError::TooShort`] is excluded by [`HeatKey::new`].
    fn encrypt(&self, text: &str) -> Result<String, CipherError> {
        self.key.encrypt(text, self.chance.uuid().into_bytes(), self.now)
    }

    /// Converts a tree of Kiln. `heat`: what Heat's tables have of it, which is kept wherever Kiln has changed nothing; and
    /// `known`: the same as Kiln stores it.
    pub fn export(&self, kiln: &TakenTree, heat: &HeatTree, known: Option<&TakenTree>) -> Exported {
        let mut work = Work::new(self, kiln, heat, known);
        let tree = work.tree();
        let is_blocked = is_blocked(&work.findings);
        Exported { tree: Some(tree).filter(|_| !is_blocked), findings: work.findings }
    }
}

/// Converts the configs and deployments of a project. Heat does not encrypt them.
pub(crate) fn export_software(kiln: &TakenSoftware, heat: &HeatSoftware, known: &TakenSoftware) -> HeatSoftware {
    let of_heat: HashMap<&str, &HeatConfig> = heat.configs.iter().map(|one| (one.id.as_str(), one)).collect();
    let same: HashMap<&str, &SoftwareConfig> = known.configs.iter().map(|one| (one.id.as_str(), one)).collect();
    let configs = kiln.configs.iter().map(|one| {
        if let Some(old) = of_heat.get(one.id.as_str()).filter(|_| same.get(one.id.as_str()) == Some(&one)) {
            return (*old).clone();
        }
        let config = value!({
            "config": (one.body.config.clone()), "inputs": (Value::List(one.body.inputs.clone())),
            "outputs": (Value::List(one.body.outputs.clone())), "options": (one.body.options.clone()),
        });
        HeatConfig {
            id: one.id.clone(),
            name: one.name.clone(),
            group: one.group.clone(),
            config: config.as_map().cloned().unwrap_or_default(),
            project: one.project.clone(),
            created: one.created,
        }
    });
    let configs = configs.collect();
    let deployments = kiln.deployments.iter().map(|one| HeatDeployment {
        id: one.id.clone(),
        config: one.config.clone(),
        server: one.server.clone(),
        inputs: one.body.inputs.clone(),
        outputs: one.body.outputs.clone(),
        action: one.body.action.clone(),
        status: one.body.status.clone(),
        reason: one.body.reason.clone(),
        project: one.project.clone(),
        user_project: one.user_project.clone(),
        created: one.created,
        updated: one.updated,
    });
    HeatSoftware { configs, deployments: deployments.collect() }
}

/// Where a row is.
struct Place<'p> {
    /// The ID of its stack.
    stack: &'p str,
    /// The number of its template.
    template: Option<i64>,
    /// The IDs of the nested stacks of groups by what `get_resource` gives in Kiln.
    references: &'p HashMap<String, String>,
    /// Its path.
    at: &'p str,
}

/// An export.
struct Work<'a> {
    exporter: &'a Exporter<'a>,
    kiln: &'a TakenTree,
    heat: &'a HeatTree,
    findings: Vec<Finding>,
    /// What Kiln would store of Heat's rows, by ID.
    known_stacks: HashMap<StackId, &'a TakenStack>,
    known_rows: HashMap<ResourceId, &'a Resource>,
    known_credentials: Option<CredentialsId>,
    /// Heat's rows, by ID.
    stacks: HashMap<&'a str, &'a HeatStack>,
    rows: HashMap<&'a str, &'a HeatResource>,
    /// What types have stored in Heat, by the numbers of the resources.
    data: HashMap<i64, Vec<StoredData>>,
    /// The numbers of the rows; those of new ones are negative.
    numbers: HashMap<ResourceId, i64>,
    /// Templates and properties that are written here, by their texts.
    written: HashMap<String, i64>,
    next: i64,
    tree: HeatTree,
}

impl<'a> Work<'a> {
    fn new(exporter: &'a Exporter<'a>, kiln: &'a TakenTree, heat: &'a HeatTree, known: Option<&'a TakenTree>) -> Self {
        let known_stacks = known.into_iter().flat_map(|known| &known.stacks).map(|one| (one.stack.id, one)).collect();
        let known_rows = known.into_iter().flat_map(|known| &known.resources).map(|row| (row.id, row)).collect();
        let known_credentials = known.and_then(|known| Some(known.credentials.as_ref()?.0));
        let stacks = heat.stacks.iter().map(|stack| (stack.id.as_str(), stack)).collect();
        let rows: HashMap<&str, &HeatResource> = heat.resources.iter().map(|row| (row.uuid.as_str(), row)).collect();
        let mut data: HashMap<i64, Vec<StoredData>> = HashMap::new();
        for stored in &heat.data {
            data.entry(stored.resource).or_default().push(stored.clone());
        }
        let mut next = 0;
        let numbers = kiln.resources.iter().map(|row| {
            let number = rows.get(row.id.to_string().as_str()).map(|row| row.number);
            let number = number.unwrap_or_else(|| {
                next -= 1;
                next
            });
            (row.id, number)
        });
        let numbers = numbers.collect();
        Self {
            exporter,
            kiln,
            heat,
            findings: Vec::new(),
            known_stacks,
            known_rows,
            known_credentials,
            stacks,
            rows,
            data,
            numbers,
            written: HashMap::new(),
            next,
            tree: HeatTree::default(),
        }
    }

    fn tree(&mut self) -> HeatTree {
        self.tree.templates.clone_from(&self.heat.templates);
        self.tree.properties.clone_from(&self.heat.properties);
        self.tree.backups.clone_from(&self.heat.backups);
        self.tree.digest.clone_from(&self.heat.digest);
        self.credentials();
        let mut rows: HashMap<StackId, Vec<&'a Resource>> = HashMap::new();
        for row in &self.kiln.resources {
            rows.entry(row.stack).or_default().push(row);
        }
        let places = load::places(self.kiln.stacks.iter().map(|taken| &taken.stack));
        for taken in &self.kiln.stacks {
            let place = places.get(&taken.stack.id).map_or("", String::as_str);
            self.stack(taken, rows.get(&taken.stack.id).map_or(&[], Vec::as_slice), place);
        }
        self.events();
        self.snapshots();
        std::mem::take(&mut self.tree)
    }

    fn block(&mut self, place: &str, what: impl Into<String>, hint: &str) {
        self.findings.push(Finding::blocks(place, what, hint));
    }

    fn number(&mut self) -> i64 {
        self.next -= 1;
        self.next
    }

    fn stack(&mut self, taken: &'a TakenStack, rows: &[&'a Resource], place: &str) {
        let stack = &taken.stack;
        let id = stack.id.to_string();
        for tag in &stack.tags {
            self.tree.tags.push((id.clone(), tag.clone()));
        }
        let old = self.stacks.get(id.as_str()).copied();
        let known = self.known_stacks.get(&stack.id).copied();
        let template = match (old, known) {
            (Some(old), Some(known)) if known.desired == taken.desired => old.template,
            _ => self.template(&taken.desired, place),
        };
        let is_same = known.is_some_and(|known| says_the_same(&known.stack, stack) && known.desired == taken.desired);
        let mut previous = old.and_then(|old| old.previous_template);
        if !is_same {
            previous = match &taken.previous {
                Some(text) if stack.state.status == Status::Failed && *text != taken.desired => {
                    self.template(text, place)
                }
                _ => None,
            };
        }
        let credentials = self.tree.credentials.as_ref().map(|one| one.number);
        let converted = match old.filter(|_| is_same) {
            Some(old) => HeatStack { credentials: self.credentials_of(old, credentials), ..old.clone() },
            None => HeatStack {
                id,
                name: stack.name.clone(),
                project: stack.project.clone(),
                username: stack.username.clone(),
                owner: stack.parent.as_ref().map(|parent| parent.stack.to_string()),
                parent_resource: stack.parent.as_ref().map(|parent| parent.resource_name.clone()),
                action: stack.state.action.as_str().to_owned(),
                status: stack.state.status.as_str().to_owned(),
                reason: stack.reason.clone(),
                timeout: stack.timeout_mins,
                disable_rollback: stack.disable_rollback,
                user_project: stack.user_project.clone(),
                template,
                previous_template: previous,
                credentials: old.map_or(credentials, |old| self.credentials_of(old, credentials)),
                backup: false,
                convergence: true,
                created: stack.created,
                updated: stack.updated,
            },
        };
        let (template, previous) = (converted.template, converted.previous_template);
        self.tree.stacks.push(converted);
        self.resources(taken, rows, place, template, previous);
    }

    /// Nested stacks have the credentials of the root stack.
    fn credentials_of(&self, old: &HeatStack, present: Option<i64>) -> Option<i64> {
        let was = self.heat.credentials.as_ref().map(|one| one.number);
        if present == was { old.credentials } else { present }
    }

    /// The number of a template, which is written if Heat does not have it.
    fn template(&mut self, texts: &DesiredText, place: &str) -> Option<i64> {
        let key = format!("{}\0{}\0{}", texts.template, texts.environment, texts.files);
        if let Some(number) = self.written.get(&key) {
            return Some(*number);
        }
        let Ok(sources) = load::sources(texts) else {
            self.block(place, "its stored template cannot be read", "delete the stack");
            return None;
        };
        if sources.template.get("moved").is_some() {
            self.block(
                place,
                "its template has a section 'moved', which Heat refuses",
                "update the stack with the template without that section",
            );
        }
        let mut environment = sources.environment.to_stored().as_map().cloned().unwrap_or_default();
        // Of this row, whatever a client has sent.
        environment.insert("encrypted_param_names".to_owned(), Vec::<Value>::new().into());
        if self.exporter.encrypts {
            let schemata = Template::from_value((*sources.template).clone()).and_then(|one| one.parameter_schemata());
            let hidden = schemata.unwrap_or_default().into_iter().filter(|(_, schema)| schema.hidden);
            self.encrypt_parameters(&mut environment, hidden.map(|(name, _)| name));
        }
        let files: Map = sources.files.0.iter().map(|(name, text)| (name.clone(), text.as_str().into())).collect();
        let number = self.number();
        let template =
            HeatTemplate { number, template: (*sources.template).clone(), environment, files_row: None, files };
        self.tree.templates.insert(number, template);
        self.written.insert(key, number);
        Some(number)
    }

    /// As Heat does: each hidden parameter is a list of a method and a text.
    fn encrypt_parameters(&self, environment: &mut Map, hidden: impl Iterator<Item = String>) {
        let Some(parameters) = environment.get_mut("parameters").and_then(Value::as_map_mut) else { return };
        let mut names: Vec<Value> = Vec::new();
        for name in hidden {
            let Some(value) = parameters.get_mut(&name) else { continue };
            let Some(pair) = self.encrypted(&text::str(value)) else { continue };
            *value = pair;
            names.push(name.into());
        }
        environment.insert("encrypted_param_names".to_owned(), names.into());
    }

    fn encrypted(&self, text: &str) -> Option<Value> {
        let text = self.exporter.encrypt(text).ok()?;
        Some(value!([FERNET, text]))
    }

    /// The number of properties, which are written.
    fn properties(&mut self, data: &Map) -> Option<i64> {
        if data.is_empty() {
            return None;
        }
        let key = text::json(&data.clone().into());
        if let Some(number) = self.written.get(&key) {
            return Some(*number);
        }
        let encrypted = self.exporter.encrypts;
        let stored = data.iter().map(|(name, value)| {
            let value = if encrypted { self.encrypted(&text::json(value)).unwrap_or_default() } else { value.clone() };
            (name.clone(), value)
        });
        let stored = stored.collect();
        let number = self.number();
        self.tree.properties.insert(number, HeatProperties { number, data: stored, encrypted });
        self.written.insert(key, number);
        Some(number)
    }

    fn resources(
        &mut self,
        taken: &TakenStack,
        rows: &[&'a Resource],
        place: &str,
        template: Option<i64>,
        previous: Option<i64>,
    ) {
        // The rows with those of Heat, where Kiln has changed nothing.
        let rows: Vec<(&Resource, Option<&HeatResource>)> = rows.iter().map(|row| (*row, self.kept(row))).collect();
        // Rows of a legacy stack do not name their template and what they require: after a change, all of them must.
        let is_legacy = self.stacks.get(taken.stack.id.to_string().as_str()).is_some_and(|old| !old.convergence);
        let is_kept = rows.iter().all(|(_, kept)| kept.is_some());
        let was_legacy = is_legacy && !(is_kept && self.tree.stacks.last().is_some_and(|stack| !stack.convergence));
        if was_legacy && let Some(stack) = self.tree.stacks.last_mut() {
            stack.convergence = true;
        }
        if is_kept && !was_legacy {
            for old in rows.iter().filter_map(|(_, kept)| *kept) {
                self.keep(old.clone());
            }
            return;
        }
        let stack_id = taken.stack.id.to_string();
        let sources = load::sources(&taken.desired);
        let nesting = Nesting { facade: None, depth: taken.stack.depth };
        let blueprint = sources.as_ref().ok().and_then(|sources| {
            Blueprint::build(sources.clone(), self.exporter.types, load::identity(&taken.stack), nesting).ok()
        });
        let of_stack: Vec<&Resource> = rows.iter().map(|(row, _)| *row).collect();
        let references = blueprint.as_ref().map(|one| nested_ids(&of_stack, one, &load::stack_facts(&taken.stack)));
        let references = references.unwrap_or_default();
        let declared = sources.as_ref().ok().and_then(|one| {
            let template = &one.template;
            let resources = template.get("resources").or_else(|| template.get("Resources"));
            resources.and_then(Value::as_map)
        });
        for (row, kept) in rows {
            let at = below(place, &row.name);
            let is_declared = declared.is_some_and(|declared| declared.contains_key(&row.name));
            let own = if is_declared && row.replaced_by.is_none() {
                template
            } else {
                let old = self.rows.get(row.id.to_string().as_str());
                previous.or(old.and_then(|old| old.template)).or(template)
            };
            match kept {
                Some(old) if was_legacy => {
                    self.keep(HeatResource { template: own, requires: self.requires(row), ..old.clone() });
                }
                Some(old) => self.keep(old.clone()),
                None => self.row(row, &Place { stack: &stack_id, template: own, references: &references, at: &at }),
            }
        }
    }

    /// Heat's row, if Kiln has changed nothing of it.
    fn kept(&self, row: &Resource) -> Option<&'a HeatResource> {
        let known = self.known_rows.get(&row.id)?;
        self.rows.get(row.id.to_string().as_str()).copied().filter(|_| rows_say_the_same(known, row))
    }

    /// Keeps a row of Heat with what its type has stored.
    fn keep(&mut self, old: HeatResource) {
        self.tree.data.extend(self.data.remove(&old.number).unwrap_or_default());
        self.tree.resources.push(old);
    }

    fn requires(&self, row: &Resource) -> Vec<Value> {
        row.requires.iter().filter_map(|id| self.numbers.get(id)).map(|number| (*number).into()).collect()
    }

    /// A row that Kiln has made or changed.
    fn row(&mut self, row: &Resource, place: &Place<'_>) {
        let Place { stack, template, references, at } = *place;
        // As Kiln would store the row of Heat.
        let known = self.known_rows.get(&row.id).copied();
        let old = self.rows.get(row.id.to_string().as_str()).copied();
        let number = self.numbers.get(&row.id).copied().unwrap_or_default();
        let given = |row: &Resource| row.definition.as_ref().map(|one| one.given().clone()).unwrap_or_default();
        let is_given = known.is_some_and(|known| given(known) == given(row));
        let properties = if let Some(old) = old.filter(|_| is_given) {
            old.properties
        } else {
            let given: Map = given(row).iter().map(|(name, value)| (name.clone(), refer(value, references))).collect();
            self.properties(&given)
        };
        let is_of = known.is_some_and(|known| known.data == row.data && known.metadata == row.metadata);
        let kept = self.data.remove(&number).unwrap_or_default();
        let mut metadata = row.metadata.as_map().cloned().unwrap_or_default();
        if let Some(old) = old.filter(|_| is_of) {
            metadata.clone_from(&old.metadata);
            self.tree.data.extend(kept);
        } else {
            for mut stored in heat_data(row, &kept, &mut metadata) {
                // What Heat has encrypted is kept.
                if stored.method.is_some() && self.exporter.key.decrypt(FERNET, &stored.value).is_err() {
                    stored.value = self.exporter.encrypt(&stored.value).unwrap_or_default();
                }
                self.tree.data.push(StoredData { resource: number, ..stored });
            }
        }
        let physical_id = match (old, known) {
            (Some(old), Some(known)) if known.physical_id == row.physical_id => old.physical_id.clone(),
            _ => heat_id(row),
        };
        let attributes = match old.filter(|_| known.is_some_and(|known| known.attributes == row.attributes)) {
            Some(old) => old.attributes,
            // Those of nested stacks are their outputs.
            None if row.child.is_some() => None,
            None => self.properties(&row.attributes),
        };
        if row.running().is_some() {
            self.block(at, "its last operation has not ended", "update or delete the stack once more");
        }
        self.tree.resources.push(HeatResource {
            number,
            uuid: row.id.to_string(),
            name: row.name.clone(),
            physical_id,
            action: row.state.action.as_str().to_owned(),
            status: row.state.status.as_str().to_owned(),
            reason: row.reason.clone(),
            stack: stack.to_owned(),
            metadata,
            requires: self.requires(row),
            replaces: row.replaces.and_then(|id| self.numbers.get(&id).copied()),
            replaced_by: row.replaced_by.and_then(|id| self.numbers.get(&id).copied()),
            template,
            properties,
            attributes,
            created: row.created,
            updated: Some(row.updated),
        });
    }

    fn credentials(&mut self) {
        self.tree.credentials.clone_from(&self.heat.credentials);
        let Some((id, credentials)) = &self.kiln.credentials else { return };
        if self.known_credentials == Some(*id) {
            return;
        }
        let number = self.number();
        match self.exported_credentials(number, credentials) {
            Some(exported) => self.tree.credentials = Some(exported),
            None => self.block(
                "",
                "its credentials are neither a trust nor a user with a password, as Heat stores them",
                "update the stack with deferred_auth_method = trusts",
            ),
        }
    }

    fn exported_credentials(&self, number: i64, credentials: &Secret<String>) -> Option<HeatCredentials> {
        let exposed: Value = serde_json::from_str(credentials.expose()).ok()?;
        let trustor = exposed.str_at("trustor").map(str::to_owned);
        let found = Credentials::from_exposed(&exposed)?;
        let method = Some(FERNET.to_owned());
        let encrypt = |text: &str| self.exporter.encrypt(text).ok();
        if let Some(trust) = found.trust() {
            let trust = Some(encrypt(trust)?);
            return Some(HeatCredentials { number, method, trust, trustor, ..HeatCredentials::default() });
        }
        let Credentials::Password { user, password, .. } = &found else { return None };
        let (username, password) = (Some(user.word().to_owned()), Some(encrypt(password.expose())?));
        Some(HeatCredentials { number, username, password, method, ..HeatCredentials::default() })
    }

    /// The events of Heat stay; those of Kiln come after them.
    fn events(&mut self) {
        self.tree.events.clone_from(&self.heat.events);
        let known: HashSet<&str> = self.heat.events.iter().filter_map(|one| one.uuid.as_deref()).collect();
        let mut stacks: HashSet<String> = self.kiln.stacks.iter().map(|one| one.stack.id.to_string()).collect();
        stacks.extend(self.heat.stacks.iter().map(|one| one.id.clone()));
        let is_new = |event: &&Event| {
            !known.contains(event.id.to_string().as_str()) && stacks.contains(&event.stack.to_string())
        };
        let new: Vec<&Event> = self.kiln.events.iter().filter(is_new).collect();
        for event in new {
            let properties = event.properties.as_map().cloned().unwrap_or_default();
            let properties = self.properties(&properties);
            self.tree.events.push(HeatEvent {
                number: 0,
                uuid: Some(event.id.to_string()),
                stack: event.stack.to_string(),
                action: event.action.clone(),
                status: event.status.as_str().to_owned(),
                resource_name: event.resource_name.clone(),
                physical_id: event.physical_id.clone(),
                reason: event.reason.clone(),
                resource_type: event.resource_type.clone(),
                properties,
                created: event.time,
            });
        }
    }

    fn snapshots(&mut self) {
        let known: HashMap<&str, &HeatSnapshot> =
            self.heat.snapshots.iter().map(|one| (one.id.as_str(), one)).collect();
        let listed: Vec<&Snapshot> = self.kiln.snapshots.iter().filter(|one| one.is_listed()).collect();
        for snapshot in listed {
            let id = snapshot.id.to_string();
            if let Some(old) = known.get(id.as_str()) {
                self.tree.snapshots.push((*old).clone());
                continue;
            }
            if self.exporter.release != Release::Rocky {
                self.block(
                    "",
                    format!("the snapshot {id} was made by Kiln, and this Heat stores snapshots in another form"),
                    "delete the snapshot",
                );
            }
            self.tree.snapshots.push(HeatSnapshot {
                id,
                stack: snapshot.stack.to_string(),
                name: snapshot.name.clone(),
                status: snapshot.state.status.as_str().to_owned(),
                reason: snapshot.reason.clone(),
                data: snapshot.data.clone(),
                created: snapshot.created,
            });
        }
    }
}

/// Whether Heat would store two states of a stack in the same way, apart from the template.
fn says_the_same(one: &Stack, other: &Stack) -> bool {
    let of = |stack: &Stack| {
        let times = (stack.created, stack.updated);
        let words = (stack.name.clone(), stack.reason.clone(), stack.username.clone(), stack.user_project.clone());
        let parent = stack.parent.as_ref().map(|parent| (parent.stack, parent.resource_name.clone()));
        (stack.state, times, words, parent, stack.timeout_mins, stack.disable_rollback)
    };
    of(one) == of(other)
}

/// Whether Heat would store two states of a row in the same way.
fn rows_say_the_same(one: &Resource, other: &Resource) -> bool {
    let of = |row: &Resource| {
        let ids = (row.replaces, row.replaced_by, row.physical_id.clone());
        let given = row.definition.as_ref().map(|one| one.given().clone());
        let values = (given, row.data.clone(), row.metadata.clone());
        (row.name.clone(), row.state, row.reason.clone(), row.updated, ids, values)
    };
    let required = |row: &Resource| row.requires.iter().copied().collect::<HashSet<_>>();
    of(one) == of(other) && required(one) == required(other)
}
