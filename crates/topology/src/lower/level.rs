//! With how many servers a VNF of SOL001 begins.

use std::collections::{BTreeMap, BTreeSet};

use kiln_value::Value;

use super::scaling::Scaling;
use super::state::State;
use crate::graph::Policy;

pub(super) const VDU_INITIAL_DELTA: &str = "tosca.policies.nfv.VduInitialDelta";
pub(super) const INSTANTIATION_LEVELS: &str = "tosca.policies.nfv.InstantiationLevels";
pub(super) const VDU_INSTANTIATION_LEVELS: &str = "tosca.policies.nfv.VduInstantiationLevels";

/// The numbers by server.
pub(super) type Numbers<'g> = BTreeMap<String, Number<'g>>;

/// The number of servers of a VDU.
pub(super) struct Number<'g> {
    /// That of the default level, else of the initial delta.
    pub(super) initial: i64,
    /// That of the initial delta: the steps of a scaling aspect begin there.
    pub(super) delta: Option<i64>,
    /// The policy that says `initial`.
    policy: &'g Policy,
}

impl<'g> State<'g> {
    /// The servers with a number of their own.
    pub(super) fn initial_numbers(&mut self) -> Numbers<'g> {
        let mut numbers = Numbers::new();
        for policy in self.graph.policies.iter().filter(|policy| policy.is_a(VDU_INITIAL_DELTA)) {
            let Some(number) = policy.values.get("initial_delta").and_then(|level| self.number_of(level)) else {
                continue;
            };
            for server in self.targets(policy) {
                let number = Number { initial: number, delta: Some(number), policy };
                numbers.entry(server.name.clone()).or_insert(number);
            }
        }
        let Some(default) = self.default_level() else { return numbers };
        let mut seen = BTreeSet::new();
        for policy in self.graph.policies.iter().filter(|policy| policy.is_a(VDU_INSTANTIATION_LEVELS)) {
            let level = policy.values.get("levels").and_then(|levels| levels.get(&default));
            let Some(initial) = level.and_then(|level| self.number_of(level)) else {
                let message = format!("The policy {} has no number for the default level {default}.", policy.name);
                self.note(&policy.at, message);
                continue;
            };
            for server in self.targets(policy).into_iter().map(|server| &server.name) {
                // As for initial deltas, the first policy counts.
                if seen.insert(server) {
                    let delta = numbers.get(server).and_then(|number| number.delta);
                    numbers.insert(server.clone(), Number { initial, delta, policy });
                }
            }
        }
        numbers
    }

    /// The level of a VNF if the user chooses none.
    fn default_level(&mut self) -> Option<String> {
        let by_vdu = self.graph.policies.iter().find(|policy| policy.is_a(VDU_INSTANTIATION_LEVELS));
        let Some(policy) = self.graph.policies.iter().find(|policy| policy.is_a(INSTANTIATION_LEVELS)) else {
            if let Some(by_vdu) = by_vdu {
                let message =
                    format!("The policy {} has no effect: no policy InstantiationLevels has a level.", by_vdu.name);
                self.note(&by_vdu.at, message);
            }
            return None;
        };
        let given = policy.values.get("default_level").map(|level| self.known(level));
        let levels = policy.values.get("levels").and_then(Value::as_map);
        let only = levels.filter(|levels| levels.len() == 1).and_then(|levels| levels.keys().next()).cloned();
        let default = given.as_ref().and_then(Value::as_str).map(str::to_owned).or(only);
        let reason = match default {
            None => "it has no default_level",
            Some(_) if by_vdu.is_none() => "no policy VduInstantiationLevels has a number of servers",
            Some(_) => return default,
        };
        self.note(&policy.at, format!("The policy {} has no effect: {reason}.", policy.name));
        None
    }

    fn number_of(&self, level: &Value) -> Option<i64> {
        self.known(level.get("number_of_instances")?).as_i64().filter(|number| *number >= 0)
    }

    /// Servers that are several, or none, and that no other policy scales.
    pub(super) fn multiply(&mut self, numbers: &Numbers<'g>) {
        for (server, number) in numbers.iter().filter(|(_, number)| number.initial != 1) {
            // A server that is in a group already is no longer here.
            if !self.resources.contains_key(server) {
                continue;
            }
            self.extract(&Scaling {
                at: number.policy.at.clone(),
                group: format!("{server}_group"),
                signals: None,
                targets: vec![server.clone()],
                least: number.initial.into(),
                most: number.initial.into(),
                initial: number.initial.into(),
            });
        }
    }
}
