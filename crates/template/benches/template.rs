//! Benchmarks of parsing and resolving templates: `cargo bench -p kiln-template`.

use std::sync::Arc;

use divan::{Bencher, black_box};
use kiln_template::{Bound, Expr, Files, Template, Unbuilt};
use kiln_value::{Map, Path, Value, value};

fn main() {
    divan::main();
}

fn bound(template: Value) -> Bound {
    let template = Template::from_value(template).expect("a version");
    let parameters = template.parameters(None, &Map::new(), &Map::new()).expect("valid parameters");
    Bound::new(Arc::new(template), Arc::new(parameters), Arc::new(Files::default()))
}

/// Servers with one port each, as in typical clusters.
fn cluster(resources: usize) -> Value {
    let mut section = Map::new();
    for i in 0..resources / 2 {
        section.insert(
            format!("port{i}"),
            value!({"type": "OS::Neutron::Port", "properties": {"network": {"get_param": "net"}, "name": (format!("p{i}"))}}),
        );
        section.insert(
            format!("server{i}"),
            value!({
                "type": "OS::Nova::Server",
                "properties": {
                    "name": {"list_join": ["-", [{"get_param": "OS::stack_name"}, (format!("server{i}"))]]},
                    "networks": [{"port": {"get_resource": (format!("port{i}"))}}],
                    "user_data": {"str_replace": {"template": "#!/bin/sh\necho $ip\n", "params": {
                        "$ip": {"get_attr": [(format!("port{i}")), "fixed_ips", 0, "ip_address"]},
                    }}},
                },
            }),
        );
    }
    value!({
        "heat_template_version": "2021-04-16",
        "parameters": {"net": {"type": "string", "default": "private"}},
        "resources": (Value::Map(section)),
    })
}

#[divan::bench]
fn read_2000_resources(bencher: Bencher) {
    let bound = bound(cluster(2000));
    bencher.bench(|| black_box(&bound).definitions());
}

#[divan::bench]
fn dependencies_of_2000_resources(bencher: Bencher) {
    let bound = bound(cluster(2000));
    let definitions = bound.definitions().expect("valid definitions");
    let scope = Unbuilt::new(&bound, definitions.keys());
    bencher
        .bench(|| definitions.values().map(|d| d.dependencies(&scope).map_or(0, |names| names.len())).sum::<usize>());
}

#[divan::bench]
fn resolve_10000_functions(bencher: Bencher) {
    let bound = bound(cluster(0));
    let calls: Value = (0..2500)
        .map(|i| {
            value!({"str_replace": {
                "template": {"list_join": ["-", [{"get_param": "net"}, (format!("a$x{i}"))]]},
                "params": {"$x": {"get_param": "net"}, "b": 1},
            }})
        })
        .collect();
    let expr = Expr::parse(&bound, &calls, &Path::root()).expect("valid calls");
    let scope = Unbuilt::empty(&bound);
    bencher.bench(|| black_box(&expr).value(&scope));
}
