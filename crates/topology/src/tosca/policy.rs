//! Groups, policies and their triggers.

use std::collections::HashSet;

use kiln_value::{Map, Path, Value};

use super::reader::Reader;
use super::schema::map_at;
use super::types::Section;
use crate::graph::{Graph, Group, Policy};

impl Reader<'_> {
    pub(super) fn read_groups(&self, topology: &Map, at: &Path, graph: &mut Graph) {
        let nodes: HashSet<&str> = graph.nodes.iter().map(|node| node.name.as_str()).collect();
        let mut groups = Vec::new();
        for (name, template) in map_at(self, topology, "groups", at).into_iter().flatten() {
            let at = at.key("groups").key(name);
            let Some(fields) = template.as_map() else {
                self.refuse("wrong-shape", &at, format!("The group \"{name}\" must be a map."));
                continue;
            };
            let keys = ["type", "metadata", "description", "properties", "members", "interfaces", "attributes"];
            self.check_keys(&format!("The group \"{name}\""), fields, &keys, &at);
            let Some(type_name) = fields.get("type").and_then(Value::as_str) else {
                self.refuse("missing-field", &at, format!("The template \"{name}\" must have the field \"type\"."));
                continue;
            };
            let Some(kind) = self.kind(Section::Group, type_name, &at.key("type")) else { continue };
            let members = self.names(fields, "members", &at);
            let distinct: HashSet<&String> = members.iter().collect();
            if fields.contains_key("members") && (members.is_empty() || distinct.len() < members.len()) {
                let message = format!("The members \"{}\" must be at least one, each once.", members.join(", "));
                self.refuse("bad-member", &at.key("members"), message);
            }
            for (i, member) in members.iter().enumerate().filter(|(_, member)| !nodes.contains(member.as_str())) {
                let message = format!("The member \"{member}\" of \"{name}\" is not a node template.");
                self.refuse_word("bad-member", &at.key("members").index(i), message, member, nodes.iter().copied());
            }
            let properties = map_at(self, fields, "properties", &at).cloned().unwrap_or_default();
            groups.push(Group { name: name.clone(), type_name: kind.name.clone(), members, properties });
        }
        graph.groups = groups;
    }

    pub(super) fn read_policies(&self, topology: &Map, at: &Path, graph: &mut Graph) {
        let at = at.key("policies");
        // A list of maps of one entry; in TOSCA 2.0 also a map.
        let mut entries: Vec<(&String, &Value, Path)> = Vec::new();
        match topology.get("policies") {
            None | Some(Value::Null) => {}
            Some(Value::List(items)) => {
                for (i, item) in items.iter().enumerate() {
                    let Some(map) = item.as_map() else {
                        self.refuse("wrong-shape", &at.index(i), "A policy must be a map.");
                        continue;
                    };
                    entries.extend(map.iter().map(|(name, policy)| (name, policy, at.index(i).key(name))));
                }
            }
            Some(Value::Map(map)) => {
                entries.extend(map.iter().map(|(name, policy)| (name, policy, at.key(name))));
            }
            Some(_) => self.refuse("wrong-shape", &at, "\"policies\" must be a list."),
        }
        let nodes: HashSet<&str> = graph.nodes.iter().map(|node| node.name.as_str()).collect();
        let groups: HashSet<&str> = graph.groups.iter().map(|group| group.name.as_str()).collect();
        let read = |(name, policy, at): (&String, &Value, Path)| self.read_policy(name, policy, &at, &nodes, &groups);
        let policies: Vec<Policy> = entries.into_iter().filter_map(read).collect();
        graph.policies = policies;
    }

    fn read_policy(
        &self,
        name: &str,
        template: &Value,
        at: &Path,
        nodes: &HashSet<&str>,
        groups: &HashSet<&str>,
    ) -> Option<Policy> {
        const KEYS: [&str; 7] = ["type", "metadata", "description", "properties", "targets", "triggers", "reservation"];
        let Some(fields) = template.as_map() else {
            self.refuse("wrong-shape", at, format!("The policy \"{name}\" must be a map."));
            return None;
        };
        self.check_keys(&format!("The policy \"{name}\""), fields, &KEYS, at);
        let Some(type_name) = fields.get("type").and_then(Value::as_str) else {
            self.refuse("missing-field", at, format!("The template \"{name}\" must have the field \"type\"."));
            return None;
        };
        let kind = self.kind(Section::Policy, type_name, &at.key("type"))?;
        let targets = self.names(fields, "targets", at);
        let of_groups = targets.iter().any(|target| groups.contains(target.as_str()));
        if !of_groups {
            for (i, target) in targets.iter().enumerate() {
                if !nodes.contains(target.as_str()) {
                    let message = format!("The target \"{target}\" of \"{name}\" is not a node template or group.");
                    self.refuse_word("bad-member", &at.key("targets").index(i), message, target, nodes.iter().copied());
                }
            }
        }
        let values = self.read_properties(name, &kind, fields, at);
        let triggers = map_at(self, fields, "triggers", at).cloned().unwrap_or_default();
        for (trigger, template) in &triggers {
            self.check_trigger(trigger, template, &at.key("triggers").key(trigger));
        }
        Some(Policy {
            at: at.clone(),
            name: name.to_owned(),
            type_name: kind.name.clone(),
            ancestors: kind.ancestors.clone(),
            targets,
            of_groups,
            properties: map_at(self, fields, "properties", at).cloned(),
            values,
            triggers,
            template: fields.clone(),
        })
    }

    fn check_trigger(&self, name: &str, template: &Value, at: &Path) {
        const KEYS: [&str; 12] = [
            "description",
            "event",
            "event_type",
            "schedule",
            "metadata",
            "target_filter",
            "condition",
            "action",
            "metric",
            "type",
            "targets",
            "period",
        ];
        const CONDITION: [&str; 12] = [
            "constraint",
            "period",
            "granularity",
            "evaluations",
            "method",
            "aggregation_method",
            "metric",
            "threshold",
            "comparison_operator",
            "resource_type",
            "state",
            "resource_id",
        ];
        let Some(fields) = template.as_map() else {
            return self.refuse("wrong-shape", at, format!("The trigger \"{name}\" must be a map."));
        };
        let what = format!("The trigger \"{name}\"");
        self.check_keys(&what, fields, &KEYS, at);
        let Some(condition) = fields.get("condition").and_then(Value::as_map) else { return };
        let at = at.key("condition");
        self.check_keys(&what, condition, &CONDITION, &at);
        for key in ["granularity", "evaluations"] {
            if let Some(value) = condition.get(key) {
                self.checked(key, &Value::from("integer"), value, &at.key(key));
            }
        }
        if let Some(value) = condition.get("threshold") {
            self.checked("threshold", &Value::from("number"), value, &at.key("threshold"));
        }
    }

    /// The texts of a list.
    fn names(&self, fields: &Map, key: &str, at: &Path) -> Vec<String> {
        match fields.get(key) {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::List(items)) => items.iter().map(kiln_value::text::str).collect(),
            Some(other) => {
                let message = format!("\"{}\" is not a list.", kiln_value::text::str(other));
                self.refuse("bad-value", &at.key(key), message);
                Vec::new()
            }
        }
    }
}
