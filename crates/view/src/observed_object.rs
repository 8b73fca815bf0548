//! What the objects of a stack have, read for a plan, so that its execution sees whether others have changed them meanwhile.

use std::collections::BTreeSet;

use futures::StreamExt as _;
use futures::future::{BoxFuture, FutureExt as _};
use kiln_plan_document::ObservedObject;
use kiln_resource::Resource;
use kiln_stack::loaded_stack::LoadedStack;
use kiln_store::Error;

use crate::reading_cloud::ReadingCloud;
use crate::stack_drift::{PropertyDrift, differing, read};

/// Resources of a stack that are read at the same time.
const AT_ONCE: usize = 8;

/// An object that was read, compared with its resource.
pub struct Seen {
    /// The object.
    pub object: ObservedObject,
    /// What others have changed.
    pub outside: Vec<PropertyDrift>,
    /// Whether an update of its type writes all properties.
    pub writes_all: bool,
}

/// Reads the objects of the resources with these paths, in the whole tree. An object that cannot be read is left out.
///
/// # Errors
/// Errors of the store, for nested stacks.
pub async fn observe(view: &LoadedStack, paths: &BTreeSet<String>) -> Result<Vec<Seen>, Error> {
    let mut found = Vec::new();
    // Without a cloud, no object can be read.
    if let Ok(cloud) = view.backends().cloud(view.root(), true).await {
        let cloud = ReadingCloud::new(cloud, paths.len());
        below(view, "", paths, &cloud, &mut found).await?;
    }
    Ok(found)
}

fn below<'a>(
    view: &'a LoadedStack,
    prefix: &'a str,
    paths: &'a BTreeSet<String>,
    cloud: &'a ReadingCloud,
    found: &'a mut Vec<Seen>,
) -> BoxFuture<'a, Result<(), Error>> {
    async move {
        let path_of = |row: &Resource| format!("{prefix}{}", row.name);
        let chosen = view.model().rows().filter(|row| paths.contains(&path_of(row)));
        let reads: Vec<BoxFuture<'_, _>> = chosen.map(|row| object(view, row, path_of(row), cloud).boxed()).collect();
        let mut reads = futures::stream::iter(reads).buffered(AT_ONCE);
        while let Some(object) = reads.next().await {
            found.extend(object);
        }
        drop(reads);
        for row in view.model().rows() {
            let inside = format!("{}/", path_of(row));
            let is_chosen = paths.range(inside.clone()..).next().is_some_and(|path| path.starts_with(&inside));
            if let Some(child) = row.child.filter(|_| is_chosen)
                && let Some(nested) = LoadedStack::load(view.backends(), child).await?
            {
                below(&nested, &inside, paths, cloud, found).await?;
            }
        }
        Ok(())
    }
    .boxed()
}

async fn object(view: &LoadedStack, row: &Resource, path: String, cloud: &ReadingCloud) -> Option<Seen> {
    let kind = view.kind(row)?;
    let entry = kind.entry().filter(|entry| entry.driver.has_object())?;
    let id = row.physical_id.clone()?;
    let (properties, outside) = match read(view, row, &kind, entry, cloud).await {
        Ok(shown) => {
            let outside = differing(&shown, &entry.resource_type, row.properties());
            (Some(shown.live), outside)
        }
        Err(failure) if failure.is_not_found() => (None, Vec::new()),
        Err(_) => return None,
    };
    let update = entry.resource_type.rest.as_ref().and_then(|rest| rest.update.as_ref());
    let writes_all = update.is_some_and(|update| update.whole);
    Some(Seen { object: ObservedObject { path, id, properties }, outside, writes_all })
}
