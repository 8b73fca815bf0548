//! Finds the objects of a project that can become resources.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt as _, stream};
use kiln_resource::{Cloud, CloudRequest, CloudResponse, Failure, Method};
use kiln_value::{Value, text, value};

use super::kind::{KINDS, ObjectKind};
use crate::reading_cloud::ReadingCloud;

/// Pages that are read of each list. A project with more objects has to be imported by ID.
const MOST_PAGES: usize = 50;
/// Lists that are read at the same time.
const AT_ONCE: usize = 8;

/// Types of objects that are not listed as all others are.
pub(super) const INTERFACE: &str = "OS::Neutron::RouterInterface";
pub(super) const ATTACHMENT: &str = "OS::Cinder::VolumeAttachment";
pub(super) const KEY_PAIR: &str = "OS::Nova::KeyPair";
pub(super) const MEMBER: &str = "OS::Octavia::PoolMember";

/// The owners of the ports of routers in subnets.
const INTERFACES: [&str; 2] = ["network:router_interface", "network:router_interface_distributed"];

/// What identifies an object in a project.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectKey {
    /// The type of the resource that it can become.
    pub resource_type: String,
    /// The ID of the object.
    pub id: String,
}

impl ObjectKey {
    pub(super) fn new(resource_type: &str, id: impl Into<String>) -> Self {
        Self { resource_type: resource_type.to_owned(), id: id.into() }
    }
}

/// An object that can become a resource.
#[derive(Clone, Debug)]
pub struct FoundObject {
    /// What identifies it.
    pub key: ObjectKey,
    /// Its name; empty if it has none.
    pub name: String,
    /// Its tags.
    pub tags: Vec<String>,
    /// The other objects of the scan that it refers to.
    pub uses: BTreeSet<ObjectKey>,
    /// What a list says of it.
    pub(super) object: Value,
}

impl FoundObject {
    fn new(key: ObjectKey, object: Value) -> Self {
        let name = object.str_at("name").unwrap_or_default().to_owned();
        let tags = object.get("tags").and_then(Value::as_list).into_iter().flatten().map(text::str).collect();
        Self { key, name, tags, uses: BTreeSet::new(), object }
    }

    pub(super) fn is_a(&self, resource_type: &str) -> bool {
        self.key.resource_type == resource_type
    }
}

/// The objects of a project.
#[derive(Clone, Debug, Default)]
pub struct Scan {
    /// The objects that can become resources, in the order of a template.
    pub objects: Vec<FoundObject>,
    /// The types whose objects could not be listed, or not all of them, each with the reason.
    pub unlisted: Vec<(String, String)>,
}

impl Scan {
    /// The objects with these keys, and what belongs to them alone: the ports and the attached volumes of servers, the
    /// interfaces of routers, the members of pools. With `related`, also everything that these refer to, and that refers to
    /// these, as far as `is_free` says that it has no owner.
    pub fn selected(
        &self,
        keys: &BTreeSet<ObjectKey>,
        related: bool,
        is_free: &dyn Fn(&FoundObject) -> bool,
    ) -> Vec<&FoundObject> {
        let by_key: HashMap<&ObjectKey, &FoundObject> = self.objects.iter().map(|one| (&one.key, one)).collect();
        let mut used_by: HashMap<&ObjectKey, Vec<&FoundObject>> = HashMap::new();
        for one in &self.objects {
            one.uses.iter().for_each(|used| used_by.entry(used).or_default().push(one));
        }
        let mut chosen = BTreeSet::new();
        let mut next: Vec<&FoundObject> = keys.iter().filter_map(|key| by_key.get(key).copied()).collect();
        while let Some(one) = next.pop() {
            if !chosen.insert(&one.key) {
                continue;
            }
            for user in used_by.get(&one.key).into_iter().flatten() {
                // An interface belongs to its router and its subnet, an attachment to its server and its volume.
                let is_whole = |owner: &ObjectKey| chosen.contains(owner) || !by_key.contains_key(owner);
                let belongs = is_part(user) && user.uses.iter().filter(|used| owns(used, user)).all(is_whole);
                if (related || belongs) && is_free(user) {
                    next.push(user);
                }
            }
            if related {
                next.extend(one.uses.iter().filter_map(|used| by_key.get(used).copied()).filter(|used| is_free(used)));
            }
        }
        self.objects.iter().filter(|one| chosen.contains(&one.key)).collect()
    }
}

/// The types of the resources that the objects of a scan can become.
pub fn scanned_types() -> impl Iterator<Item = &'static str> {
    KINDS.iter().filter_map(|kind| kind.resource_type).chain([INTERFACE, ATTACHMENT, MEMBER])
}

/// Whether an object is a part of others.
fn is_part(one: &FoundObject) -> bool {
    match one.key.resource_type.as_str() {
        INTERFACE | ATTACHMENT | MEMBER => true,
        "OS::Neutron::Port" => one.object.str_at("device_owner").is_some_and(|owner| owner.starts_with("compute:")),
        _ => false,
    }
}

/// Whether an object is one of those that a part belongs to.
fn owns(owner: &ObjectKey, part: &FoundObject) -> bool {
    let owners: &[&str] = match part.key.resource_type.as_str() {
        INTERFACE => &["OS::Neutron::Router", "OS::Neutron::Subnet"],
        ATTACHMENT => &["OS::Nova::Server", "OS::Cinder::Volume"],
        MEMBER => &["OS::Octavia::Pool"],
        _ => &["OS::Nova::Server"],
    };
    owners.contains(&owner.resource_type.as_str())
}

/// A list that was read.
struct Listed {
    resource_type: &'static str,
    objects: Vec<Value>,
    is_all: bool,
    failure: Option<Failure>,
}

async fn listed(cloud: &dyn Cloud, kind: &'static ObjectKind, resource_type: &'static str) -> Listed {
    let (objects, is_all, failure) = match cloud.has_service(kind.service).await {
        Ok(false) => (Vec::new(), true, None),
        _ => kind.list(cloud, None, MOST_PAGES).await,
    };
    Listed { resource_type, objects, is_all, failure }
}

/// Reads the objects of the project of a cloud. Objects that are shared or public, and objects that services made for
/// themselves, are left out.
pub async fn scan(cloud: &Arc<dyn Cloud>) -> Scan {
    let reading = ReadingCloud::new(Arc::clone(cloud), 0);
    let reading: &dyn Cloud = &reading;
    let project = reading.project_id().await.unwrap_or_default();
    let kinds = KINDS.iter().filter_map(|kind| Some((kind, kind.resource_type?)));
    let listed: Vec<BoxFuture<'_, Listed>> =
        kinds.map(|(kind, resource_type)| listed(reading, kind, resource_type).boxed()).collect();
    let listed: Vec<Listed> = stream::iter(listed).buffered(AT_ONCE).collect().await;
    let mut scan = Scan::default();
    for Listed { resource_type, objects, is_all, failure } in listed {
        // A service without an extension has no such list.
        let reason = failure.filter(|failure| !failure.is_not_found()).map(|failure| failure.message);
        let reason = reason.or_else(|| (!is_all).then(|| "it has too many objects to list all".to_owned()));
        scan.unlisted.extend(reason.map(|reason| (resource_type.to_owned(), reason)));
        let own = objects.into_iter().filter(|object| is_of(object, &project));
        for object in own {
            parts_of(resource_type, &object, &mut scan.objects);
            if is_offered(resource_type, &object) {
                // A key pair has only a name.
                let id = object.str_at(if resource_type == KEY_PAIR { "name" } else { "id" }).map(str::to_owned);
                scan.objects.extend(id.map(|id| FoundObject::new(ObjectKey::new(resource_type, id), object)));
            }
        }
    }
    members(reading, &mut scan).await;
    without_root_disks(&mut scan.objects);
    find_uses(&mut scan.objects);
    // A part comes after what it is a part of.
    scan.objects.sort_by_key(|one| matches!(one.key.resource_type.as_str(), INTERFACE | ATTACHMENT | MEMBER));
    scan
}

/// Whether an object is one of the project. Lists of some services do not say whose objects they have: these have only those
/// of the caller's project.
pub(super) fn is_of(object: &Value, project: &str) -> bool {
    let keys = ["project_id", "tenant_id", "os-vol-tenant-attr:tenant_id"];
    keys.iter().filter_map(|key| object.str_at(key)).all(|owner| owner == project)
}

/// Whether an object is one that a user made for the project alone.
fn is_offered(resource_type: &str, object: &Value) -> bool {
    let is = |key: &str| object.get(key).is_some_and(Value::is_truthy);
    let text = |key: &str| object.str_at(key).unwrap_or_default();
    let is_service_owned = match resource_type {
        "OS::Neutron::Port" => {
            let owner = text("device_owner");
            !owner.is_empty() && !owner.starts_with("compute:")
        }
        // Neutron makes the default group of each project, and Octavia groups for its load balancers.
        "OS::Neutron::SecurityGroup" => text("name") == "default" || text("name").starts_with("lb-"),
        "OS::Nova::Server" => text("name").starts_with("amphora-"),
        _ => false,
    };
    !is("shared") && !is("router:external") && !is_service_owned
}

/// The objects that are only listed as parts of others.
fn parts_of(resource_type: &str, object: &Value, objects: &mut Vec<FoundObject>) {
    match resource_type {
        "OS::Neutron::Port" if INTERFACES.iter().any(|owner| object.str_at("device_owner") == Some(owner)) => {
            let subnet = object.get("fixed_ips").and_then(|addresses| addresses.at(0)?.str_at("subnet_id"));
            if let (Some(router), Some(subnet)) = (object.str_at("device_id"), subnet) {
                let object = value!({ "router": router, "subnet": subnet });
                let key = ObjectKey::new(INTERFACE, format!("{router}:subnet_id={subnet}"));
                objects.push(FoundObject::new(key, object));
            }
        }
        "OS::Cinder::Volume" => {
            let attachments = object.get("attachments").and_then(Value::as_list).unwrap_or_default();
            for attachment in attachments {
                let (server, volume) = (attachment.str_at("server_id"), object.str_at("id"));
                let device = attachment.str_at("device").unwrap_or_default();
                if let (Some(server), Some(volume)) = (server, volume) {
                    let object = value!({ "instance_uuid": server, "volume_id": volume, "device": device });
                    // Nova gives an attachment the ID of its volume.
                    objects.push(FoundObject::new(ObjectKey::new(ATTACHMENT, volume), object));
                }
            }
        }
        _ => {}
    }
}

/// Whether an attachment in a volume is that of the first disk of a server.
pub(super) fn is_root(attachment: &Value) -> bool {
    attachment.str_at("device").is_some_and(|device| device.ends_with("da"))
}

/// Whether a server has no image, because it has booted from a volume.
pub(super) fn boots_from_volume(server: &Value) -> bool {
    !server.get("image").is_some_and(Value::is_truthy)
}

/// Removes the attachments of the volumes from which servers have booted: these belong to the server.
fn without_root_disks(objects: &mut Vec<FoundObject>) {
    let servers = objects.iter().filter(|one| one.is_a("OS::Nova::Server") && boots_from_volume(&one.object));
    let servers: HashSet<String> = servers.map(|server| server.key.id.clone()).collect();
    let is_of = |one: &FoundObject| one.object.str_at("instance_uuid").is_some_and(|server| servers.contains(server));
    objects.retain(|one| !(one.is_a(ATTACHMENT) && is_root(&one.object) && is_of(one)));
}

/// Adds the members of the pools.
async fn members(cloud: &dyn Cloud, scan: &mut Scan) {
    let pools = scan.objects.iter().filter(|one| one.is_a("OS::Octavia::Pool"));
    let pools: Vec<String> = pools.map(|pool| pool.key.id.clone()).collect();
    let read = pools.into_iter().map(|pool| {
        let path = format!("/v2/lbaas/pools/{pool}/members");
        let answer = cloud.call(CloudRequest::new("load-balancer", Method::Get, path));
        answer.map(|answer| (pool, answer)).boxed()
    });
    let read: Vec<BoxFuture<'_, (String, Result<CloudResponse, Failure>)>> = read.collect();
    let read: Vec<_> = stream::iter(read).buffered(AT_ONCE).collect().await;
    for (pool, answer) in read {
        let mut answer = match answer {
            Ok(answer) => answer,
            Err(failure) => {
                scan.unlisted.push((MEMBER.to_owned(), failure.message));
                continue;
            }
        };
        let members = answer.body.as_map_mut().and_then(|body| body.swap_remove("members"));
        let Some(Value::List(members)) = members else { continue };
        for mut member in members {
            let Some(id) = member.str_at("id").map(str::to_owned) else { continue };
            if let Some(member) = member.as_map_mut() {
                member.insert("pool".to_owned(), pool.as_str().into());
            }
            scan.objects.push(FoundObject::new(ObjectKey::new(MEMBER, id), member));
        }
    }
}

/// Finds out which objects refer to which others: the texts of an object that are the ID of another.
fn find_uses(objects: &mut [FoundObject]) {
    let mut by_id: HashMap<String, Vec<ObjectKey>> = HashMap::new();
    for one in objects.iter().filter(|one| !matches!(one.key.resource_type.as_str(), ATTACHMENT | INTERFACE)) {
        by_id.entry(one.key.id.clone()).or_default().push(one.key.clone());
    }
    for one in objects {
        let mut uses = BTreeSet::new();
        used(&one.object, "", &by_id, &mut uses);
        uses.remove(&one.key);
        one.uses = uses;
    }
}

fn used(value: &Value, key: &str, by_id: &HashMap<String, Vec<ObjectKey>>, uses: &mut BTreeSet<ObjectKey>) {
    match value {
        Value::Map(map) => map.iter().for_each(|(key, value)| used(value, key, by_id, uses)),
        Value::List(items) => items.iter().for_each(|item| used(item, key, by_id, uses)),
        Value::Str(text) => {
            let is_key_pair = |one: &ObjectKey| one.resource_type == KEY_PAIR;
            // The ID of a key pair is a name, which may be that of anything else.
            let meant = by_id.get(text).into_iter().flatten().filter(|one| is_key_pair(one) == (key == "key_name"));
            uses.extend(meant.cloned());
        }
        _ => {}
    }
}
