//! Questions that only the cloud can answer.
//!
//! A question travels as JSON with a request for a stack (`questions`, by parameter), so that the service, which reaches the
//! cloud, answers it (`service/src/answer.rs`). Other services ignore them, and the user gives the parameters.

use std::collections::BTreeMap;

use kiln_value::{Map, Value, value};

use crate::lower::Source;

/// A value that depends on the cloud.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// The parameter.
    pub parameter: String,
    /// The place that asks.
    pub source: Source,
    /// What is asked for.
    pub wanted: Wanted,
}

/// What a question asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum Wanted {
    /// A flavor with at least so much; absent parts do not matter.
    Flavor {
        /// Virtual processors.
        cpus: Option<i64>,
        /// Memory in MiB.
        memory: Option<i64>,
        /// Disk in GiB.
        disk: Option<i64>,
    },
    /// An image with these properties, such as `os_distro`.
    Image(Map),
    /// A network.
    Network,
    /// A subnet.
    Subnet,
    /// A range of addresses for a new network.
    Addresses,
    /// A DNS zone that contains this name.
    Zone(String),
    /// A region in one of these countries: codes of ISO 3166-1 with two capital letters.
    Jurisdiction(Vec<String>),
    /// The number of members of a group of the stack; the parameter has the first one as its default.
    Members {
        /// The resources that contain the group, and the group.
        group: Vec<String>,
        /// The least members, if known.
        least: Option<i64>,
        /// The most members, if known.
        most: Option<i64>,
    },
    /// A resource of another stack of the user, or an attribute of it.
    Component {
        /// The name of the stack.
        stack: String,
        /// The name of the resource.
        resource: String,
        /// The attribute and the path in it; empty: the reference ID.
        attribute: Vec<Value>,
    },
}

impl Wanted {
    /// What is asked for, as a sentence.
    pub fn text(&self) -> String {
        match self {
            Self::Flavor { cpus, memory, disk } => {
                let parts = [(cpus, "CPUs"), (memory, "MiB of memory"), (disk, "GiB of disk")];
                let parts: Vec<String> =
                    parts.iter().filter_map(|(size, unit)| size.map(|size| format!("{size} {unit}"))).collect();
                if parts.is_empty() {
                    "A flavor.".to_owned()
                } else {
                    format!("A flavor with at least {}.", parts.join(", "))
                }
            }
            Self::Image(wanted) if wanted.is_empty() => "An image.".to_owned(),
            Self::Image(wanted) => {
                let parts: Vec<String> =
                    wanted.iter().map(|(name, value)| format!("{name} {}", kiln_value::text::str(value))).collect();
                format!("An image with {}.", parts.join(", "))
            }
            Self::Network => "A network.".to_owned(),
            Self::Zone(name) => format!("A zone for the name {name}."),
            Self::Subnet => "A subnet.".to_owned(),
            Self::Jurisdiction(countries) => format!("The country of the region, one of {}.", countries.join(", ")),
            Self::Members { group, .. } => {
                format!("The number of members of {}; an update keeps the current number.", group.join("."))
            }
            Self::Component { stack, resource, attribute } if attribute.is_empty() => {
                format!("The ID of {resource} of the stack {stack}.")
            }
            Self::Component { stack, resource, attribute } => {
                let attribute: Vec<String> = attribute.iter().map(kiln_value::text::str).collect();
                format!("The attribute {} of {resource} of the stack {stack}.", attribute.join("."))
            }
            Self::Addresses => "A range of addresses for a new network, such as 192.168.5.0/24.".to_owned(),
        }
    }

    /// As JSON: the `type` of what is asked for, and its parts.
    pub fn to_value(&self) -> Value {
        match self {
            Self::Flavor { cpus, memory, disk } => {
                let parts = [("cpus", cpus), ("memory", memory), ("disk", disk)];
                let parts = parts
                    .into_iter()
                    .filter_map(|(name, size)| Some((name.to_owned(), size.as_ref()?.to_owned().into())));
                Value::Map(std::iter::once(("type".to_owned(), "flavor".into())).chain(parts).collect())
            }
            Self::Image(properties) => value!({"type": "image", "properties": (properties.clone())}),
            Self::Network => value!({"type": "network"}),
            Self::Subnet => value!({"type": "subnet"}),
            Self::Addresses => value!({"type": "addresses"}),
            Self::Zone(name) => value!({"type": "zone", "name": name}),
            Self::Jurisdiction(countries) => {
                let countries: Vec<Value> = countries.iter().map(Value::from).collect();
                value!({"type": "jurisdiction", "countries": (Value::List(countries))})
            }
            Self::Members { group, least, most } => {
                let mut value = value!({"type": "members", "group": (group.clone())});
                for (name, limit) in [("least", least), ("most", most)] {
                    if let (Some(limit), Some(value)) = (limit, value.as_map_mut()) {
                        value.insert(name.to_owned(), (*limit).into());
                    }
                }
                value
            }
            Self::Component { stack, resource, attribute } => value!({
                "type": "component", "stack": stack, "resource": resource, "attribute": (Value::List(attribute.clone()))
            }),
        }
    }

    /// From JSON; `None` if it is not the JSON of a question.
    pub fn from_value(value: &Value) -> Option<Self> {
        let size = |name: &str| match value.get(name) {
            None => Some(None),
            Some(size) => size.as_i64().map(Some),
        };
        Some(match value.str_at("type")? {
            "flavor" => Self::Flavor { cpus: size("cpus")?, memory: size("memory")?, disk: size("disk")? },
            "image" => Self::Image(value.get("properties")?.as_map()?.clone()),
            "network" => Self::Network,
            "subnet" => Self::Subnet,
            "addresses" => Self::Addresses,
            "zone" => Self::Zone(value.str_at("name")?.to_owned()),
            "jurisdiction" => {
                let countries = value.get("countries")?.as_list()?.iter();
                Self::Jurisdiction(countries.map(|code| code.as_str().map(str::to_owned)).collect::<Option<_>>()?)
            }
            "members" => {
                let group = value.get("group")?.as_list()?.iter();
                let group = group.map(|name| name.as_str().map(str::to_owned)).collect::<Option<Vec<_>>>()?;
                Self::Members { group, least: size("least")?, most: size("most")? }
            }
            "component" => Self::Component {
                stack: value.str_at("stack")?.to_owned(),
                resource: value.str_at("resource")?.to_owned(),
                attribute: value.get("attribute")?.as_list()?.to_vec(),
            },
            _ => return None,
        })
    }
}

/// What is asked for, by parameter.
pub type Questions = BTreeMap<String, Wanted>;

/// The questions as JSON, by parameter.
pub fn to_map(questions: &[Question]) -> Map {
    questions.iter().map(|question| (question.parameter.clone(), question.wanted.to_value())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_question_comes_back_from_json() {
        let wanted = [
            Wanted::Flavor { cpus: Some(2), memory: None, disk: Some(10) },
            Wanted::Image([("os_distro".to_owned(), "debian".into())].into_iter().collect()),
            Wanted::Network,
            Wanted::Subnet,
            Wanted::Addresses,
            Wanted::Zone("www.example.com".to_owned()),
            Wanted::Jurisdiction(vec!["DE".to_owned(), "FR".to_owned()]),
            Wanted::Members { group: vec!["shop".to_owned(), "workers".to_owned()], least: Some(1), most: None },
            Wanted::Component {
                stack: "shared".to_owned(),
                resource: "database".to_owned(),
                attribute: vec!["hosts".into(), 0.into()],
            },
        ];
        for wanted in wanted {
            assert_eq!(Wanted::from_value(&wanted.to_value()), Some(wanted));
        }
        for wrong in [value!({"type": "planet"}), value!({"type": "flavor", "cpus": "two"}), value!("flavor")] {
            assert_eq!(Wanted::from_value(&wrong), None, "{wrong:?}");
        }
    }
}
