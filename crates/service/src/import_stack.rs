//! Imports of objects that exist: what there is, a template for it, and a new stack that takes them over.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt as _, TryStreamExt as _, stream};
use kiln_identity::Caller;
use kiln_resource::{Cloud, StackId};
use kiln_stack::{Backends, NoCloud, load};
use kiln_store::{NewStack, ObjectClaim, Stack};
use kiln_value::{Map, Value, text, value};
use kiln_view::import::{ComparedObject, FoundObject, ObjectKey, Scan, Written, compare, scan, write};

use crate::create::CheckedCreate;
use crate::error::listed;
use crate::import::{ObjectsToImport, fit};
use crate::preview_create::CloudOfCaller;
use crate::{CreateStack, Door, Error, Guarded, HiddenValues, Masked, Service};

/// Owners that are looked up at the same time.
const AT_ONCE: usize = 8;

/// What there is in the project of a caller.
pub struct Inventory {
    /// The objects.
    pub scan: Scan,
    /// The resources that have them already, by the keys of the objects.
    pub owners: HashMap<ObjectKey, Owner>,
}

/// The resource that an object belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The name of the resource.
    pub resource: String,
    /// Its stack.
    pub stack: String,
    /// The ID of the stack.
    pub stack_id: StackId,
}

/// An object and the resource that it belongs to.
type Owned = (ObjectKey, Owner);

/// Objects for a template.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// The objects, with the names that their resources shall have. `None`: any name.
    pub objects: BTreeMap<ObjectKey, Option<String>>,
    /// Whether objects that belong together with these are added.
    pub related: bool,
}

/// A stack that takes over objects.
pub struct ImportStack {
    /// The stack.
    pub new: CreateStack,
    /// Its objects.
    pub objects: ObjectsToImport,
    /// Properties that cannot be read in the objects, and that the caller vouches for: `server.networks`.
    pub confirmed: BTreeSet<String>,
}

/// The objects of an import, compared with its template.
pub struct ImportPlan {
    /// The objects, in the order of the dependencies.
    pub objects: Vec<ComparedObject>,
    /// The properties that cannot be read, and that nobody has confirmed: `server.networks`.
    pub unconfirmed: Vec<String>,
}

impl ImportPlan {
    /// Whether the objects are as the template says.
    pub fn is_empty(&self) -> bool {
        let is_same = |one: &ComparedObject| one.differing.is_empty() && one.failure.is_none();
        self.unconfirmed.is_empty() && self.objects.iter().all(is_same)
    }

    /// What stands in the way, one sentence for each property.
    fn obstacles(&self) -> Vec<String> {
        let mut obstacles = Vec::new();
        for one in &self.objects {
            let name = &one.resource;
            obstacles.extend(one.failure.iter().map(|why| format!("{name}: {why}")));
            obstacles.extend(one.differing.iter().map(|property| {
                let (live, said) = (text::json(&property.actual), text::json(&property.expected));
                format!("{name}.{}: the object has {live}, the template says {said}", property.name)
            }));
        }
        let unread = self.unconfirmed.iter();
        obstacles
            .extend(unread.map(|place| format!("{place}: it cannot be read in the object, so it must be confirmed")));
        obstacles
    }
}

impl Masked for ImportPlan {
    fn mask(&mut self, hidden: &HiddenValues) {
        self.objects.mask(hidden);
    }
}

impl Service {
    /// Lists what there is in the project of the caller that can become a resource, and what belongs to a stack already.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn inventory(&self, caller: &Caller) -> Result<Inventory, Error> {
        self.inventory_of(caller, &self.cloud_of(caller).await).await
    }

    async fn inventory_of(&self, caller: &Caller, cloud: &Arc<dyn Cloud>) -> Result<Inventory, Error> {
        let scan = scan(cloud).await;
        let owners = self.owners(caller, scan.objects.iter().map(|one| &one.key)).await?;
        Ok(Inventory { scan, owners })
    }

    /// Writes a template for objects of the project.
    ///
    /// # Errors
    /// [`Error::Import`] for objects that do not exist, or that belong to a stack.
    pub async fn write_import(&self, caller: &Caller, selection: &Selection) -> Result<Written, Error> {
        let cloud = self.cloud_of(caller).await;
        let inventory = self.inventory_of(caller, &cloud).await?;
        let known: BTreeSet<&ObjectKey> = inventory.scan.objects.iter().map(|one| &one.key).collect();
        for key in selection.objects.keys() {
            let ObjectKey { resource_type, id } = key;
            if let Some(owner) = inventory.owners.get(key) {
                return Err(Error::Import(format!("{resource_type} {id} cannot be imported: {}.", owned_by(owner))));
            }
            if !known.contains(key) {
                let why = "the project has no such object, or it is shared, or a service has made it for itself";
                return Err(Error::Import(format!("{resource_type} {id} cannot be imported: {why}.")));
            }
        }
        let is_free = |one: &FoundObject| !inventory.owners.contains_key(&one.key);
        let keys = selection.objects.keys().cloned().collect();
        let chosen = inventory.scan.selected(&keys, selection.related, &is_free);
        let named = selection.objects.iter().filter_map(|(key, name)| Some((key.clone(), name.clone()?)));
        Ok(write(&self.backends, &cloud, &inventory.scan, &chosen, &named.collect()).await)
    }

    /// Compares the objects of an import with its template. Changes nothing.
    ///
    /// # Errors
    /// [`Error::Import`] for what can never be imported; those of [`Service::create_stack`].
    pub async fn plan_import(&self, caller: &Caller, import: ImportStack) -> Result<Guarded<ImportPlan>, Error> {
        self.planned_import(caller, import, StackId(self.backends.chance.uuid())).await.map(|(_, plan)| plan)
    }

    /// Creates a stack that takes over objects. The objects must be as its template says; the engine compares them again, and
    /// changes none of them.
    ///
    /// # Errors
    /// [`Error::Import`] if an object is not as the template says; those of [`Service::create_stack`]. Nothing is stored then.
    pub async fn import_stack(&self, caller: &Caller, import: ImportStack) -> Result<Stack, Error> {
        let id = StackId(self.backends.chance.uuid());
        let (checked, plan) = self.planned_import(caller, import, id).await?;
        if !plan.expose().is_empty() {
            let obstacles = listed(plan.into_shown(Door::Import).obstacles());
            return Err(Error::Import(format!("Nothing was imported. {obstacles}.")));
        }
        self.request_create(caller, id, checked, None).await
    }

    async fn planned_import(
        &self,
        caller: &Caller,
        import: ImportStack,
        id: StackId,
    ) -> Result<(CheckedCreate, Guarded<ImportPlan>), Error> {
        let ImportStack { new, objects, confirmed } = import;
        let needs_plan = self.check_new(caller, &new).await?;
        let blueprint = Arc::new(self.blueprint_of_new(caller, &new, id).await?);
        fit(&blueprint, &objects)?;
        if let Some(name) = blueprint.definitions().keys().find(|name| !objects.contains_key(*name)) {
            let why = "no object is given for it, and an import creates none";
            return Err(Error::Import(format!("Resource {name} cannot be imported: {why}.")));
        }
        self.heed_claims(caller, &objects).await?;
        let cloud = self.cloud_of(caller).await;
        let backends = Backends { clouds: Arc::new(CloudOfCaller(Arc::clone(&cloud))), ..self.backends.clone() };
        let (project, now) = (caller.project_id.clone(), backends.clock.now());
        let row = NewStack::new(id, new.name.clone(), project, load::texts(blueprint.sources()), now);
        let row = NewStack { username: caller.username.clone(), user_id: caller.user_id.clone(), ..row };
        let ids = objects.iter().map(|(name, object)| (name.clone(), object.physical_id.clone())).collect();
        let compared = compare(&backends, &cloud, &Stack::started(&row), &blueprint, &ids).await;
        let mut unconfirmed = Vec::new();
        let mut data = Map::new();
        for one in &compared {
            let is_confirmed = |property: &String| confirmed.contains(&format!("{}.{property}", one.resource));
            let (known, unknown): (Vec<&String>, Vec<&String>) =
                one.unread.iter().partition(|property| is_confirmed(property));
            unconfirmed.extend(unknown.into_iter().map(|property| format!("{}.{property}", one.resource)));
            let known: Value = known.into_iter().collect();
            let entry = value!({
                "type": (&one.resource_type), "resource_id": (&one.physical_id), "metadata": (one.metadata.clone()),
                "import": { "confirmed": known },
            });
            data.insert(one.resource.clone(), entry);
        }
        let desired = load::accepted(&self.backends, &blueprint);
        let settings = crate::Settings { disable_rollback: Some(false), ..new.settings };
        let checked = CheckedCreate { name: new.name, desired, settings, adopt: Some(data.into()), needs_plan };
        let hidden = HiddenValues::of(&[blueprint.sources()]);
        Ok((checked, Guarded::new(ImportPlan { objects: compared, unconfirmed }, hidden)))
    }

    /// Refuses objects that belong to a resource.
    async fn heed_claims(&self, caller: &Caller, objects: &ObjectsToImport) -> Result<(), Error> {
        let keys: Vec<ObjectKey> = objects.values().map(key_of).collect();
        let owners = self.owners(caller, keys.iter()).await?;
        let taken = objects.iter().find_map(|(name, object)| Some((name, owners.get(&key_of(object))?)));
        match taken {
            Some((name, owner)) => {
                Err(Error::Import(format!("Resource {name} cannot be imported: {}.", owned_by(owner))))
            }
            None => Ok(()),
        }
    }

    /// The resources of the project that have these objects.
    async fn owners(
        &self,
        caller: &Caller,
        keys: impl Iterator<Item = &ObjectKey>,
    ) -> Result<HashMap<ObjectKey, Owner>, Error> {
        let looks: Vec<BoxFuture<'_, Result<Option<Owned>, Error>>> =
            keys.map(|key| self.owner(caller, key).boxed()).collect();
        let found = stream::iter(looks).buffered(AT_ONCE);
        found.try_filter_map(|found| std::future::ready(Ok(found))).try_collect().await
    }

    async fn owner(&self, caller: &Caller, key: &ObjectKey) -> Result<Option<Owned>, Error> {
        let store = &*self.backends.store;
        let wanted = ObjectClaim::of(&key.resource_type, &key.id, &caller.user_id);
        for row in store.resources_by_physical_id(&caller.project_id, &key.id).await? {
            let root = load::stack(store, load::stack(store, row.stack).await?.root).await?;
            if wanted.is_some() && wanted == ObjectClaim::of(&row.implementation, &key.id, &root.user_id) {
                return Ok(Some((key.clone(), Owner { resource: row.name, stack: root.name, stack_id: root.id })));
            }
        }
        Ok(None)
    }

    async fn cloud_of(&self, caller: &Caller) -> Arc<dyn Cloud> {
        self.identity.cloud(caller).await.unwrap_or_else(|| Arc::new(NoCloud))
    }
}

fn key_of(object: &crate::ObjectToImport) -> ObjectKey {
    ObjectKey { resource_type: object.resource_type.clone(), id: object.physical_id.clone() }
}

fn owned_by(owner: &Owner) -> String {
    format!("it belongs to the resource {} of the stack {}", owner.resource, owner.stack)
}
