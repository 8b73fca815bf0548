//! Custom constraints: named checks of properties and parameters (reference/constraints.json).
//!
//! Constraints that need no cloud are evaluated here. Those that check the existence of an object are the finders of
//! definition files, and the caller provides the results.

mod cron;
mod dns;
mod network;
mod own;
mod time;

use std::cell::RefCell;
use std::collections::HashMap;

use kiln_template::constraint::{CustomConstraints, not_found};
use kiln_value::{Class, Value, text};

use crate::translation::Lookup;
use crate::{Cloud, Failure, FailureKind};

pub use own::{ConstraintCheck, OwnConstraints};

/// Checks all custom constraints with known results of lookups.
#[derive(Clone, Debug, Default)]
pub struct Judge {
    /// Seconds since 1970, for constraints on times.
    pub now: f64,
    /// The constraints of definition files and of the operator.
    pub own: OwnConstraints,
    /// The results of the cloud and of the operator's constraints: success, or the reason of a failure. Other lookups
    /// are accepted.
    pub answers: HashMap<Lookup, Result<(), String>>,
}

impl Judge {
    /// Without results, at this time (seconds since 1970).
    pub fn new(now: f64, own: &OwnConstraints) -> Self {
        Self { now, own: own.clone(), answers: HashMap::new() }
    }

    /// What must be asked about a value before it can be judged.
    fn lookup(&self, name: &str, value: &Value) -> Option<Lookup> {
        // A program gets the value with its type, the services of a cloud get a name or an ID.
        let asked = if self.own.get(name).is_some() { text::json(value) } else { text::str(value) };
        let is_asked = self.own.get(name).is_some() || self.own.is_of_cloud(name);
        is_asked.then(|| Lookup { finder: name.to_owned(), value: asked })
    }
}

impl CustomConstraints for Judge {
    fn validate(&self, name: &str, value: &Value) -> Result<(), String> {
        let verdict = match self.lookup(name, value) {
            Some(asked) => self.answers.get(&asked).cloned().unwrap_or(Ok(())),
            None => match local(name, value, self.now) {
                Some(verdict) => verdict,
                None => return Err(not_found(name, value)),
            },
        };
        verdict.map_err(|reason| {
            let value = text::str(value);
            if reason.is_empty() {
                format!("Error validating value '{value}'")
            } else {
                format!("Error validating value '{value}': {reason}")
            }
        })
    }
}

/// Checks constraints that require no cloud, and collects the lookups for the others.
#[derive(Debug, Default)]
pub struct LookupCollector {
    judge: Judge,
    asked: RefCell<Vec<Lookup>>,
}

impl LookupCollector {
    /// Starts with the known results of a judge.
    pub fn new(judge: Judge) -> Self {
        Self { judge, asked: RefCell::default() }
    }

    /// The judge, and the lookups that it requires.
    pub fn into_parts(self) -> (Judge, Vec<Lookup>) {
        (self.judge, self.asked.into_inner())
    }
}

impl CustomConstraints for LookupCollector {
    fn validate(&self, name: &str, value: &Value) -> Result<(), String> {
        if let Some(lookup) = self.judge.lookup(name, value).filter(|_| !value.is_null()) {
            let mut asked = self.asked.borrow_mut();
            if !asked.contains(&lookup) {
                asked.push(lookup);
            }
        }
        self.judge.validate(name, value)
    }
}

/// Whether a constraint of Kiln has this name.
pub fn is_taken(name: &str) -> bool {
    crate::shipped::finders().get(name).is_some() || local(name, &Value::Null, 0.0).is_some()
}

/// Checks whether an object exists. If the cloud is not reachable, the object is accepted: the create reports an error.
/// A constraint of the operator is checked by its program.
pub async fn ask(cloud: &dyn Cloud, own: &OwnConstraints, lookup: &Lookup) -> Result<(), String> {
    if let Some(check) = own.get(&lookup.finder) {
        let value = kiln_yaml::json::parse(&lookup.value).unwrap_or_default();
        return check.check(cloud, &lookup.finder, &value).await;
    }
    match cloud.find(&lookup.finder, &lookup.value).await {
        Err(failure) if is_refusal(&failure) => Err(failure.message),
        _ => Ok(()),
    }
}

fn is_refusal(failure: &Failure) -> bool {
    // The kind of ambiguous names is Other; of these classes, no service was asked.
    let is_answer = !matches!(failure.class, Class::ClientNotFound | Class::EndpointNotFound | Class::BadRequest);
    failure.is_not_found() || (failure.kind == FailureKind::Other && is_answer)
}

/// The result of a constraint that requires no cloud; `None` if the constraint does not exist. The reason of a refusal
/// may be empty.
fn local(name: &str, value: &Value, now: f64) -> Option<Result<(), String>> {
    let optional = |check: &dyn Fn(&str) -> Result<(), String>| match value {
        Value::Str(text) => check(text),
        other if !other.is_truthy() => Ok(()),
        other => check(&text::str(other)),
    };
    Some(match name {
        "ip_addr" => network::address(value),
        "mac_addr" => network::mac(value),
        "net_cidr" => network::cidr(value),
        "ip_or_cidr" => network::address_or_cidr(value),
        "dns_name" => optional(&dns::name),
        "rel_dns_name" => optional(&dns::relative_name),
        "dns_domain" => optional(&dns::domain),
        "cron_expression" => optional(&cron::expression),
        "timezone" => optional(&time::zone),
        "iso_8601" => time::iso_8601(value),
        "expiration" => optional(&|text| time::expiration(text, now)),
        "json_string" => optional(&json),
        // In Heat, the first two only wait. A queue of Zaqar exists as soon as it is used.
        "test_constr" | "nova.network" | "zaqar.queue" => Ok(()),
        _ => return None,
    })
}

fn json(text: &str) -> Result<(), String> {
    if text.is_empty() {
        return Ok(());
    }
    let read = kiln_yaml::json::parse(text);
    read.map(|_| ()).map_err(|error| format!("JSON string {text} is invalid: {error}"))
}
