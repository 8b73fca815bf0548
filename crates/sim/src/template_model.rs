//! Generated templates as plain data, and their conversion to HOT.

use std::collections::BTreeMap;

use kiln_value::{Map, Value, value};
use serde::{Deserialize, Serialize};

use crate::bases::BASE;

/// The parameter that passes the dependencies of the outermost resources to a nested stack.
pub const OUTER: &str = "outer";
/// The output with the IDs of all objects of a nested stack.
pub const IDS: &str = "ids";

/// A template.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TemplateModel {
    /// Its resources; each depends only on earlier ones.
    pub resources: Vec<ResourceModel>,
    /// Former and later names of resources.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub moves: Vec<(String, String)>,
}

/// A resource.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceModel {
    /// Logical name.
    pub name: String,
    /// Its kind.
    pub kind: KindModel,
    /// A property that is updated in place.
    #[serde(default)]
    pub word: u32,
    /// A property that requires a replacement.
    #[serde(default)]
    pub size: u32,
    /// The resources whose objects its object depends on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<String>,
    /// The resource from which it reads `word`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reads: Option<String>,
    /// `depends_on`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<String>,
    /// Whether its objects are kept when it is deleted.
    #[serde(default)]
    pub retain: bool,
    /// The name of the object that its object is made from; none if it is empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub base: String,
    /// How its object is built.
    #[serde(default)]
    pub build: Build,
}

/// The kind of a resource.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KindModel {
    /// A resource with its own object.
    Plain(Plain),
    /// `Sim::Value`: without an object.
    Value,
    /// `Sim::Wait`: waits for this number of signals of an inbox.
    Wait {
        /// The name of the inbox.
        inbox: String,
        /// Number of signals.
        count: u32,
    },
    /// A template resource.
    Nested(TemplateModel),
    /// `OS::Heat::ResourceGroup`.
    Group {
        /// Number of members.
        count: u32,
        /// Their kind; they have the dependencies of the group.
        member: Plain,
        /// How members are created and updated.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        batches: Option<Batches>,
    },
    /// `OS::Heat::AutoScalingGroup`. Nothing depends on its members, which come and go.
    Scaled {
        /// Minimum number of members.
        min: u32,
        /// Maximum number of members.
        max: u32,
        /// Their kind; they have the dependencies of the group.
        member: Plain,
        /// How members are updated.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        batches: Option<Batches>,
    },
    /// `OS::Heat::ScalingPolicy`, without an object.
    Policy {
        /// The group.
        group: String,
        /// The number of members that it adds.
        by: i32,
    },
}

impl ResourceModel {
    /// A resource without dependencies.
    pub fn of(name: String, kind: KindModel) -> Self {
        let (needs, after) = (Vec::new(), Vec::new());
        let base = String::new();
        Self { name, kind, word: 0, size: 0, needs, reads: None, after, retain: false, base, build: Build::Sound }
    }
}

/// How the members of a group change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Batches {
    /// Maximum number of members in a batch.
    pub most: u32,
    /// Minimum number of members in service.
    pub min_in_service: u32,
    /// Seconds between two batches.
    pub pause: u32,
}

impl Batches {
    fn hot(self) -> Value {
        value!({"max_batch_size": (self.most), "min_in_service": (self.min_in_service), "pause_time": (self.pause)})
    }
}

/// The kinds of objects. Each is a service of the cloud with a collection of this name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Plain {
    /// Created by one call, marked with the token.
    Thing,
    /// Creates, updates and deletes take time.
    Slow,
    /// Created and deleted by two calls.
    Pair,
    /// Without a mark of its create: found by its word and its time.
    Blind,
    /// With a unique name.
    Holder,
    /// Receives signals.
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

    /// The kind of a service.
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
    /// In the normal time of its kind.
    #[default]
    Sound,
    /// In this number of milliseconds.
    Takes(u64),
    /// The first objects of the resource, this number of them, end in an error.
    Fails(u32),
    /// Never.
    Never,
    /// The driver panics when it checks whether the object is ready.
    Panics,
}

impl Build {
    /// The value of the property.
    pub fn word(self) -> String {
        match self {
            Self::Sound => "sound".to_owned(),
            Self::Takes(ms) => format!("takes {ms}"),
            Self::Fails(count) => format!("fails {count}"),
            Self::Never => "never".to_owned(),
            Self::Panics => "panics".to_owned(),
        }
    }

    /// Parses the value of the property.
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

/// The type of a nested template in the environment.
pub fn alias(file: &str) -> String {
    format!("Sim::Nested::{}", file.replace('.', "::"))
}

/// The word of a resource that reads no other word.
pub fn word(word: u32) -> String {
    format!("w{word}")
}

impl TemplateModel {
    /// A resource.
    pub fn get(&self, name: &str) -> Option<&ResourceModel> {
        self.resources.iter().find(|resource| resource.name == name)
    }

    /// All resources, including nested ones.
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

    /// Removes references to missing and to later resources.
    pub fn mend(&mut self) {
        let mut before: Vec<String> = Vec::new();
        let mut readable: Vec<String> = Vec::new();
        let mut groups: Vec<String> = Vec::new();
        for resource in &mut self.resources {
            resource.needs.retain(|name| before.contains(name));
            resource.after.retain(|name| before.contains(name));
            if resource.reads.as_ref().is_some_and(|name| !readable.contains(name)) {
                resource.reads = None;
            }
            if let KindModel::Nested(inner) = &mut resource.kind {
                inner.mend();
            }
            if matches!(&resource.kind, KindModel::Policy { group, .. } if !groups.contains(group)) {
                resource.kind = KindModel::Value;
            }
            if matches!(resource.kind, KindModel::Scaled { .. }) {
                groups.push(resource.name.clone());
            }
            if matches!(&resource.kind, KindModel::Wait { inbox, .. } if !before.contains(inbox)) {
                resource.kind = KindModel::Value;
            }
            before.push(resource.name.clone());
            if matches!(resource.kind, KindModel::Plain(_) | KindModel::Value) {
                readable.push(resource.name.clone());
            }
        }
    }

    /// The template in HOT, and the texts of its nested templates, whose types have names of the environment or of the files.
    pub fn hot(&self, aliases: bool) -> (Value, BTreeMap<String, String>) {
        let mut files = BTreeMap::new();
        let template = self.write("", aliases, &mut files);
        (template, files)
    }

    fn write(&self, place: &str, aliases: bool, files: &mut BTreeMap<String, String>) -> Value {
        let resources: Map =
            self.resources.iter().map(|r| (r.name.clone(), self.write_resource(r, place, aliases, files))).collect();
        let mut template = Map::from([("heat_template_version".to_owned(), "2018-08-31".into())]);
        if !place.is_empty() {
            let outer = value!({"type": "comma_delimited_list", "default": ""});
            template.insert("parameters".to_owned(), value!({OUTER: outer}));
        }
        template.insert("resources".to_owned(), resources.into());
        // An entry whose former name is in the template is refused.
        let moves = self.moves.iter().filter(|(from, _)| self.get(from).is_none());
        let moves: Vec<Value> =
            moves.map(|(from, to)| value!({"from": (from.as_str()), "to": (to.as_str())})).collect();
        if !moves.is_empty() {
            template.insert("moved".to_owned(), moves.into());
        }
        let names: Vec<String> = self.resources.iter().map(|resource| resource.name.clone()).collect();
        template.insert("outputs".to_owned(), value!({IDS: {"value": (self.ids_of(&names, false))}}));
        template.into()
    }

    fn write_resource(
        &self,
        resource: &ResourceModel,
        place: &str,
        aliases: bool,
        files: &mut BTreeMap<String, String>,
    ) -> Value {
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
            if let (false, Some(properties)) = (resource.base.is_empty(), properties.as_map_mut()) {
                properties.insert(BASE.to_owned(), resource.base.as_str().into());
            }
            if let (Plain::Holder, Some(properties)) = (kind, properties.as_map_mut()) {
                properties.insert("holds".to_owned(), format!("{place}{}", resource.name).into());
            }
            properties
        };
        let mut written = match &resource.kind {
            KindModel::Plain(kind) => value!({"type": (kind.resource_type()), "properties": (properties(*kind))}),
            KindModel::Value => value!({"type": "Sim::Value", "properties": {"word": (word.clone())}}),
            KindModel::Wait { inbox, count } => {
                let handle = value!({"get_resource": (inbox.as_str())});
                value!({"type": (crate::waits::WAIT), "properties": {"inbox": handle, "count": (*count)}})
            }
            KindModel::Nested(inner) => {
                let below = format!("{place}{}.", resource.name);
                let file = format!("{below}yaml");
                let template = inner.write(&below, aliases, files);
                files.insert(file.clone(), serde_json::to_string(&template).unwrap_or_default());
                let file = if aliases { alias(&file) } else { file };
                value!({"type": file, "properties": {OUTER: (needs.clone())}})
            }
            KindModel::Group { count, member, batches } => {
                let definition = value!({"type": (member.resource_type()), "properties": (properties(*member))});
                let properties = value!({"count": (*count), "resource_def": definition});
                let mut group = value!({"type": "OS::Heat::ResourceGroup", "properties": properties});
                if let (Some(batches), Some(group)) = (batches, group.as_map_mut()) {
                    let create = value!({"max_batch_size": (batches.most), "pause_time": (batches.pause)});
                    let policy = value!({"rolling_update": (batches.hot()), "batch_create": create});
                    group.insert("update_policy".to_owned(), policy);
                }
                group
            }
            KindModel::Scaled { min, max, member, batches } => {
                let definition = value!({"type": (member.resource_type()), "properties": (properties(*member))});
                let mut properties = value!({"min_size": (*min), "max_size": (*max), "resource": definition});
                if let (Some(batches), Some(properties)) = (batches, properties.as_map_mut()) {
                    properties.insert("rolling_updates".to_owned(), batches.hot());
                }
                value!({"type": "OS::Heat::AutoScalingGroup", "properties": properties})
            }
            KindModel::Policy { group, by } => {
                let group = value!({"get_resource": (group.as_str())});
                value!({"type": "OS::Heat::ScalingPolicy", "properties": {
                    "auto_scaling_group_id": group,
                    "adjustment_type": "change_in_capacity",
                    "scaling_adjustment": (i64::from(*by))
                }})
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

    /// An expression for the IDs of the objects of some resources, and those from the parameter.
    fn ids_of(&self, names: &[String], outer: bool) -> Value {
        let mut single: Vec<Value> = Vec::new();
        let mut lists: Vec<Value> = Vec::new();
        for resource in names.iter().filter_map(|name| self.get(name)) {
            let name = resource.name.as_str();
            match &resource.kind {
                KindModel::Plain(_) => single.push(value!({"get_resource": name})),
                KindModel::Value | KindModel::Wait { .. } | KindModel::Scaled { .. } | KindModel::Policy { .. } => {}
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
