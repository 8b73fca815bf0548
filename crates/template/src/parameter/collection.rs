//! All parameters of a stack.

use std::fmt;

use indexmap::IndexMap;
use kiln_value::{Diagnostic, Map, Path, StackIdentity, Value};

use super::{Parameter, ParameterSchema};
use crate::constraint::{Constraint, CustomConstraints, Rule};

/// Whose names the parameters that the service provides have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// `OS::stack_name`.
    Hot,
    /// `AWS::StackName`.
    Cfn,
}

const REGIONS: [&str; 7] =
    ["us-east-1", "us-west-1", "us-west-2", "sa-east-1", "eu-west-1", "ap-southeast-1", "ap-northeast-1"];

impl Dialect {
    /// The names that the service provides, whether or not it gives them a value.
    pub fn pseudo_names(self) -> &'static [&'static str] {
        match self {
            Self::Hot => &["OS::stack_id", "OS::stack_name", "OS::region", "OS::project_id"],
            Self::Cfn => &["AWS::StackId", "AWS::StackName", "AWS::Region"],
        }
    }

    /// The parameters that the service provides. Without a stack there are ids only, empty in HOT and `None` in CFN.
    fn pseudo(self, identity: Option<&StackIdentity>) -> Vec<(&'static str, ParameterSchema)> {
        let schema = |description, default: &str| ParameterSchema::pseudo(Some(description), default.to_owned());
        let name = identity.map(|i| i.stack_name.as_str()).filter(|name| !name.is_empty());
        match self {
            Self::Hot => {
                let mut parameters = vec![
                    ("OS::stack_id", schema("Stack ID", identity.map_or("", |i| &i.stack_id))),
                    ("OS::project_id", schema("Project ID", identity.map_or("", |i| &i.tenant))),
                ];
                parameters.extend(name.map(|name| ("OS::stack_name", schema("Stack Name", name))));
                parameters
            }
            Self::Cfn => {
                let arn = identity.map_or_else(|| "None".to_owned(), StackIdentity::arn);
                let mut parameters = vec![("AWS::StackId", schema("Stack ID", &arn))];
                if let Some(name) = name {
                    let mut region = ParameterSchema::pseudo(None, "ap-southeast-1".to_owned());
                    region.constraints = vec![Constraint::new(Rule::AllowedValues(REGIONS.map(Value::from).to_vec()))];
                    parameters.extend([("AWS::StackName", schema("Stack Name", name)), ("AWS::Region", region)]);
                }
                parameters
            }
        }
    }
}

/// The parameters of a stack, those that the service provides first, then the template's in its order.
#[derive(Clone)]
pub struct Parameters {
    dialect: Dialect,
    schemata: IndexMap<String, ParameterSchema>,
    user: Map,
    all: Map<Parameter>,
}

impl Parameters {
    /// Whether a value is not known yet, or known in part.
    pub(crate) fn has_unknown(&self) -> bool {
        self.iter().any(|parameter| parameter.value().is_ok_and(|value| value.unknown().is_some()))
    }

    /// Parameters from a template's schemata, the values that the user gave and the environment's
    /// `parameter_defaults`. `identity` is that of the stack, if there is one yet.
    pub fn new(
        dialect: Dialect,
        identity: Option<&StackIdentity>,
        schemata: IndexMap<String, ParameterSchema>,
        user: &Map,
        defaults: &Map,
    ) -> Self {
        let of_service = dialect.pseudo(identity).into_iter().map(|(name, schema)| (name, schema, None));
        let of_template =
            schemata.iter().map(|(name, schema)| (name.as_str(), schema.clone(), user.get(name).cloned()));
        // A template's parameter takes the place of the service's of that name.
        let all = of_service
            .chain(of_template)
            .map(|(name, schema, value)| {
                (name.to_owned(), Parameter::new(name, schema, value, defaults.get(name).cloned()))
            })
            .collect();
        Self { dialect, schemata, user: user.clone(), all }
    }

    /// The language whose parameters these are.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// The template's schemata.
    pub fn schemata(&self) -> &IndexMap<String, ParameterSchema> {
        &self.schemata
    }

    /// What the user gave.
    pub fn user_values(&self) -> &Map {
        &self.user
    }

    /// The parameter of a name, provided ones included.
    pub fn get(&self, name: &str) -> Option<&Parameter> {
        self.all.get(name)
    }

    /// The value of a parameter in its type.
    ///
    /// Errors: `UserParameterMissing` if there is no such parameter or it has no value; `ValueError` or `TypeError`
    /// if what it was given is not of its type.
    pub fn value(&self, name: &str) -> Result<&Value, Diagnostic> {
        let missing = || {
            let message = format!("The Parameter ({name}) was not provided.");
            Diagnostic::new("UserParameterMissing", message)
        };
        self.get(name).ok_or_else(missing)?.value()
    }

    /// All parameters, the service's first.
    pub fn iter(&self) -> impl Iterator<Item = &Parameter> {
        self.all.values()
    }

    /// Judges everything; the first error is the one that Heat would give. `strict` judges values and not only
    /// schemata.
    ///
    /// Errors: `UnknownUserParameter` for what the template does not declare, and those of [`Parameter::validate`],
    /// one a parameter.
    pub fn validate(&self, custom: &dyn CustomConstraints, strict: bool) -> Vec<Diagnostic> {
        let unknown = self.user.keys().filter(|name| !self.schemata.contains_key(*name)).map(|name| {
            let message = format!("The Parameter ({name}) was not defined in template.");
            Diagnostic::new("UnknownUserParameter", message)
        });
        let section = match self.dialect {
            Dialect::Hot => "parameters",
            Dialect::Cfn => "Parameters",
        };
        let invalid = self.iter().filter_map(|parameter| {
            let error = parameter.validate(custom, strict).err()?;
            Some(error.at(Path::root().key(section).key(parameter.name())))
        });
        unknown.chain(invalid).collect()
    }

    /// Each parameter as a stack shows it; null where there is no value or it is none of its type.
    pub fn texts(&self) -> Map {
        self.iter().map(|p| (p.name().to_owned(), p.text().ok().into())).collect()
    }

    /// The `Parameters` of the validate call's answer: those of the template.
    pub fn validate_view(&self) -> Map {
        let own = self.iter().filter(|p| self.schemata.contains_key(p.name()));
        own.map(|p| (p.name().to_owned(), p.validate_view())).collect()
    }

    /// The names of hidden parameters that the template declares.
    pub fn hidden_names(&self) -> impl Iterator<Item = &str> {
        self.iter().filter(|p| p.hidden()).map(Parameter::name)
    }

    /// Which parameters an update to `new` would change although they are immutable there. `given` are the values of
    /// the update request. Parameters of only one of the templates do not count.
    ///
    /// The message of the error that Heat gives is `ImmutableParameterModified` with these names.
    pub fn immutable_modified<'a>(&'a self, new: &'a Self, given: &Map) -> Vec<&'a str> {
        let common = new.schemata.iter().filter(|(name, schema)| schema.immutable && self.schemata.contains_key(*name));
        let changed = common.filter(|(name, _)| {
            let old = self.value(name).ok();
            let wanted = given.get(*name).or_else(|| new.value(name).ok());
            old != wanted
        });
        changed.map(|(name, _)| name.as_str()).collect()
    }
}

/// Without the values that the user gave: they may be secrets.
impl fmt::Debug for Parameters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}
