//! Templates that are generated for objects in no stack, as `kiln import write` writes them.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kiln_authoring::generated;
use kiln_service::Selection;
use kiln_store::{Worksheet, WorksheetKind};
use kiln_value::{Map, Value, value};
use kiln_view::import::{ObjectKey, WrittenResource};
use serde::{Deserialize, Serialize};

use crate::call::Call;
use crate::fault::Fault;
use crate::input;
use crate::resource_scan::identifier;
use crate::view::instant;
use crate::worksheet::read;

pub(crate) const KIND: WorksheetKind = WorksheetKind::Template;
/// The word of its ARN.
pub(crate) const WORD: &str = "generatedtemplate";

/// The version of a template without resources.
const VERSION: &str = "2018-08-31";
/// Resources of a template, and characters of its name, as in AWS.
const MOST: usize = 500;
const LONGEST_NAME: usize = 128;

/// The head of a worksheet.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Head {
    pub(crate) updated: Timestamp,
    pub(crate) number: usize,
    /// Whether the objects stay when their stack is deleted.
    pub(crate) retains: bool,
}

/// The body of a worksheet.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Body {
    template: Value,
    pub(crate) resources: Vec<GeneratedResource>,
}

/// A resource, and the object that it becomes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct GeneratedResource {
    pub(crate) name: String,
    pub(crate) resource_type: String,
    pub(crate) id: String,
    object_name: String,
    /// What cannot be read.
    left_out: Vec<String>,
}

/// The objects of a template, with the names that their resources shall have.
pub(crate) type Objects = BTreeMap<ObjectKey, Option<String>>;

impl GeneratedResource {
    fn of(written: WrittenResource) -> Self {
        let WrittenResource { name, key: ObjectKey { resource_type, id }, object_name, left_out } = written;
        Self { name, resource_type, id, object_name, left_out }
    }

    pub(crate) fn key(&self) -> ObjectKey {
        ObjectKey { resource_type: self.resource_type.clone(), id: self.id.clone() }
    }

    fn view(&self) -> Value {
        let property =
            |path: &String| value!({ "PropertyPath": path, "Description": "It cannot be read in the object." });
        let warnings: Vec<Value> = match self.left_out.as_slice() {
            [] => Vec::new(),
            properties => {
                let properties: Value = properties.iter().map(property).collect();
                vec![value!({ "Type": "UNSUPPORTED_PROPERTIES", "Properties": properties })]
            }
        };
        value!({
            "ResourceType": (&self.resource_type),
            "LogicalResourceId": (&self.name),
            "ResourceIdentifier": (identifier(&self.id)),
            "ResourceStatus": "COMPLETE",
            "Warnings": warnings,
        })
    }

    /// The comment above it.
    fn comment(&self) -> Vec<String> {
        let plain = |text: String| text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect::<String>();
        let title = plain(format!("{} {}", self.object_name, self.id));
        let left_out =
            (!self.left_out.is_empty()).then(|| plain(format!("cannot be read: {}", self.left_out.join(", "))));
        std::iter::once(title.trim().to_owned()).chain(left_out).collect()
    }
}

impl Head {
    /// The common data.
    pub(crate) fn summary(&self, call: &Call, sheet: &Worksheet) -> Map {
        let shown = value!({
            "GeneratedTemplateId": (call.kept_arn(WORD, sheet.id)),
            "GeneratedTemplateName": (sheet.name.clone()),
            "Status": "COMPLETE",
            "CreationTime": (instant(sheet.created)),
            "LastUpdatedTime": (instant(self.updated)),
        });
        shown.as_map().cloned().unwrap_or_default()
    }

    /// All data.
    pub(crate) fn view(&self, call: &Call, sheet: &Worksheet, body: &Body) -> Value {
        let warnings = body.resources.iter().filter(|one| !one.left_out.is_empty()).count();
        let number = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
        let done = value!({
            "ResourcesSucceeded": (number(body.resources.len())),
            "ResourcesFailed": 0,
            "ResourcesProcessing": 0,
            "ResourcesPending": 0,
        });
        let policy = if self.retains { "RETAIN" } else { "DELETE" };
        let mut shown = self.summary(call, sheet);
        shown.insert("Resources".to_owned(), body.resources.iter().map(GeneratedResource::view).collect());
        shown.insert("Progress".to_owned(), done);
        let configuration = value!({ "DeletionPolicy": policy, "UpdateReplacePolicy": "DELETE" });
        shown.insert("TemplateConfiguration".to_owned(), configuration);
        shown.insert("TotalWarnings".to_owned(), number(warnings).into());
        shown.into()
    }
}

impl Body {
    /// The template.
    pub(crate) fn template(&self, head: &Head) -> Value {
        let mut template = self.template.clone();
        let resources = template.as_map_mut().and_then(|template| template.get_mut("resources")?.as_map_mut());
        if let Some(resources) = resources.filter(|_| head.retains) {
            for resource in resources.values_mut().filter_map(Value::as_map_mut) {
                resource.insert("deletion_policy".to_owned(), "Retain".into());
            }
        }
        template
    }

    /// The template as a person would write it; `None`: it cannot be written so.
    pub(crate) fn yaml(&self, head: &Head) -> Option<String> {
        let comments = self.resources.iter().map(|one| (one.name.clone(), one.comment())).collect();
        generated::template(&self.template(head), &comments)
    }

    /// The objects, with the names of their resources.
    pub(crate) fn objects(&self) -> Objects {
        self.resources.iter().map(|one| (one.key(), Some(one.name.clone()))).collect()
    }
}

impl Call {
    /// The generated template of the request: by its ARN, or by its name.
    pub(crate) async fn generated_template(&self) -> Result<(Worksheet, Head, Body), Fault> {
        let named = self.params.required("GeneratedTemplateName")?;
        let id = match self.id_in_arn(WORD, named) {
            Some(id) => Some(id),
            None => self.all_kept(KIND).await?.iter().find(|one| one.name.as_deref() == Some(named)).map(|one| one.id),
        };
        let sheet = match id {
            Some(id) => self.kept(KIND, id).await?,
            None => None,
        };
        let sheet = sheet.ok_or_else(|| Fault::no_generated_template(named))?;
        let (head, body) = (read(&sheet.head)?, read(&sheet.body)?);
        Ok((sheet, head, body))
    }

    /// Reads the objects of a template and writes it.
    pub(crate) async fn generate(&self, objects: Objects) -> Result<Body, Fault> {
        if objects.is_empty() {
            let template = value!({ "heat_template_version": VERSION, "resources": {} });
            return Ok(Body { template, resources: Vec::new() });
        }
        if objects.len() > MOST {
            return Err(Fault::too_much(format!("A generated template has at most {MOST} resources.")));
        }
        let written = self.service().write_import(&self.caller, &Selection { objects, related: false }).await?;
        let resources = written.resources.into_iter().map(GeneratedResource::of).collect();
        Ok(Body { template: written.template, resources })
    }

    /// Adds the objects of a list of the request.
    pub(crate) fn add_objects(&self, list: &str, objects: &mut Objects) -> Result<(), Fault> {
        for (name, object) in input::objects(&self.params, list)? {
            let key = ObjectKey { resource_type: object.resource_type, id: object.physical_id };
            objects.insert(key, name);
        }
        Ok(())
    }

    /// Whether the objects of the template stay when their stack is deleted; `None`: the request does not say.
    pub(crate) fn retains(&self) -> Result<Option<bool>, Fault> {
        let policy = |name: &str| match self.params.get(name) {
            None => Ok(None),
            Some("DELETE") => Ok(Some(false)),
            Some("RETAIN") => Ok(Some(true)),
            Some(other) => Err(Fault::invalid(&format!("{name} must be DELETE or RETAIN, not \"{other}\""))),
        };
        if policy("TemplateConfiguration.UpdateReplacePolicy")? == Some(true) {
            return Err(Fault::invalid("UpdateReplacePolicy RETAIN is not supported."));
        }
        policy("TemplateConfiguration.DeletionPolicy")
    }
}

/// The rules of AWS.
pub(crate) fn check_name(name: &str) -> Result<(), Fault> {
    let is_short = (1..=LONGEST_NAME).contains(&name.chars().count());
    if is_short && !name.starts_with("arn:") && !name.contains(char::is_control) {
        return Ok(());
    }
    Err(Fault::validation(format!(
        "The name of a generated template has 1 to {LONGEST_NAME} characters, and is no ARN"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_keeps_its_objects_and_has_comments() {
        let resource = GeneratedResource {
            name: "net".to_owned(),
            resource_type: "OS::Neutron::Net".to_owned(),
            id: "n-1".to_owned(),
            object_name: "a\nb: {c}".to_owned(),
            left_out: vec!["value_specs".to_owned()],
        };
        let template =
            value!({ "heat_template_version": VERSION, "resources": { "net": { "type": "OS::Neutron::Net" } } });
        let body = Body { template, resources: vec![resource] };
        let head = Head { updated: Timestamp::UNIX_EPOCH, number: 1, retains: true };
        let text = body.yaml(&head).expect("a text");
        assert!(text.contains("  # a b: {c} n-1\n  # cannot be read: value_specs\n"), "{text}");
        assert!(text.contains("deletion_policy: Retain"), "{text}");
        assert!(!body.yaml(&Head { retains: false, ..head }).expect("a text").contains("deletion_policy"));
    }
}
