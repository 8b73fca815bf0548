//! AWS::EC2::Instance

use async_trait::async_trait;
use kiln_resource::{
    CloudRequest, Context, Driver, Facts, Failure, Found, Method, Operation, Progress, PropertyChange, Step, TypeRules,
};
use kiln_value::{Diagnostic, Map, Value, value};

use super::translated::{Translated, Translation};
use super::volume::{present, present_tags, renamed, tags};
use crate::call::{CINDER, NOVA, items};
use crate::validation::{conflict, failed};
use crate::{cinder, nova, path, queue};

/// A server of Nova, and volumes that are attached to it as soon as it is active.
pub(super) struct Instance {
    server: Translated<nova::Server, AsServer>,
}

/// The stage in which volumes are attached.
const VOLUMES: &str = "volumes";

/// The names of the same properties of a server and of an instance.
const NAMES: [(&str, &str); 4] = [
    ("image", "ImageId"),
    ("flavor", "InstanceType"),
    ("key_name", "KeyName"),
    ("availability_zone", "AvailabilityZone"),
];

/// The properties as those of OS::Nova::Server.
struct AsServer;

fn list<'a>(properties: &'a Map, name: &str) -> &'a [Value] {
    properties.get(name).and_then(Value::as_list).unwrap_or_default()
}

const GROUPS: [&str; 2] = ["SecurityGroups", "SecurityGroupIds"];

/// The security groups of both properties.
fn security_groups(properties: &Map) -> Vec<Value> {
    GROUPS.iter().flat_map(|name| list(properties, name)).cloned().collect()
}

/// The interfaces: ports in the order of their index, or a port on the subnet.
fn networks(properties: &Map) -> Value {
    let index = |entry: &Value, at: usize| {
        let given = entry.get("DeviceIndex").map(kiln_value::text::str).and_then(|text| text.parse::<usize>().ok());
        given.unwrap_or(at)
    };
    let mut ports: Vec<(usize, Value)> = Vec::new();
    for (at, entry) in list(properties, "NetworkInterfaces").iter().enumerate() {
        let port = entry.get("NetworkInterfaceId").unwrap_or(entry).clone();
        ports.push((index(entry, at), value!({"port": port})));
    }
    ports.sort_by_key(|(index, _)| *index);
    if !ports.is_empty() {
        return ports.into_iter().map(|(_, port)| port).collect();
    }
    match properties.get("SubnetId").filter(|subnet| subnet.is_truthy()) {
        Some(subnet) => value!([{"subnet": (subnet.clone())}]),
        None => Value::Null,
    }
}

/// The security groups and interfaces of the template in those of a server, which shows its own if they differ.
fn live_ports(properties: &Map, server: &Map) -> Map {
    let mut live = Map::new();
    let given = |name: &str| properties.get(name).filter(|value| value.is_truthy());
    if let Some(groups) = server.get("security_groups") {
        let is_same = groups.as_list() == Some(&security_groups(properties));
        for name in GROUPS {
            live.extend(given(name).map(|own| (name.to_owned(), if is_same { own } else { groups }.clone())));
        }
    }
    if let Some(interfaces) = server.get("networks") {
        let is_same = *interfaces == networks(properties);
        let ports: Value =
            interfaces.as_list().into_iter().flatten().filter_map(|one| one.get("port").cloned()).collect();
        let subnet = interfaces.at(0).and_then(|one| one.get("subnet")).cloned().unwrap_or_default();
        for (name, shown) in [("NetworkInterfaces", ports), ("SubnetId", subnet)] {
            live.extend(given(name).map(|own| (name.to_owned(), if is_same { own.clone() } else { shown })));
        }
    }
    live
}

/// The volumes that Nova has made of snapshots. It names the devices as it likes: the names are those of the template.
async fn live_devices(cx: &Context<'_>, server: &str) -> Result<Value, Failure> {
    let path = format!("/servers/{}/os-volume_attachments", path::segment(server));
    let request = CloudRequest::new(NOVA.0, Method::Get, path).microversion("2.79");
    let attachments = items(cx.cloud.call(request).await?.body, "volumeAttachments")?;
    let mut given = list(&cx.facts.properties, "BlockDeviceMappings").to_vec();
    let mut devices = Vec::new();
    for attachment in &attachments {
        let path = format!("/v3/volumes/{}", path::segment(attachment.str_at("volumeId").unwrap_or_default()));
        let volume = CINDER.show(cx, path, "volume").await?;
        let Some(snapshot) = volume.get("snapshot_id").filter(|snapshot| snapshot.is_truthy()) else { continue };
        let is_it = |device: &Value| device.get("Ebs").and_then(|disk| disk.get("SnapshotId")) == Some(snapshot);
        let name = given.iter().position(is_it).and_then(|at| given.swap_remove(at).get("DeviceName").cloned());
        let disk = value!({
            "SnapshotId": (snapshot.clone()), "VolumeSize": (volume.get("size").cloned()),
            "DeleteOnTermination": (attachment.get("delete_on_termination").cloned()),
        });
        devices.push(value!({"DeviceName": name, "Ebs": disk}));
    }
    Ok(devices.into())
}

/// Scheduler hints; a key that occurs several times has a list.
fn hints(properties: &Map) -> Value {
    let mut hints = Map::new();
    for hint in list(properties, "NovaSchedulerHints") {
        let (Some(key), Some(value)) = (hint.str_at("Key"), hint.get("Value")) else { continue };
        match hints.get_mut(key) {
            None => drop(hints.insert(key.to_owned(), value.clone())),
            Some(Value::List(values)) => values.push(value.clone()),
            Some(one) => *one = Value::List(vec![one.clone(), value.clone()]),
        }
    }
    if hints.is_empty() { Value::Null } else { Value::Map(hints) }
}

/// Block devices in the older format, which are snapshots.
fn block_devices(properties: &Map) -> Value {
    let devices = list(properties, "BlockDeviceMappings").iter().filter_map(|device| {
        let disk = device.get("Ebs").filter(|disk| disk.is_truthy())?;
        Some(value!({
            "device_name": (device.get("DeviceName").cloned()), "snapshot_id": (disk.get("SnapshotId").cloned()),
            "volume_size": (disk.get("VolumeSize").cloned()),
            "delete_on_termination": (disk.get("DeleteOnTermination").cloned()),
        }))
    });
    let devices: Vec<Value> = devices.collect();
    if devices.is_empty() { Value::Null } else { Value::List(devices) }
}

#[async_trait]
impl Translation for AsServer {
    fn properties(&self, properties: &Map) -> Map {
        let mut server = renamed(properties, &NAMES.map(|(server, own)| (own, server)));
        let further = [
            ("user_data", properties.get("UserData").cloned().unwrap_or_default()),
            ("security_groups", Value::List(security_groups(properties))),
            ("networks", networks(properties)),
            ("metadata", tags(properties.get("Tags"))),
            ("scheduler_hints", hints(properties)),
            ("block_device_mapping", block_devices(properties)),
            ("user_data_format", "HEAT_CFNTOOLS".into()),
            ("flavor_update_policy", "RESIZE".into()),
            ("image_update_policy", "REBUILD".into()),
            ("user_data_update_policy", "REPLACE".into()),
        ];
        server.extend(further.map(|(name, value)| (name.to_owned(), value)));
        server
    }

    fn live(&self, properties: &Map, live: &Map) -> Map {
        let mut own = present(live, &NAMES);
        if let Some(metadata) = live.get("metadata") {
            own.insert("Tags".to_owned(), present_tags(properties, metadata));
        }
        own.extend(live_ports(properties, live));
        own
    }

    async fn attribute(&self, cx: &Context<'_>, name: &str) -> Result<Option<Value>, Failure> {
        if !matches!(name, "AvailabilityZone" | "PrivateDnsName" | "PublicDnsName" | "PrivateIp" | "PublicIp") {
            return Ok(None);
        }
        let zone = cx.facts.property("AvailabilityZone");
        if name == "AvailabilityZone" && zone.is_truthy() {
            return Ok(Some(zone.clone()));
        }
        let server = match cx.facts.physical_id.as_deref() {
            Some(id) => NOVA.seek(cx, format!("/servers/{}", path::segment(id)), "server").await?,
            None => None,
        };
        if name == "AvailabilityZone" {
            let zone = server.as_ref().and_then(|server| server.get("OS-EXT-AZ:availability_zone"));
            return Ok(Some(zone.filter(|zone| zone.is_truthy()).cloned().unwrap_or_default()));
        }
        Ok(Some(server.as_ref().and_then(address).unwrap_or("0.0.0.0").into()))
    }

    fn validate(&self, facts: &Facts) -> Result<(), Diagnostic> {
        let interfaces = facts.property("NetworkInterfaces").is_truthy();
        if interfaces && !security_groups(&facts.properties).is_empty() {
            return Err(conflict(&["SecurityGroups/SecurityGroupIds", "NetworkInterfaces"]));
        }
        for device in list(&facts.properties, "BlockDeviceMappings") {
            let disk = device.get("Ebs").filter(|disk| disk.is_truthy());
            let Some(disk) = disk else {
                return Err(failed("Ebs is missing, this is required when specifying BlockDeviceMappings."));
            };
            if !disk.get("SnapshotId").is_some_and(Value::is_truthy) {
                return Err(failed("SnapshotId is missing, this is required when specifying BlockDeviceMappings."));
            }
        }
        Ok(())
    }
}

/// The first address on the last network by name.
fn address(server: &Value) -> Option<&str> {
    let networks = server.get("addresses").and_then(Value::as_map)?;
    let mut names: Vec<&String> = networks.keys().collect();
    names.sort_unstable();
    names.iter().rev().find_map(|name| networks.get(*name)?.at(0)?.str_at("addr"))
}

/// Attaches the volumes one after the other. Idempotent.
async fn attach(cx: &Context<'_>, state: &Value) -> Result<Step, Failure> {
    let server = cx.facts.require_id()?;
    for volume in list(&cx.facts.properties, "Volumes") {
        let id = volume.str_at("VolumeId").unwrap_or_default();
        if cinder::attachment_of(cx, server, id).await?.is_none() {
            cinder::attach(cx, server, id, volume.str_at("Device")).await?;
            return Ok(queue::again(cx, state, format!("the attachment of the volume {id}")));
        }
        if !cinder::is_attached(cx, server, id).await? {
            return Ok(queue::again(cx, state, format!("the attachment of the volume {id}")));
        }
    }
    Ok(Step::done())
}

impl Instance {
    pub(super) fn new() -> Self {
        Self { server: Translated::new(nova::Server, AsServer) }
    }
}

impl TypeRules for Instance {
    fn scheduler_hints(&self, facts: &Facts) -> Option<Map> {
        self.server.scheduler_hints(facts)
    }

    fn collisions(&self, held: &Map, wanted: &Map) -> Vec<&'static str> {
        let collide = !self.server.collisions(held, wanted).is_empty();
        if collide { vec!["NetworkInterfaces"] } else { Vec::new() }
    }

    fn refreshes_metadata(&self) -> bool {
        self.server.refreshes_metadata()
    }

    fn needs_replace(&self, change: &PropertyChange) -> bool {
        self.server.needs_replace(change)
    }

    fn restarts(&self, changed: &Map) -> bool {
        ["InstanceType", "NetworkInterfaces"].iter().any(|name| changed.contains_key(*name))
    }

    fn validate(&self, facts: &Facts) -> Result<(), Diagnostic> {
        self.server.validate(facts)
    }
}

#[async_trait]
impl Driver for Instance {
    async fn start(&self, cx: &Context<'_>, operation: &Operation) -> Result<Step, Failure> {
        self.server.start(cx, operation).await
    }

    async fn poll(&self, cx: &Context<'_>, operation: &Operation, state: &Value) -> Result<Step, Failure> {
        if state.str_at("stage") == Some(VOLUMES) {
            return attach(cx, state).await;
        }
        let step = self.server.poll(cx, operation, state).await?;
        let has_volumes = *operation == Operation::Create && !list(&cx.facts.properties, "Volumes").is_empty();
        if has_volumes && matches!(step.progress, Progress::Done) {
            return Ok(Step { progress: queue::now(VOLUMES).progress, ..step });
        }
        Ok(step)
    }

    async fn find(&self, cx: &Context<'_>) -> Result<Found, Failure> {
        self.server.find(cx).await
    }

    async fn attributes(&self, cx: &Context<'_>, names: &[&str]) -> Result<Map, Failure> {
        let mut values = self.server.attributes(cx, names).await?;
        // The whole server is no attribute of this type.
        if let Some(show) = values.get_mut("show") {
            *show = Value::Null;
        }
        Ok(values)
    }

    async fn release(&self, cx: &Context<'_>, wanted: &Map) -> Result<Option<std::time::Duration>, Failure> {
        self.server.release(cx, wanted).await
    }

    async fn live(&self, cx: &Context<'_>) -> Result<Map, Failure> {
        let mut live = self.server.live(cx).await?;
        let properties = &cx.facts.properties;
        let server = cx.facts.require_id()?;
        if cx.facts.property("Volumes").is_truthy() {
            let attachments = cinder::attachments(cx, server).await?;
            let volumes = list(properties, "Volumes").iter().filter_map(|volume| {
                let id = volume.str_at("VolumeId")?;
                // Nova names the device as it likes.
                attachments.iter().any(|attachment| attachment.str_at("volumeId") == Some(id)).then(|| volume.clone())
            });
            live.insert("Volumes".to_owned(), volumes.collect());
        }
        if cx.facts.property("BlockDeviceMappings").is_truthy() {
            live.insert("BlockDeviceMappings".to_owned(), live_devices(cx, server).await?);
        }
        Ok(live)
    }

    async fn live_in(&self, cx: &Context<'_>, object: &Value) -> Result<Map, Failure> {
        self.server.live_in(cx, object).await
    }

    fn has_lock(&self) -> bool {
        true
    }

    async fn lock(&self, cx: &Context<'_>, locked: bool) -> Result<(), Failure> {
        nova::Server.lock(cx, locked).await
    }

    async fn needs_replace_failed(&self, cx: &Context<'_>) -> Result<bool, Failure> {
        self.server.needs_replace_failed(cx).await
    }
}
