//! The schema of a parameter in a template.

use kiln_value::{Class, Diagnostic, Value, text};

use crate::constraint::{AcceptAll, Constraint, DataType, Typed, check_all, check_fit, check_map, schema_error};
use crate::hint::hinted_word;

/// The features of parameters in a HOT version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HotEdition {
    /// From 2013-05-23.
    First,
    /// From 2017-02-24: `modulo` constraints.
    Modulo,
    /// From 2018-03-02: also `tags`.
    Tags,
}

/// The schema of a parameter.
#[derive(Clone, Debug, PartialEq)]
pub struct ParameterSchema {
    /// The type with its name in the language of the template.
    pub typed: Typed,
    /// The default; null counts as none.
    pub default: Option<Value>,
    /// The constraints of values, in the order in which they are checked.
    pub constraints: Vec<Constraint>,
    /// The description.
    pub description: Option<Value>,
    /// The displayed name.
    pub label: Option<Value>,
    /// Whether the value must never be visible.
    pub hidden: bool,
    /// Whether an update may not change the value.
    pub immutable: bool,
    /// Tags for dashboards.
    pub tags: Vec<Value>,
}

const HOT_KEYS: [&str; 9] =
    ["type", "description", "default", "schema", "constraints", "hidden", "label", "immutable", "tags"];

const CFN_KEYS: [&str; 12] = [
    "Type",
    "Default",
    "NoEcho",
    "AllowedValues",
    "AllowedPattern",
    "MaxLength",
    "MinLength",
    "MaxValue",
    "MinValue",
    "Description",
    "ConstraintDescription",
    "Label",
];

const TYPES: [DataType; 5] = [DataType::String, DataType::Number, DataType::List, DataType::Map, DataType::Boolean];
const HOT_TYPES: [&str; 5] = ["string", "number", "comma_delimited_list", "json", "boolean"];
const CFN_TYPES: [&str; 5] = ["String", "Number", "CommaDelimitedList", "Json", "Boolean"];

impl ParameterSchema {
    /// An entry of a HOT template's `parameters`.
    ///
    /// Errors: `InvalidSchemaError` for a wrong shape, `ValueError` for a bound that is not a number.
    pub fn from_hot(name: &str, declared: &Value, edition: HotEdition) -> Result<Self, Diagnostic> {
        let tags = edition >= HotEdition::Tags;
        let keys = HOT_KEYS.get(..if tags { 9 } else { 8 }).unwrap_or(&HOT_KEYS);
        let declared = check_map(declared, keys, &HOT_KEYS, &format!("parameter ({name})"))?;
        let type_name = declared.get("type").ok_or_else(|| missing_type(name))?;
        let given = |key: &str| declared.get(key).filter(|v| !v.is_null());
        // Null tags are refused too: null is not a list.
        if declared.get("tags").is_some_and(|tags| tags.as_list().is_none()) {
            return schema_error(format!("Tags property should be a list for parameter: {name}"));
        }
        let constraints = match given("constraints") {
            None => Vec::new(),
            Some(Value::List(entries)) => entries
                .iter()
                .map(|entry| Constraint::from_hot(entry, edition >= HotEdition::Modulo))
                .collect::<Result<_, _>>()?,
            Some(_) => {
                return schema_error(format!("Invalid parameter constraints for parameter {name}, expected a list"));
            }
        };
        Ok(Self {
            typed: typed(type_name, &HOT_TYPES)?,
            default: given("default").cloned(),
            constraints,
            description: given("description").cloned(),
            label: given("label").cloned(),
            hidden: given("hidden").is_some_and(Value::is_truthy),
            immutable: given("immutable").is_some_and(Value::is_truthy),
            tags: given("tags").and_then(Value::as_list).unwrap_or_default().to_vec(),
        })
    }

    /// An entry of a CFN template's `Parameters`.
    ///
    /// Errors: as [`ParameterSchema::from_hot`].
    pub fn from_cfn(name: &str, declared: &Value) -> Result<Self, Diagnostic> {
        let declared = check_map(declared, &CFN_KEYS, &CFN_KEYS, &format!("parameter ({name})"))?;
        let type_name = declared.get("Type").ok_or_else(|| missing_type(name))?;
        let constraints = Constraint::all_from_cfn(declared)?;
        let given = |key: &str| declared.get(key).filter(|v| !v.is_null());
        Ok(Self {
            typed: typed(type_name, &CFN_TYPES)?,
            default: given("Default").cloned(),
            constraints,
            description: given("Description").cloned(),
            label: given("Label").cloned(),
            hidden: given("NoEcho").is_some_and(|v| text::str(v).to_lowercase() == "true"),
            immutable: false,
            tags: Vec::new(),
        })
    }

    /// A string pseudo parameter.
    pub(super) fn pseudo(description: Option<&str>, default: String) -> Self {
        Self {
            typed: Typed { data_type: DataType::String, name: "String" },
            default: Some(Value::Str(default)),
            constraints: Vec::new(),
            description: description.map(Value::from),
            label: None,
            hidden: false,
            immutable: false,
            tags: Vec::new(),
        }
    }

    /// The name of the type in the response of the validate call, in both languages that of CFN: `CommaDelimitedList`.
    pub fn api_type(&self) -> &'static str {
        match self.typed.data_type {
            DataType::List => "CommaDelimitedList",
            DataType::Map => "Json",
            other => other.property_name(),
        }
    }

    /// Checks the schema: the constraints fit the type, and the default satisfies them (custom constraints are not
    /// checked).
    ///
    /// Errors: `InvalidSchemaError`.
    pub fn check(&self) -> Result<(), Diagnostic> {
        check_fit(&self.constraints, self.typed)?;
        let Some(default) = &self.default else { return Ok(()) };
        let value = match (self.typed.data_type, default) {
            (DataType::List, Value::List(items)) => items.iter().map(|item| Value::Str(text::str(item))).collect(),
            (DataType::List, Value::Str(items)) => items.split(',').map(Value::from).collect(),
            (DataType::List, other) => {
                let kind = other.kind().python_name();
                return schema_error(format!(
                    "Default must be a comma-delimited list string: '{kind}' object has no attribute 'split'"
                ));
            }
            (_, default) => default.clone(),
        };
        check_all(&self.constraints, &value, self.typed, &AcceptAll).or_else(|error| match error.class {
            Class::RequestLimitExceeded => Err(error),
            _ => schema_error(format!("Invalid default {} ({error})", text::str(default))),
        })
    }
}

fn missing_type(name: &str) -> Diagnostic {
    Diagnostic::new(Class::InvalidSchemaError, format!("Missing parameter type for parameter: {name}"))
}

/// The type with this name among those of a dialect.
fn typed(name: &Value, names: &[&'static str; 5]) -> Result<Typed, Diagnostic> {
    let mut known = TYPES.into_iter().zip(names);
    if let Some((data_type, name)) = known.find(|(_, known)| name.as_str() == Some(known)) {
        return Ok(Typed { data_type, name });
    }
    let name = text::str(name);
    let error = Diagnostic::new(Class::InvalidSchemaError, format!("Invalid type ({name})"));
    Err(hinted_word(error, &name, names))
}
