//! Shows the stack that a create would make.

use kiln_identity::Caller;
use kiln_plan::{Blueprint, Draft, Kind, Nesting};
use kiln_resource::{Facts, properties};
use kiln_template::Definition;
use kiln_value::{Map, StackIdentity, Value};

use crate::{CreateStack, Error, Service, Settings};

/// How Python shows an id that there is not.
const NO_ID: &str = "None";

/// The stack that a create would make.
pub struct PreviewedStack {
    /// Who it would be; it has no id yet.
    pub identity: StackIdentity,
    /// What it should be.
    pub blueprint: Blueprint,
    /// How it would be treated.
    pub settings: Settings,
    /// Its resources.
    pub resources: Vec<PreviewedEntry>,
    /// The values of its outputs, as far as they follow from the parameters; null where they cannot be told.
    pub outputs: Map,
}

/// A resource of a stack that is not made.
pub enum PreviewedEntry {
    /// A plain resource.
    Resource(Box<PreviewedResource>),
    /// In the place of a resource that stands for a stack: those in it.
    Nested(Vec<PreviewedEntry>),
}

/// A plain resource of a stack that is not made.
pub struct PreviewedResource {
    /// Logical name.
    pub name: String,
    /// The type as the template names it.
    pub resource_type: String,
    /// The stack that it would be in.
    pub stack: StackIdentity,
    /// The resource that this stack would stand for, if it is nested.
    pub parent: Option<String>,
    /// The resources that need this one directly.
    pub required_by: Vec<String>,
    /// Description.
    pub description: String,
    /// Metadata, as far as it is known.
    pub metadata: Value,
    /// The attributes that it would have; null where they are known only once it is there.
    pub attributes: Map,
    /// Properties, as far as they are known.
    pub properties: Map,
}

/// The attributes of a resource that is not there yet.
fn foreseen(kind: &Kind, definition: &Definition, properties: &Map) -> Map {
    let facts = Facts { name: definition.name.clone(), properties: properties.clone(), ..Facts::default() };
    let value = |name: &str| kind.entry().and_then(|entry| entry.driver.foreseen(&facts, name)).unwrap_or_default();
    kind.resource_type().attributes.keys().map(|name| (name.clone(), value(name))).collect()
}

impl Service {
    /// The stack that a create would make.
    pub async fn preview_create(&self, caller: &Caller, new: CreateStack) -> Result<PreviewedStack, Error> {
        let identity = StackIdentity::new(caller.project_id.clone(), new.name.clone(), NO_ID);
        self.check_new(caller, &new).await?;
        let (identity, settings) = (identity?, new.settings);
        let blueprint = self.new_blueprint(caller, identity.clone(), &new.template, new.content).await?;
        let resources = self.previewed(&blueprint, &identity, None)?;
        let draft = Draft::of(&blueprint);
        let outputs = blueprint
            .outputs()
            .values()
            .map(|output| (output.name.clone(), output.value.value(&draft).unwrap_or_default()))
            .collect();
        Ok(PreviewedStack { identity, blueprint, settings, resources, outputs })
    }

    fn previewed(
        &self,
        blueprint: &Blueprint,
        identity: &StackIdentity,
        parent: Option<&str>,
    ) -> Result<Vec<PreviewedEntry>, Error> {
        let draft = Draft::of(blueprint);
        let mut required_by = blueprint.required_by();
        let mut shown = Vec::new();
        for definition in blueprint.definitions().values() {
            let Some(kind) = blueprint.kind(&definition.name) else { continue };
            let (given, _) = blueprint.draft_properties(definition, &draft)?;
            let schema = &kind.resource_type().properties;
            let properties = properties::resolve(schema, &given).unwrap_or(given);
            if let Some(sources) = blueprint.draft_sources(definition, &properties) {
                let inner = StackIdentity {
                    stack_name: format!("{}-{}", identity.stack_name, definition.name),
                    ..identity.clone()
                };
                let place = Nesting { facade: Some(blueprint.facade_of(definition)), depth: blueprint.place.depth + 1 };
                let types = &self.backends.resource_types;
                let nested = Blueprint::build(sources?, types, Some(inner.clone()), place)?;
                shown.push(PreviewedEntry::Nested(self.previewed(&nested, &inner, Some(&definition.name))?));
                continue;
            }
            shown.push(PreviewedEntry::Resource(Box::new(PreviewedResource {
                name: definition.name.clone(),
                resource_type: definition.resource_type.clone(),
                stack: identity.clone(),
                parent: parent.map(str::to_owned),
                required_by: required_by.remove(&definition.name).unwrap_or_default(),
                description: definition.description.clone(),
                metadata: match definition.metadata.value(&draft) {
                    Ok(Value::Null) | Err(_) => Value::Map(Map::new()),
                    Ok(metadata) => metadata,
                },
                attributes: foreseen(kind, definition, &properties),
                properties,
            })));
        }
        Ok(shown)
    }
}
