//! Any text and any bytes end in an answer, in bounded time: generated texts, and mutated documents of the sample data.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::HashMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use kiln_package::{Limits, Package};
use kiln_topology::blueprint::{self, Library};
use kiln_topology::lower::{by_cloud_init, lower};
use kiln_topology::{camp, tosca, upload};
use kiln_value::Map;
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
    if let Ok(template) = tosca::read(&files, "t.yaml", &Map::new()) {
        assert!(template.graph.model().as_map().is_some());
        drop(lower(&template.graph, "t.yaml").map(by_cloud_init));
    }
}

fn documents() -> Vec<String> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR"));
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
    fn any_bytes_are_a_package_or_refused(mut bytes in proptest::collection::vec(any::<u8>(), 0..400), head in 0_usize..3) {
        let heads: [&[u8]; 3] = [b"PK\x03\x04", &[0x1f, 0x8b, 8, 0], b""];
        bytes.splice(0..0, heads[head].iter().copied());
        drop(Package::open(&bytes, &Limits::default()));
        drop(upload::read(&bytes, &Map::new(), true, &Limits::default()));
    }
}

/// Documents that grow in one dimension take about linear time.
#[test]
fn large_documents_take_linear_time() {
    let nodes = |count: usize| {
        let mut text =
            "tosca_definitions_version: tosca_simple_yaml_1_3\ntopology_template:\n  node_templates:\n".to_owned();
        for i in 0..count {
            writeln!(text, "    s{i}: {{type: tosca.nodes.Compute}}").unwrap();
            let before = if i == 0 { String::new() } else { format!(", {{dependency: c{}}}", i - 1) };
            writeln!(
                text,
                "    c{i}: {{type: tosca.nodes.SoftwareComponent, requirements: [{{host: s{i}}}{before}], interfaces: \
                 {{Standard: {{create: a.sh, start: b.sh}}}}}}"
            )
            .unwrap();
        }
        text
    };
    let types = |count: usize| {
        let mut text = "tosca_definitions_version: tosca_simple_yaml_1_3\nnode_types:\n".to_owned();
        for i in 0..count {
            let parent = if i == 0 { "tosca.nodes.Root".to_owned() } else { format!("t{}", i - 1) };
            writeln!(text, "  t{i}: {{derived_from: {parent}, properties: {{p{i}: {{type: string, default: x}}}}}}")
                .unwrap();
        }
        writeln!(text, "topology_template:\n  node_templates:").unwrap();
        for i in 0..count {
            writeln!(text, "    n{i}: {{type: t{i}}}").unwrap();
        }
        text
    };
    let time = |text: &str| {
        let started = Instant::now();
        read_all(text);
        started.elapsed()
    };
    for (name, make) in [("nodes", &nodes as &dyn Fn(usize) -> String), ("types", &types)] {
        time(&make(50));
        let (small, large) = (time(&make(400)), time(&make(3200)));
        assert!(large < small * 24 + Duration::from_millis(500), "{name}: {large:?} after {small:?}");
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
