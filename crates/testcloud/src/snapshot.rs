//! The objects in the cloud, for comparison in tests.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::state::CloudState;
use crate::table::{Fields, Table, public};

/// The number of objects by type of a stack of `examples/three-tier.yaml`.
pub const THREE_TIER: [(&str, usize); 9] = [
    ("floatingips", 1),
    ("networks", 1),
    ("routers", 1),
    ("security_groups", 2),
    ("server_groups", 1),
    ("servers", 2),
    ("subnets", 1),
    ("volume_attachments", 1),
    ("volumes", 1),
];

/// All objects in the cloud, by type (`servers`, `ports`, …), as administrators see them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Snapshot {
    /// The objects of each type, in order of creation.
    pub objects: BTreeMap<&'static str, Vec<Map<String, Value>>>,
}

impl Snapshot {
    pub(crate) fn of(world: &CloudState) -> Self {
        let tables = world.tables().into_iter();
        // Settings of an account and records of what has been done are no objects.
        let rows = |table: &Table| table.iter().filter(|row| !row.flag("_unlisted")).map(public).collect();
        let objects = tables.map(|(name, table)| (name, rows(table))).collect();
        Snapshot { objects }
    }

    /// The number of objects of a type.
    pub fn count(&self, kind: &str) -> usize {
        self.objects.get(kind).map_or(0, Vec::len)
    }

    /// The number of objects of each type.
    pub fn counts(&self) -> BTreeMap<&'static str, usize> {
        self.objects.iter().map(|(kind, rows)| (*kind, rows.len())).collect()
    }

    /// The objects in `other` that are not in this snapshot, as sorted `type id` strings.
    pub fn added_in(&self, other: &Snapshot) -> Vec<String> {
        let ids = |snapshot: &Snapshot| {
            let pairs = snapshot.objects.iter().flat_map(|(kind, rows)| {
                rows.iter().map(move |row| {
                    format!("{kind} {}", row.get("id").or(row.get("name")).and_then(Value::as_str).unwrap_or_default())
                })
            });
            pairs.collect::<std::collections::BTreeSet<_>>()
        };
        let before = ids(self);
        ids(other).difference(&before).cloned().collect()
    }
}
