//! Any text is a type file or is refused; what is accepted can be used in all languages.
#![no_main]

use std::collections::HashMap;
use std::sync::Arc;

use kiln_topology::blueprint::{self, Library};
use kiln_topology::lower::{by_cloud_init, lower};
use kiln_topology::{TypeFiles, tosca};
use kiln_value::Map;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &str| {
    let types = TypeFiles::shipped().expect("the types of Kiln").with([("t.yaml", input)]);
    let types = match types {
        Ok(types) => Arc::new(types),
        Err(refusals) => return assert!(!refusals.is_empty()),
    };
    let Some(this) = types.all().next_back() else { return };
    let name = kiln_value::text::json(&this.name.as_str().into());
    let library = Library::of(&types).expect("checked types");
    if let Ok(blueprint) = blueprint::read(&format!("{{\"components\": {{\"a\": {{\"type\": {name}}}}}}}"), &library)
        && let Ok((graph, _)) = blueprint.graph()
    {
        drop(lower(&graph, "heat.yaml").map(by_cloud_init));
    }
    let service = format!(
        "{{\"tosca_definitions_version\": \"tosca_simple_yaml_1_3\", \"topology_template\": {{\"node_templates\": \
         {{\"a\": {{\"type\": {name}}}}}}}}}"
    );
    let files = HashMap::from([("t.yaml".to_owned(), service)]);
    if let Ok(template) = tosca::read_with(&files, "t.yaml", &Map::new(), &types) {
        drop(lower(&template.graph, "t.yaml").map(by_cloud_init));
    }
});
