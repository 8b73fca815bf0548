//! Generates templates and changes from a seed.

use std::collections::BTreeMap;

use kiln_template::environment::Environment;
use kiln_value::{Map, Value, value};

use super::world::{Meanings, NAMES, Noun};

/// Random numbers from a seed (splitmix64).
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(limit.max(1)).expect("small")).expect("small")
    }

    pub(crate) fn one_in(&mut self, chances: usize) -> bool {
        self.below(chances) == 0
    }

    fn word(&mut self) -> String {
        ["ant", "bee", "cat", "dog"][self.below(4)].to_owned()
    }
}

/// The kind of a resource.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Kind {
    Value,
    Random,
    Net,
    Subnet,
    Port,
    /// A server of named objects.
    Server {
        image: String,
        flavor: String,
        network: String,
    },
    /// A port of a named network.
    Guest {
        network: String,
    },
    Volume {
        size: usize,
    },
    Group {
        count: usize,
        member: Member,
        removed: Vec<String>,
    },
    Nested {
        file: usize,
    },
    /// A resource whose type is a template of the environment.
    Custom,
}

/// The kind of a group's members.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Member {
    Value,
    Random,
    Net,
    /// A server of named objects.
    Server,
}

/// A string in a template.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Text {
    Literal(String),
    Attribute(String, &'static str),
    Reference(String),
    /// The parameter, whose value is in the environment.
    Parameter,
    Joined(Box<Text>, Box<Text>),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    text: Text,
    depends_on: Option<String>,
    deletion_policy: Option<&'static str>,
}

/// A template, a list of resources that refer only to earlier ones, with its environment.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Template {
    pub(crate) entries: Vec<Entry>,
    /// The file of the type of the environment.
    custom: usize,
    /// The value of the parameter.
    word: String,
    /// The default of a parameter of nested templates.
    default: Option<String>,
}

/// The nested templates; the second version of each has the same interface.
const FILES: [&str; 4] = [
    "heat_template_version: 2021-04-16
parameters: {p: {type: string}}
resources:
  v: {type: OS::Heat::Value, properties: {value: {get_param: p}}}
  w: {type: OS::Heat::RandomString, properties: {length: 8, salt: {get_attr: [v, value]}}}
outputs:
  o: {value: {get_attr: [v, value]}}
  q: {value: {get_attr: [w, value]}}
",
    "heat_template_version: 2021-04-16
parameters: {p: {type: string}, d: {type: string, default: fixed}}
resources:
  v: {type: OS::Heat::Value, properties: {value: {get_param: p}}}
  w: {type: OS::Heat::RandomString, properties: {length: 9, salt: {get_param: d}}}
outputs:
  o: {value: constant}
  q: {value: {get_attr: [w, value]}}
",
    "heat_template_version: 2021-04-16
parameters: {p: {type: string}}
conditions: {ant: {equals: [{get_param: p}, ant]}}
resources:
  v: {type: OS::Neutron::Net, properties: {name: {get_param: p}}}
  w: {type: OS::Heat::Value, condition: ant, properties: {value: {get_resource: v}}}
outputs:
  o: {value: {get_attr: [v, name]}}
  q: {value: {get_resource: v}}
",
    "heat_template_version: 2021-04-16
parameters: {p: {type: string}}
resources:
  v:
    type: OS::Heat::ResourceGroup
    properties: {count: 2, resource_def: {type: OS::Heat::RandomString, properties: {length: 5, salt: {get_param: p}}}}
outputs:
  o: {value: {list_join: ['-', {get_attr: [v, refs]}]}}
  q: {value: {get_param: p}}
",
];

/// The files of the templates.
pub(crate) fn files() -> BTreeMap<String, String> {
    FILES.iter().enumerate().map(|(n, text)| (format!("file{n}.yaml"), (*text).to_owned())).collect()
}

impl Text {
    fn to_value(&self) -> Value {
        match self {
            Self::Literal(text) => text.as_str().into(),
            Self::Parameter => value!({"get_param": "word"}),
            Self::Reference(name) => value!({"get_resource": (name)}),
            // A list of members' values is converted to a string.
            Self::Attribute(name, "refs") => value!({"list_join": ["-", {"get_attr": [(name), "refs"]}]}),
            Self::Attribute(name, "members") => value!({"list_join": ["-", {"get_attr": [(name), "value"]}]}),
            Self::Attribute(name, attribute) => value!({"get_attr": [(name), (*attribute)]}),
            Self::Joined(a, b) => value!({"list_join": ["+", [(a.to_value()), (b.to_value())]]}),
        }
    }

    fn names(&self) -> Vec<&str> {
        match self {
            Self::Literal(_) | Self::Parameter => Vec::new(),
            Self::Reference(name) | Self::Attribute(name, _) => vec![name],
            Self::Joined(a, b) => [a.names(), b.names()].concat(),
        }
    }
}

impl Kind {
    fn attributes(&self) -> &'static [&'static str] {
        match self {
            Self::Value | Self::Random => &["value"],
            Self::Net => &["name", "status"],
            Self::Subnet => &["cidr", "gateway_ip"],
            Self::Port | Self::Guest { .. } => &["name", "mac_address"],
            Self::Server { .. } => &["name"],
            Self::Volume { .. } => &["size"],
            Self::Group { member: Member::Net | Member::Server, .. } => &["refs"],
            Self::Group { .. } => &["refs", "members"],
            Self::Nested { .. } | Self::Custom => &["o", "q"],
        }
    }
}

impl Entry {
    fn removes_members(&self) -> bool {
        matches!(&self.kind, Kind::Group { removed, .. } if !removed.is_empty())
    }
}

impl Template {
    pub(crate) fn generate(dice: &mut Dice) -> Self {
        let (custom, word) = (dice.below(FILES.len()), dice.word());
        let mut template = Self { entries: Vec::new(), custom, word, default: None };
        for n in 0..2 + dice.below(6) {
            let entry = template.entry(dice, format!("r{n}"), n);
            template.entries.push(entry);
        }
        template
    }

    fn nets(&self, before: usize) -> Vec<&Entry> {
        self.entries.iter().take(before).filter(|entry| entry.kind == Kind::Net).collect()
    }

    fn entry(&self, dice: &mut Dice, name: String, at: usize) -> Entry {
        let nets = !self.nets(at).is_empty();
        let kind = match dice.below(18) {
            0..=2 => Kind::Value,
            3 | 4 => Kind::Random,
            5 | 6 => Kind::Net,
            7 if nets => Kind::Subnet,
            8 if nets => Kind::Port,
            9 => Kind::Group { count: dice.below(4), member: Self::member(dice), removed: Vec::new() },
            10..=12 => {
                let [image, flavor, network] = NAMES.map(|(_, names)| names[dice.below(2)].to_owned());
                Kind::Server { image, flavor, network }
            }
            13 => Kind::Guest { network: NAMES[2].1[dice.below(2)].to_owned() },
            14 => Kind::Volume { size: 1 + dice.below(3) },
            15 => Kind::Custom,
            _ => Kind::Nested { file: dice.below(FILES.len()) },
        };
        let text = match &kind {
            Kind::Subnet | Kind::Port => {
                let nets = self.nets(at);
                Text::Reference(nets[dice.below(nets.len())].name.clone())
            }
            _ => self.text(dice, at),
        };
        let depends_on = (at > 0 && dice.one_in(6)).then(|| self.entries[dice.below(at)].name.clone());
        let deletion_policy = Self::policy(dice, &kind);
        Entry { name, kind, text, depends_on, deletion_policy }
    }

    fn member(dice: &mut Dice) -> Member {
        [Member::Value, Member::Random, Member::Net, Member::Server][dice.below(4)]
    }

    fn policy(dice: &mut Dice, kind: &Kind) -> Option<&'static str> {
        match (dice.below(6), kind) {
            (0, _) => Some("Retain"),
            (1, _) => Some("Delete"),
            (2, Kind::Volume { .. }) => Some("Snapshot"),
            _ => None,
        }
    }

    fn text(&self, dice: &mut Dice, at: usize) -> Text {
        let earlier = (at > 0).then(|| &self.entries[dice.below(at)]);
        match (dice.below(7), earlier) {
            (6, _) => Text::Parameter,
            (0 | 1, _) | (_, None) => Text::Literal(dice.word()),
            (2, Some(entry)) => Text::Reference(entry.name.clone()),
            (3, Some(_)) => Text::Joined(Box::new(self.text(dice, at)), Box::new(self.text(dice, at))),
            (_, Some(entry)) => {
                let attributes = entry.kind.attributes();
                Text::Attribute(entry.name.clone(), attributes[dice.below(attributes.len())])
            }
        }
    }

    /// The template with one to three changes.
    pub(crate) fn changed(&self, dice: &mut Dice, meanings: &Meanings) -> Self {
        let mut new = self.clone();
        for _ in 0..=dice.below(3) {
            new.change(dice, meanings);
        }
        new
    }

    fn change(&mut self, dice: &mut Dice, meanings: &Meanings) {
        let at = dice.below(self.entries.len());
        match dice.below(13) {
            0 | 1 if !matches!(self.entries[at].kind, Kind::Subnet | Kind::Port) => {
                self.entries[at].text = Text::Literal(dice.word());
            }
            2 | 3 if !matches!(self.entries[at].kind, Kind::Subnet | Kind::Port) => {
                self.entries[at].text = self.text(dice, at);
            }
            4 => {
                let name = format!("n{}", self.entries.len() + dice.below(100));
                if self.entries.iter().all(|entry| entry.name != name) {
                    let entry = self.entry(dice, name, self.entries.len());
                    self.entries.push(entry);
                }
            }
            5 if self.entries.len() > 1 => self.remove(at),
            6 => {
                let name = format!("m{}", dice.below(1000));
                if self.entries.iter().all(|entry| entry.name != name) {
                    self.rename(at, &name);
                }
            }
            10 => match dice.below(3) {
                0 => self.custom = dice.below(FILES.len()),
                1 => self.word = dice.word(),
                _ => self.default = (!dice.one_in(3)).then(|| dice.word()),
            },
            11 => self.entries[at].deletion_policy = Self::policy(dice, &self.entries[at].kind),
            7 => self.entries[at].depends_on = (at > 0).then(|| self.entries[dice.below(at)].name.clone()),
            _ => match &mut self.entries[at].kind {
                Kind::Group { removed, .. } if dice.one_in(3) => *removed = vec![dice.below(3).to_string()],
                Kind::Group { count, .. } => *count = dice.below(4),
                Kind::Nested { file } => *file = dice.below(FILES.len()),
                Kind::Volume { size } => *size = 1 + dice.below(3),
                Kind::Guest { network } => *network = named(dice, Noun::Network, meanings),
                Kind::Server { image, flavor, network } => match dice.below(3) {
                    0 => *image = named(dice, Noun::Image, meanings),
                    1 => *flavor = named(dice, Noun::Flavor, meanings),
                    _ => *network = named(dice, Noun::Network, meanings),
                },
                _ => self.entries[at].depends_on = None,
            },
        }
    }

    /// Removes an entry with its dependants.
    fn remove(&mut self, at: usize) {
        let gone = self.entries.remove(at);
        let mut kept: Vec<Entry> = Vec::new();
        let mut lost = vec![gone.name];
        for mut entry in std::mem::take(&mut self.entries) {
            if entry.text.names().iter().any(|name| lost.iter().any(|lost| lost == name)) {
                if matches!(entry.kind, Kind::Subnet | Kind::Port) {
                    lost.push(entry.name);
                    continue;
                }
                entry.text = Text::Literal("bee".to_owned());
            }
            entry.depends_on = entry.depends_on.filter(|name| !lost.contains(name));
            kept.push(entry);
        }
        self.entries = kept;
        if self.entries.is_empty() {
            let text = Text::Literal("cat".to_owned());
            let (name, kind) = ("last".to_owned(), Kind::Value);
            self.entries.push(Entry { name, kind, text, depends_on: None, deletion_policy: None });
        }
    }

    fn rename(&mut self, at: usize, to: &str) {
        fn renamed(text: &mut Text, from: &str, to: &str) {
            match text {
                Text::Attribute(name, _) | Text::Reference(name) if name == from => to.clone_into(name),
                Text::Literal(_) | Text::Parameter | Text::Attribute(..) | Text::Reference(_) => {}
                Text::Joined(a, b) => {
                    renamed(a, from, to);
                    renamed(b, from, to);
                }
            }
        }
        let from = std::mem::replace(&mut self.entries[at].name, to.to_owned());
        for entry in &mut self.entries {
            renamed(&mut entry.text, &from, to);
            if entry.depends_on.as_deref() == Some(&from) {
                entry.depends_on = Some(to.to_owned());
            }
        }
    }

    /// The template in HOT.
    pub(crate) fn to_value(&self) -> Value {
        let resources: Map = self.entries.iter().map(|entry| (entry.name.clone(), self.resource(entry))).collect();
        let output = |entry: &Entry| {
            let attribute = entry.kind.attributes()[0];
            let value = Text::Attribute(entry.name.clone(), attribute).to_value();
            [
                (format!("a-{}", entry.name), value),
                (format!("r-{}", entry.name), value!({"get_resource": (&entry.name)})),
            ]
        };
        let outputs: Map =
            self.entries.iter().flat_map(output).map(|(name, value)| (name, value!({"value": value}))).collect();
        let parameters = value!({"word": {"type": "string"}});
        value!({
            "heat_template_version": "2021-04-16", "parameters": parameters, "resources": resources, "outputs": outputs,
        })
    }

    /// Whether a group has a list of members to remove.
    pub(crate) fn removes_members_of(&self, group: &str) -> bool {
        let mut groups = self.entries.iter().filter(|entry| entry.name == group);
        groups.any(Entry::removes_members)
    }

    /// Whether some group has one.
    pub(crate) fn removes_members(&self) -> bool {
        self.entries.iter().any(Entry::removes_members)
    }

    /// The environment.
    pub(crate) fn environment(&self) -> Environment {
        let default = |word: &String| value!({"d": (word.as_str())});
        let sections = value!({
            "parameters": {"word": (self.word.as_str())},
            "parameter_defaults": (self.default.as_ref().map_or_else(|| value!({}), default)),
            "resource_registry": {"Custom::Thing": (format!("file{}.yaml", self.custom))},
        });
        Environment::from_sections(sections.as_map().expect("a map")).expect("an environment")
    }

    fn resource(&self, entry: &Entry) -> Value {
        let text = entry.text.to_value();
        let (kind, properties) = match &entry.kind {
            Kind::Value => ("OS::Heat::Value", value!({"value": text})),
            Kind::Random => ("OS::Heat::RandomString", value!({"length": 7, "salt": text})),
            Kind::Net => ("OS::Neutron::Net", value!({"name": text})),
            Kind::Subnet => ("OS::Neutron::Subnet", {
                // Subnets of one network must not overlap.
                let at = self.entries.iter().position(|other| other.name == entry.name).unwrap_or(0);
                let salt: usize = entry.name.bytes().map(usize::from).sum::<usize>() + 7 * at;
                value!({"network": text, "cidr": (format!("10.{}.{}.0/24", salt % 250, at)), "name": "sub"})
            }),
            Kind::Port => ("OS::Neutron::Port", value!({"network": text, "name": (entry.name.as_str())})),
            Kind::Guest { network } => ("OS::Neutron::Port", value!({"network": (network.as_str()), "name": text})),
            Kind::Server { image, flavor, network } => {
                ("OS::Nova::Server", server([image, flavor, network].map(String::as_str), value!({"text": text})))
            }
            Kind::Volume { size } => {
                ("OS::Cinder::Volume", value!({"size": (i64::try_from(*size).expect("small")), "name": text}))
            }
            Kind::Custom => ("Custom::Thing", value!({"p": text})),
            Kind::Group { count, member, removed } => ("OS::Heat::ResourceGroup", {
                let member = match member {
                    Member::Value => value!({"type": "OS::Heat::Value", "properties": {"value": text}}),
                    Member::Random => {
                        value!({"type": "OS::Heat::RandomString", "properties": {"length": 6, "salt": text}})
                    }
                    Member::Server => {
                        let properties = server(["golden", "tiny", "lan"], value!({"text": text}));
                        value!({"type": "OS::Nova::Server", "properties": properties})
                    }
                    Member::Net => {
                        let name = value!({"list_join": ["%index%", ["a", (text.clone())]]});
                        value!({"type": "OS::Neutron::Net", "properties": {"name": name}})
                    }
                };
                let count = i64::try_from(*count).expect("small");
                let mut properties = value!({"count": count, "resource_def": member});
                if let (false, Some(map)) = (removed.is_empty(), properties.as_map_mut()) {
                    let policy = value!([{"resource_list": (removed.clone())}]);
                    map.insert("removal_policies".to_owned(), policy);
                }
                properties
            }),
            Kind::Nested { file } => {
                let mut resource = value!({"type": (format!("file{file}.yaml")), "properties": {"p": text}});
                depends(&mut resource, entry);
                return resource;
            }
        };
        let mut resource = value!({"type": kind, "properties": properties});
        depends(&mut resource, entry);
        resource
    }
}

/// A name, or sometimes the ID that a name has today.
fn named(dice: &mut Dice, noun: Noun, meanings: &Meanings) -> String {
    let (_, names) = NAMES.into_iter().find(|(of, _)| *of == noun).expect("named");
    let name = names[dice.below(2)].to_owned();
    let id = meanings.get(&(noun, name.clone())).filter(|_| dice.one_in(3));
    id.cloned().unwrap_or(name)
}

fn server([image, flavor, network]: [&str; 3], metadata: Value) -> Value {
    value!({"image": image, "flavor": flavor, "networks": [{"network": network}], "metadata": metadata})
}

fn depends(resource: &mut Value, entry: &Entry) {
    let Some(map) = resource.as_map_mut() else { return };
    map.extend(entry.depends_on.as_ref().map(|on| ("depends_on".to_owned(), on.as_str().into())));
    map.extend(entry.deletion_policy.map(|policy| ("deletion_policy".to_owned(), policy.into())));
}
