//! Previews the create of a stack.

use std::sync::Arc;

use async_trait::async_trait;
use kiln_identity::Caller;
use kiln_plan::{Blueprint, Draft, Kind, Nesting};
use kiln_resource::{Cloud, Facts, Failure, StackId, properties};
use kiln_stack::{Backends, Clouds, NoCloud, load};
use kiln_store::{NewStack, Stack};
use kiln_template::Definition;
use kiln_template::StackIdentity;
use kiln_value::{Map, Value};
use kiln_view::preview::{Preview, preview_create};

use crate::{CreateStack, Error, Guarded, HiddenValues, Masked, Service, Settings};

/// Python's representation of a missing ID.
const NO_ID: &str = "None";

/// The stack that a create would produce.
pub struct PreviewedStack {
    /// Its identity, without an ID.
    pub identity: StackIdentity,
    /// Its blueprint.
    pub blueprint: Arc<Blueprint>,
    /// Its settings.
    pub settings: Settings,
    /// Its resources.
    pub resources: Vec<PreviewedEntry>,
    /// The values of its outputs, as far as they follow from the parameters; null if unknown.
    pub outputs: Map,
}

/// The cloud of a caller, for a stack that does not exist yet.
pub(crate) struct CloudOfCaller(pub(crate) Arc<dyn Cloud>);

#[async_trait]
impl Clouds for CloudOfCaller {
    async fn cloud(&self, _: &Stack) -> Result<Arc<dyn Cloud>, Failure> {
        Ok(Arc::clone(&self.0))
    }
}

/// A resource of the previewed stack.
pub enum PreviewedEntry {
    /// A resource without a nested stack.
    Resource(Box<PreviewedResource>),
    /// A resource with a nested stack: the resources in it.
    Nested(Vec<PreviewedEntry>),
}

/// A resource without a nested stack.
pub struct PreviewedResource {
    /// Logical name.
    pub name: String,
    /// The type name in the template.
    pub resource_type: String,
    /// Its stack.
    pub stack: StackIdentity,
    /// The parent resource of its stack, if the stack is nested.
    pub parent: Option<String>,
    /// The resources that directly depend on this one.
    pub required_by: Vec<String>,
    /// Description.
    pub description: String,
    /// Metadata, as far as known.
    pub metadata: Value,
    /// Its future attributes; null if they are known only after the create.
    pub attributes: Map,
    /// Properties, as far as known.
    pub properties: Map,
}

impl Masked for PreviewedStack {
    fn mask(&mut self, hidden: &HiddenValues) {
        self.resources.mask(hidden);
        self.outputs.mask(hidden);
    }
}

impl Masked for PreviewedEntry {
    fn mask(&mut self, hidden: &HiddenValues) {
        match self {
            Self::Nested(entries) => entries.mask(hidden),
            Self::Resource(resource) => {
                resource.metadata.mask(hidden);
                resource.attributes.mask(hidden);
                resource.properties.mask(hidden);
            }
        }
    }
}

/// The attributes of a resource that does not exist yet.
fn foreseen(kind: &Kind, definition: &Definition, properties: &Map) -> Map {
    let facts = Facts { name: definition.name.clone(), properties: properties.clone(), ..Facts::default() };
    let value = |name: &str| kind.entry().and_then(|entry| entry.driver.foreseen(&facts, name)).unwrap_or_default();
    kind.resource_type().attributes.keys().map(|name| (name.clone(), value(name))).collect()
}

impl Service {
    /// Previews a create.
    pub async fn preview_create(&self, caller: &Caller, new: CreateStack) -> Result<Guarded<PreviewedStack>, Error> {
        let identity = StackIdentity::new(caller.project_id.clone(), new.name.clone(), NO_ID);
        self.check_new(caller, &new).await?;
        let (identity, settings) = (identity?, new.settings);
        let blueprint = self.new_blueprint(caller, identity.clone(), &new.template, new.content).await?;
        let mut hidden = HiddenValues::of(&[blueprint.sources()]);
        let resources = self.previewed(&blueprint, &identity, None, &mut hidden)?;
        let draft = Draft::of(&blueprint);
        let mut outputs = Map::new();
        for output in blueprint.outputs().values() {
            let value = output.value.value(&draft).unwrap_or_default();
            hidden.derive(&output.value, &draft, &value);
            outputs.insert(output.name.clone(), value);
        }
        let blueprint = Arc::new(blueprint);
        Ok(Guarded::new(PreviewedStack { identity, blueprint, settings, resources, outputs }, hidden))
    }

    /// The plan that a previewed create would follow, including nested stacks; names are looked up in the caller's cloud.
    pub async fn plan_create(
        &self,
        caller: &Caller,
        previewed: &Guarded<PreviewedStack>,
    ) -> Result<Guarded<Preview>, Error> {
        let blueprint = Arc::clone(&previewed.expose().blueprint);
        self.plan_blueprint(caller, StackId(self.backends.chance.uuid()), blueprint).await
    }

    /// The plan of the create of a stack with a checked blueprint.
    pub(crate) async fn plan_blueprint(
        &self,
        caller: &Caller,
        id: StackId,
        blueprint: Arc<Blueprint>,
    ) -> Result<Guarded<Preview>, Error> {
        let cloud = self.identity.cloud(caller).await.unwrap_or_else(|| Arc::new(NoCloud));
        let backends = Backends { clouds: Arc::new(CloudOfCaller(cloud)), ..self.backends.clone() };
        let new = NewStack {
            username: caller.username.clone(),
            user_id: caller.user_id.clone(),
            ..NewStack::new(
                id,
                blueprint.identity.as_ref().map(|identity| identity.stack_name.clone()).unwrap_or_default(),
                caller.project_id.clone(),
                load::texts(blueprint.sources()),
                backends.clock.now(),
            )
        };
        let mut hidden = HiddenValues::of(&[blueprint.sources()]);
        let preview = preview_create(&backends, &Stack::started(&new), blueprint, &mut hidden).await?;
        Ok(Guarded::new(preview, hidden))
    }

    fn previewed(
        &self,
        blueprint: &Blueprint,
        identity: &StackIdentity,
        parent: Option<&str>,
        hidden: &mut HiddenValues,
    ) -> Result<Vec<PreviewedEntry>, Error> {
        let draft = Draft::of(blueprint);
        let mut required_by = blueprint.required_by();
        let mut shown = Vec::new();
        for definition in blueprint.definitions().values() {
            let Some(kind) = blueprint.kind(&definition.name) else { continue };
            let (given, _) = blueprint.draft_properties(definition, &draft)?;
            let schema = &kind.resource_type().properties;
            hidden.derive(&definition.properties, &draft, &Value::Map(given.clone()));
            let properties = properties::resolve(schema, &given).unwrap_or(given);
            hidden.derive(&definition.properties, &draft, &Value::Map(properties.clone()));
            if let Some(sources) = blueprint.draft_sources(definition, &properties) {
                let inner = StackIdentity {
                    stack_name: format!("{}-{}", identity.stack_name, definition.name),
                    ..identity.clone()
                };
                let place = Nesting { facade: Some(blueprint.facade_of(definition)), depth: blueprint.place.depth + 1 };
                let types = &self.backends.resource_types;
                let nested = Blueprint::build(sources?, types, Some(inner.clone()), place)?;
                shown.push(PreviewedEntry::Nested(self.previewed(&nested, &inner, Some(&definition.name), hidden)?));
                continue;
            }
            let metadata = match definition.metadata.value(&draft) {
                Ok(Value::Null) | Err(_) => Value::Map(Map::new()),
                Ok(metadata) => metadata,
            };
            hidden.derive(&definition.metadata, &draft, &metadata);
            shown.push(PreviewedEntry::Resource(Box::new(PreviewedResource {
                name: definition.name.clone(),
                resource_type: definition.resource_type.clone(),
                stack: identity.clone(),
                parent: parent.map(str::to_owned),
                required_by: required_by.remove(&definition.name).unwrap_or_default(),
                description: definition.description.clone(),
                metadata,
                attributes: foreseen(kind, definition, &properties),
                properties,
            })));
        }
        Ok(shown)
    }
}
