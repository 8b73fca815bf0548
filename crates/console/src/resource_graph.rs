//! The resources of a stack as a graph.

use std::collections::HashMap;
use std::fmt::Write as _;

use kiln_client::Resource;

/// The dependency graph in Graphviz format, with nested stacks as clusters.
pub fn graphviz(resources: &[Resource]) -> String {
    let ids: HashMap<(&str, &str), String> =
        resources.iter().enumerate().map(|(i, r)| ((r.stack_id(), r.name()), format!("r{i}"))).collect();
    let nested = |r: &Resource| r.nested().and_then(|n| n.rsplit('/').next()).map(str::to_owned);
    let inner: Vec<String> = resources.iter().filter_map(nested).collect();
    let mut out = String::from("digraph G {\n  graph [fontsize=10 fontname=\"Verdana\" compound=true rankdir=LR]\n");
    let node = |out: &mut String, indent: &str, r: &Resource| {
        let id = ids.get(&(r.stack_id(), r.name())).cloned().unwrap_or_default();
        let style = if r.status().ends_with("FAILED") { " style=filled color=red" } else { "" };
        let (name, kind) = (r.name().replace('"', "\\\""), r.kind().replace('"', "\\\""));
        _ = writeln!(out, "{indent}{id} [label=\"{name}\\n{kind}\"{style}];");
    };
    for resource in resources.iter().filter(|r| !inner.iter().any(|id| id == r.stack_id())) {
        node(&mut out, "  ", resource);
    }
    for owner in resources {
        let Some(stack) = nested(owner) else { continue };
        let members: Vec<&Resource> = resources.iter().filter(|r| r.stack_id() == stack).collect();
        let Some(first) = members.first() else { continue };
        _ = writeln!(out, "  subgraph cluster_{} {{\n    label=\"{}\";", stack.replace('-', "_"), owner.name());
        for member in &members {
            node(&mut out, "    ", member);
        }
        out.push_str("  }\n");
        let id = |r: &Resource| ids.get(&(r.stack_id(), r.name())).cloned().unwrap_or_default();
        let cluster = stack.replace('-', "_");
        _ = writeln!(out, "  {} -> {} [color=dimgray lhead=cluster_{cluster} arrowhead=none];", id(owner), id(first));
    }
    for resource in resources {
        for other in resource.required_by() {
            let from = ids.get(&(resource.stack_id(), resource.name()));
            if let (Some(from), Some(to)) = (from, ids.get(&(resource.stack_id(), other))) {
                _ = writeln!(out, "  {from} -> {to};");
            }
        }
    }
    out.push_str("}\n");
    out
}
