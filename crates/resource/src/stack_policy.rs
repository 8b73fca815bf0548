//! Stack policies of CloudFormation: what an update of a stack may do with its resources.

use std::collections::BTreeSet;

use kiln_value::glob;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::guard::Verb;

/// A stack policy. What no statement allows is denied, and a statement that denies wins. It holds only while a stack is
/// updated. Resources of nested stacks are judged as the resource of the root stack that they are in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct StackPolicy {
    /// As the user has written it.
    text: String,
    statements: Vec<Statement>,
}

/// Why a text is no stack policy, as AWS says it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Error validating stack policy: {0}")]
pub struct InvalidPolicy(String);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Statement {
    allows: bool,
    actions: Choice,
    resources: Choice,
    /// Patterns of the type, if the statement has a condition.
    types: Option<Vec<String>>,
}

/// Which of some names are meant.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Choice {
    /// What matches a pattern.
    Of(Vec<String>),
    /// What matches none.
    NotOf(Vec<String>),
}

impl Choice {
    fn has(&self, name: &str) -> bool {
        match self {
            Self::Of(patterns) => matches_any(patterns, name),
            Self::NotOf(patterns) => !matches_any(patterns, name),
        }
    }
}

fn matches_any(patterns: &[String], name: &str) -> bool {
    patterns.iter().any(|pattern| glob::matches(pattern, name))
}

/// The keys of a statement.
const KEYS: [&str; 8] = ["Sid", "Effect", "Action", "NotAction", "Principal", "Resource", "NotResource", "Condition"];

impl StackPolicy {
    /// As the user has written it.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether an update must not do this with a resource.
    pub fn denies(&self, verb: Verb, path: &str, resource_type: &str) -> bool {
        let action = match verb {
            // Only what exists is protected.
            Verb::Create => return false,
            Verb::Update => "Update:Modify",
            Verb::Replace => "Update:Replace",
            Verb::Delete => "Update:Delete",
        };
        let resource = format!("LogicalResourceId/{}", path.split('/').next().unwrap_or_default());
        let is_meant = |statement: &&Statement| {
            statement.actions.has(action)
                && statement.resources.has(&resource)
                && statement.types.as_ref().is_none_or(|types| matches_any(types, resource_type))
        };
        let effects: BTreeSet<bool> =
            self.statements.iter().filter(is_meant).map(|statement| statement.allows).collect();
        effects != BTreeSet::from([true])
    }
}

impl TryFrom<String> for StackPolicy {
    type Error = InvalidPolicy;

    fn try_from(text: String) -> Result<Self, InvalidPolicy> {
        let invalid = |why: &str| InvalidPolicy(why.to_owned());
        let policy: Value = serde_json::from_str(&text).map_err(|_| invalid("it is not JSON"))?;
        let policy = policy.as_object().ok_or_else(|| invalid("it is not an object"))?;
        if let Some(key) = policy.keys().find(|key| !["Statement", "Version", "Id"].contains(&key.as_str())) {
            return Err(InvalidPolicy(format!("unknown field {key}")));
        }
        let statements = policy.get("Statement").and_then(Value::as_array);
        let statements = statements.ok_or_else(|| invalid("it has no list Statement"))?;
        let statements = statements.iter().map(statement).collect::<Result<_, _>>()?;
        Ok(Self { text, statements })
    }
}

impl From<StackPolicy> for String {
    fn from(policy: StackPolicy) -> Self {
        policy.text
    }
}

fn statement(value: &Value) -> Result<Statement, InvalidPolicy> {
    let invalid = |why: &str| InvalidPolicy(why.to_owned());
    let fields = value.as_object().ok_or_else(|| invalid("a statement is not an object"))?;
    if let Some(key) = fields.keys().find(|key| !KEYS.contains(&key.as_str())) {
        return Err(InvalidPolicy(format!("unknown field {key} in a statement")));
    }
    let allows = match fields.get("Effect").and_then(Value::as_str) {
        Some("Allow") => true,
        Some("Deny") => false,
        _ => return Err(invalid("Effect is neither Allow nor Deny")),
    };
    if fields.get("Principal").and_then(Value::as_str) != Some("*") {
        return Err(invalid("Principal must be *"));
    }
    let actions = choice(fields, "Action", "NotAction")?;
    let (Choice::Of(named) | Choice::NotOf(named)) = &actions;
    let known = ["Update:Modify", "Update:Replace", "Update:Delete"];
    if let Some(unknown) = named.iter().find(|pattern| !known.iter().any(|action| glob::matches(pattern, action))) {
        return Err(InvalidPolicy(format!("unknown action {unknown}")));
    }
    let resources = choice(fields, "Resource", "NotResource")?;
    let types = fields.get("Condition").map(types_of).transpose()?;
    Ok(Statement { allows, actions, resources, types })
}

fn choice(fields: &serde_json::Map<String, Value>, of: &str, not_of: &str) -> Result<Choice, InvalidPolicy> {
    match (fields.get(of), fields.get(not_of)) {
        (Some(value), None) => Ok(Choice::Of(texts(value, of)?)),
        (None, Some(value)) => Ok(Choice::NotOf(texts(value, not_of)?)),
        _ => Err(InvalidPolicy(format!("a statement needs either {of} or {not_of}"))),
    }
}

/// The types of a condition: `StringEquals` or `StringLike` of `ResourceType`.
fn types_of(condition: &Value) -> Result<Vec<String>, InvalidPolicy> {
    let only = |value: &Value, names: &[&str]| {
        let [(name, value)] = value.as_object()?.iter().collect::<Vec<_>>().try_into().ok()?;
        names.contains(&name.as_str()).then(|| value.clone())
    };
    only(condition, &["StringEquals", "StringLike"])
        .and_then(|test| only(&test, &["ResourceType"]))
        .ok_or_else(|| InvalidPolicy("a Condition must compare ResourceType by StringEquals or StringLike".to_owned()))
        .and_then(|types| texts(&types, "ResourceType"))
}

fn texts(value: &Value, of: &str) -> Result<Vec<String>, InvalidPolicy> {
    let one =
        |value: &Value| value.as_str().map(str::to_owned).ok_or_else(|| InvalidPolicy(format!("{of} must be texts")));
    match value {
        Value::Array(values) => values.iter().map(one).collect(),
        value => Ok(vec![one(value)?]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(statements: &str) -> StackPolicy {
        format!(r#"{{"Statement": [{statements}]}}"#).try_into().unwrap()
    }

    const ALL: &str = r#"{"Effect": "Allow", "Action": "Update:*", "Principal": "*", "Resource": "*"}"#;

    fn denied(policy: &StackPolicy, path: &str, resource_type: &str) -> Vec<&'static str> {
        let denies = |verb: &Verb| policy.denies(*verb, path, resource_type);
        [Verb::Create, Verb::Update, Verb::Replace, Verb::Delete].into_iter().filter(denies).map(Verb::as_str).collect()
    }

    #[test]
    fn what_no_statement_allows_is_denied() {
        let only = policy(r#"{"Effect": "Allow", "Action": "Update:Modify", "Principal": "*", "Resource": "*"}"#);
        assert_eq!(denied(&only, "a", "T"), ["replace", "delete"]);
        assert_eq!(denied(&policy(ALL), "a", "T"), [""; 0]);
        assert_eq!(denied(&policy(""), "a", "T"), ["update", "replace", "delete"]);
    }

    #[test]
    fn a_statement_that_denies_wins() {
        let deny = |what: &str| policy(&format!(r#"{ALL}, {{"Effect": "Deny", "Principal": "*", {what}}}"#));
        let database = deny(r#""Action": ["Update:Replace", "Update:Delete"], "Resource": "LogicalResourceId/db*""#);
        assert_eq!(denied(&database, "db1", "T"), ["replace", "delete"]);
        assert_eq!(denied(&database, "db1/0/server", "T"), ["replace", "delete"]);
        assert_eq!(denied(&database, "web", "T"), [""; 0]);
        let others = deny(r#""NotAction": "Update:Modify", "NotResource": "LogicalResourceId/web""#);
        assert_eq!(denied(&others, "db", "T"), ["replace", "delete"]);
        assert_eq!(denied(&others, "web", "T"), [""; 0]);
        let of_type = deny(
            r#""Action": "Update:*", "Resource": "*",
            "Condition": {"StringLike": {"ResourceType": ["OS::Nova::*", "OS::Cinder::Volume"]}}"#,
        );
        assert_eq!(denied(&of_type, "a", "OS::Nova::Server").len(), 3);
        assert_eq!(denied(&of_type, "a", "OS::Neutron::Port"), [""; 0]);
    }

    #[test]
    fn what_is_no_policy_is_refused() {
        for (text, why) in [
            ("{", "it is not JSON"),
            ("[]", "it is not an object"),
            ("{}", "it has no list Statement"),
            (r#"{"Statement": [], "Rules": 1}"#, "unknown field Rules"),
            (r#"{"Statement": [{"Effect": "Perhaps"}]}"#, "Effect is neither Allow nor Deny"),
            (r#"{"Statement": [{"Effect": "Deny", "Principal": "me"}]}"#, "Principal must be *"),
            (
                r#"{"Statement": [{"Effect": "Deny", "Principal": "*"}]}"#,
                "a statement needs either Action or NotAction",
            ),
            (r#"{"Statement": [{"Effect": "Deny", "Principal": "*", "Action": "Create"}]}"#, "unknown action Create"),
            (
                r#"{"Statement": [{"Effect": "Deny", "Principal": "*", "Action": "Update:*", "Resource": 1}]}"#,
                "Resource must be texts",
            ),
            (
                r#"{"Statement": [{"Effect": "Deny", "Principal": "*", "Action": "Update:*", "Resource": "*",
                    "Condition": {"Bool": {}}}]}"#,
                "a Condition must compare ResourceType by StringEquals or StringLike",
            ),
        ] {
            let error = StackPolicy::try_from(text.to_owned()).unwrap_err();
            assert_eq!(error.to_string(), format!("Error validating stack policy: {why}"));
        }
    }

    #[test]
    fn it_is_stored_as_it_was_written() {
        let given = policy(ALL);
        let stored = serde_json::to_string(&given).unwrap();
        assert_eq!(serde_json::from_str::<StackPolicy>(&stored).unwrap(), given);
        assert_eq!(given.text(), format!(r#"{{"Statement": [{ALL}]}}"#));
    }
}
