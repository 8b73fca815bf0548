//! Shows the stack that a create would make.

use std::collections::BTreeMap;

use kiln_identity::Caller;
use kiln_plan::{Blueprint, Draft, Nesting};
use kiln_resource::properties;
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
    /// Names of the attributes that it would have.
    pub attributes: Vec<String>,
    /// Properties, as far as they are known.
    pub properties: Map,
}

impl Service {
    /// The stack that a create would make.
    pub async fn preview_create(&self, caller: &Caller, new: CreateStack) -> Result<PreviewedStack, Error> {
        let identity = StackIdentity::new(caller.project_id.clone(), new.name.clone(), NO_ID);
        self.check_new(caller, &new).await?;
        let (identity, settings) = (identity?, new.settings);
        let blueprint = self.new_blueprint(caller, identity.clone(), &new.template, new.content).await?;
        let resources = self.previewed(&blueprint, &identity, None)?;
        Ok(PreviewedStack { identity, blueprint, settings, resources })
    }

    fn previewed(
        &self,
        blueprint: &Blueprint,
        identity: &StackIdentity,
        parent: Option<&str>,
    ) -> Result<Vec<PreviewedEntry>, Error> {
        let draft = Draft::of(blueprint);
        let mut shown = Vec::new();
        let mut required_by: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for name in blueprint.definitions().keys() {
            for required in blueprint.requires(name) {
                required_by.entry(required).or_default().push(name.clone());
            }
        }
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
                required_by: required_by.remove(definition.name.as_str()).unwrap_or_default(),
                description: definition.description.clone(),
                metadata: definition.metadata.value(&draft).unwrap_or_default(),
                attributes: kind.resource_type().attributes.keys().cloned().collect(),
                properties,
            })));
        }
        Ok(shown)
    }
}
