//! All parameters of a stack.

use std::fmt;

use crate::StackIdentity;
use indexmap::IndexMap;
use kiln_value::{Class, Diagnostic, Map, Path, Subject, Unknown, Value};

use super::{Parameter, ParameterSchema};
use crate::constraint::{Constraint, CustomConstraints, Rule};
use crate::hint::hinted;

/// The naming convention of pseudo parameters.
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
    /// The names of the pseudo parameters, whether or not they have a value.
    pub fn pseudo_names(self) -> &'static [&'static str] {
        match self {
            Self::Hot => &["OS::stack_id", "OS::stack_name", "OS::region", "OS::project_id"],
            Self::Cfn => &["AWS::StackId", "AWS::StackName", "AWS::Region"],
        }
    }

    /// The pseudo parameters. A stack without a name has only IDs.
    fn pseudo(self, identity: &StackIdentity) -> Vec<(&'static str, ParameterSchema)> {
        let schema = |description, default: &str| ParameterSchema::pseudo(Some(description), default.to_owned());
        let name = Some(identity.stack_name.as_str()).filter(|name| !name.is_empty());
        match self {
            Self::Hot => {
                let mut parameters = vec![
                    ("OS::stack_id", schema("Stack ID", &identity.stack_id)),
                    ("OS::project_id", schema("Project ID", &identity.tenant)),
                ];
                parameters.extend(name.map(|name| ("OS::stack_name", schema("Stack Name", name))));
                parameters
            }
            Self::Cfn => {
                let mut parameters = vec![("AWS::StackId", schema("Stack ID", &identity.arn()))];
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

/// The parameters of a stack: pseudo parameters first, then those of the template in order.
#[derive(Clone)]
pub struct Parameters {
    dialect: Dialect,
    is_of_stack: bool,
    schemata: IndexMap<String, ParameterSchema>,
    user: Map,
    all: Map<Parameter>,
}

impl Parameters {
    /// Whether a value is unknown or partly unknown.
    pub(crate) fn has_unknown(&self) -> bool {
        self.iter().any(|parameter| parameter.value().is_ok_and(|value| value.unknown().is_some()))
    }

    /// Creates parameters from the schemas of a template, the values of the user and the `parameter_defaults` of the
    /// environment. `identity` is that of the stack; without it, the values of pseudo parameters are unknown.
    pub fn new(
        dialect: Dialect,
        identity: Option<&StackIdentity>,
        schemata: IndexMap<String, ParameterSchema>,
        user: &Map,
        defaults: &Map,
    ) -> Self {
        let any_stack = StackIdentity { stack_name: "stack".to_owned(), ..StackIdentity::default() };
        let of_service = dialect.pseudo(identity.unwrap_or(&any_stack)).into_iter().map(|(name, schema)| {
            let value = identity.is_none().then(|| Value::Unknown(Unknown::of(name)));
            (name, schema, value)
        });
        let of_template =
            schemata.iter().map(|(name, schema)| (name.as_str(), schema.clone(), user.get(name).cloned()));
        // A parameter of the template replaces the pseudo parameter with the same name.
        let all = of_service
            .chain(of_template)
            .map(|(name, schema, value)| {
                (name.to_owned(), Parameter::new(name, schema, value, defaults.get(name).cloned()))
            })
            .collect();
        Self { dialect, is_of_stack: identity.is_some(), schemata, user: user.clone(), all }
    }

    /// Whether they are the parameters of a stack, not of a template alone.
    pub fn is_of_stack(&self) -> bool {
        self.is_of_stack
    }

    /// The language of the parameters.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// The schemas of the template.
    pub fn schemata(&self) -> &IndexMap<String, ParameterSchema> {
        &self.schemata
    }

    /// The values of the user.
    pub fn user_values(&self) -> &Map {
        &self.user
    }

    /// The parameter with this name, pseudo parameters included.
    pub fn get(&self, name: &str) -> Option<&Parameter> {
        self.all.get(name)
    }

    /// The value of a parameter, converted to its type.
    ///
    /// Errors: `UserParameterMissing` if the parameter does not exist or has no value; `ValueError` or `TypeError` if
    /// the given value does not have the type.
    pub fn value(&self, name: &str) -> Result<&Value, Diagnostic> {
        let missing = || {
            let message = format!("The Parameter ({name}) was not provided.");
            Diagnostic::new(Class::UserParameterMissing, message)
        };
        self.get(name).ok_or_else(missing)?.value()
    }

    /// All parameters, pseudo parameters first.
    pub fn iter(&self) -> impl Iterator<Item = &Parameter> {
        self.all.values()
    }

    /// Validates everything; the first error is the one that Heat reports. `strict` also validates values, not only
    /// schemas.
    ///
    /// Errors: `UnknownUserParameter` for undeclared parameters, and those of [`Parameter::validate`], one for each
    /// parameter.
    pub fn validate(&self, custom: &dyn CustomConstraints, strict: bool) -> Vec<Diagnostic> {
        let section = match self.dialect {
            Dialect::Hot => "parameters",
            Dialect::Cfn => "Parameters",
        };
        let unknown = self.user.keys().filter(|name| !self.schemata.contains_key(*name)).map(|name| {
            let message = format!("The Parameter ({name}) was not defined in template.");
            let error =
                Diagnostic::new(Class::UnknownUserParameter, message).at(Path::root().key(section).key(name.as_str()));
            hinted(error.about(Subject::Parameter(name.clone())), name, self.schemata.keys().map(String::as_str))
        });
        let invalid = self.iter().filter_map(|parameter| {
            let error = parameter.validate(custom, strict).err()?;
            Some(error.at(Path::root().key(section).key(parameter.name())))
        });
        unknown.chain(invalid).collect()
    }

    /// Each parameter as a stack shows it; null if it has no value or an invalid one.
    pub fn texts(&self) -> Map {
        self.iter().map(|p| (p.name().to_owned(), p.text().ok().into())).collect()
    }

    /// The `Parameters` in the response of the validate call: those of the template.
    pub fn validate_view(&self) -> Map {
        let own = self.iter().filter(|p| self.schemata.contains_key(p.name()));
        own.map(|p| (p.name().to_owned(), p.validate_view())).collect()
    }

    /// The names of hidden parameters that the template declares.
    pub fn hidden_names(&self) -> impl Iterator<Item = &str> {
        self.iter().filter(|p| p.hidden()).map(Parameter::name)
    }

    /// The parameters that an update to `new` would change although they are immutable there. `given` are the values of
    /// the update request. Parameters of only one of the templates are ignored.
    ///
    /// Heat's error with these names is `ImmutableParameterModified`.
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

/// Without the values of the user, which may be secrets.
impl fmt::Debug for Parameters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}
