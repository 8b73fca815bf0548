//! The contents of stacks that clients have just read, to show them again or to answer other questions about them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kiln_plan::{Blueprint, Model};
use kiln_resource::{Resource, ResourceId};
use kiln_store::Stack;

use crate::stack_cache::StackCache;

/// About how much more memory a blueprint takes than its template.
const BLUEPRINT: usize = 4;

/// A stack as it was read.
#[derive(Clone)]
pub struct Content {
    /// The desired state.
    pub blueprint: Arc<Blueprint>,
    /// The rows.
    pub model: Arc<Model>,
    /// The row of each name that is shown to users.
    pub shown: Arc<BTreeMap<String, ResourceId>>,
}

/// Keeps what was read last, up to a size.
#[derive(Default)]
pub struct ViewCache(StackCache<Content>);

impl ViewCache {
    /// At most this many bytes, by estimate.
    pub fn of_size(bytes: usize) -> Self {
        Self(StackCache::of_size(bytes))
    }

    /// The current content of a stack. `now` is monotonic.
    pub fn get(&self, stack: &Stack, now: Duration) -> Option<Content> {
        self.0.get(stack, "", now)
    }

    /// Keeps the content of a stack; `writes` was read with its rows.
    pub fn put(&self, stack: &Stack, writes: Option<i64>, content: &Content, now: Duration) {
        if writes == Some(stack.writes) {
            let rows: usize = content.model.rows().map(size).sum();
            let bytes = rows + size_of_blueprint(&content.blueprint, stack.parent.is_none());
            self.0.put(stack, "", content.clone(), bytes, now);
        }
    }

    /// The number of stacks whose content is kept, and its bytes by estimate.
    pub fn size(&self) -> (usize, usize) {
        self.0.size()
    }

    /// Drops what has not been used for a while.
    pub fn expire(&self, now: Duration) {
        self.0.expire(now);
    }
}

/// About how many bytes a blueprint takes. Nested stacks have the files of their root.
pub(crate) fn size_of_blueprint(blueprint: &Blueprint, is_root: bool) -> usize {
    let sources = blueprint.sources();
    let environment = sources.environment.parameters.size() + sources.environment.parameter_defaults.size();
    let own_files = is_root.then_some(&sources.files.0);
    let files: usize = own_files.into_iter().flatten().map(|(name, text)| name.len() + text.len()).sum();
    BLUEPRINT * (sources.template.size() + environment) + files
}

/// About how many bytes a row takes.
fn size(row: &Resource) -> usize {
    let texts = row.name.len() + row.resource_type.len() + row.implementation.len() + row.reason.len();
    let definition = row
        .definition
        .as_ref()
        .map_or(0, |definition| size_of_val(&**definition) + definition.properties.size() + definition.metadata.size());
    size_of::<Resource>() + texts + definition + row.metadata.size() + row.data.size() + row.attributes.size()
}
