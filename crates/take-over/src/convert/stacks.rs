//! The templates of the stacks of a tree, each read once.

use std::collections::HashMap;
use std::sync::Arc;

use kiln_plan::hidden::mask_errors;
use kiln_plan::{Blueprint, Nesting, ResourceTypes, Sources};
use kiln_resource::StoredDefinition;
use kiln_stack::load::facade_of;
use kiln_template::environment::Environment;
use kiln_template::{Files, StackIdentity};
use kiln_value::{Diagnostic, Map};

use crate::heat::{HeatStack, HeatTemplate};

/// The templates of stacks by the ID of the stack and the number of the template.
pub(super) struct Templates<'a> {
    types: &'a ResourceTypes,
    built: HashMap<(String, i64), Option<Arc<Blueprint>>>,
}

impl<'a> Templates<'a> {
    pub(super) fn new(types: &'a ResourceTypes) -> Self {
        Self { types, built: HashMap::new() }
    }

    /// Whether a template was read, or could not be read.
    pub(super) fn contains(&self, stack: &str, number: i64) -> bool {
        self.built.contains_key(&(stack.to_owned(), number))
    }

    pub(super) fn get(&self, stack: &str, number: i64) -> Option<&Arc<Blueprint>> {
        self.built.get(&(stack.to_owned(), number))?.as_ref()
    }

    /// Reads a template with its decrypted environment. `parent`: the definition of the resource that the stack belongs to.
    pub(super) fn build(
        &mut self,
        stack: &HeatStack,
        number: i64,
        template: &HeatTemplate,
        environment: &Map,
        depth: u32,
        parent: Option<&StoredDefinition>,
    ) -> Result<(), Diagnostic> {
        let built = self.read(stack, template, environment, depth, parent);
        let (built, error) = match built {
            Ok(blueprint) => (Some(Arc::new(blueprint)), Ok(())),
            Err(error) => (None, Err(error)),
        };
        self.built.insert((stack.id.clone(), number), built);
        error
    }

    fn read(
        &self,
        stack: &HeatStack,
        template: &HeatTemplate,
        environment: &Map,
        depth: u32,
        parent: Option<&StoredDefinition>,
    ) -> Result<Blueprint, Diagnostic> {
        let files = template.files.iter().filter_map(|(name, text)| Some((name.clone(), text.as_str()?.to_owned())));
        let sources = Sources {
            template: Arc::new(template.template.clone()),
            environment: Arc::new(Environment::from_sections(environment)?),
            files: Arc::new(Files(files.collect())),
        };
        let facade = parent.map(facade_of);
        let identity = StackIdentity::new(stack.project.as_str(), stack.name.as_str(), stack.id.clone()).ok();
        // An operator may see the text, and the values of hidden parameters are none of his.
        let shown = sources.clone();
        Blueprint::build(sources, self.types, identity, Nesting { facade, depth })
            .map_err(|error| mask_errors(&shown, vec![error.clone()]).pop().unwrap_or(error))
    }
}
