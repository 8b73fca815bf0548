//! Attributes of Neutron's resources: names, types, and who may set them.

use std::net::IpAddr;

use serde_json::{Value, json};

use super::refusal;
use crate::keystone::Caller;
use crate::reply::Refusal;
use crate::request::{python, python_text};
use crate::state::is_uuid_like;
use crate::table::{Fields, Row};

/// A collection of the API.
#[derive(Debug)]
pub(super) struct Noun {
    /// `network`.
    pub(super) one: &'static str,
    /// `networks`.
    pub(super) many: &'static str,
    pub(super) attributes: &'static [Attribute],
}

/// An attribute.
#[derive(Debug)]
pub(super) struct Attribute {
    name: &'static str,
    kind: Kind,
    post: Post,
    put: bool,
    admin: bool,
}

/// The type of a value.
#[derive(Debug)]
pub(super) enum Kind {
    /// Strings up to this length.
    Text(usize),
    TextOrNull(usize),
    Bool,
    /// Integers in this range.
    Int(i64, i64),
    IntOrNull,
    Uuid,
    UuidOrNull,
    UuidList,
    AddressOrNull,
    Mac,
    Addresses,
    /// Objects with exactly these keys.
    Objects(&'static [&'static str]),
    /// An object without other keys than these.
    Keys(&'static [&'static str]),
    OneOf(&'static [&'static str]),
    Number(&'static [i64]),
    Any,
}

/// The default of an attribute in a create.
#[derive(Debug)]
pub(super) enum Post {
    Required,
    Null,
    False,
    True,
    Empty,
    List,
    Number(i64),
    Text(&'static str),
    /// Set by the code of the create.
    Unset,
    /// Read-only.
    Never,
}

impl Attribute {
    /// An attribute that can be set in creates and updates.
    pub(super) const fn new(name: &'static str, kind: Kind, post: Post) -> Self {
        Attribute { name, kind, post, put: true, admin: false }
    }

    /// An attribute that can be set only in creates.
    pub(super) const fn fixed(name: &'static str, kind: Kind, post: Post) -> Self {
        Attribute { name, kind, post, put: false, admin: false }
    }

    /// A read-only attribute.
    pub(super) const fn own(name: &'static str) -> Self {
        Attribute { name, kind: Kind::Any, post: Post::Never, put: false, admin: false }
    }

    /// Only for administrators.
    pub(super) const fn admin(mut self) -> Self {
        self.admin = true;
        self
    }
}

impl Noun {
    /// The attribute with a name, if it exists.
    pub(super) fn has(&self, name: &str) -> bool {
        matches!(
            name,
            "id" | "project_id"
                | "tenant_id"
                | "tags"
                | "created_at"
                | "updated_at"
                | "revision_number"
                | "description"
        ) || self.attributes.iter().any(|attribute| attribute.name == name)
    }

    /// Whether values of the attribute are compared as booleans in a list's filter.
    pub(super) fn is_bool(&self, name: &str) -> bool {
        self.attributes.iter().any(|attribute| attribute.name == name && matches!(attribute.kind, Kind::Bool))
    }

    /// Checks the body of a create and adds defaults. The result has `project_id`.
    pub(super) fn creation(&self, body: &Row, caller: &Caller) -> Result<Row, Refusal> {
        let project = match (body.get("project_id"), body.get("tenant_id")) {
            (Some(Value::String(id)), _) | (_, Some(Value::String(id))) => id.clone(),
            _ => caller.project.clone(),
        };
        if !caller.owns(&project) {
            let message = "Specifying 'project_id' or 'tenant_id' other than the authenticated project in request requires \
                           admin or advsvc privileges";
            return Err(refusal(400, "HTTPBadRequest", message));
        }
        self.known(body)?;
        let mut row = Row::new();
        for attribute in self.attributes {
            let name = attribute.name;
            match (body.get(name), &attribute.post) {
                (Some(_), Post::Never) => {
                    let message = format!("Attribute '{name}' not allowed in POST");
                    return Err(refusal(400, "HTTPBadRequest", message));
                }
                (Some(value), _) => {
                    let value = attribute.kind.read(name, value)?;
                    row.put(name, value);
                }
                (None, Post::Required) => {
                    let message = format!("Failed to parse request. Required attribute '{name}' not specified");
                    return Err(refusal(400, "HTTPBadRequest", message));
                }
                (None, post) => {
                    if let Some(value) = post.value() {
                        row.put(name, value);
                    }
                }
            }
        }
        if body.contains_key("id") {
            return Err(refusal(400, "HTTPBadRequest", "Attribute 'id' not allowed in POST"));
        }
        self.permitted(body, caller, "create")?;
        row.put("project_id", project.clone());
        row.put("tenant_id", project);
        Ok(row)
    }

    /// Checks the body of an update.
    pub(super) fn change(&self, body: &Row, caller: &Caller) -> Result<Row, Refusal> {
        self.known(body)?;
        let mut row = Row::new();
        for (name, value) in body {
            let attribute = self.attributes.iter().find(|attribute| attribute.name == name);
            let Some(attribute) = attribute.filter(|attribute| attribute.put) else {
                return Err(refusal(400, "HTTPBadRequest", format!("Cannot update read-only attribute {name}")));
            };
            row.put(name, attribute.kind.read(name, value)?);
        }
        self.permitted(body, caller, "update")?;
        Ok(row)
    }

    fn known(&self, body: &Row) -> Result<(), Refusal> {
        let unknown: Vec<String> =
            body.keys().filter(|name| !self.has(name)).map(|name| name.as_str().to_owned()).collect();
        if unknown.is_empty() {
            return Ok(());
        }
        let message = format!("Unrecognized attribute(s) '{}'", unknown.join(", "));
        Err(refusal(400, "HTTPBadRequest", message))
    }

    fn permitted(&self, body: &Row, caller: &Caller, verb: &str) -> Result<(), Refusal> {
        if caller.admin {
            return Ok(());
        }
        let default = |attribute: &Attribute| {
            attribute.post.value().is_some_and(|value| body.get(attribute.name) == Some(&value))
        };
        let denied = self
            .attributes
            .iter()
            .find(|attribute| attribute.admin && body.contains_key(attribute.name) && !default(attribute));
        denied.map_or(Ok(()), |attribute| {
            let one = self.one;
            let name = attribute.name;
            let message = format!("(rule:{verb}_{one} and rule:{verb}_{one}:{name}) is disallowed by policy");
            Err(refusal(403, "PolicyNotAuthorized", message))
        })
    }
}

impl Post {
    fn value(&self) -> Option<Value> {
        Some(match self {
            Post::Null => Value::Null,
            Post::False => json!(false),
            Post::True => json!(true),
            Post::Empty => json!(""),
            Post::List => json!([]),
            Post::Number(number) => json!(number),
            Post::Text(text) => json!(text),
            Post::Required | Post::Unset | Post::Never => return None,
        })
    }
}

impl Kind {
    /// The stored form of a value; 400 for an invalid one.
    fn read(&self, name: &str, value: &Value) -> Result<Value, Refusal> {
        let invalid =
            |reason: String| Err(refusal(400, "HTTPBadRequest", format!("Invalid input for {name}. Reason: {reason}")));
        match self {
            Kind::TextOrNull(_) | Kind::UuidOrNull | Kind::AddressOrNull | Kind::IntOrNull if value.is_null() => {
                return Ok(Value::Null);
            }
            Kind::Text(limit) | Kind::TextOrNull(limit) => {
                let Some(text) = value.as_str() else {
                    return invalid(format!("'{}' is not a valid string.", python_text(value)));
                };
                if text.chars().count() > *limit {
                    return invalid(format!("'{text}' exceeds maximum length of {limit}."));
                }
            }
            Kind::Bool => return boolean(value),
            Kind::IntOrNull => match integer(value) {
                Some(number) => return Ok(number.into()),
                None => return invalid(format!("'{}' is not an integer.", python_text(value))),
            },
            Kind::Int(least, most) => match integer(value) {
                Some(number) if number < *least => {
                    return invalid(format!("'{number}' is too small - must be at least '{least}'."));
                }
                Some(number) if number > *most => {
                    return invalid(format!("'{number}' is too large - must be no larger than '{most}'."));
                }
                Some(number) => return Ok(number.into()),
                None => return invalid(format!("'{}' is not an integer.", python_text(value))),
            },
            Kind::Number(allowed) => match integer(value) {
                Some(number) if allowed.contains(&number) => return Ok(number.into()),
                _ => return invalid(format!("{} is not in valid_values.", python_text(value))),
            },
            Kind::Uuid | Kind::UuidOrNull => {
                if !value.as_str().is_some_and(is_uuid_like) {
                    return invalid(format!("'{}' is not a valid UUID.", python_text(value)));
                }
            }
            Kind::UuidList => {
                let Some(items) = value.as_array() else {
                    if value.is_null() {
                        return Ok(json!([]));
                    }
                    return invalid(format!("'{}' is not a list.", python_text(value)));
                };
                if let Some(item) = items.iter().find(|item| !item.as_str().is_some_and(is_uuid_like)) {
                    return invalid(format!("'{}' is not a valid UUID.", python_text(item)));
                }
            }
            Kind::AddressOrNull => {
                let Some(address) = value.as_str().and_then(|text| text.parse::<IpAddr>().ok()) else {
                    return invalid(format!("'{}' is not a valid IP address.", python_text(value)));
                };
                return Ok(address.to_string().into());
            }
            Kind::Addresses => {
                let Some(items) = value.as_array() else {
                    return invalid(format!("Invalid data format for nameserver: '{}'.", python_text(value)));
                };
                let address = |item: &Value| item.as_str().is_some_and(|text| text.parse::<IpAddr>().is_ok());
                if let Some(item) = items.iter().find(|item| !address(item)) {
                    let text = python_text(item);
                    return invalid(format!("'{text}' is not a valid nameserver. '{text}' is not a valid IP address."));
                }
                if let Some(twice) =
                    items.iter().enumerate().find_map(|(at, item)| items[..at].contains(item).then_some(item))
                {
                    return invalid(format!("Duplicate nameserver '{}'.", python_text(twice)));
                }
            }
            Kind::Mac => {
                if !value.as_str().is_some_and(is_mac) {
                    return invalid(format!("'{}' is not a valid MAC address.", python_text(value)));
                }
            }
            Kind::Objects(keys) => return objects(name, value, keys),
            Kind::Keys(known) => {
                let unknown = value.as_object().into_iter().flat_map(|object| object.keys());
                let unknown: Vec<&str> = unknown.map(String::as_str).filter(|key| !known.contains(key)).collect();
                if !unknown.is_empty() {
                    return invalid(format!("Unexpected keys supplied: {}.", unknown.join(", ")));
                }
            }
            Kind::OneOf(allowed) => {
                if !value.as_str().is_some_and(|text| allowed.contains(&text)) {
                    return invalid(format!("{} is not in valid_values.", python_text(value)));
                }
            }
            Kind::Any => {}
        }
        Ok(value.clone())
    }
}

fn objects(name: &str, value: &Value, keys: &[&str]) -> Result<Value, Refusal> {
    let invalid =
        |reason: String| Err(refusal(400, "HTTPBadRequest", format!("Invalid input for {name}. Reason: {reason}")));
    if value.is_null() {
        return Ok(json!([]));
    }
    let Some(items) = value.as_array() else {
        return invalid(format!("Invalid data format: '{}'.", python_text(value)));
    };
    let set =
        |keys: Vec<&str>| format!("{{{}}}", keys.iter().map(|key| format!("'{key}'")).collect::<Vec<_>>().join(", "));
    for item in items {
        let Some(object) = item.as_object() else {
            return invalid(format!("'{}' is not a dictionary.", python(item)));
        };
        if object.len() != keys.len() || !keys.iter().all(|key| object.contains_key(*key)) {
            return invalid(format!(
                "Validation of dictionary's keys failed. Expected keys: {} Provided keys: {}.",
                set(keys.to_vec()),
                set(object.keys().map(String::as_str).collect())
            ));
        }
    }
    Ok(value.clone())
}

/// Parses a boolean as Neutron does.
pub(super) fn boolean(value: &Value) -> Result<Value, Refusal> {
    let text = python_text(value).to_ascii_lowercase();
    match text.as_str() {
        "true" | "1" => Ok(true.into()),
        "false" | "0" => Ok(false.into()),
        _ => {
            let message =
                format!("Invalid input for operation: '{}' cannot be converted to boolean.", python_text(value));
            Err(refusal(400, "InvalidInput", message))
        }
    }
}

/// An integer, also as a string.
pub(super) fn integer(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| value.as_str()?.parse().ok())
}

fn is_mac(text: &str) -> bool {
    let parts: Vec<&str> = text.split(':').collect();
    parts.len() == 6 && parts.iter().all(|part| part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_hexdigit()))
}
