//! Parameters: schemata, values, texts and validation.

use indexmap::IndexMap;
use kiln_template::constraint::{CustomConstraints, not_found};
use kiln_template::parameter::{Dialect, HotEdition, ParameterSchema, Parameters};
use kiln_value::{Diagnostic, Map, StackIdentity, Value, text, value};

use crate::case::{Case, Outcome};
use crate::expectation::{either, error};

/// Runs one.
pub(crate) fn run(case: &Case) -> Outcome {
    let mut actual = Map::new();
    match parameters(case) {
        Err(problem) => _ = actual.insert("schema_error".to_owned(), error(&problem)),
        Ok(parameters) => {
            match parameters.validate(&Known, true).first() {
                None => actual.insert("valid".to_owned(), true.into()),
                Some(problem) => actual.insert("validate_error".to_owned(), error(problem)),
            };
            let all = case.input("show_pseudo").is_truthy();
            let shown = || parameters.iter().filter(|p| all || parameters.schemata().contains_key(p.name()));
            let values = shown().map(|p| (p.name(), Value::Map(either(p.value().cloned(), "value", "error"))));
            actual.insert("values".to_owned(), values.collect());
            actual.insert("texts".to_owned(), shown().map(|p| (p.name(), p.text().ok())).collect());
        }
    }
    case.judge(&Value::Map(actual))
}

/// The parameters of a case's template, as the template crate makes them for each version.
pub(crate) fn parameters(case: &Case) -> Result<Parameters, Diagnostic> {
    let identity = case.input("stack");
    let part = |key: &str, default: &str| identity.str_at(key).unwrap_or(default).to_owned();
    let identity = StackIdentity::new(
        part("tenant", "tenant-1"),
        part("stack_name", "teststack"),
        part("stack_id", "11111111-2222-4333-8444-555555555555"),
    )?;
    let env = case.input("env");
    let given = |key: &str| env.get(key).and_then(Value::as_map).cloned().unwrap_or_default();
    let (dialect, schemata) = schemata(case.input("template"))?;
    Ok(Parameters::new(dialect, Some(&identity), schemata, &given("parameters"), &given("parameter_defaults")))
}

/// The schemata of a template.
pub(crate) fn schemata(template: &Value) -> Result<(Dialect, IndexMap<String, ParameterSchema>), Diagnostic> {
    let version = template.str_at("heat_template_version");
    let edition = match version {
        Some(version) if version >= "2018-03-02" => HotEdition::Tags,
        Some(version) if version >= "2017-02-24" => HotEdition::Modulo,
        _ => HotEdition::First,
    };
    let dialect = if version.is_some() { Dialect::Hot } else { Dialect::Cfn };
    let section = template.get(if version.is_some() { "parameters" } else { "Parameters" });
    let declared = section.and_then(Value::as_map).cloned().unwrap_or_default();
    let schemata = declared.iter().map(|(name, declared)| {
        let schema = match dialect {
            Dialect::Hot => ParameterSchema::from_hot(name, declared, edition),
            Dialect::Cfn => ParameterSchema::from_cfn(name, declared),
        };
        Ok((name.clone(), schema?))
    });
    Ok((dialect, schemata.collect::<Result<_, Diagnostic>>()?))
}

/// The custom constraint that these vectors name.
struct Known;

impl CustomConstraints for Known {
    fn validate(&self, name: &str, value: &Value) -> Result<(), String> {
        let text = text::str(value);
        match name {
            "ip_addr" if text.parse::<std::net::IpAddr>().is_ok() => Ok(()),
            "ip_addr" => Err(format!("Error validating value '{text}': Invalid IP address")),
            _ => Err(not_found(name, &value!(text))),
        }
    }
}
