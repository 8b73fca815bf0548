//! A stack as users see it, with outputs and attributes that are read from the cloud on request.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt, join_all};
use indexmap::IndexMap;
use kiln_plan::blueprint::attribute_names;
use kiln_plan::hidden::HiddenValues;
use kiln_plan::hook::{Hook, waits_at};
use kiln_plan::{Blueprint, Inside, Kind, Model, StackScope, facts, observe};
use kiln_resource::{Context, Failure, Member, Resource, ResourceId};
use kiln_store::{Error, Stack, StackId};
use kiln_template::{Files, ResourceView, Scope, Wanted};
use kiln_value::{Class, Map, Value};

use crate::backends::Backends;
use crate::load::stack_facts;
use crate::sizes::OutputSizes;
use crate::{load, mark};

/// A stack with its desired and actual state.
pub struct LoadedStack {
    backends: Backends,
    /// The stack's row.
    pub stack: Stack,
    /// The desired state.
    pub blueprint: Arc<Blueprint>,
    model: Arc<Model>,
    /// The row of each name that is shown to users.
    shown: Arc<BTreeMap<String, ResourceId>>,
    root: Stack,
}

/// What is read of a stack beside its row.
#[derive(Clone)]
pub struct Content {
    /// The desired state.
    pub blueprint: Arc<Blueprint>,
    /// The rows.
    pub model: Arc<Model>,
    /// The row of each name that is shown to users.
    pub shown: Arc<BTreeMap<String, ResourceId>>,
}

/// An output of a stack.
#[derive(Clone, Debug, PartialEq)]
pub struct OutputValue {
    /// Its name.
    pub key: String,
    /// Its description.
    pub description: String,
    /// Its value; null if it failed.
    pub value: Value,
    /// Why it has no value.
    pub error: Option<String>,
}

/// The row of each name that is shown to users.
fn shown(model: &Model, rollback: Option<i64>) -> BTreeMap<String, ResourceId> {
    model.shown(rollback).into_iter().map(|(name, row)| (name.to_owned(), row.id)).collect()
}

impl LoadedStack {
    /// Loads a stack; `None` if it does not exist.
    ///
    /// # Errors
    /// Errors of the store; [`Error::Damaged`] if the stored template is invalid.
    pub async fn load(backends: &Backends, id: StackId) -> Result<Option<Self>, Error> {
        match backends.store.stack(id).await? {
            Some(stack) => {
                let (content, _) = Self::read(backends, &stack).await?;
                Self::with(backends, stack, content).await.map(Some)
            }
            None => Ok(None),
        }
    }

    /// Loads a stack as it is when its engine has received the users' marks (`resource mark unhealthy`) that are stored:
    /// the size of a group depends on them.
    ///
    /// # Errors
    /// As [`LoadedStack::load`].
    pub async fn load_marked(backends: &Backends, id: StackId) -> Result<Option<Self>, Error> {
        let mut before = mark::waiting(backends, id).await?;
        loop {
            let Some(mut view) = Self::load(backends, id).await? else { return Ok(None) };
            let marks = mark::waiting(backends, id).await?;
            // Those that were handled meanwhile may be missing in the rows, which were read before.
            if before.iter().all(|mark| marks.contains(mark)) {
                for marked in marks.iter().filter_map(|mark| mark::event(mark, &view.model)).collect::<Vec<_>>() {
                    // The engine of that stack executes the commands.
                    Arc::make_mut(&mut view.model).decide(backends.clock.now(), marked);
                }
                return Ok(Some(view));
            }
            before = marks;
        }
    }

    /// Assumes that a user has marked a resource as unhealthy, for a preview: nothing is stored.
    pub fn assume_unhealthy(&mut self, name: &str) {
        if let Some(marked) = mark::assumed(name, &self.model) {
            Arc::make_mut(&mut self.model).decide(self.backends.clock.now(), marked);
        }
    }

    /// The content of a stack, and the number of its batches that was read with its rows.
    ///
    /// # Errors
    /// As [`LoadedStack::load`].
    pub async fn read(backends: &Backends, stack: &Stack) -> Result<(Content, Option<i64>), Error> {
        let blueprint =
            load::blueprint(backends, stack, &stack.desired).await?.map_err(|error| Error::Damaged(error.into()))?;
        let (writes, rows) = backends.store.resources_and_writes(stack.id).await?;
        let model = Model::new(rows);
        let shown = shown(&model, stack.rollback());
        Ok((Content { blueprint: Arc::new(blueprint), model: Arc::new(model), shown: Arc::new(shown) }, writes))
    }

    /// A stack with its content.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn with(backends: &Backends, stack: Stack, content: Content) -> Result<Self, Error> {
        let root =
            if stack.root == stack.id { stack.clone() } else { load::stack(&*backends.store, stack.root).await? };
        let Content { blueprint, model, shown } = content;
        Ok(Self { backends: backends.clone(), stack, blueprint, model, shown, root })
    }

    /// The stack as it would be with these rows.
    #[must_use]
    pub fn with_rows(&self, rows: impl IntoIterator<Item = Resource>) -> Self {
        let model = Model::new(rows);
        let shown = shown(&model, None);
        Self {
            backends: self.backends.clone(),
            stack: self.stack.clone(),
            blueprint: Arc::clone(&self.blueprint),
            model: Arc::new(model),
            shown: Arc::new(shown),
            root: self.root.clone(),
        }
    }

    /// The current rows of the names in the template.
    pub fn resources(&self) -> impl Iterator<Item = &Resource> {
        self.shown.values().filter_map(|id| self.model.row(*id))
    }

    /// The current row of a name, or of a former name.
    pub fn resource(&self, name: &str) -> Option<&Resource> {
        match self.shown.get(name) {
            Some(id) => self.model.row(*id),
            None => self.model.current_or_moved(name),
        }
    }

    /// The model of the stack, for a preview.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// What it was read with.
    pub fn backends(&self) -> &Backends {
        &self.backends
    }

    /// The root stack of the tree.
    pub fn root(&self) -> &Stack {
        &self.root
    }

    /// The hooks at which the rows of a name wait.
    pub fn waits_at(&self, name: &str) -> Vec<Hook> {
        self.model.rows_of(name).filter_map(waits_at).collect()
    }

    /// The kind of a row.
    pub fn kind(&self, row: &Resource) -> Option<Kind> {
        match self.blueprint.kind(&row.name) {
            Some(kind) => Some(kind.clone()),
            None => {
                self.backends.resource_types.types.get(&row.implementation).map(|entry| Kind::Type(Arc::clone(entry)))
            }
        }
    }

    fn scene(&self) -> StackScope {
        let mut scene = StackScope::new(Arc::clone(&self.blueprint), stack_facts(&self.stack));
        self.resources().for_each(|row| scene.see(row));
        scene
    }

    /// The values of all outputs, or of one.
    pub async fn outputs(&self, only: Option<&str>) -> Vec<OutputValue> {
        let outputs: Vec<_> =
            self.blueprint.outputs().values().filter(|output| only.is_none_or(|name| name == output.name)).collect();
        let mut scene = self.scene();
        let mut wanted: BTreeMap<String, Vec<Wanted>> = BTreeMap::new();
        for output in &outputs {
            for read in output.attributes(&scene) {
                wanted.entry(read.resource).or_default().push(read.wanted);
            }
        }
        let refreshed = join_all(wanted.iter().map(|(name, wanted)| self.refreshed(name, wanted))).await;
        refreshed.into_iter().flatten().for_each(|row| scene.see(&row));
        let mut sizes = OutputSizes::default();
        outputs
            .into_iter()
            .map(|output| {
                let resolved = output.value.resolve(&scene).and_then(|value| sizes.check(value));
                let (value, error) = match resolved {
                    Ok(value) => (value, None),
                    Err(error) => (Value::Null, Some(error.to_string())),
                };
                OutputValue { key: output.name.clone(), description: output.description.clone(), value, error }
            })
            .collect()
    }

    /// Adds what functions have made of hidden values in outputs with these values.
    pub fn derive_outputs(&self, values: &[OutputValue], hidden: &mut HiddenValues) {
        let scene = self.scene();
        for output in values {
            let snippet = self.blueprint.outputs().get(&output.key).map(|output| &output.value);
            if let Some(snippet) = snippet {
                hidden.derive(snippet, &scene, &output.value);
            }
        }
    }

    /// A row with its current attributes; those that cannot be read keep their value.
    pub async fn refreshed(&self, name: &str, wanted: &[Wanted]) -> Option<Resource> {
        let mut row = self.resource(name)?.clone();
        let kind = self.kind(&row)?;
        if kind.is_nested() {
            let child = row.child.or_else(|| row.physical_id.as_deref()?.parse().ok())?;
            let paths: Vec<Vec<Value>> = wanted.iter().filter_map(path_of).collect();
            let view = Self::load_boxed(&self.backends, child).await.ok().flatten()?;
            let mut inside = view.inside(&paths, kind.members_by_age()).await.ok()?;
            view.add_lists(&mut inside, &paths, &kind).await;
            row.attributes = inside.to_map();
            return Some(row);
        }
        let names = attribute_names(wanted, Some(&kind));
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        match self.attributes_of(&row, &kind, &names).await {
            Ok(attributes) => row.attributes.extend(attributes),
            Err(failure) => tracing::debug!(resource = name, %failure, "failed to read attributes"),
        }
        Some(row)
    }

    /// Adds wanted attributes of a group that are lists of an attribute of its healthy members, the oldest first.
    fn add_lists<'a>(&'a self, inside: &'a mut Inside, wanted: &'a [Vec<Value>], group: &'a Kind) -> BoxFuture<'a, ()> {
        async move {
            for name in wanted.iter().filter_map(|path| path.first()?.as_str()) {
                let attribute = group.group().and_then(|rules| rules.member_attribute(name));
                let Some(attribute) = attribute.filter(|_| !inside.outputs.contains_key(name)) else { continue };
                let wanted = [Wanted::One { name: attribute.into(), path: Vec::new() }];
                let members = self.members().into_iter().filter(|member| !member.failed);
                let names: Vec<String> = members.map(|member| member.name).collect();
                let rows = join_all(names.iter().map(|name| self.refreshed(name, &wanted))).await;
                let mut scene = self.scene();
                rows.iter().flatten().for_each(|row| scene.see(row));
                let value = |name: &String| scene.resource(name)?.attribute(attribute, &[]);
                let list = names.iter().map(|name| value(name).unwrap_or_default()).collect();
                inside.outputs.insert(name.to_owned(), list);
            }
        }
        .boxed()
    }

    fn load_boxed(backends: &Backends, id: StackId) -> BoxFuture<'_, Result<Option<Self>, Error>> {
        Self::load(backends, id).boxed()
    }

    async fn attributes_of(&self, row: &Resource, kind: &Kind, names: &[&str]) -> Result<Map, Failure> {
        let Some(entry) = kind.entry() else { return Ok(Map::new()) };
        if row.physical_id.is_none() && entry.driver.has_object() {
            return Ok(Map::new());
        }
        let cloud = self.backends.cloud(&self.root, entry.driver.needs_cloud()).await?;
        let mut facts = facts(row, kind, &stack_facts(&self.stack));
        observe(&self.model, row, &*entry.driver, |row| self.kind(row), &mut facts);
        let software = self.backends.software(&self.stack.project);
        let cx = Context::reading(&*cloud, &software, &facts);
        entry.driver.attributes(&cx, names).await
    }

    /// Writes the metadata of a server where its agent reads them.
    pub async fn push_metadata(&self, row: &Resource) -> Result<(), Failure> {
        let Some(kind) = self.kind(row) else { return Ok(()) };
        let Some(entry) = kind.entry() else { return Ok(()) };
        let cloud = self.backends.cloud(&self.root, entry.driver.needs_cloud()).await?;
        let facts = facts(row, &kind, &stack_facts(&self.stack));
        let software = self.backends.software(&self.stack.project);
        let cx = Context::reading(&*cloud, &software, &facts);
        entry.driver.push_metadata(&cx).await
    }

    /// Locks the object of a resource in its service, or unlocks it ([`kiln_resource::Driver::lock`]). Returns whether there is
    /// an object that its service can lock.
    pub async fn lock(&self, row: &Resource, locked: bool) -> Result<bool, Failure> {
        let Some(kind) = self.kind(row).filter(|_| row.physical_id.is_some()) else { return Ok(false) };
        let Some(entry) = kind.entry().filter(|entry| entry.driver.has_lock()) else { return Ok(false) };
        let cloud = self.backends.cloud(&self.root, true).await?;
        let facts = facts(row, &kind, &stack_facts(&self.stack));
        let software = self.backends.software(&self.stack.project);
        let cx = Context::reading(&*cloud, &software, &facts);
        entry.driver.lock(&cx, locked).await.map(|()| true)
    }

    /// The attributes of a resource for `resource show`, and additional ones by name; null for those that cannot be
    /// read. If `more` has `show`, and the type has a whole object to show, other attributes of the type are not read:
    /// some take requests of their own, and a URL of a console is created when it is read.
    ///
    /// # Errors
    /// None for a resource without attributes; a failure if the cloud is not reachable.
    pub async fn attributes(&self, name: &str, more: &[String]) -> Map {
        let Some(row) = self.resource(name) else { return Map::new() };
        let Some(kind) = self.kind(row) else { return Map::new() };
        if !kind.is_nested() && more.iter().any(|name| name == "show") {
            let asked: Vec<&str> = more.iter().map(String::as_str).collect();
            let found = self.attributes_of(row, &kind, &asked).await.unwrap_or_default();
            if found.get("show").and_then(Value::as_map).is_some() {
                return found;
            }
        }
        let mut names: BTreeSet<&str> = kind.resource_type().attributes.keys().map(String::as_str).collect();
        names.extend(more.iter().map(String::as_str));
        if kind.is_nested() {
            let wanted: Vec<Wanted> =
                names.iter().map(|name| Wanted::One { name: Value::from(*name), path: Vec::new() }).collect();
            let mut scene = self.scene();
            if let Some(row) = self.refreshed(name, &wanted).await {
                scene.see(&row);
            }
            let Some(view) = scene.resource(name) else { return Map::new() };
            let mut found: Map = view.attributes();
            for name in names {
                found.insert(name.to_owned(), view.attribute(name, &[]).unwrap_or_default());
            }
            return found;
        }
        let asked: Vec<&str> = names.iter().copied().collect();
        let mut found = self.attributes_of(row, &kind, &asked).await.unwrap_or_default();
        for name in asked {
            found.entry(name.to_owned()).or_default();
        }
        found
    }

    /// The resources of the template as members of a group: failed ones first, then from the oldest to the newest.
    pub fn members(&self) -> Vec<Member> {
        let template = self.blueprint.bound().template();
        let definitions = template.as_value().get(template.words().resources).and_then(Value::as_map);
        let scene = self.scene();
        let mut members: Vec<_> = definitions
            .into_iter()
            .flatten()
            .map(|(name, definition)| {
                let row = self.resource(name);
                let member = Member {
                    name: name.clone(),
                    definition: definition.clone(),
                    failed: row.is_some_and(|row| row.state.failed()),
                    reference: scene.resource(name).map_or_else(|| name.into(), ResourceView::reference_id),
                };
                (!member.failed, row.map_or(jiff::Timestamp::MAX, |row| row.created), member)
            })
            .collect();
        members.sort_by(|(a, b, one), (c, d, other)| (a, b, &one.name).cmp(&(c, d, &other.name)));
        members.into_iter().map(|(_, _, member)| member).collect()
    }

    /// The resources of the template and its files, for a stack that is the content of a group.
    pub fn group_content(&self) -> GroupContent {
        let files = Arc::clone(&self.blueprint.sources().files);
        GroupContent { members: self.members(), files, prepared: Map::new() }
    }

    /// The data of this stack that its parent resource stores; `by_age`: the reference IDs are those of the healthy
    /// members, oldest first.
    pub fn inside<'a>(&'a self, wanted: &'a [Vec<Value>], by_age: bool) -> BoxFuture<'a, Result<Inside, Failure>> {
        async move {
            let outputs = self.outputs(None).await;
            let mut scene = self.scene();
            let refs: IndexMap<String, Value> = if by_age {
                let healthy = self.members().into_iter().filter(|member| !member.failed);
                healthy.map(|member| (member.name, member.reference)).collect()
            } else {
                let names = self.blueprint.definitions().keys();
                names.filter_map(|name| Some((name.clone(), scene.resource(name)?.reference_id()))).collect()
            };
            let mut more = Map::new();
            for path in wanted {
                let Some(Value::Str(name)) = path.first() else { continue };
                let found = resource_and_attribute(name, |resource| self.resource(resource).is_some());
                if let Some((resource, attribute)) = found {
                    let wanted = [Wanted::One { name: attribute.into(), path: Vec::new() }];
                    if let Some(row) = self.refreshed(resource, &wanted).await {
                        scene.see(&row);
                    }
                    let value = scene.resource(resource).and_then(|view| view.attribute(attribute, &[]));
                    more.insert(name.clone(), value.unwrap_or_default());
                }
            }
            let errors = outputs.iter().filter_map(|o| Some((o.key.clone(), o.error.as_deref()?.into()))).collect();
            let outputs = outputs.into_iter().map(|output| (output.key, output.value)).collect();
            Ok(Inside { outputs, refs, more, errors })
        }
        .boxed()
    }
}

/// The content of a group, which is that of its nested stack.
#[derive(Default)]
pub struct GroupContent {
    /// The members.
    pub members: Vec<Member>,
    /// The files of the nested stack, from which members may come that an update keeps.
    pub files: Arc<Files>,
    /// What its driver has read in the cloud ([`kiln_resource::NestedStack::prepare`]): entries for the data of the
    /// group.
    pub prepared: Map,
}

/// The content of a group; nothing if its nested stack does not exist.
///
/// # Errors
/// If the nested stack cannot be read.
pub async fn group_content(backends: &Backends, child: StackId) -> Result<GroupContent, Failure> {
    let view = LoadedStack::load_marked(backends, child).await.map_err(|error| unreadable(&error))?;
    Ok(view.map(|view| view.group_content()).unwrap_or_default())
}

/// The data of a nested stack that its parent resource stores ([`LoadedStack::inside`]).
///
/// # Errors
/// If the nested stack does not exist or cannot be read.
pub async fn inside(
    backends: &Backends,
    child: StackId,
    wanted: &[Vec<Value>],
    by_age: bool,
) -> Result<Inside, Failure> {
    let view = LoadedStack::load(backends, child).await.map_err(|error| unreadable(&error))?;
    let missing = || Failure::other(Class::NotFound, format!("nested stack {child} does not exist"));
    view.ok_or_else(missing)?.inside(wanted, by_age).await
}

/// The failure of a resource whose stacks cannot be read.
pub fn unreadable(error: &Error) -> Failure {
    Failure::other(Class::Error, error.to_string())
}

/// The resource and the attribute of `resource.<name>.<attribute>`: the longest existing name, because names may
/// contain dots.
pub fn resource_and_attribute(name: &str, is_there: impl Fn(&str) -> bool) -> Option<(&str, &str)> {
    let rest = name.strip_prefix("resource.")?;
    (0..rest.len())
        .rev()
        .filter(|at| rest.as_bytes().get(*at) == Some(&b'.'))
        .filter_map(|at| Some((rest.get(..at)?, rest.get(at + 1..)?)))
        .find(|(resource, _)| is_there(resource))
}

fn path_of(wanted: &Wanted) -> Option<Vec<Value>> {
    match wanted {
        Wanted::One { name, path } => Some(std::iter::once(name).chain(path).cloned().collect()),
        Wanted::All => None,
    }
}
