//! Converts the value of an old template to the latest version.

use std::collections::BTreeMap;

use kiln_template::version::Dialect;
use kiln_template::{Release, functions};
use kiln_value::{Map, Path, Value, value};

use super::NEWEST;
use crate::Page;

/// A converted template.
pub(super) struct Converted {
    pub(super) value: Value,
    pub(super) notes: Vec<(Path, String)>,
    /// CFN mappings by the parameters that replace them.
    pub(super) mappings: BTreeMap<String, Value>,
}

/// Converts everything, or returns everything that cannot be converted.
pub(super) fn convert(page: &Page) -> Result<Converted, Vec<(Path, String)>> {
    let mut converter = Converter::new(page);
    let value = match page.release().dialect() {
        Dialect::Hot => converter.hot(),
        Dialect::Cfn | Dialect::HeatCfn => converter.cfn(),
    };
    if !converter.obstacles.is_empty() {
        return Err(converter.obstacles);
    }
    let mappings = converter
        .mappings
        .iter()
        .filter_map(|(name, parameter)| Some((parameter.clone(), page.value().get("Mappings")?.get(name)?.clone())));
    Ok(Converted { value, mappings: mappings.collect(), notes: converter.notes })
}

struct Converter<'p> {
    page: &'p Page,
    /// The functions of the old version.
    old: Vec<&'static str>,
    /// Names of data that would become function calls.
    new: Vec<&'static str>,
    mappings: BTreeMap<String, String>,
    notes: Vec<(Path, String)>,
    obstacles: Vec<(Path, String)>,
}

impl<'p> Converter<'p> {
    fn new(page: &'p Page) -> Self {
        let names = |release: Release| functions(release, true).into_iter().map(|function| function.name);
        let mut old: Vec<&'static str> = names(page.release()).collect();
        if page.release().dialect() == Dialect::Hot {
            // CFN's functions were removed one by one. If one of them is still refused, the comparison reports it.
            old.extend(names(Release::Hot20130523));
        }
        let new = names(NEWEST).filter(|name| !old.contains(name)).collect();
        let mappings = BTreeMap::new();
        Self { page, old, new, mappings, notes: Vec::new(), obstacles: Vec::new() }
    }

    fn hot(&mut self) -> Value {
        let Value::Map(sections) = self.page.value() else { return Value::Null };
        let mut out = Map::new();
        for (name, section) in sections {
            let path = Path::root().key(name.as_str());
            let section = match name.as_str() {
                "heat_template_version" => NEWEST.name().into(),
                "resources" | "outputs" | "conditions" => self.value(section, &path),
                _ => section.clone(),
            };
            out.insert(name.clone(), section);
        }
        out.into()
    }

    fn cfn(&mut self) -> Value {
        let Value::Map(sections) = self.page.value() else { return Value::Null };
        self.name_mappings();
        let mut out = Map::new();
        for (name, section) in sections {
            let path = Path::root().key(name.as_str());
            match name.as_str() {
                "AWSTemplateFormatVersion" | "HeatTemplateFormatVersion" => {
                    out.insert("heat_template_version".to_owned(), NEWEST.name().into());
                }
                "Description" => _ = out.insert("description".to_owned(), section.clone()),
                "Parameters" => _ = out.insert("parameters".to_owned(), self.parameters(section, &path)),
                "Mappings" => {}
                "Conditions" => _ = out.insert("conditions".to_owned(), self.value(section, &path)),
                "Resources" => _ = out.insert("resources".to_owned(), self.resources(section, &path)),
                "Outputs" => _ = out.insert("outputs".to_owned(), self.outputs(section, &path)),
                _ => self.obstacles.push((path, "HOT does not have this section".to_owned())),
            }
        }
        self.add_mappings(out)
    }

    /// HOT has no mappings: each becomes a parameter with a default.
    fn name_mappings(&mut self) {
        let taken = |name: &str| {
            ["Parameters", "Resources"]
                .iter()
                .any(|section| self.page.value().get(section).is_some_and(|section| section.get(name).is_some()))
        };
        let mappings: BTreeMap<String, String> = self
            .page
            .section("Mappings")
            .map(|(name, _)| {
                let mut parameter = name.clone();
                while taken(&parameter) {
                    parameter.push_str("Mapping");
                }
                (name.clone(), parameter)
            })
            .collect();
        self.mappings = mappings;
    }

    fn add_mappings(&mut self, mut out: Map) -> Value {
        if self.mappings.is_empty() {
            return out.into();
        }
        let parameters = out.entry("parameters".to_owned()).or_insert_with(|| Map::new().into());
        let Some(parameters) = parameters.as_map_mut() else { return out.into() };
        for (name, mapping) in self.page.section("Mappings") {
            let Some(parameter) = self.mappings.get(name) else { continue };
            let description = format!("Replaces the mapping {name}.");
            let declared = value!({"type": "json", "description": description, "default": (mapping.clone())});
            parameters.insert(parameter.clone(), declared);
            let path = Path::root().key("Mappings").key(name.as_str());
            self.notes.push((path, format!("HOT has no mappings: it is replaced by the parameter \"{parameter}\"")));
        }
        out.into()
    }

    fn parameters(&mut self, section: &Value, path: &Path) -> Value {
        let Value::Map(declared) = section else { return section.clone() };
        let convert =
            |(name, declared): (&String, &Value)| (name.clone(), self.parameter(declared, &path.key(name.as_str())));
        declared.iter().map(convert).collect()
    }

    fn parameter(&mut self, declared: &Value, path: &Path) -> Value {
        let Value::Map(fields) = declared else { return declared.clone() };
        let mut out = Map::new();
        for (key, value) in fields {
            let (key, value) = match key.as_str() {
                "Type" => ("type", self.parameter_type(value, path)),
                "Description" => ("description", value.clone()),
                "Label" => ("label", value.clone()),
                "Default" => ("default", value.clone()),
                "NoEcho" => ("hidden", value.clone()),
                _ => continue,
            };
            out.insert(key.to_owned(), value);
        }
        let constraints = constraints(fields);
        if !constraints.is_empty() {
            out.insert("constraints".to_owned(), Value::List(constraints));
        }
        out.into()
    }

    fn parameter_type(&mut self, written: &Value, path: &Path) -> Value {
        let name = match written.as_str() {
            Some("String") => "string",
            Some("Number") => "number",
            Some("CommaDelimitedList") => "comma_delimited_list",
            Some("Json") => "json",
            Some("Boolean") => "boolean",
            _ => {
                self.obstacles.push((path.key("Type"), "HOT does not have this parameter type".to_owned()));
                "string"
            }
        };
        name.into()
    }

    fn resources(&mut self, section: &Value, path: &Path) -> Value {
        let words = [
            ("Type", "type"),
            ("Properties", "properties"),
            ("Metadata", "metadata"),
            ("DependsOn", "depends_on"),
            ("DeletionPolicy", "deletion_policy"),
            ("UpdatePolicy", "update_policy"),
            ("Description", "description"),
            ("Condition", "condition"),
        ];
        self.entries(section, path, &words)
    }

    fn outputs(&mut self, section: &Value, path: &Path) -> Value {
        self.entries(section, path, &[("Description", "description"), ("Value", "value"), ("Condition", "condition")])
    }

    /// The entries of a section with HOT's keys. CFN ignores unknown keys.
    fn entries(&mut self, section: &Value, path: &Path, words: &[(&str, &'static str)]) -> Value {
        let Value::Map(entries) = section else { return section.clone() };
        let mut out = Map::new();
        for (name, entry) in entries {
            let path = path.key(name.as_str());
            let Value::Map(fields) = entry else {
                out.insert(name.clone(), entry.clone());
                continue;
            };
            let mut new = Map::new();
            for (key, value) in fields {
                match words.iter().find(|(old, _)| old == key) {
                    Some((_, word)) => _ = new.insert((*word).to_owned(), self.value(value, &path.key(key.as_str()))),
                    None => {
                        self.notes.push((path.key(key.as_str()), "this key had no effect and is removed".to_owned()));
                    }
                }
            }
            out.insert(name.clone(), new.into());
        }
        out.into()
    }

    fn value(&mut self, old: &Value, path: &Path) -> Value {
        match old {
            Value::Map(map) => {
                let only = map.first().filter(|_| map.len() == 1);
                if let Some((name, args)) = only {
                    let at = path.key(name.as_str());
                    // Names of entries in sections are not calls: they are two levels deep.
                    if path.0.len() > 1 && self.old.contains(&name.as_str()) {
                        return self.call(name, args, &at);
                    }
                    if path.0.len() > 2 && self.new.contains(&name.as_str()) {
                        let problem = format!("this is data that would become a call of {name}");
                        self.obstacles.push((at, problem));
                    }
                }
                let convert =
                    |(key, value): (&String, &Value)| (key.clone(), self.value(value, &path.key(key.as_str())));
                map.iter().map(convert).collect()
            }
            Value::List(list) => {
                list.iter().enumerate().map(|(index, item)| self.value(item, &path.index(index))).collect()
            }
            other => other.clone(),
        }
    }

    fn call(&mut self, name: &str, args: &Value, path: &Path) -> Value {
        let renamed = match name {
            "Ref" => return self.reference(args, path),
            "Fn::Select" => return self.select(args, path),
            "Fn::FindInMap" => return self.find(args, path),
            // It returns its argument unchanged.
            "Fn::Base64" => return self.value(args, path),
            "Fn::Replace" => {
                let template = args.at(1).map(|template| self.value(template, &path.index(1)));
                let params = args.at(0).map(|params| self.value(params, &path.index(0)));
                return match (template, params) {
                    (Some(template), Some(params)) => value!({"str_replace": {"template": template, "params": params}}),
                    _ => self.stuck(args, path, "the arguments are not [{placeholder: value}, text]"),
                };
            }
            "Fn::Not" => {
                return match args.as_list() {
                    Some([condition]) => value!({"not": (self.value(condition, &path.index(0)))}),
                    _ => self.stuck(args, path, "it requires a list with one condition"),
                };
            }
            "Fn::GetAZs" => return self.stuck(args, path, "HOT has no function for the availability zones"),
            "Fn::MemberListToMap" => return self.stuck(args, path, "HOT does not have this function: write the map"),
            "Fn::ResourceFacade" => match args.as_str() {
                Some("Metadata") => return value!({"resource_facade": "metadata"}),
                Some("DeletionPolicy") => return value!({"resource_facade": "deletion_policy"}),
                Some("UpdatePolicy") => return value!({"resource_facade": "update_policy"}),
                _ => return self.stuck(args, path, "resources do not have this part"),
            },
            "Fn::GetAtt" => "get_attr",
            "Fn::Join" => "list_join",
            "Fn::Split" => "str_split",
            "Fn::If" => "if",
            "Fn::Equals" => "equals",
            "Fn::And" => "and",
            "Fn::Or" => "or",
            other => other,
        };
        let args = self.value(args, path);
        [(renamed.to_owned(), args)].into_iter().collect()
    }

    fn stuck(&mut self, args: &Value, path: &Path, why: &str) -> Value {
        self.obstacles.push((path.clone(), why.to_owned()));
        args.clone()
    }

    fn reference(&mut self, args: &Value, path: &Path) -> Value {
        let Some(name) = args.as_str() else {
            return self.stuck(args, path, "a computed name may mean a resource or a parameter");
        };
        let words = self.page.template.words();
        if self.page.value().get(words.resources).is_some_and(|resources| resources.get(name).is_some()) {
            return value!({"get_resource": name});
        }
        match name {
            "AWS::StackName" => value!({"get_param": "OS::stack_name"}),
            "AWS::StackId" => {
                let arn = value!(["arn:openstack:heat::", {"get_param": "OS::project_id"}, ":stacks/",
                    {"get_param": "OS::stack_name"}, "/", {"get_param": "OS::stack_id"}]);
                value!({"list_join": ["", arn]})
            }
            "AWS::Region" => {
                self.notes.push((path.clone(), "Heat has no regions: this is its constant value".to_owned()));
                "ap-southeast-1".into()
            }
            other => value!({"get_param": other}),
        }
    }

    /// An item of a list. If the list comes from a function with a path, the path is extended.
    fn select(&mut self, args: &Value, path: &Path) -> Value {
        let (Some(index), Some(list)) = (args.at(0), args.at(1)) else {
            return self.stuck(args, path, "the arguments are not [index, list]");
        };
        let number = match index {
            Value::Int(_) => Some(index.clone()),
            Value::Str(text) => Some(text.parse::<i64>().map_or_else(|_| index.clone(), Value::from)),
            _ => None,
        };
        if let (Some(Value::Int(number)), Value::List(items)) = (&number, list) {
            let item = usize::try_from(*number).ok().and_then(|at| Some((at, items.get(at)?)));
            if let Some((at, item)) = item {
                return self.value(item, &path.index(1).index(at));
            }
        }
        let index = number.unwrap_or_else(|| self.value(index, &path.index(0)));
        let mut list = self.value(list, &path.index(1));
        let call = list.as_map_mut().filter(|map| map.len() == 1).and_then(|map| map.first_mut());
        match call {
            Some((name, inner)) if matches!(name.as_str(), "get_attr" | "str_split" | "get_param") => {
                let mut steps = match std::mem::take(inner) {
                    Value::List(steps) => steps,
                    single => vec![single],
                };
                let is_whole = name != "str_split" || steps.len() == 2;
                steps.push(index);
                *inner = Value::List(steps);
                if is_whole { list } else { self.stuck(args, path, "the string is already split with an index") }
            }
            _ => value!({"yaql": {"expression": "$.data.list[$.data.index]", "data": {"list": list, "index": index}}}),
        }
    }

    fn find(&mut self, args: &Value, path: &Path) -> Value {
        let (Some([name, first, second]), path) = (args.as_list(), path) else {
            return self.stuck(args, path, "the arguments are not [mapping, key, key]");
        };
        let Some(parameter) = name.as_str().and_then(|name| self.mappings.get(name)).cloned() else {
            return self.stuck(args, path, "the name of the mapping is unknown or computed");
        };
        let (first, second) = (self.value(first, &path.index(1)), self.value(second, &path.index(2)));
        value!({"get_param": [parameter, first, second]})
    }
}

/// CFN's keys as HOT constraints, in the order in which they are checked.
fn constraints(fields: &Map) -> Vec<Value> {
    let bounds = |low: &str, high: &str| -> Value {
        let given = [("min", fields.get(low)), ("max", fields.get(high))];
        given.into_iter().filter_map(|(key, bound)| Some((key.to_owned(), bound?.clone()))).collect()
    };
    let mut found = Vec::new();
    let mut add = |name: &str, rule: Value| {
        if rule.is_null() || rule.as_map().is_some_and(Map::is_empty) {
            return;
        }
        let mut constraint = Map::new();
        constraint.insert(name.to_owned(), rule);
        if let Some(description) = fields.get("ConstraintDescription") {
            constraint.insert("description".to_owned(), description.clone());
        }
        found.push(constraint.into());
    };
    add("range", bounds("MinValue", "MaxValue"));
    add("length", bounds("MinLength", "MaxLength"));
    add("allowed_values", fields.get("AllowedValues").cloned().unwrap_or_default());
    add("allowed_pattern", fields.get("AllowedPattern").cloned().unwrap_or_default());
    found
}
