//! `get_resource` and `get_attr`.

use std::borrow::Cow;

use kiln_value::{Class, Diagnostic, Subject, Value, text};

use super::{Function, fault};
use crate::expr::{AttributeUse, Call, Context, Node, Wanted, validate_args};
use crate::hint::hinted;
use crate::scope::{ResourceView, select};

/// The resource with this name; `path` is shown in errors.
fn find<'a>(name: &Value, context: &Context<'a>, path: &str) -> Result<&'a dyn ResourceView, Diagnostic> {
    fault::check_hashable(name)?;
    name.as_str().and_then(|name| context.scope.resource(name)).ok_or_else(|| {
        let name = text::str(name);
        hinted(fault::bad_reference(&name, path), &name, context.bound().template().resource_names())
    })
}

/// `get_resource`, and `Ref` to a resource: its reference ID.
#[derive(Debug)]
pub(crate) struct GetResource;

impl Function for GetResource {
    fn reads_stack(&self) -> bool {
        true
    }

    fn resolve(&self, call: &Call, context: &Context) -> Result<Option<Value>, Diagnostic> {
        Ok(Some(find(&call.resolved_args(context)?, context, "unknown")?.reference_id()))
    }

    fn reference(&self, call: &Call, context: &Context, path: &str) -> Result<Option<String>, Diagnostic> {
        let name = call.resolved_args(context)?;
        find(&name, context, path)?;
        Ok(Some(text::str(&name)))
    }
}

/// `get_attr` and `Fn::GetAtt`, in their four forms.
#[derive(Debug)]
pub(crate) struct GetAttribute {
    form: Form,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// Exactly a resource and an attribute.
    Cfn,
    /// The whole attribute is requested, and the path is applied to its value.
    Whole,
    /// The path is part of the request.
    Path,
    /// Without an attribute: all attributes.
    All,
}

impl GetAttribute {
    pub(crate) const CFN: Self = Self { form: Form::Cfn };
    pub(crate) const WHOLE: Self = Self { form: Form::Whole };
    pub(crate) const PATH: Self = Self { form: Form::Path };
    pub(crate) const ALL: Self = Self { form: Form::All };

    fn parts<'a>(&self, name: &str, args: &'a Node) -> Result<Parts<'a>, Diagnostic> {
        if self.form == Form::Cfn {
            let [resource, attribute] = args.unpack().map_err(|error| match error.class {
                Class::ValueError => fault::value_error(format!(
                    "Arguments to \"{name}\" must be of the form [resource_name, attribute]"
                )),
                _ => error,
            })?;
            return Ok(Parts { resource, attribute, path: &[] });
        }
        if self.form == Form::All {
            if !args.is_truthy() {
                return Err(fault::value_error(format!(
                    "Arguments to \"{name}\" can be of the next forms: [resource_name] or [resource_name, attribute, \
                     (path), ...]"
                )));
            }
            match args {
                Node::List(items) if let [resource] = items.as_slice() => {
                    return Ok(Parts {
                        resource: Cow::Borrowed(resource),
                        attribute: Cow::Owned(Node::default()),
                        path: &[],
                    });
                }
                // In Python a string of one character can be used as a list of one item.
                Node::Scalar(Value::Str(text)) if text.chars().count() == 1 => {
                    return Ok(Parts {
                        resource: Cow::Borrowed(args),
                        attribute: Cow::Owned(Node::default()),
                        path: &[],
                    });
                }
                _ => {}
            }
        }
        match args.as_list() {
            None => Err(fault::type_error(format!("Argument to \"{name}\" must be a list"))),
            Some([resource, attribute, path @ ..]) => {
                Ok(Parts { resource: Cow::Borrowed(resource), attribute: Cow::Borrowed(attribute), path })
            }
            Some(_) => Err(fault::value_error(format!(
                "Arguments to \"{name}\" must be of the form [resource_name, attribute, (path), ...]"
            ))),
        }
    }

    /// Whether the path is part of the request, instead of the whole attribute.
    fn asks_path(&self) -> bool {
        matches!(self.form, Form::Path | Form::All)
    }

    /// Whether the call reads all attributes.
    fn wants_all(&self, parts: &Parts) -> bool {
        self.form == Form::All && parts.attribute.is_null()
    }
}

struct Parts<'a> {
    resource: Cow<'a, Node>,
    attribute: Cow<'a, Node>,
    path: &'a [Node],
}

impl Parts<'_> {
    fn path(&self, context: &Context) -> Result<Vec<Value>, Diagnostic> {
        self.path.iter().filter_map(|step| step.resolve_nullable(context).transpose()).collect()
    }
}

impl Function for GetAttribute {
    fn check(&self, name: &str, args: &Node) -> Result<(), Diagnostic> {
        self.parts(name, args).map(drop)
    }

    fn validate(&self, call: &Call, context: &Context) -> Result<(), Diagnostic> {
        validate_args(call, context)?;
        let parts = self.parts(call.name, &call.args)?;
        let name = parts.resource.resolve(context)?;
        let resource = find(&name, context, "unknown")?;
        if self.wants_all(&parts) {
            return Ok(());
        }
        let attribute = parts.attribute.resolve(context)?;
        fault::check_hashable(&attribute)?;
        match attribute.as_str() {
            Some(attribute) if resource.has_attribute(attribute) => Ok(()),
            _ => Err(no_such_attribute(&name, &attribute, &[])),
        }
    }

    fn reads_stack(&self) -> bool {
        true
    }

    fn resolve(&self, call: &Call, context: &Context) -> Result<Option<Value>, Diagnostic> {
        let parts = self.parts(call.name, &call.args)?;
        if self.wants_all(&parts) {
            let resource = find(&parts.resource.resolve(context)?, context, "unknown")?;
            // In Heat, all attributes are available in fewer states than a single attribute.
            let ready = is_ready(resource)
                && resource.action() != "ROLLBACK"
                && matches!(resource.status(), "IN_PROGRESS" | "COMPLETE");
            return Ok(Some(if ready { Value::Map(resource.attributes()) } else { Value::Null }));
        }
        let path = if self.asks_path() { parts.path(context)? } else { Vec::new() };
        let attribute = parts.attribute.resolve(context)?;
        let name = parts.resource.resolve(context)?;
        let resource = find(&name, context, "unknown")?;
        if !is_ready(resource) {
            return Ok(Some(Value::Null));
        }
        fault::check_hashable(&attribute)?;
        if let Some(error) = attribute.as_str().and_then(|attribute| resource.attribute_error(attribute, &path)) {
            let message = format!("Error in {} output {}: {error}", text::str(&name), text::str(&attribute));
            return Err(Diagnostic::new(Class::TemplateOutputError, message));
        }
        let value = attribute
            .as_str()
            .and_then(|attribute| resource.attribute(attribute, &path))
            .ok_or_else(|| no_such_attribute(&name, &attribute, &path))?;
        Ok(Some(if self.asks_path() || value.is_null() { value } else { select(value, &parts.path(context)?) }))
    }

    fn reference(&self, call: &Call, context: &Context, path: &str) -> Result<Option<String>, Diagnostic> {
        let name = self.parts(call.name, &call.args)?.resource.resolve(context)?;
        find(&name, context, path)?;
        Ok(Some(text::str(&name)))
    }

    fn attribute_use(&self, call: &Call, context: &Context) -> Option<AttributeUse> {
        let parts = self.parts(call.name, &call.args).ok()?;
        let Value::Str(resource) = parts.resource.resolve(context).ok()? else { return None };
        let wanted = if self.wants_all(&parts) {
            Wanted::All
        } else {
            let name = parts.attribute.resolve(context).ok()?;
            let path = if self.asks_path() { parts.path(context).ok()? } else { Vec::new() };
            Wanted::One { name, path }
        };
        Some(AttributeUse { resource, wanted })
    }
}

/// Whether the resource has attributes now.
fn is_ready(resource: &dyn ResourceView) -> bool {
    !matches!(resource.action(), "INIT" | "DELETE")
}

/// As in Heat, an attribute with a path is shown as Python's tuple.
fn no_such_attribute(resource: &Value, attribute: &Value, path: &[Value]) -> Diagnostic {
    let wanted = if path.is_empty() {
        text::str(attribute)
    } else {
        let parts: Vec<String> = std::iter::once(attribute).chain(path).map(text::repr).collect();
        format!("({})", parts.join(", "))
    };
    let message = format!("The Referenced Attribute ({} {wanted}) is incorrect.", text::str(resource));
    Diagnostic::new(Class::InvalidTemplateAttribute, message).about(Subject::Name(text::str(attribute)))
}
