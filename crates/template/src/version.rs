//! The versions of the template languages and their differences.

use std::fmt;

use kiln_value::{Class, Diagnostic, Value};

use crate::hint::hinted;

/// A template language.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// Heat Orchestration Template: `heat_template_version`.
    Hot,
    /// CloudFormation: `AWSTemplateFormatVersion`.
    Cfn,
    /// CloudFormation with Heat's own version key and without conditions: `HeatTemplateFormatVersion`.
    HeatCfn,
}

impl Dialect {
    const ALL: [Self; 3] = [Self::Hot, Self::Cfn, Self::HeatCfn];

    /// The key with the version.
    pub fn version_key(self) -> &'static str {
        match self {
            Self::Hot => "heat_template_version",
            Self::Cfn => "AWSTemplateFormatVersion",
            Self::HeatCfn => "HeatTemplateFormatVersion",
        }
    }

    /// The keywords of this language.
    pub fn words(self) -> &'static Words {
        match self {
            Self::Hot => &HOT_WORDS,
            Self::Cfn | Self::HeatCfn => &CFN_WORDS,
        }
    }
}

/// A released version of a language; within a dialect, later ones are greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Release {
    /// CloudFormation 2010-09-09.
    Cfn20100909,
    /// Heat's CloudFormation 2012-12-12.
    HeatCfn20121212,
    /// HOT of Icehouse.
    Hot20130523,
    /// HOT of Juno.
    Hot20141016,
    /// HOT of Kilo.
    Hot20150430,
    /// HOT of Liberty.
    Hot20151015,
    /// HOT of Mitaka.
    Hot20160408,
    /// HOT of Newton.
    Hot20161014,
    /// HOT of Ocata.
    Hot20170224,
    /// HOT of Pike.
    Hot20170901,
    /// HOT of Queens.
    Hot20180302,
    /// HOT of Rocky.
    Hot20180831,
    /// HOT of Wallaby.
    Hot20210416,
}

impl Release {
    /// Every release, oldest first within a dialect (`reference/functions.json`, `versions`).
    pub const ALL: [Self; 13] = [
        Self::Cfn20100909,
        Self::HeatCfn20121212,
        Self::Hot20130523,
        Self::Hot20141016,
        Self::Hot20150430,
        Self::Hot20151015,
        Self::Hot20160408,
        Self::Hot20161014,
        Self::Hot20170224,
        Self::Hot20170901,
        Self::Hot20180302,
        Self::Hot20180831,
        Self::Hot20210416,
    ];

    /// The date that identifies it in templates.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cfn20100909 => "2010-09-09",
            Self::HeatCfn20121212 => "2012-12-12",
            Self::Hot20130523 => "2013-05-23",
            Self::Hot20141016 => "2014-10-16",
            Self::Hot20150430 => "2015-04-30",
            Self::Hot20151015 => "2015-10-15",
            Self::Hot20160408 => "2016-04-08",
            Self::Hot20161014 => "2016-10-14",
            Self::Hot20170224 => "2017-02-24",
            Self::Hot20170901 => "2017-09-01",
            Self::Hot20180302 => "2018-03-02",
            Self::Hot20180831 => "2018-08-31",
            Self::Hot20210416 => "2021-04-16",
        }
    }

    /// The name of the OpenStack release, an alternative to the date.
    pub fn alias(self) -> Option<&'static str> {
        match self {
            Self::Hot20161014 => Some("newton"),
            Self::Hot20170224 => Some("ocata"),
            Self::Hot20170901 => Some("pike"),
            Self::Hot20180302 => Some("queens"),
            Self::Hot20180831 => Some("rocky"),
            Self::Hot20210416 => Some("wallaby"),
            _ => None,
        }
    }

    /// The language.
    pub fn dialect(self) -> Dialect {
        match self {
            Self::Cfn20100909 => Dialect::Cfn,
            Self::HeatCfn20121212 => Dialect::HeatCfn,
            _ => Dialect::Hot,
        }
    }

    /// Whether templates of this version may have conditions.
    pub fn has_conditions(self) -> bool {
        self == Self::Cfn20100909 || self >= Self::Hot20161014
    }

    /// Whether a resource may represent an existing object (`external_id`).
    pub fn has_external_id(self) -> bool {
        self >= Self::Hot20161014
    }

    /// Whether deletion policies may be written in lowercase.
    pub fn has_lower_case_policies(self) -> bool {
        self >= Self::Hot20161014
    }

    /// Whether parameters may have a `modulo` constraint.
    pub fn has_modulo(self) -> bool {
        self >= Self::Hot20170224
    }

    /// Whether parameters may have `tags`.
    pub fn has_parameter_tags(self) -> bool {
        self >= Self::Hot20180302
    }

    fn of(dialect: Dialect) -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(move |release| release.dialect() == dialect)
    }
}

/// The version of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// The release.
    pub release: Release,
    /// As written: a date or an alias.
    pub written: String,
}

impl Version {
    /// Reads the version of a template.
    ///
    /// Fails with `InvalidTemplateVersion` if it is missing, ambiguous or unknown.
    pub fn of(template: &Value) -> Result<Self, Diagnostic> {
        let mut present =
            Dialect::ALL.into_iter().filter_map(|dialect| Some((dialect, template.str_at(dialect.version_key())?)));
        let Some((dialect, written)) = present.next() else {
            return Err(invalid("Template version was not provided"));
        };
        let rest: Vec<_> = present.map(|(other, _)| other.version_key()).collect();
        if !rest.is_empty() {
            return Err(invalid(format!("Ambiguous versions ({}, {})", dialect.version_key(), rest.join(", "))));
        }
        match Release::of(dialect).find(|release| release.name() == written || release.alias() == Some(written)) {
            Some(release) => Ok(Self { release, written: written.to_owned() }),
            None => Err(unknown(dialect, written)),
        }
    }

    /// The key and the value: `("heat_template_version", "newton")`.
    pub fn pair(&self) -> (&'static str, &str) {
        (self.release.dialect().version_key(), &self.written)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.release.dialect().version_key(), self.written)
    }
}

fn invalid(explanation: impl fmt::Display) -> Diagnostic {
    Diagnostic::new(Class::InvalidTemplateVersion, format!("The template version is invalid: {explanation}"))
}

fn unknown(dialect: Dialect, written: &str) -> Diagnostic {
    let key = dialect.version_key();
    let mut known: Vec<_> = Release::of(dialect).flat_map(|r| [Some(r.name()), r.alias()]).flatten().collect();
    known.sort_unstable();
    let choice = if known.len() > 1 { "should be one of" } else { "should be" };
    let error = invalid(format_args!("\"{key}: {written}\". \"{key}\" {choice}: {}", known.join(", ")));
    hinted(error, written, known)
}

/// The keywords of a language: sections and the keys of resources and outputs.
#[derive(Debug)]
pub struct Words {
    /// Section of the resources.
    pub resources: &'static str,
    /// Section of the outputs.
    pub outputs: &'static str,
    /// Section of the parameters.
    pub parameters: &'static str,
    /// Section of the conditions.
    pub conditions: &'static str,
    /// Section of the resources that have another name than before. Heat does not have it.
    pub moved: &'static str,
    /// The description of a template, a resource or an output.
    pub description: &'static str,
    /// Type of a resource.
    pub resource_type: &'static str,
    /// Properties of a resource.
    pub properties: &'static str,
    /// Metadata of a resource.
    pub metadata: &'static str,
    /// Explicit dependencies of a resource.
    pub depends_on: &'static str,
    /// What happens to the object when the resource is deleted.
    pub deletion_policy: &'static str,
    /// How the resource is updated.
    pub update_policy: &'static str,
    /// Condition of a resource or an output.
    pub condition: &'static str,
    /// Value of an output.
    pub value: &'static str,
}

impl Words {
    /// The allowed keys of a resource in every version.
    pub fn resource_keys(&self) -> [&'static str; 7] {
        [
            self.resource_type,
            self.properties,
            self.metadata,
            self.depends_on,
            self.deletion_policy,
            self.update_policy,
            self.description,
        ]
    }
}

const HOT_WORDS: Words = Words {
    resources: "resources",
    outputs: "outputs",
    parameters: "parameters",
    conditions: "conditions",
    moved: "moved",
    description: "description",
    resource_type: "type",
    properties: "properties",
    metadata: "metadata",
    depends_on: "depends_on",
    deletion_policy: "deletion_policy",
    update_policy: "update_policy",
    condition: "condition",
    value: "value",
};

const CFN_WORDS: Words = Words {
    resources: "Resources",
    outputs: "Outputs",
    parameters: "Parameters",
    conditions: "Conditions",
    moved: "Moved",
    description: "Description",
    resource_type: "Type",
    properties: "Properties",
    metadata: "Metadata",
    depends_on: "DependsOn",
    deletion_policy: "DeletionPolicy",
    update_policy: "UpdatePolicy",
    condition: "Condition",
    value: "Value",
};
