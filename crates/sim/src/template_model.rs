//! Generated templates as plain data, and the HOT that says the same.

use std::collections::BTreeMap;

use kiln_value::{Map, Value, value};
use serde::{Deserialize, Serialize};

/// The name of the parameter by which a nested stack is told what its outermost resources need.
pub const OUTER: &str = "outer";
/// The output with the ids of all objects of a nested stack.
pub const IDS: &str = "ids";

/// A template.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TemplateModel {
    /// Its resources; each needs only earlier ones.
    pub resources: Vec<ResourceModel>,
}

/// A resource.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceModel {
    /// Logical name.
    pub name: String,
    /// What it is.
    pub kind: KindModel,
    /// A property that changes in place.
    #[serde(default)]
    pub word: u32,
    /// A property whose change replaces the resource.
    #[serde(default)]
    pub size: u32,
    /// The resources whose objects its object needs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<String>,
    /// The resource whose `word` is its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reads: Option<String>,
    /// `depends_on`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<String>,
    /// Whether its objects stay when it goes.
    #[serde(default)]
    pub retain: bool,
    /// How its object is built.
    #[serde(default)]
    pub build: Build,
}

/// What a resource is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KindModel {
    /// A resource with an object of its own.
    Plain(Plain),
    /// `Sim::Value`: no object.
    Value,
    /// A template as a type.
    Nested(TemplateModel),
    /// `OS::Heat::ResourceGroup`.
    Group {
        /// How many members.
        count: u32,
        /// What they are; its needs are the group's.
        member: Plain,
    },
}

/// The kinds of objects. Each is a service of the cloud with a collection of this name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Plain {
    /// Made by one call, marked by the token.
    Thing,
    /// Takes time to be made, changed and deleted.
    Slow,
    /// Made and deleted by two calls.
    Pair,
    /// Nothing tells which create made it.
    Blind,
    /// Only one may have its name.
    Holder,
    /// Takes in signals.
    Inbox,
}

impl Plain {
    /// All kinds.
    pub const ALL: [Self; 6] = [Self::Thing, Self::Slow, Self::Pair, Self::Blind, Self::Holder, Self::Inbox];

    /// The service and collection.
    pub fn service(self) -> &'static str {
        match self {
            Self::Thing => "thing",
            Self::Slow => "slow",
            Self::Pair => "pair",
            Self::Blind => "blind",
            Self::Holder => "holder",
            Self::Inbox => "inbox",
        }
    }

    /// The kind that a service serves.
    pub fn of_service(service: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.service() == service)
    }

    /// The resource type.
    pub fn resource_type(self) -> &'static str {
        match self {
            Self::Thing => "Sim::Thing",
            Self::Slow => "Sim::Slow",
            Self::Pair => "Sim::Pair",
            Self::Blind => "Sim::Blind",
            Self::Holder => "Sim::Holder",
            Self::Inbox => "Sim::Inbox",
        }
    }
}

/// How an object is built.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Build {
    /// In the time that its kind takes.
    #[default]
    Sound,
    /// In so many milliseconds.
    Takes(u64),
    /// The first so many objects of the resource end in error.
    Fails(u32),
    /// Never.
    Never,
    /// The resource type's code panics when it looks whether the object is ready.
    Panics,
}

impl Build {
    /// As the property has it.
    pub fn word(self) -> String {
        match self {
            Self::Sound => "sound".to_owned(),
            Self::Takes(ms) => format!("takes {ms}"),
            Self::Fails(count) => format!("fails {count}"),
            Self::Never => "never".to_owned(),
            Self::Panics => "panics".to_owned(),
        }
    }

    /// From the property.
    pub fn from_word(word: &str) -> Self {
        match word.split_once(' ') {
            Some(("takes", ms)) => Self::Takes(ms.parse().unwrap_or_default()),
            Some(("fails", count)) => Self::Fails(count.parse().unwrap_or_default()),
            _ if word == "never" => Self::Never,
            _ if word == "panics" => Self::Panics,
            _ => Self::Sound,
        }
    }
}

/// The word of a resource that reads none.
pub fn word(word: u32) -> String {
    format!("w{word}")
}

impl TemplateModel {
    /// A resource.
    pub fn get(&self, name: &str) -> Option<&ResourceModel> {
        self.resources.iter().find(|resource| resource.name == name)
    }

    /// All resources, nested ones too.
    pub fn all(&self) -> Vec<&ResourceModel> {
        let mut all = Vec::new();
        let mut queue = vec![self];
        while let Some(template) = queue.pop() {
            for resource in &template.resources {
                all.push(resource);
                if let KindModel::Nested(inner) = &resource.kind {
                    queue.push(inner);
                }
            }
        }
        all
    }

    /// Drops references to resources that are not there (any more) and those that lead forward.
    pub fn mend(&mut self) {
        let mut before: Vec<String> = Vec::new();
        let mut readable: Vec<String> = Vec::new();
        for resource in &mut self.resources {
            resource.needs.retain(|name| before.contains(name));
            resource.after.retain(|name| before.contains(name));
            if resource.reads.as_ref().is_some_and(|name| !readable.contains(name)) {
                resource.reads = None;
            }
            if let KindModel::Nested(inner) = &mut resource.kind {
                inner.mend();
            }
            before.push(resource.name.clone());
            if matches!(resource.kind, KindModel::Plain(_) | KindModel::Value) {
                readable.push(resource.name.clone());
            }
        }
    }

    /// The template in HOT, and the texts of the templates that it names.
    pub fn hot(&self) -> (Value, BTreeMap<String, String>) {
        let mut files = BTreeMap::new();
        let template = self.write("", &mut files);
        (template, files)
    }

    fn write(&self, place: &str, files: &mut BTreeMap<String, String>) -> Value {
        let resources: Map =
            self.resources.iter().map(|r| (r.name.clone(), self.write_resource(r, place, files))).collect();
        let mut template = Map::from([("heat_template_version".to_owned(), "2018-08-31".into())]);
        if !place.is_empty() {
            let outer = value!({"type": "comma_delimited_list", "default": ""});
            template.insert("parameters".to_owned(), value!({OUTER: outer}));
        }
        template.insert("resources".to_owned(), resources.into());
        let names: Vec<String> = self.resources.iter().map(|resource| resource.name.clone()).collect();
        template.insert("outputs".to_owned(), value!({IDS: {"value": (self.ids_of(&names, false))}}));
        template.into()
    }

    fn write_resource(&self, resource: &ResourceModel, place: &str, files: &mut BTreeMap<String, String>) -> Value {
        let needs = self.ids_of(&resource.needs, !place.is_empty());
        let word: Value = match &resource.reads {
            Some(other) => value!({"get_attr": [(other.as_str()), "word"]}),
            None => word(resource.word).into(),
        };
        let properties = |kind: Plain| {
            let mut properties = value!({
                "word": (word.clone()),
                "size": (resource.size),
                "needs": (needs.clone()),
                "build": (resource.build.word()),
                "keep": (resource.retain),
            });
            if let (Plain::Holder, Some(properties)) = (kind, properties.as_map_mut()) {
                properties.insert("holds".to_owned(), format!("{place}{}", resource.name).into());
            }
            properties
        };
        let mut written = match &resource.kind {
            KindModel::Plain(kind) => value!({"type": (kind.resource_type()), "properties": (properties(*kind))}),
            KindModel::Value => value!({"type": "Sim::Value", "properties": {"word": (word.clone())}}),
            KindModel::Nested(inner) => {
                let below = format!("{place}{}.", resource.name);
                let file = format!("{below}yaml");
                let template = inner.write(&below, files);
                files.insert(file.clone(), serde_json::to_string(&template).unwrap_or_default());
                value!({"type": file, "properties": {OUTER: (needs.clone())}})
            }
            KindModel::Group { count, member } => {
                let definition = value!({"type": (member.resource_type()), "properties": (properties(*member))});
                value!({"type": "OS::Heat::ResourceGroup", "properties": {"count": (*count), "resource_def": definition}})
            }
        };
        if let Some(written) = written.as_map_mut() {
            if !resource.after.is_empty() {
                written.insert("depends_on".to_owned(), resource.after.clone().into());
            }
            if resource.retain {
                written.insert("deletion_policy".to_owned(), "Retain".into());
            }
        }
        written
    }

    /// An expression for the ids of the objects of some resources, and those that the stack was told.
    fn ids_of(&self, names: &[String], outer: bool) -> Value {
        let mut single: Vec<Value> = Vec::new();
        let mut lists: Vec<Value> = Vec::new();
        for resource in names.iter().filter_map(|name| self.get(name)) {
            let name = resource.name.as_str();
            match &resource.kind {
                KindModel::Plain(_) => single.push(value!({"get_resource": name})),
                KindModel::Value => {}
                KindModel::Nested(_) => lists.push(value!({"get_attr": [name, "ids"]})),
                KindModel::Group { .. } => lists.push(value!({"get_attr": [name, "refs"]})),
            }
        }
        if outer {
            lists.push(value!({"get_param": OUTER}));
        }
        if lists.is_empty() {
            return single.into();
        }
        lists.insert(0, single.into());
        value!({"list_concat": lists})
    }
}
