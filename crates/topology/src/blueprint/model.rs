//! What a blueprint says, after all references and types have been resolved.

use std::sync::Arc;

use kiln_value::{Map, Path};

use crate::TypeFiles;

/// An application, as a blueprint describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct Application {
    /// The name, if it has one.
    pub name: Option<String>,
    /// Requirements of the whole application.
    pub requires: Vec<Requirement>,
    /// In the order of the document; implied ones are last.
    pub components: Vec<Component>,
    /// The type files that types of components are from.
    pub(crate) types: Arc<TypeFiles>,
}

/// A component, also one that is described in place.
#[derive(Clone, Debug, PartialEq)]
pub struct Component {
    /// The place in the document; of an implied component, the first requirement that names it.
    pub at: Path,
    /// `None` for components in place.
    pub id: Option<String>,
    /// Whether the ID was made from the content or the type.
    pub id_made: bool,
    /// Whether requirements refer to it and nothing declares it.
    pub implied: bool,
    /// The full name of the type.
    pub type_name: String,
    /// Where the type is from.
    pub type_from: TypeFrom,
    /// The concrete type that is deployed, under the `providers` of the blueprint.
    pub deploys: String,
    /// A file of the package, or a URL.
    pub content: Option<String>,
    /// Labels.
    pub tags: Vec<String>,
    /// The attributes, as written.
    pub attributes: Map,
    /// Attributes that describe a component.
    pub specs: Vec<(String, Component)>,
    /// Its requirements, in order.
    pub requires: Vec<Requirement>,
}

/// Where the type of a component is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TypeFrom {
    /// The component says it.
    Explicit,
    /// Requirements that the component fulfils.
    RequirementOnIt,
    /// Its own requirements, which only one type has.
    ItsRequirements,
    /// Its tags.
    Tags,
}

/// A requirement.
#[derive(Clone, Debug, PartialEq)]
pub struct Requirement {
    /// The place in the document.
    pub at: Path,
    /// The requirement type.
    pub type_name: String,
    /// The attributes, as written, without the fulfilment; an abbreviation has the name of the default attribute.
    pub attributes: Map,
    /// Who fulfils it; empty for conditions.
    pub fulfilled_by: Vec<Fulfilment>,
}

/// Who fulfils a requirement.
#[derive(Clone, Debug, PartialEq)]
pub enum Fulfilment {
    /// The component with this ID.
    Component(String),
    /// A component outside of the blueprint.
    Url(String),
    /// A component in place.
    InLine(Box<Component>),
    /// The platform makes one of this type.
    Platform(String),
}
