//! What clients have just read of stacks, to show it again or to answer other questions about it.

use std::sync::Arc;

use kiln_plan::Blueprint;
use kiln_resource::Resource;
use kiln_stack::loaded_stack::Content;
use kiln_stack::{Backends, Clock, LoadedStack, load};
use kiln_store::{Error, Stack};
use kiln_template::Template;
use kiln_template::parameter::Parameters;
use kiln_value::{Diagnostic, Value, steps};
use tracing::Instrument as _;

use crate::stack_cache::{IDLE, StackCache};

/// About how much more memory a blueprint takes than its template.
const BLUEPRINT: usize = 4;

/// Keeps what clients read last, up to a size.
#[derive(Default)]
pub struct RecentReads {
    /// The contents of stacks.
    stacks: StackCache<Content>,
    /// Lists of resources and events of a stack as they were sent, by their URL.
    pub lists: StackCache<Arc<[u8]>>,
}

/// The data of a stack that comes from its template alone, without its resources.
#[derive(Debug)]
pub struct Outline {
    /// The template.
    pub template: Arc<Template>,
    /// The parameters.
    pub parameters: Arc<Parameters>,
}

impl Outline {
    /// Whether there are outputs.
    pub fn has_outputs(&self) -> bool {
        self.template.as_value().get(self.template.words().outputs).is_some_and(Value::is_truthy)
    }
}

impl RecentReads {
    /// At most this many bytes of the contents of stacks, by estimate.
    pub fn of_size(bytes: usize) -> Self {
        Self { stacks: StackCache::of_size(bytes), ..Self::default() }
    }

    /// A stack with its content, from memory or from the store.
    ///
    /// # Errors
    /// Errors of the store; [`Error::Damaged`] if the stored template is invalid.
    pub async fn view(&self, backends: &Backends, stack: Stack) -> Result<LoadedStack, Error> {
        let now = backends.clock.monotonic();
        if let Some(content) = self.stacks.get(&stack, "", now) {
            return LoadedStack::with(backends, stack, content).await;
        }
        let (content, writes) = LoadedStack::read(backends, &stack).await?;
        // The parent's row may change while this stack does not.
        if writes == Some(stack.writes) && !load::reads_facade(backends, &stack.desired).await? {
            let rows: usize = content.model.rows().map(size).sum();
            let bytes = rows + size_of_blueprint(&content.blueprint, stack.parent.is_none());
            self.stacks.put(&stack, "", content.clone(), bytes, now);
        }
        LoadedStack::with(backends, stack, content).await
    }

    /// Begins [`Self::view`] in a task of its own, so that the caller can do something else meanwhile.
    pub async fn begin(
        self: &Arc<Self>,
        backends: &Backends,
        stack: Stack,
    ) -> impl Future<Output = Result<LoadedStack, Error>> + Send + use<> {
        let (recent, backends, project) = (Arc::clone(self), backends.clone(), stack.project.clone());
        let caches = Arc::clone(&backends.caches);
        let work = steps::carried(async move { recent.view(&backends, stack).await });
        let task = tokio::spawn(caches.threads.within(&project, work).in_current_span());
        // Otherwise the runtime would begin it only when this task waits for it.
        tokio::task::yield_now().await;
        async move { task.await.map_err(|error| Error::Database(error.into()))? }
    }

    /// The template and parameters of a stack.
    ///
    /// # Errors
    /// Errors of the store; [`Error::Damaged`] if the stored texts are invalid.
    pub async fn outline(&self, backends: &Backends, stack: &Stack) -> Result<Outline, Error> {
        if let Some(content) = self.stacks.get(stack, "", backends.clock.monotonic()) {
            let bound = content.blueprint.bound();
            return Ok(Outline { template: Arc::clone(bound.template()), parameters: Arc::clone(bound.parameters()) });
        }
        let damaged = |error: Diagnostic| Error::Damaged(error.into());
        let sources = load::stored(backends, &stack.desired).await?;
        let template = Template::from_value(sources.template).map_err(damaged)?;
        let defaults = backends.resource_types.defaults(&sources.environment);
        let identity = load::identity(stack);
        let parameters =
            template.parameters(identity.as_ref(), &sources.environment.parameters, &defaults).map_err(damaged)?;
        Ok(Outline { template: Arc::new(template), parameters: Arc::new(parameters) })
    }

    /// The number of stacks whose content is kept, and its bytes by estimate.
    pub fn size(&self) -> (usize, usize) {
        self.stacks.size()
    }

    /// Drops what was not used for a while, repeatedly. It never ends.
    pub async fn expire(&self, clock: &dyn Clock) {
        loop {
            clock.sleep(IDLE).await;
            let now = clock.monotonic();
            self.stacks.expire(now);
            self.lists.expire(now);
        }
    }
}

/// About how many bytes a blueprint takes. Nested stacks have the files of their root.
fn size_of_blueprint(blueprint: &Blueprint, is_root: bool) -> usize {
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
