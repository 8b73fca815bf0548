//! A resource type in the format of the API (docs/heat-behaviour.md §20: `resource_schema`, `generate_template`).

use kiln_template::constraint::{DataType, Rule};
use kiln_value::{Map, Value, value};

use crate::property::type_name;
use crate::{AttributeSchema, Inner, PropertySchema, ResourceType};

/// The language of a generated template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TemplateKind {
    /// Heat's own, `heat_template_version: 2016-10-14`.
    Hot,
    /// CloudFormation's, `HeatTemplateFormatVersion: 2012-12-12`.
    Cfn,
}

impl ResourceType {
    /// Body of `GET /resource_types/{name}`; with a description if that is asked for.
    pub fn schema_view(&self, with_description: bool) -> Value {
        let properties: Map = self
            .properties
            .iter()
            .filter(|(_, p)| p.implemented && !p.support.is_hidden())
            .map(|(name, p)| (name.clone(), p.view()))
            .collect();
        let attributes: Map = self.shown_attributes().map(|(name, a)| (name.to_owned(), a.view())).collect();
        let mut view = Map::from([
            ("resource_type".to_owned(), self.name.as_str().into()),
            ("properties".to_owned(), properties.into()),
            ("attributes".to_owned(), attributes.into()),
            ("support_status".to_owned(), self.support.view()),
        ]);
        if with_description {
            view.insert("description".to_owned(), self.summary.as_str().into());
        }
        view.into()
    }

    /// Body of `GET /resource_types/{name}/template`: a provider template with the properties as parameters and the
    /// attributes as outputs.
    pub fn template_view(&self, kind: TemplateKind) -> Value {
        let shown = self.properties.iter().filter(|(_, p)| !p.support.is_hidden());
        let (parameters, properties) = parameters_and_properties(shown, kind);
        let class = self.class.as_str();
        let description = format!("Initial template of {class}");
        let mut outputs = Map::new();
        for (name, attribute) in self.shown_attributes() {
            let (value, key) = match kind {
                TemplateKind::Hot => (value!({"value": {"get_attr": [class, name]}}), "description"),
                TemplateKind::Cfn => (value!({"Value": {"Fn::GetAtt": [class, name]}}), "Description"),
            };
            let mut output = value.as_map().cloned().unwrap_or_default();
            if let Some(text) = &attribute.description {
                output.insert(key.to_owned(), text.as_str().into());
            }
            outputs.insert(name.to_owned(), output.into());
        }
        match kind {
            TemplateKind::Hot => {
                outputs.insert("OS::stack_id".to_owned(), value!({"value": {"get_resource": class}}));
                value!({
                    "heat_template_version": "2016-10-14",
                    "description": description,
                    "parameters": parameters,
                    "outputs": outputs,
                    "resources": {class: {"type": (self.name.as_str()), "properties": properties}}
                })
            }
            TemplateKind::Cfn => {
                outputs.insert("OS::stack_id".to_owned(), value!({"Value": {"Ref": class}}));
                value!({
                    "HeatTemplateFormatVersion": "2012-12-12",
                    "Description": description,
                    "Parameters": parameters,
                    "Resources": {class: {"Type": (self.name.as_str()), "Properties": properties}},
                    "Outputs": outputs
                })
            }
        }
    }

    /// The attributes that are not hidden, and `show`.
    fn shown_attributes(&self) -> impl Iterator<Item = (&str, AttributeSchema)> {
        let own = self.attributes.iter().map(|(name, a)| (name.as_str(), a.clone()));
        let show = (!self.attributes.contains_key("show")).then(|| ("show", AttributeSchema::show()));
        own.filter(|(_, a)| !a.support.is_hidden()).chain(show)
    }
}

impl AttributeSchema {
    /// The attribute that every type has: the whole object as the service shows it.
    pub fn show() -> Self {
        Self {
            kind: Some(DataType::Map),
            description: Some("Complete object, as the API of the service returns it.".to_owned()),
            live: true,
            ..Self::default()
        }
    }

    fn view(&self) -> Value {
        let mut view = Map::new();
        if let Some(description) = &self.description {
            view.insert("description".to_owned(), description.into());
        }
        if let Some(kind) = self.kind {
            view.insert("type".to_owned(), type_name(kind).into());
        }
        view.into()
    }
}

impl PropertySchema {
    /// The entry in `GET /resource_types/{name}`.
    pub fn view(&self) -> Value {
        let mut view = Map::new();
        view.insert("type".to_owned(), type_name(self.kind).into());
        if let Some(description) = &self.description {
            view.insert("description".to_owned(), description.into());
        }
        if let Some(default) = &self.default {
            view.insert("default".to_owned(), default.clone());
        }
        match &self.inner {
            Some(Inner::Items(items)) => {
                view.insert("schema".to_owned(), value!({"*": (items.view())}));
            }
            Some(Inner::Members(members)) => {
                let members: Value = members.iter().map(|(name, m)| (name.clone(), m.view())).collect();
                view.insert("schema".to_owned(), members);
            }
            None => {}
        }
        view.insert("required".to_owned(), self.required.into());
        if !self.constraints.is_empty() {
            let constraints: Value =
                self.constraints.iter().map(kiln_template::constraint::Constraint::to_value).collect();
            view.insert("constraints".to_owned(), constraints);
        }
        view.insert("update_allowed".to_owned(), self.update_allowed.into());
        view.insert("immutable".to_owned(), self.immutable.into());
        view.into()
    }
}

/// Parameters of a provider template for the properties, and the properties that refer to them. Properties that are
/// not implemented are left out.
pub fn parameters_and_properties<'a>(
    schema: impl IntoIterator<Item = (&'a String, &'a PropertySchema)>,
    kind: TemplateKind,
) -> (Map, Map) {
    let mut parameters = Map::new();
    let mut properties = Map::new();
    for (name, property) in schema {
        if !property.implemented {
            continue;
        }
        let (parameter, reference) = match kind {
            TemplateKind::Hot => (hot_parameter(property), value!({"get_param": name})),
            TemplateKind::Cfn if property.kind == DataType::List => {
                (cfn_parameter(property), value!({"Fn::Split": [",", {"Ref": name}]}))
            }
            TemplateKind::Cfn => (cfn_parameter(property), value!({"Ref": name})),
        };
        parameters.insert(name.clone(), parameter.into());
        properties.insert(name.clone(), reference);
    }
    (parameters, properties)
}

fn hot_parameter(property: &PropertySchema) -> Map {
    let kind = match property.kind {
        DataType::String => "string",
        DataType::Integer | DataType::Number => "number",
        DataType::Boolean => "boolean",
        DataType::List => "comma_delimited_list",
        DataType::Map | DataType::Any => "json",
    };
    let mut parameter = Map::from([("type".to_owned(), kind.into())]);
    if let Some(description) = &property.description {
        parameter.insert("description".to_owned(), description.into());
    }
    if let Some(default) = &property.default {
        parameter.insert("default".to_owned(), default.clone());
    }
    if !property.constraints.is_empty() {
        // As Heat has it, a constraint that parameters do not know leaves an empty map.
        let known = |rule: &Rule| !matches!(rule, Rule::Custom(_) | Rule::Modulo { .. });
        let constraints: Value = property
            .constraints
            .iter()
            .map(|c| if known(&c.rule) { value!({(c.rule.name()): (c.rule.arguments())}) } else { Map::new().into() })
            .collect();
        parameter.insert("constraints".to_owned(), constraints);
    }
    parameter
}

fn cfn_parameter(property: &PropertySchema) -> Map {
    let kind = match property.kind {
        DataType::String => "String",
        DataType::Integer | DataType::Number => "Number",
        DataType::Boolean => "Boolean",
        DataType::List => "CommaDelimitedList",
        DataType::Map | DataType::Any => "Json",
    };
    let mut parameter = Map::from([("Type".to_owned(), kind.into())]);
    let mut put = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            parameter.insert(key.to_owned(), value);
        }
    };
    put("Description", property.description.as_ref().map(Value::from));
    put("Default", property.default.clone());
    for constraint in &property.constraints {
        match &constraint.rule {
            Rule::Length { min, max } => {
                put("MinLength", min.clone());
                put("MaxLength", max.clone());
            }
            Rule::Range { min, max } => {
                put("MinValue", min.clone());
                put("MaxValue", max.clone());
            }
            Rule::AllowedValues(allowed) => put("AllowedValues", Some(Value::List(allowed.clone()))),
            Rule::AllowedPattern(pattern) => put("AllowedPattern", Some(pattern.as_str().into())),
            Rule::Modulo { .. } | Rule::Custom(_) => {}
        }
    }
    if property.kind == DataType::Boolean {
        put("AllowedValues", Some(value!(["True", "true", "False", "false"])));
    }
    parameter
}
