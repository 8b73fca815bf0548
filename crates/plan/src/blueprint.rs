//! The desired state of a stack: a template with its parameters and environment, and the types of its resources.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use indexmap::IndexMap;
use kiln_resource::{ResourceId, Sibling, Siblings, StoredDefinition, size_limit};
use kiln_template::StackIdentity;
use kiln_template::constraint::AcceptAll;
use kiln_template::environment::Environment;
use kiln_template::parameter::Parameters;
use kiln_template::{AttributeUse, Bound, Definition, Facade, Files, Move, Output, Scope, Template, Wanted};
use kiln_value::{Class, Diagnostic, Map, Path, Value, text};

use crate::ResourceTypes;
use crate::event::Target;
use crate::kind::Kind;
use crate::stack_scope::{Draft, Planned, References};

/// The sources of a blueprint.
#[derive(Clone, Debug)]
pub struct Sources {
    /// The template.
    pub template: Arc<Value>,
    /// The merged environment with the user's parameters, without the operator's environment.
    pub environment: Arc<Environment>,
    /// The files.
    pub files: Arc<Files>,
}

impl Sources {
    /// Adds the files of the current stack if a resource of the template still comes from one of them. In a rolling
    /// update, the members of later batches keep their definition, which the new files of the parent may lack.
    pub fn keep_files(&mut self, current: &Arc<Files>) {
        if Arc::ptr_eq(&self.files, current) {
            return;
        }
        let resources = ["resources", "Resources"].iter().filter_map(|words| self.template.get(words)?.as_map());
        let mut types = resources.flat_map(Map::values).filter_map(|r| r.str_at("type").or_else(|| r.str_at("Type")));
        if types.any(|name| current.get(name).is_some() && self.files.get(name).is_none()) {
            let mut files = current.0.clone();
            files.extend(self.files.0.clone());
            self.files = Arc::new(Files(files));
        }
    }
}

/// The parent resource of a nested stack.
#[derive(Clone, Debug, Default)]
pub struct Nesting {
    /// The values of `resource_facade`.
    pub facade: Option<Facade>,
    /// URLs of the enclosing templates, outermost first, to limit recursion.
    pub depth: u32,
}

/// A checked and bound stack. Cheap to share.
#[derive(Debug)]
pub struct Blueprint {
    /// The identity of the stack; `None` during validation.
    pub identity: Option<StackIdentity>,
    /// The place in the tree of stacks.
    pub place: Nesting,
    sources: Sources,
    bound: Bound,
    definitions: IndexMap<String, Definition>,
    outputs: IndexMap<String, Output>,
    planned: IndexMap<String, Planned>,
    requires: IndexMap<String, Vec<String>>,
    moves: Vec<(String, String)>,
    /// The values of each resource that other resources read.
    wanted: HashMap<String, Vec<Wanted>>,
    /// The values of each resource that other resources or outputs read.
    wanted_at_all: HashMap<String, Vec<Wanted>>,
}

impl Blueprint {
    /// Reads and binds the sources. Errors in the structure of the template, its references and its types are reported
    /// here; values are checked by [`Blueprint::validate`].
    ///
    /// # Errors
    /// Heat's class and text of the first error, in the order of docs/heat-behaviour.md §4.
    pub fn build(
        mut sources: Sources,
        catalog: &ResourceTypes,
        identity: Option<StackIdentity>,
        place: Nesting,
    ) -> Result<Self, Diagnostic> {
        let bound = bind(&sources, catalog, identity.as_ref())?;
        let definitions = bound.definitions()?;
        let outputs = bound.outputs()?;
        let words = bound.template().words();
        let moves = final_moves(&bound.template().moves()?, &definitions);
        let mut planned = IndexMap::with_capacity(definitions.len());
        // Lookups of types are recorded in the environment (docs/heat-behaviour.md §12).
        let mut environment = Environment::clone(&sources.environment);
        for definition in definitions.values() {
            let at = Path::root().key(words.resources).key(definition.name.as_str()).key(words.resource_type);
            let kind = Kind::of(definition, &mut environment, &sources.files, catalog, &at)?;
            planned.insert(definition.name.clone(), Planned::new(&definition.name, kind));
        }
        if environment != *sources.environment {
            sources.environment = Arc::new(environment);
        }
        let mut blueprint = Self {
            identity,
            place,
            sources,
            bound,
            definitions,
            outputs,
            planned,
            requires: IndexMap::new(),
            moves,
            wanted: HashMap::new(),
            wanted_at_all: HashMap::new(),
        };
        blueprint.link()?;
        Ok(blueprint)
    }

    /// The errors of parameters that precede a failure of [`Blueprint::build`], in Heat's order: it looks at types and
    /// references later than at parameters, but at conditions and definitions earlier. `strict` as in
    /// [`crate::Rules::strict`].
    pub fn parameter_errors(
        sources: &Sources,
        catalog: &ResourceTypes,
        identity: &StackIdentity,
        strict: bool,
    ) -> Vec<Diagnostic> {
        match bind(sources, catalog, Some(identity)) {
            Ok(bound) if bound.definitions().is_ok() => bound.parameters().validate(&AcceptAll, strict),
            _ => Vec::new(),
        }
    }

    /// Finds the dependencies and the values that resources read of each other.
    fn link(&mut self) -> Result<(), Diagnostic> {
        let draft = Draft::new(&self.bound, &self.planned, self.place.facade.clone());
        let mut requires = IndexMap::with_capacity(self.definitions.len());
        let mut wanted: HashMap<String, Vec<Wanted>> = HashMap::new();
        for definition in self.definitions.values() {
            let names = definition.dependencies(&draft)?;
            requires.insert(definition.name.clone(), names.into_iter().collect());
            note(&mut wanted, definition.attributes(&draft));
        }
        let mut wanted_at_all = wanted.clone();
        for output in self.outputs.values() {
            note(&mut wanted_at_all, output.attributes(&draft));
        }
        (self.requires, self.wanted, self.wanted_at_all) = (requires, wanted, wanted_at_all);
        for (name, more) in self.implied() {
            self.requires.entry(name).or_default().extend(more);
        }
        self.refuse_circles()
    }

    /// The dependencies that types imply: a floating IP waits for the router interface (docs/heat-behaviour.md §3).
    fn implied(&self) -> Vec<(String, Vec<String>)> {
        let references = References::new(&self.bound, &self.planned);
        let siblings = self.siblings(&references);
        let of = |this: &Sibling<'_>| {
            let more = self.kind(this.name)?.entry()?.driver.dependencies(this, &siblings);
            let known: BTreeSet<&str> = this.requires.iter().map(String::as_str).collect();
            let more = more.into_iter().filter(|other| other != this.name && !known.contains(other.as_str()));
            let more: Vec<String> = more.collect();
            (!more.is_empty()).then(|| (this.name.to_owned(), more))
        };
        siblings.iter().filter_map(of).collect()
    }

    /// The resources as their types see each other.
    pub(crate) fn siblings<'a>(&'a self, references: &'a References<'a>) -> Siblings<'a> {
        let of = |(name, definition): (&'a String, &'a Definition)| {
            let resource_type = self.kind(name)?.resource_type().name.as_str();
            Some(Sibling::new(name, resource_type, self.requires(name), move || {
                let partial = definition.properties.partial(references).ok();
                partial.and_then(|partial| partial.value?.as_map().cloned()).unwrap_or_default()
            }))
        };
        self.definitions.iter().filter_map(of).collect()
    }

    fn refuse_circles(&self) -> Result<(), Diagnostic> {
        let mut graph = crate::graph::Graph::default();
        let nodes: HashMap<&str, usize> = self.requires.keys().map(|name| (name.as_str(), graph.add())).collect();
        for (name, required) in &self.requires {
            for other in required {
                if let (Some(earlier), Some(later)) = (nodes.get(other.as_str()), nodes.get(name.as_str())) {
                    graph.order(*earlier, *later);
                }
            }
        }
        let circle: BTreeSet<usize> = graph.circle().into_iter().collect();
        if circle.is_empty() {
            return Ok(());
        }
        let mut names: Vec<String> =
            nodes.iter().filter(|(_, node)| circle.contains(node)).map(|(name, _)| (*name).to_owned()).collect();
        names.sort();
        let text = format!("Circular Dependency Found: {{{}}}", names.join(", "));
        let first = names.first().cloned().unwrap_or_default();
        let path = Path::root().key(self.bound.template().words().resources).key(first);
        Err(Diagnostic::new(Class::CircularDependencyException, text)
            .at(path)
            .hint("these resources depend on each other; remove one of the dependencies"))
    }

    /// The template with its parameters.
    pub fn bound(&self) -> &Bound {
        &self.bound
    }

    /// The parameters.
    pub fn parameters(&self) -> &Parameters {
        self.bound.parameters()
    }

    /// The sources.
    pub fn sources(&self) -> &Sources {
        &self.sources
    }

    /// The resources with a true condition, in the order of the template.
    pub fn definitions(&self) -> &IndexMap<String, Definition> {
        &self.definitions
    }

    /// The outputs, in the order of the template.
    pub fn outputs(&self) -> &IndexMap<String, Output> {
        &self.outputs
    }

    /// The type of a resource: a registered type or a template.
    pub fn kind(&self, name: &str) -> Option<&Kind> {
        self.planned.get(name).map(|planned| &planned.kind)
    }

    /// All resources before they exist.
    pub(crate) fn planned(&self) -> &IndexMap<String, Planned> {
        &self.planned
    }

    /// The names of the resources that a resource depends on.
    pub fn requires(&self, name: &str) -> &[String] {
        self.requires.get(name).map_or(&[], Vec::as_slice)
    }

    /// The resources and their dependencies, for the planner; `fresh` returns unused IDs.
    pub fn targets(&self, mut fresh: impl FnMut() -> ResourceId) -> Vec<Target> {
        self.definitions
            .values()
            .map(|definition| {
                let implementation = self.kind(&definition.name).map_or("", Kind::implementation);
                Target {
                    name: definition.name.clone(),
                    requires: self.requires(&definition.name).to_vec(),
                    kind: (definition.resource_type.clone(), implementation.to_owned()),
                    fresh: fresh(),
                }
            })
            .collect()
    }

    /// The resources that have another name than before: their former and their present names, the latest former name first.
    pub fn moves(&self) -> &[(String, String)] {
        &self.moves
    }

    /// The values of a resource that other resources read.
    pub fn wanted(&self, name: &str) -> &[Wanted] {
        self.wanted.get(name).map_or(&[], Vec::as_slice)
    }

    /// The values of a resource that other resources or outputs read.
    pub fn wanted_at_all(&self, name: &str) -> &[Wanted] {
        self.wanted_at_all.get(name).map_or(&[], Vec::as_slice)
    }

    /// The names of the attributes of a resource that other resources read.
    pub fn wanted_names(&self, name: &str) -> Vec<String> {
        attribute_names(self.wanted(name), self.kind(name))
    }

    /// The direct dependants of each resource, in the order of the template; resources without dependants are omitted.
    pub fn required_by(&self) -> HashMap<String, Vec<String>> {
        let mut found: HashMap<String, Vec<String>> = HashMap::new();
        for name in self.definitions.keys() {
            for needed in self.requires(name) {
                found.entry(needed.clone()).or_default().push(name.clone());
            }
        }
        found
    }

    /// The resolved definition of a resource, as it is stored in its row: its type, the values of the template, its
    /// policies.
    ///
    /// # Errors
    /// Errors of template functions; `RequestLimitExceeded` if the definition is too large.
    pub fn resolve(&self, definition: &Definition, scope: &dyn Scope) -> Result<StoredDefinition, Diagnostic> {
        let or_empty = |value: Option<Value>| match value {
            Some(Value::Map(map)) => map,
            _ => Map::new(),
        };
        let mut properties = or_empty(definition.properties.resolve(scope)?);
        if let Some(kind) = self.kind(&definition.name) {
            let schema = &kind.resource_type().properties;
            kiln_resource::properties::describe(schema, &mut properties, Some(&definition.description));
        }
        let metadata = or_empty(definition.metadata.resolve(scope)?);
        let update_policy = definition.update_policy.resolve(scope)?.unwrap_or_default();
        let mut depends_on = definition.depends_on.clone();
        depends_on.sort();
        let external = definition.external_id.as_ref().map(|id| id.value(scope)).transpose()?;
        let mut stored = StoredDefinition::of_type(definition.resource_type.as_str());
        stored.properties = properties;
        stored.metadata = metadata;
        definition.deletion_policy().as_str().clone_into(&mut stored.deletion_policy);
        // An empty policy has no effect.
        stored.update_policy = Some(update_policy).filter(Value::is_truthy).unwrap_or_default();
        stored.depends_on = depends_on;
        stored.description.clone_from(&definition.description);
        stored.external_id = external.filter(Value::is_truthy).map(|id| text::str(&id));
        size_limit::check_resource(&stored)?;
        Ok(stored)
    }
}

/// The template with its parameters.
fn bind(sources: &Sources, catalog: &ResourceTypes, identity: Option<&StackIdentity>) -> Result<Bound, Diagnostic> {
    let template = Arc::new(Template::from_value(Arc::clone(&sources.template))?);
    template.validate_sections().map_err(as_validation_failure)?;
    let environment = &sources.environment;
    let parameters = template.parameters(identity, &environment.parameters, &catalog.defaults(environment))?;
    Ok(Bound::within(template, Arc::new(parameters), Arc::clone(&sources.files), catalog.yaql))
}

/// Follows the moves of names that are former names themselves, to resources that the template has now.
fn final_moves(moves: &[Move], definitions: &IndexMap<String, Definition>) -> Vec<(String, String)> {
    let next: HashMap<&str, &str> = moves.iter().map(|one| (one.from.as_str(), one.to.as_str())).collect();
    let mut found: Vec<(usize, String, String)> = Vec::new();
    for one in moves {
        let steps = std::iter::successors(Some(one.to.as_str()), |name| next.get(name).copied());
        // Names that are moved in a circle are in no template.
        let end = steps.take(moves.len()).enumerate().find(|(_, name)| definitions.contains_key(*name));
        found.extend(end.map(|(steps, name)| (steps, one.from.clone(), name.to_owned())));
    }
    found.sort_by_key(|(steps, _, _)| *steps);
    found.into_iter().map(|(_, from, to)| (from, to)).collect()
}

/// The names of the attributes, without duplicates; for "all of them" those of the type.
pub fn attribute_names(wanted: &[Wanted], kind: Option<&Kind>) -> Vec<String> {
    let mut names = BTreeSet::new();
    for wanted in wanted {
        match wanted {
            Wanted::One { name: Value::Str(name), .. } => {
                names.insert(name.clone());
            }
            Wanted::One { .. } => {}
            Wanted::All => {
                let attributes = kind.map(|kind| &kind.resource_type().attributes);
                names.extend(attributes.into_iter().flat_map(|attributes| attributes.keys().cloned()));
            }
        }
    }
    names.into_iter().collect()
}

fn note(wanted: &mut HashMap<String, Vec<Wanted>>, uses: Vec<AttributeUse>) {
    for one in uses {
        let of_resource = wanted.entry(one.resource).or_default();
        if !of_resource.contains(&one.wanted) {
            of_resource.push(one.wanted);
        }
    }
}

/// Create and update report errors of the section check as a validation failure.
fn as_validation_failure(mut error: Diagnostic) -> Diagnostic {
    if error.class == Class::InvalidTemplateSection {
        error.class = Class::StackValidationFailed;
    }
    error
}
