//! Resource definitions in templates.

use indexmap::{IndexMap, IndexSet};
use kiln_value::{Class, Diagnostic, Map, Path, Value, text};

use crate::expr::{AttributeUse, Context, Expr, Wanted};
use crate::function::{condition, fault};
use crate::hint::hinted;
use crate::version::Dialect;
use crate::{Bound, Scope, Unbuilt};

/// What happens to the object of a resource when the resource is deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum DeletionPolicy {
    /// It is deleted.
    #[default]
    Delete,
    /// It is kept.
    Retain,
    /// A snapshot of it is created, then it is deleted. Only supported by some types.
    Snapshot,
}

impl DeletionPolicy {
    /// Heat's name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Delete => "Delete",
            Self::Retain => "Retain",
            Self::Snapshot => "Snapshot",
        }
    }

    fn from_word(word: &str, lower_case: bool) -> Option<Self> {
        match word {
            "Delete" => Some(Self::Delete),
            "Retain" => Some(Self::Retain),
            "Snapshot" => Some(Self::Snapshot),
            "delete" if lower_case => Some(Self::Delete),
            "retain" if lower_case => Some(Self::Retain),
            "snapshot" if lower_case => Some(Self::Snapshot),
            _ => None,
        }
    }
}

/// An enabled resource as its template defines it. Missing fields are the literal null.
#[derive(Clone, Debug)]
pub struct Definition {
    /// Logical name.
    pub name: String,
    /// Type as written: `OS::Nova::Server`, `server.yaml`.
    pub resource_type: String,
    /// Properties: a map or a call.
    pub properties: Expr,
    /// Metadata: a map or a call.
    pub metadata: Expr,
    /// Names of resources that are created before this one.
    pub depends_on: Vec<String>,
    /// Deletion policy as written; see [`Definition::deletion_policy`].
    pub deletion_policy: Option<DeletionPolicy>,
    /// Update policy: a map or a call.
    pub update_policy: Expr,
    /// Description; empty if there is none.
    pub description: String,
    /// The ID of the existing object that the resource represents.
    pub external_id: Option<Expr>,
}

impl Definition {
    /// The effective deletion policy: an external object is always retained.
    pub fn deletion_policy(&self) -> DeletionPolicy {
        match &self.external_id {
            Some(_) => DeletionPolicy::Retain,
            None => self.deletion_policy.unwrap_or_default(),
        }
    }

    /// The names of the resources that this one requires: `depends_on` and every reference in properties and metadata.
    ///
    /// `depends_on` is not checked. Fails with `InvalidTemplateReference` for a reference to a resource that is not in
    /// `scope`, and with `InvalidExternalResourceDependency` for an external resource with dependencies.
    pub fn requires(&self, scope: &dyn Scope) -> Result<IndexSet<String>, Diagnostic> {
        if let Some(id) = &self.external_id {
            let id = id.value(scope)?;
            if id.is_truthy() {
                if self.depends_on.is_empty() {
                    return Ok(IndexSet::new());
                }
                let message =
                    format!("Invalid dependency with external {} resource: {}", self.resource_type, text::str(&id));
                return Err(
                    Diagnostic::new(Class::InvalidExternalResourceDependency, message).at(self.depends_on_place(scope))
                );
            }
        }
        let mut names: IndexSet<String> = self.depends_on.iter().cloned().collect();
        for (expr, section) in [(&self.properties, "Properties"), (&self.metadata, "Metadata")] {
            names.extend(expr.requires(scope, &format!("{}.{section}", self.name))?);
        }
        Ok(names)
    }

    /// As [`Definition::requires`], but only existing resources: names of resources with a false condition are omitted,
    /// unknown names fail with `InvalidTemplateReference`.
    pub fn dependencies(&self, scope: &dyn Scope) -> Result<IndexSet<String>, Diagnostic> {
        let mut names = self.requires(scope)?;
        if let Some(unknown) =
            names.iter().find(|name| scope.resource(name).is_none() && !scope.bound().has_resource(name))
        {
            return Err(fault::bad_reference(unknown, &self.name).at(self.depends_on_place(scope)));
        }
        names.retain(|name| scope.resource(name).is_some());
        Ok(names)
    }

    fn depends_on_place(&self, scope: &dyn Scope) -> Path {
        let words = scope.bound().template().words();
        Path::root().key(words.resources).key(self.name.as_str()).key(words.depends_on)
    }

    /// All attributes of other resources that are read in properties and metadata.
    pub fn attributes(&self, scope: &dyn Scope) -> Vec<AttributeUse> {
        [&self.properties, &self.metadata].into_iter().flat_map(|expr| expr.attributes(scope)).collect()
    }

    /// The attributes of one resource that are read.
    pub fn attributes_of(&self, resource: &str, scope: &dyn Scope) -> Vec<Wanted> {
        let uses = self.attributes(scope).into_iter();
        uses.filter(|attribute| attribute.resource == resource).map(|attribute| attribute.wanted).collect()
    }

    /// Validates the calls; the error has the path from the root of the template.
    ///
    /// Fails with `StackValidationFailed`.
    pub fn validate(&self, scope: &dyn Scope) -> Result<(), Diagnostic> {
        self.errors(scope).into_iter().next().map_or(Ok(()), Err)
    }

    /// The errors of the calls: the first of each property.
    pub fn errors(&self, scope: &dyn Scope) -> Vec<Diagnostic> {
        let words = scope.bound().template().words();
        let path = Path::root().key(words.resources).key(self.name.as_str());
        let at = path.key(words.properties);
        let mut found: Vec<Diagnostic> = match self.properties.entries() {
            Some(entries) => entries.filter_map(|(name, expr)| expr.validate(scope, &at.key(name)).err()).collect(),
            None => self.properties.validate(scope, &at).err().into_iter().collect(),
        };
        found.extend(self.metadata.validate(scope, &path.key(words.metadata)).err());
        found.extend(self.update_policy.validate(scope, &path.key(words.update_policy)).err());
        found.extend(self.external_id.iter().filter_map(|id| id.validate(scope, &path.key("external_id")).err()));
        found
    }
}

impl Bound {
    /// The enabled resources, in the order of the template.
    ///
    /// Fails with `StackValidationFailed` for the first malformed one.
    pub fn definitions(&self) -> Result<IndexMap<String, Definition>, Diagnostic> {
        match self.definitions_and_errors()? {
            (definitions, errors) if errors.is_empty() => Ok(definitions),
            (_, mut errors) => Err(errors.swap_remove(0)),
        }
    }

    /// The well-formed resources, and the errors of the others. Fails if the sections cannot be read at all.
    pub(crate) fn definitions_and_errors(&self) -> Result<(IndexMap<String, Definition>, Vec<Diagnostic>), Diagnostic> {
        self.conditions()?;
        let mut definitions = IndexMap::new();
        let mut errors = Vec::new();
        for (name, value) in self.template().resources()? {
            match self.definition(name, value) {
                Ok(Some(definition)) => _ = definitions.insert(name.clone(), definition),
                Ok(None) => {}
                Err(error) => errors.push(error),
            }
        }
        Ok((definitions, errors))
    }

    /// The definition of a resource; `None` if its condition is false.
    fn definition(&self, name: &str, value: &Value) -> Result<Option<Definition>, Diagnostic> {
        let path = Path::root().key(self.template().words().resources).key(name);
        let read = || {
            let reader = Reader { bound: self, name, fields: self.fields(name, value)?, path: &path };
            Ok((reader.read()?, reader.condition()?))
        };
        // Plain Python errors have no path here.
        let (definition, condition) = read().map_err(|error: Diagnostic| {
            if fault::is_plain(&error) { fault::to_validation(error, String::new(), path.clone()) } else { error }
        })?;
        let Some(condition) = condition else { return Ok(Some(definition)) };
        let path = path.key(self.template().words().condition);
        // Errors of functions have no path here, unlike in outputs.
        let condition = condition.value(&Unbuilt::empty(self))?;
        Ok(self.enabled(&condition, &path)?.then_some(definition))
    }

    /// Whether the condition of a resource or an output is true. Without a stack, it may also be unknown.
    pub(crate) fn enabled(&self, condition: &Value, path: &Path) -> Result<bool, Diagnostic> {
        let scope = Unbuilt::empty(self);
        match condition::holds(condition, &Context::new(&scope)) {
            Err(error) if error.class == Class::NotKnownYet && !self.parameters().is_of_stack() => Ok(true),
            holds => holds.map_err(|error| in_condition(error, path)),
        }
    }

    /// The allowed keys of a resource in this version.
    fn resource_keys(&self) -> impl Iterator<Item = &'static str> {
        let release = self.release();
        let words = self.template().words();
        let condition = release.has_conditions().then_some(words.condition);
        let external_id = release.has_external_id().then_some("external_id");
        words.resource_keys().into_iter().chain(condition).chain(external_id)
    }

    /// The fields of a resource. In HOT their names are checked.
    fn fields<'a>(&self, name: &str, value: &'a Value) -> Result<&'a Map, Diagnostic> {
        let release = self.release();
        let is_hot = release.dialect() == Dialect::Hot;
        let is_known = |key: &str| self.resource_keys().any(|known| known == key);
        let mut buffer = [0; 4];
        let keys: Vec<String> = match value {
            Value::Map(map) => map.keys().cloned().collect(),
            Value::List(items) => items.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            // In Python a string is a collection of characters.
            Value::Str(text) => text.chars().map(|c| c.encode_utf8(&mut buffer).to_owned()).collect(),
            _ => Vec::new(),
        };
        let unknown: IndexSet<&str> = keys.iter().map(String::as_str).filter(|key| is_hot && !is_known(key)).collect();
        if !unknown.is_empty() {
            let names: Vec<_> = unknown.iter().copied().collect();
            let message = format!("Invalid keyword(s) inside a resource definition: {}", names.join(", "));
            let error = fault::value_error(message);
            return Err(unknown.into_iter().fold(error, |error, key| hinted(error, key, self.resource_keys())));
        }
        let resource_type = self.template().words().resource_type;
        let kind = value.kind().python_name();
        match value {
            Value::Map(map) => Ok(map),
            Value::Str(_) | Value::List(_) if keys.iter().any(|key| key == resource_type) => {
                Err(fault::type_error(format!("{kind} indices must be integers or slices, not str")))
            }
            Value::Str(_) | Value::List(_) => Err(missing_type(name, resource_type)),
            _ if is_hot => Err(fault::type_error(format!("'{kind}' object is not iterable"))),
            _ => Err(fault::type_error(format!("argument of type '{kind}' is not iterable"))),
        }
    }
}

/// A plain error in a condition, with the path of the condition.
pub(crate) fn in_condition(error: Diagnostic, path: &Path) -> Diagnostic {
    match error.class {
        Class::ValueError => fault::to_validation(error, path.to_string(), path.clone()),
        _ => error,
    }
}

fn missing_type(name: &str, key: &str) -> Diagnostic {
    fault::key_error(format!("Resource {name} is missing \"{key}\""))
}

/// Reads the fields of one resource.
struct Reader<'a> {
    bound: &'a Bound,
    name: &'a str,
    fields: &'a Map,
    path: &'a Path,
}

impl Reader<'_> {
    fn read(&self) -> Result<Definition, Diagnostic> {
        let words = self.bound.template().words();
        if !self.fields.contains_key(words.resource_type) {
            return Err(missing_type(self.name, words.resource_type));
        }
        let is_map = |expr: &Expr| expr.is_call() || expr.entries().is_some();
        let is_text = |expr: &Expr| expr.is_call() || expr.as_str().is_some();
        let no_call = |expr: &Expr| expr.as_str().is_some();
        Ok(Definition {
            name: self.name.to_owned(),
            resource_type: self
                .field(words.resource_type, "string", no_call)?
                .and_then(|expr| expr.as_str().map(str::to_owned))
                .unwrap_or_default(),
            properties: self.field(words.properties, "object", is_map)?.unwrap_or_default(),
            metadata: self.field(words.metadata, "object", is_map)?.unwrap_or_default(),
            depends_on: self.depends_on(words.depends_on)?,
            deletion_policy: self.deletion_policy(self.field(words.deletion_policy, "string", is_text)?)?,
            update_policy: self.field(words.update_policy, "object", is_map)?.unwrap_or_default(),
            description: match self.fields.get(words.description) {
                None => String::new(),
                Some(Value::Str(description)) => description.clone(),
                Some(_) => return Err(self.wrong_type(words.description, "string")),
            },
            external_id: if self.bound.release().has_external_id() {
                self.field("external_id", "string", is_text)?
            } else {
                None
            },
        })
    }

    fn wrong_type(&self, key: &str, type_name: &str) -> Diagnostic {
        fault::type_error(format!("Resource {} {key} type must be {type_name}", self.name))
    }

    /// A field, parsed, if it exists.
    fn field(&self, key: &str, type_name: &str, fits: impl Fn(&Expr) -> bool) -> Result<Option<Expr>, Diagnostic> {
        let Some(value) = self.fields.get(key) else { return Ok(None) };
        let expr = Expr::parse(self.bound, value, &self.path.key(key))?;
        if fits(&expr) { Ok(Some(expr)) } else { Err(self.wrong_type(key, type_name)) }
    }

    fn depends_on(&self, key: &str) -> Result<Vec<String>, Diagnostic> {
        let names = match self.fields.get(key) {
            None => return Ok(Vec::new()),
            Some(Value::Str(name)) => return Ok(vec![name.clone()]),
            Some(Value::List(names)) => names,
            Some(_) => return Err(self.wrong_type(key, "list or string")),
        };
        let text = |name: &Value| name.as_str().map(str::to_owned);
        names.iter().map(text).collect::<Option<_>>().ok_or_else(|| {
            let message = format!("Resource {} {key} must be a list of strings", self.name);
            Diagnostic::invalid(message).at(self.path.key(key))
        })
    }

    fn deletion_policy(&self, policy: Option<Expr>) -> Result<Option<DeletionPolicy>, Diagnostic> {
        let Some(policy) = policy else { return Ok(None) };
        let word = match policy.value(&Unbuilt::empty(self.bound))? {
            Value::Null | Value::Unknown(_) => return Ok(None),
            word => text::str(&word),
        };
        match DeletionPolicy::from_word(&word, self.bound.release().has_lower_case_policies()) {
            Some(policy) => Ok(Some(policy)),
            None => Err(Diagnostic::invalid(format!("Invalid deletion policy \"{word}\""))
                .at(self.path.key(self.bound.template().words().deletion_policy))),
        }
    }

    fn condition(&self) -> Result<Option<Expr>, Diagnostic> {
        let release = self.bound.release();
        let key = self.bound.template().words().condition;
        let Some(value) = self.fields.get(key).filter(|_| release.has_conditions()) else { return Ok(None) };
        let expr = Expr::parse_condition(self.bound, value, &self.path.key(key))?;
        if expr.is_call() || expr.as_str().is_some() || matches!(expr.source(), Value::Bool(_)) {
            return Ok(Some(expr));
        }
        let is_hot = release.dialect() == Dialect::Hot;
        Err(self.wrong_type(key, if is_hot { "string_or_boolean" } else { "string or boolean" }))
    }
}
