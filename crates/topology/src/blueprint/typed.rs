//! Components whose types are defined in files: they become nodes of these types.

use kiln_value::{Map, Path, Value};

use super::graph::Builder;
use super::model::{Component, Requirement};
use crate::graph::Node;

/// The property that has the content of a component.
pub(super) const CONTENT: &str = "content";

/// The requirements of a server that are no requirements of its type.
const OF_SERVERS: [&str; 5] = ["minRam", "minCores", "os", "run", "unpack"];

/// A requirement that a type of nodes defines.
struct Defined<'r> {
    name: &'r str,
    definition: &'r Value,
}

impl<'b> Builder<'b> {
    /// A component of a type that is defined in a file.
    pub(super) fn typed(&mut self, component: &'b Component, name: &str) {
        let mut properties: Map = component.attributes.clone();
        if let Some(content) = &component.content {
            properties.insert(CONTENT.to_owned(), content.into());
        }
        let Some(node) = self.checker.node(name, &component.deploys, properties, &component.at) else { return };
        let (is_server, is_balancer) = (node.is_a("tosca.nodes.Compute"), node.is_a("tosca.nodes.LoadBalancer"));
        if is_server {
            self.server_node(component, name, node);
        } else if is_balancer {
            self.load_balancer_node(component, node);
        } else {
            self.push(node);
        }
        let requirements = self.checker.requirements(&component.deploys);
        for requirement in &component.requires {
            let by_server = is_server && OF_SERVERS.contains(&requirement.type_name.as_str());
            if by_server || (is_balancer && requirement.type_name == "dns") {
                continue;
            }
            let defined = requirements.iter().find(|(known, _)| *known == requirement.type_name);
            let defined = defined.map(|(name, definition)| Defined { name, definition });
            self.relate(component, name, requirement, defined.as_ref());
        }
        for (requirement, definition) in &requirements {
            let is_given = component.requires.iter().any(|given| given.type_name == *requirement);
            let by_place = requirement == "host" || requirement == "dependency";
            let least = definition.get("occurrences").and_then(|range| range.at(0)?.as_i64()).unwrap_or(1);
            if least > 0 && !is_given && !by_place {
                let message = format!("{} must have the requirement {requirement}.", component.deploys);
                self.refuse(&component.at, message);
            }
        }
    }

    /// Links a component with those that fulfil a requirement.
    fn relate(
        &mut self,
        component: &'b Component,
        name: &str,
        requirement: &'b Requirement,
        defined: Option<&Defined<'_>>,
    ) {
        let Some(Defined { name: word, definition }) = defined else {
            let message = format!(
                "{} has no effect on a component of type {}, which is defined in a file.",
                requirement.type_name, component.deploys
            );
            return self.refuse(&requirement.at, message);
        };
        let wanted = definition.get("relationship");
        let wanted = wanted.and_then(|wanted| wanted.as_str().or_else(|| wanted.str_at("type")));
        let by_name = if *word == "host" { "tosca.relationships.HostedOn" } else { "tosca.relationships.DependsOn" };
        let (relationship, ancestors) =
            self.checker.relationship(wanted.unwrap_or(by_name)).unwrap_or_else(|| (by_name.to_owned(), Vec::new()));
        for by in self.fulfilled_by(name, requirement, definition.str_at("node")) {
            let target = self.link(name, word, &by, &relationship, &requirement.at);
            target.ancestors.clone_from(&ancestors);
        }
    }

    /// Checks that those who fulfil requirements of types of files are what these ask for.
    pub(super) fn check_targets(&mut self) {
        let places: std::collections::HashMap<&str, &Node> =
            self.graph.nodes.iter().map(|node| (node.name.as_str(), node)).collect();
        let mut wrong: Vec<(Path, String)> = Vec::new();
        for node in self.graph.nodes.iter().filter(|node| self.types.get(&node.type_name).is_some()) {
            let requirements = self.checker.requirements(&node.type_name);
            for target in &node.targets {
                let definition = requirements.iter().find(|(name, _)| *name == target.requirement);
                let (Some((_, definition)), Some(other)) = (definition, places.get(target.node.as_str())) else {
                    continue;
                };
                let has = |kind: &str| other.capabilities.iter().any(|capability| capability.type_name == kind);
                // Nodes of components have only those ancestors that are read.
                let fits = match (definition.str_at("node"), definition.str_at("capability")) {
                    (Some(kind), _) => other.is_a(kind) || self.checker.is_a(&other.type_name, kind),
                    (None, Some(kind)) => has(kind),
                    (None, None) => true,
                };
                if !fits {
                    let wanted = definition.str_at("node").or_else(|| definition.str_at("capability"));
                    let message = format!(
                        "{} must be fulfilled by a {}, but {} is a {}.",
                        target.requirement,
                        wanted.unwrap_or_default(),
                        other.name,
                        other.type_name
                    );
                    wrong.push((target.at.clone(), message));
                }
            }
        }
        for (at, message) in wrong {
            self.refusals.push(crate::Refusal::new("wrong-type", &at, message));
        }
    }
}
