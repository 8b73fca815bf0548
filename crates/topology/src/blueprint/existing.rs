//! What a blueprint takes from its surroundings: components of other stacks, and the country.

use kiln_value::Value;

use super::graph::{Builder, node};
use super::model::{Application, Requirement};
use crate::Refusal;
use crate::graph::{Exists, Node};

/// The scheme of URLs of components.
const SCHEME: &str = "heat://";

/// What fulfils these requirements, as a type of nodes.
const TYPES: [(&str, &str); 6] = [
    ("database", "org.openstack.trove.Instance"),
    ("DB", "org.openstack.trove.Instance"),
    ("loadbalancer", "tosca.nodes.LoadBalancer"),
    ("com.example.lb:LoadBalanced", "tosca.nodes.LoadBalancer"),
    ("runOn", "tosca.nodes.Compute"),
    ("com.example.java:WarDeploymentRequirement", "tosca.nodes.Compute"),
];

impl<'b> Builder<'b> {
    /// The node of a component that exists already: `heat://STACK/RESOURCE`. `wanted` is its type, if a file says it.
    pub(super) fn existing(
        &mut self,
        url: &'b str,
        requirement: &'b Requirement,
        wanted: Option<&str>,
    ) -> Option<String> {
        if let Some(known) = self.existing.get(url) {
            return Some(known.clone());
        }
        let parts = url.strip_prefix(SCHEME).and_then(|rest| rest.split_once('/'));
        let parts =
            parts.filter(|(stack, resource)| !stack.is_empty() && !resource.is_empty() && !resource.contains('/'));
        let Some((stack, resource)) = parts else {
            let message = format!("{url} names no component.");
            let refusal = Refusal::new("bad-value", &requirement.at, message);
            self.refusals.push(refusal.hint("Write heat://STACK/RESOURCE for a resource of another stack."));
            return None;
        };
        let by_table = TYPES.iter().find(|(name, _)| *name == requirement.type_name).map(|(_, kind)| *kind);
        let Some(kind) = wanted.or(by_table) else {
            let message = format!("{} cannot be fulfilled by what exists already.", requirement.type_name);
            self.refuse(&requirement.at, message);
            return None;
        };
        let word =
            |text: &str| -> String { text.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect() };
        let name = self.free(&format!("{}_{}", word(stack), word(resource)));
        let mut node = Node {
            exists: Some(Exists { stack: stack.to_owned(), resource: resource.to_owned() }),
            ..node(&name, kind, &requirement.at)
        };
        if let Some(names) = self.checker.names(kind) {
            node.ancestors = names.line.into_iter().skip(1).collect();
        }
        self.push(node);
        self.existing.insert(url, name.clone());
        Some(name)
    }

    /// The countries that all requirements of the type `jurisdiction` allow.
    pub(super) fn jurisdiction(&mut self, application: &Application) -> Option<(kiln_value::Path, Vec<String>)> {
        let mut found: Option<(kiln_value::Path, Vec<String>)> = None;
        for requirement in application.requires.iter().filter(|requirement| requirement.type_name == "jurisdiction") {
            let codes: Vec<String> = match requirement.attributes.get("iso3166") {
                Some(Value::List(codes)) => {
                    codes.iter().filter_map(Value::as_str).map(str::to_ascii_uppercase).collect()
                }
                Some(code) => code.as_str().map(str::to_ascii_uppercase).into_iter().collect(),
                None => continue,
            };
            let both = match found.take() {
                None => codes,
                Some((_, before)) => before.into_iter().filter(|code| codes.contains(code)).collect(),
            };
            if both.is_empty() {
                self.refuse(&requirement.at, "No country satisfies all requirements of the type jurisdiction.");
                return None;
            }
            found = Some((requirement.at.clone(), both));
        }
        found
    }
}
