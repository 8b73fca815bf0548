//! A snapshot, as clients see it.

use kiln_store::Snapshot;
use kiln_value::{Value, value};

use super::instant::instant;

/// The record of a snapshot.
pub(crate) fn snapshot_view(snapshot: &Snapshot) -> Value {
    value!({
        "id": (snapshot.id.to_string()),
        "name": (snapshot.name.clone()),
        "status": (snapshot.state.status.as_str()),
        "status_reason": (snapshot.reason.as_str()),
        "data": (snapshot.data.clone()),
        "creation_time": (instant(snapshot.created)),
    })
}
