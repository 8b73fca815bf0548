//! Finders of objects that no resource type creates, or only placeholders.

use kiln_resource::{Finder, FinderClient};

/// Finder, service, collection, key of the ID, key of the name (empty: only the ID counts, or the service accepts names in
/// its place), client, word.
type Row = (&'static str, &'static str, &'static str, &'static str, &'static str, FinderClient, &'static str);

const ROWS: [Row; 9] = [
    ("cinder.backup", "block-storage", "/v3/backups", "id", "", FinderClient::Heat, "Volume backup"),
    ("cinder.snapshot", "block-storage", "/v3/snapshots", "id", "", FinderClient::Heat, "VolumeSnapshot"),
    ("ironic.node", "baremetal", "/v1/nodes", "uuid", "", FinderClient::Heat, "Node"),
    ("ironic.portgroup", "baremetal", "/v1/portgroups", "uuid", "", FinderClient::Heat, "PortGroup"),
    ("manila.share_snapshot", "sharev2", "/v2/snapshots", "id", "name", FinderClient::Heat, "share snapshot"),
    ("neutron.lbaas.listener", "network", "/v2.0/lbaas/listeners", "id", "name", FinderClient::Neutron, "listener"),
    (
        "neutron.lbaas.loadbalancer",
        "network",
        "/v2.0/lbaas/loadbalancers",
        "id",
        "name",
        FinderClient::Neutron,
        "loadbalancer",
    ),
    ("neutron.lbaas.pool", "network", "/v2.0/lbaas/pools", "id", "name", FinderClient::Neutron, "pool"),
    ("trove.flavor", "database", "/flavors", "id", "name", FinderClient::Sdk, "Flavor"),
];

/// The extension of the former load balancers of Neutron.
const LBAAS: &str = "lbaasv2";

/// The finder of this name, if it is one of these.
pub(super) fn of(name: &str) -> Option<Finder> {
    let (_, service, collection, id, by, client, word) = ROWS.iter().find(|row| row.0 == name)?;
    Some(Finder {
        name: name.to_owned(),
        service: (*service).to_owned(),
        extension: name.starts_with("neutron.lbaas.").then(|| LBAAS.to_owned()),
        collection: (*collection).to_owned(),
        id: (*id).to_owned(),
        by: (!by.is_empty()).then(|| (*by).to_owned()),
        client: *client,
        word: (*word).to_owned(),
    })
}
