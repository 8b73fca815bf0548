//! Validates what a topology became, without a cloud.

use std::collections::BTreeMap;
use std::sync::Arc;

use kiln_authoring::offline::{MAX_DEPTH, examine, obstacles};
use kiln_plan::{ResourceTypes, Sources};
use kiln_resource::Registry;
use kiln_template::Files;
use kiln_template::environment::Environment;
use kiln_topology::lower::Lowered;
use kiln_value::Map;

type Verdict = Option<String>;

/// The errors of the validation without a cloud.
pub(crate) fn validate(lowered: &Lowered, given: &Map) -> Verdict {
    let mut files: BTreeMap<String, String> =
        lowered.nested.iter().map(|(name, template)| (name.clone(), kiln_value::text::json(template))).collect();
    for file in &lowered.files {
        files.insert(file.name.clone(), "#!/bin/sh\n".to_owned());
    }
    let given: Map =
        given.iter().filter(|(name, _)| has_parameter(lowered, name)).map(|(k, v)| (k.clone(), v.clone())).collect();
    let sections = kiln_template::environment::from_request(None, &given);
    let environment = match sections.and_then(|sections| Environment::from_sections(&sections)) {
        Ok(environment) => environment,
        Err(error) => return Some(error.to_string()),
    };
    let sources = Sources {
        template: Arc::new(lowered.template.clone()),
        environment: Arc::new(environment),
        files: Arc::new(Files(files)),
    };
    let types = kiln_resource::shipped::types().expect("the types of Kiln");
    let catalog = ResourceTypes::new(Registry::build(types, kiln_drivers::driver_for));
    let (blueprint, mut errors) = examine(&sources, &catalog, MAX_DEPTH);
    if let Some(blueprint) = &blueprint {
        errors.extend(obstacles(blueprint, &catalog, MAX_DEPTH));
    }
    let messages: Vec<String> = errors.iter().map(ToString::to_string).collect();
    (!messages.is_empty()).then(|| format!("{}\n{}", messages.join("\n"), kiln_value::text::json(&lowered.template)))
}

fn has_parameter(lowered: &Lowered, name: &str) -> bool {
    lowered.template.get("parameters").is_some_and(|parameters| parameters.get(name).is_some())
}
