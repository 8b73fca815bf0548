//! Any text and any bytes end in an answer, in bounded time: generated texts, and mutated documents of the sample data.

use std::collections::HashMap;
use std::fs;
use std::path::Path as FilePath;
use std::sync::Arc;

use kiln_package::{Limits, Package};
use kiln_topology::author::{self, Around};
use kiln_topology::blueprint::{self, Library};
use kiln_topology::lower::{by_cloud_init, lower};
use kiln_topology::{TypeFiles, camp, tosca, upload};
use kiln_value::{Map, Path, Position};
use proptest::prelude::*;

/// Reads a text in every language, and lowers what is accepted.
fn read_all(text: &str) {
    let library = Library::shipped().unwrap();
    for read in [blueprint::read, camp::read] {
        if let Ok(blueprint) = read(text, &library) {
            assert!(blueprint.reading().as_map().is_some());
            if let Ok((graph, _)) = blueprint.graph() {
                drop(lower(&graph, "heat.yaml").map(by_cloud_init));
            }
        }
    }
    let files = HashMap::from([("t.yaml".to_owned(), text.to_owned())]);
    let types = TypeFiles::shipped().unwrap();
    let around = Around { root: "t.yaml", files: &files, types: &types };
    drop(author::explain(text, Position { line: 4, column: 8 }, around));
    let root = if text.contains("components") { "components" } else { "topology_template" };
    let path = ["node_templates", "a", "requires"].iter().fold(Path::root().key(root), |path, key| path.key(*key));
    drop(author::words(text, 5, &path, text.len().is_multiple_of(2), around));
    if let Ok(template) = tosca::read(&files, "t.yaml", &Map::new()) {
        assert!(template.graph.model().as_map().is_some());
        drop(lower(&template.graph, "t.yaml").map(by_cloud_init));
    }
}

fn documents() -> Vec<String> {
    let crates = FilePath::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    for folder in
        ["tests/data/blueprint/cases", "tests/data/blueprint/seed", "../../tests/data/tosca/tosca-parser/data"]
    {
        for entry in fs::read_dir(crates.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "yaml") {
                found.extend(fs::read_to_string(path));
            }
        }
    }
    found.sort();
    found
}

/// Kiln's own.
fn type_files() -> Vec<String> {
    let folder = FilePath::new(env!("CARGO_MANIFEST_DIR")).join("../../topology-types/software");
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.into_iter().map(|path| fs::read_to_string(path).unwrap().replace("aliases: [", "aliases: [my_")).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn any_text_ends_in_an_answer(text in "(components|requires|type|run|id:| |\n|-|:|\\{|\\}|\\[|\\]|server|a|1|tags){0,40}") {
        read_all(&text);
    }

    #[test]
    fn a_mutated_document_ends_in_an_answer(which in 0_usize..1000, edits in proptest::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 1..6)) {
        let all = documents();
        let mut lines: Vec<String> = all[which % all.len()].lines().map(str::to_owned).collect();
        // Lines are replaced by other lines, with the indentation of either.
        for (to, from) in edits {
            if lines.is_empty() {
                break;
            }
            let (to, from) = (to.index(lines.len()), from.index(lines.len()));
            let indent = lines[to].len() - lines[to].trim_start().len();
            lines[to] = format!("{}{}", " ".repeat(indent), lines[from].trim_start());
        }
        read_all(&lines.join("\n"));
    }

    #[test]
    fn a_mutated_type_file_is_usable_or_refused(which in any::<prop::sample::Index>(), edits in proptest::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 0..4)) {
        let all = type_files();
        let mut lines: Vec<&str> = which.get(&all).lines().collect();
        for (to, from) in edits {
            let (to, line) = (to.index(lines.len()), *from.get(&lines));
            lines[to] = line;
        }
        let text = lines.join("\n").replace("org.openstack.heat.", "my.");
        if let Ok(types) = TypeFiles::shipped().unwrap().with([("t.yaml", text.as_str())]) {
            let types = Arc::new(types);
            let name = &types.all().next_back().unwrap().name;
            let library = Library::of(&types).unwrap();
            let read = blueprint::read(&format!("components: {{a: {{type: {name}, content: x, image: y, run_list: [z]}}}}"), &library);
            if let Ok((graph, _)) = read.map(|blueprint| blueprint.graph().unwrap_or_default()) {
                drop(lower(&graph, "heat.yaml").map(by_cloud_init));
            }
        }
    }

    #[test]
    fn any_bytes_are_a_package_or_refused(mut bytes in proptest::collection::vec(any::<u8>(), 0..400), head in 0_usize..3) {
        let heads: [&[u8]; 3] = [b"PK\x03\x04", &[0x1f, 0x8b, 8, 0], b""];
        bytes.splice(0..0, heads[head].iter().copied());
        drop(Package::open(&bytes, &Limits::default()));
        drop(upload::read(bytes, &Map::new(), true, &Limits::default(), &TypeFiles::shipped().unwrap()));
    }
}

/// Deep documents are refused by the parser, and references in circles by the readers.
#[test]
fn deep_and_circular_documents_end() {
    let deep = format!("components: {}{}", "{a: ".repeat(5000), "}".repeat(5000));
    read_all(&deep);
    read_all(
        "tosca_definitions_version: tosca_simple_yaml_1_3\ntopology_template:\n  node_templates:\n    a:\n      type: \
         tosca.nodes.ObjectStorage\n      properties: {name: {get_property: [a, name]}}\n  outputs:\n    x: {value: \
         {get_property: [a, name]}}\n",
    );
    read_all(
        "tosca_definitions_version: tosca_simple_yaml_1_3\nnode_types:\n  t: {derived_from: u}\n  u: {derived_from: \
         t}\ntopology_template:\n  node_templates:\n    a: {type: t, requirements: [{host: b}]}\n    b: {type: u, \
         requirements: [{host: a}]}\n",
    );
}

/// Each node refers twice to the one before it: the value doubles with each.
#[test]
fn references_that_double_a_value_are_refused() {
    let refer = |number: usize| format!("{{get_property: [n{number}, x]}}");
    let node = |number: usize| {
        format!("    n{number}: {{type: N, properties: {{x: {{a: {0}, b: {0}}}}}}}\n", refer(number - 1))
    };
    let nodes = (1..45).map(node).collect::<Vec<_>>().concat();
    let text = format!(
        "tosca_definitions_version: tosca_simple_yaml_1_3\nnode_types:\n  N: {{derived_from: tosca.nodes.Root, \
         properties: {{x: {{type: map}}}}}}\ntopology_template:\n  node_templates:\n    n0: {{type: N, properties: {{x: \
         {{a: v}}}}}}\n{nodes}  outputs: {{o: {{value: {}}}}}\n",
        refer(44),
    );
    let files = HashMap::from([("t.yaml".to_owned(), text)]);
    let template = tosca::read(&files, "t.yaml", &Map::new()).unwrap();
    let refused = lower(&template.graph, "t.yaml").unwrap_err();
    assert_eq!(refused.iter().map(|refusal| refusal.kind).collect::<Vec<_>>(), ["too-large"]);
}
