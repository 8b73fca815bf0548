//! Nothing grows faster than its input: the memory that readers and lowering allocate for documents of three sizes.
//! Allocations are counted, not timed, so the result is the same on every machine. Of linear work the second step costs
//! twice the first one; of quadratic work, four times.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::alloc::System;
use std::collections::HashMap;
use std::fmt::Write;

use kiln_topology::blueprint::{self, Library};
use kiln_topology::lower::{by_cloud_init, lower};
use kiln_topology::{TypeFiles, tosca};
use kiln_value::Map;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const SIZES: [usize; 3] = [400, 800, 1600];

/// A name, a document of a size, and its reader.
type Shape<'a> = (&'a str, fn(usize) -> String, &'a dyn Fn(&str));

/// The bytes that some work allocates.
fn bytes(work: impl FnOnce()) -> usize {
    let region = Region::new(ALLOCATOR);
    work();
    region.change().bytes_allocated
}

#[test]
fn the_cost_of_a_document_is_linear() {
    let library = Library::shipped().unwrap();
    let read_blueprint = |text: &str| drop(blueprint::read(text, &library).unwrap());
    let lower_blueprint = |text: &str| {
        let (graph, _) = blueprint::read(text, &library).unwrap().graph().unwrap();
        drop(lower(&graph, "heat.yaml").map(by_cloud_init).unwrap());
    };
    let shapes: [Shape<'_>; 5] = [
        ("components", components, &read_blueprint),
        ("nodes", nodes, &read_service),
        ("types", types, &read_service),
        ("typed components", typed_components, &lower_blueprint),
        ("type files", type_files, &read_types),
    ];
    for (name, make, read) in shapes {
        read(&make(10));
        let [small, middle, large] = SIZES.map(|size| {
            let text = make(size);
            bytes(|| read(&text))
        });
        println!("{name}: {small}, {middle}, {large} bytes");
        let (first, second) = (middle - small, large - middle);
        assert!(second < first * 3, "{name}: {small}, {middle}, {large} bytes");
    }
}

/// Reads a service template, and lowers it.
fn read_service(text: &str) {
    let files = HashMap::from([("t.yaml".to_owned(), text.to_owned())]);
    let template = tosca::read(&files, "t.yaml", &Map::new()).unwrap();
    assert!(template.graph.model().as_map().is_some());
    drop(lower(&template.graph, "t.yaml").map(by_cloud_init));
}

/// A chain of components: the type of each one follows from the one before.
fn components(count: usize) -> String {
    let mut text = String::from("components:\n");
    for i in 0..count {
        let next = (i + 1) % count;
        writeln!(text, "- {{content: s{i}.sql, type: 'com.example.database:Schema', requires: 'id:d{next}'}}").unwrap();
        writeln!(text, "- {{id: d{i}}}").unwrap();
    }
    text
}

/// Servers with containers, whose types are defined in files.
fn typed_components(count: usize) -> String {
    let mut text = String::from("components:\n");
    for i in 0..count {
        writeln!(text, "  s{i}: {{type: server, requires: {{run: c{i}}}}}").unwrap();
        writeln!(text, "  c{i}: {{type: container, image: nginx, ports: ['80:80']}}").unwrap();
    }
    text
}

/// Type files in chains of 20, with a line between files.
fn type_files(count: usize) -> String {
    let file = |i: usize| {
        let parent = if i.is_multiple_of(20) { "tosca.nodes.Root".to_owned() } else { format!("t{}", i - 1) };
        format!(
            "topology_type: t{i}\nderived_from: {parent}\nproperties: {{p{i}: {{type: string, default: x}}}}\nhot: \
             {{resources: {{_r{i}: {{type: OS::Heat::Value, properties: {{value: {{$property: p{i}}}}}}}}}}}\n"
        )
    };
    // There may be 1000.
    (0..count / 2).map(file).collect::<Vec<_>>().join("---\n")
}

fn read_types(text: &str) {
    let files: Vec<(String, &str)> =
        text.split("---\n").enumerate().map(|(i, file)| (format!("{i}.yaml"), file)).collect();
    let files = files.iter().map(|(name, text)| (name.as_str(), *text));
    drop(TypeFiles::shipped().unwrap().with(files).unwrap());
}

/// Servers with software, in a chain.
fn nodes(count: usize) -> String {
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
}

/// Chains of 20 types, and a node of each type.
fn types(count: usize) -> String {
    let mut text = "tosca_definitions_version: tosca_simple_yaml_1_3\nnode_types:\n".to_owned();
    for i in 0..count {
        let parent = if i % 20 == 0 { "tosca.nodes.Root".to_owned() } else { format!("t{}", i - 1) };
        writeln!(text, "  t{i}: {{derived_from: {parent}, properties: {{p{i}: {{type: string, default: x}}}}}}")
            .unwrap();
    }
    writeln!(text, "topology_template:\n  node_templates:").unwrap();
    for i in 0..count {
        writeln!(text, "    n{i}: {{type: t{i}}}").unwrap();
    }
    text
}
