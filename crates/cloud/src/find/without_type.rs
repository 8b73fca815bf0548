//! Finders of objects that no resource type creates.

use kiln_resource::{Finder, FinderClient};

/// Finder, service, collection, key of the ID, key of the name (empty: only the ID counts, or the service accepts names in
/// its place), client, word.
const ROWS: [(&str, &str, &str, &str, &str, FinderClient, &str); 6] = [
    ("cinder.backup", "block-storage", "/v3/backups", "id", "", FinderClient::Heat, "Volume backup"),
    ("cinder.snapshot", "block-storage", "/v3/snapshots", "id", "", FinderClient::Heat, "VolumeSnapshot"),
    ("ironic.node", "baremetal", "/v1/nodes", "uuid", "", FinderClient::Heat, "Node"),
    ("ironic.portgroup", "baremetal", "/v1/portgroups", "uuid", "", FinderClient::Heat, "PortGroup"),
    ("manila.share_snapshot", "sharev2", "/v2/snapshots", "id", "name", FinderClient::Heat, "share snapshot"),
    ("trove.flavor", "database", "/flavors", "id", "name", FinderClient::Sdk, "Flavor"),
];

/// The finder of this name, if it is one of these.
pub(super) fn of(name: &str) -> Option<Finder> {
    let (_, service, collection, id, by, client, word) = ROWS.iter().find(|row| row.0 == name)?;
    Some(Finder {
        name: name.to_owned(),
        service: (*service).to_owned(),
        extension: None,
        collection: (*collection).to_owned(),
        id: (*id).to_owned(),
        by: (!by.is_empty()).then(|| (*by).to_owned()),
        client: *client,
        word: (*word).to_owned(),
    })
}
