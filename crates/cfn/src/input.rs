//! The input of requests that create, update or validate a stack.

use std::collections::BTreeMap;

use kiln_service::{ObjectToImport, ObjectsToImport, Settings, StackContent, TemplateText, UpdateStack};
use kiln_stack::load;
use kiln_store::Stack;
use kiln_template::environment;
use kiln_value::{Class, Map};

use crate::call::Call;
use crate::fault::Fault;
use crate::params::{Params, boolean};

/// Maximum length of a tag.
const MAX_TAG: usize = 80;

/// The template, or that at a URL; `None` if the request has none.
pub(crate) async fn template(call: &Call) -> Result<Option<TemplateText>, Fault> {
    let params = &call.params;
    let url = params.get("TemplateURL").or_else(|| params.get("TemplateUrl"));
    let text = text_of(call, params.get("TemplateBody"), url).await?;
    text.map(|text| parsed(call, &text)).transpose()
}

/// The text of a template, or that at a URL.
pub(crate) async fn text_of(call: &Call, body: Option<&str>, url: Option<&str>) -> Result<Option<String>, Fault> {
    Ok(match (body, url) {
        (Some(body), _) => Some(body.to_owned()),
        (None, Some(url)) => Some(call.service().template_at(url).await?),
        (None, None) => None,
    })
}

/// A template from its text.
pub(crate) fn parsed(call: &Call, text: &str) -> Result<TemplateText, Fault> {
    match TemplateText::parse(text, &call.service().options.limits) {
        Ok(template) => Ok(template),
        // The text of the reader says what is wrong.
        Err(error) if error.class == Class::ValueError => Err(Fault::invalid(&error.text)),
        Err(error) => Err(error.into()),
    }
}

/// The error for a request without a template.
pub(crate) fn no_template() -> Fault {
    Fault::missing("TemplateBody or TemplateUrl were not given.")
}

/// The settings of a stack.
pub(crate) fn settings(params: &Params) -> Result<Settings, Fault> {
    let timeout_mins = match params.get("TimeoutInMinutes") {
        None => None,
        Some(text) => {
            let minutes = text.parse::<i64>().ok().filter(|minutes| *minutes > 0);
            let bad = || Fault::invalid(&format!("TimeoutInMinutes must be a positive number, not \"{text}\""));
            Some(minutes.ok_or_else(bad)?)
        }
    };
    let disable_rollback = match (params.boolean("DisableRollback")?, params.get("OnFailure")) {
        (Some(_), Some(_)) => return Err(Fault::combination("DisableRollback and OnFailure may not be used together")),
        (disable, None) => disable,
        (None, Some("DO_NOTHING")) => Some(true),
        (None, Some("ROLLBACK" | "DELETE")) => Some(false),
        (None, Some(other)) => {
            return Err(Fault::invalid(&format!("OnFailure must be DO_NOTHING, ROLLBACK or DELETE, not \"{other}\"")));
        }
    };
    Ok(Settings { timeout_mins, disable_rollback, tags: tags(params)?, ..Settings::default() })
}

/// The tags of a stack, which are texts in OpenStack: `key`, or `key=value`.
fn tags(params: &Params) -> Result<Option<Vec<String>>, Fault> {
    let mut tags = Vec::new();
    for entry in params.members("Tags").into_values() {
        let key = entry.get("Key").filter(|key| !key.is_empty()).ok_or_else(|| Fault::missing("A tag has no Key."))?;
        let tag = match entry.get("Value").filter(|value| !value.is_empty()) {
            Some(value) => format!("{key}={value}"),
            None => (*key).to_owned(),
        };
        if tag.contains(',') || tag.chars().count() > MAX_TAG {
            return Err(Fault::invalid(&format!(
                "Tag \"{tag}\" has a comma, or more than {MAX_TAG} characters with its value."
            )));
        }
        tags.push(tag);
    }
    Ok((!tags.is_empty()).then_some(tags))
}

/// The parameters of the template.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Parameters {
    /// Values by name.
    pub(crate) values: Map,
    /// The names of those that keep their value.
    pub(crate) previous: Vec<String>,
}

impl Parameters {
    /// Reads `Parameters.member.N.…`.
    pub(crate) fn of(params: &Params) -> Result<Self, Fault> {
        let mut read = Self::default();
        for entry in params.members("Parameters").into_values() {
            let key = entry.get("ParameterKey").filter(|key| !key.is_empty());
            let key = key.ok_or_else(|| Fault::missing("A parameter has no ParameterKey."))?;
            let keeps = match entry.get("UsePreviousValue").filter(|value| !value.is_empty()) {
                Some(value) => boolean("UsePreviousValue", value)?,
                None => false,
            };
            match entry.get("ParameterValue") {
                Some(_) if keeps => {
                    let text = "ParameterValue and UsePreviousValue may not be used together";
                    return Err(Fault::combination(text));
                }
                _ if keeps => read.previous.push((*key).to_owned()),
                Some(value) => _ = read.values.insert((*key).to_owned(), (*value).into()),
                None => return Err(Fault::missing(&format!("Parameter {key} has no ParameterValue."))),
            }
        }
        Ok(read)
    }

    /// The sections of an environment with these values.
    pub(crate) fn sections(&self) -> Result<Map, Fault> {
        Ok(environment::from_request(None, &self.values)?)
    }
}

/// The property that identifies an object to import, of all types: its ID in the cloud.
pub(crate) const IDENTIFIER: &str = "PhysicalResourceId";

/// The objects to import: `ResourcesToImport.member.N.…`.
pub(crate) fn import(params: &Params) -> Result<ObjectsToImport, Fault> {
    let mut objects = ObjectsToImport::new();
    for (name, object) in self::objects(params, "ResourcesToImport")? {
        let name = name.ok_or_else(|| Fault::missing("An entry of ResourcesToImport has no LogicalResourceId."))?;
        if objects.insert(name.clone(), object).is_some() {
            return Err(Fault::invalid(&format!("{name} is twice in ResourcesToImport")));
        }
    }
    Ok(objects)
}

/// A list of objects with the names of their resources: `LIST.member.N.…`; `ResourceIdentifier` is a map with one entry.
pub(crate) fn objects(params: &Params, list: &str) -> Result<Vec<(Option<String>, ObjectToImport)>, Fault> {
    let object = |entry: BTreeMap<&str, &str>| {
        let field = |name: &str| {
            let value = entry.get(name).filter(|value| !value.is_empty());
            value.map(|value| (*value).to_owned())
        };
        let missing = |name: &str| Fault::missing(&format!("An entry of {list} has no {name}."));
        let resource_type = field("ResourceType").ok_or_else(|| missing("ResourceType"))?;
        let part = |wanted: &'static str| {
            entry.iter().filter_map(move |(field, value)| {
                let (_, part) = field.strip_prefix("ResourceIdentifier.entry.")?.split_once('.')?;
                (part == wanted && !value.is_empty()).then_some(*value)
            })
        };
        if part("key").collect::<Vec<_>>() != [IDENTIFIER] {
            let text = format!("ResourceIdentifier must be {IDENTIFIER}=<the ID of the object in the cloud>");
            return Err(Fault::invalid(&text));
        }
        let physical_id = part("value").next().ok_or_else(|| missing(IDENTIFIER))?.to_owned();
        Ok((field("LogicalResourceId"), ObjectToImport { resource_type, physical_id }))
    };
    params.members(list).into_values().map(object).collect()
}

/// An update of a stack. As in Heat, it replaces environment and files of the stack, unless the request keeps the
/// template or the value of a parameter.
pub(crate) async fn update(call: &Call, stack: &Stack) -> Result<UpdateStack, Fault> {
    let params = &call.params;
    let settings = settings(params)?;
    let template = template(call).await?;
    let keeps_template = params.boolean("UsePreviousTemplate")?.unwrap_or(false);
    match (&template, keeps_template) {
        (Some(_), true) => {
            return Err(Fault::combination("TemplateBody and UsePreviousTemplate may not be used together"));
        }
        (None, false) => return Err(no_template()),
        _ => {}
    }
    let parameters = Parameters::of(params)?;
    let content = StackContent { sections: parameters.sections()?, ..StackContent::default() };
    let existing = keeps_template || !parameters.previous.is_empty();
    let mut update = UpdateStack { template, content, settings, existing, ..UpdateStack::default() };
    if existing {
        // Only the parameters in the request keep their value. A parameter without one has its default: `aws
        // cloudformation deploy` names all parameters of the new template.
        let current = load::stored(call.backends(), &stack.desired).await?;
        let stored = current.environment.parameters.keys();
        update.clear_parameters = stored.filter(|name| !parameters.previous.contains(name)).cloned().collect();
    }
    Ok(update)
}

#[cfg(test)]
mod tests {
    use kiln_web::Query;

    use super::*;

    fn params(query: &str) -> Params {
        Params::new(Query::parse(Some(query)))
    }

    #[test]
    fn parameters_have_a_value_or_keep_it() {
        let read = Parameters::of(&params(
            "Parameters.member.2.ParameterKey=b&Parameters.member.2.ParameterValue=&Parameters.member.1.ParameterKey=a\
             &Parameters.member.1.UsePreviousValue=true",
        ));
        let read = read.unwrap();
        assert_eq!(read.previous, ["a"]);
        assert_eq!(read.values, Map::from([("b".to_owned(), "".into())]));
        let refused = |query: &str| Parameters::of(&params(query)).unwrap_err().code;
        assert_eq!(refused("Parameters.member.1.ParameterValue=a"), "MissingParameter");
        assert_eq!(refused("Parameters.member.1.ParameterKey=a"), "MissingParameter");
        let both = "Parameters.member.1.ParameterKey=a&Parameters.member.1.ParameterValue=b\
                    &Parameters.member.1.UsePreviousValue=true";
        assert_eq!(refused(both), "InvalidParameterCombination");
    }

    #[test]
    fn objects_to_import_have_a_type_and_an_id() {
        let entry = |rest: &str| {
            let first = "ResourcesToImport.member.1.LogicalResourceId=a&ResourcesToImport.member.1.ResourceType=T";
            import(&params(&format!("{first}&{}", rest.replace('~', "ResourcesToImport.member."))))
        };
        let one = "~1.ResourceIdentifier.entry.1.key=PhysicalResourceId&~1.ResourceIdentifier.entry.1.value=i";
        let object = ObjectToImport { resource_type: "T".to_owned(), physical_id: "i".to_owned() };
        assert_eq!(entry(one).unwrap(), ObjectsToImport::from([("a".to_owned(), object)]));
        assert!(import(&params("")).unwrap().is_empty());
        let refused = |rest: &str| entry(rest).unwrap_err().code;
        assert_eq!(refused(""), "InvalidParameterValue");
        assert_eq!(refused(&one.replace("PhysicalResourceId", "VpcId")), "InvalidParameterValue");
        assert_eq!(refused("~1.ResourceIdentifier.entry.1.key=PhysicalResourceId"), "MissingParameter");
        assert_eq!(refused(&format!("{one}&~2.LogicalResourceId=b")), "MissingParameter");
        let twice = format!("{one}&~2.LogicalResourceId=a&~2.ResourceType=T&{}", one.replace("~1", "~2"));
        assert_eq!(refused(&twice), "InvalidParameterValue");
    }

    #[test]
    fn settings_are_checked() {
        let read = settings(&params("TimeoutInMinutes=5&OnFailure=ROLLBACK&Tags.member.1.Key=a&Tags.member.1.Value=b"));
        let read = read.unwrap();
        assert_eq!((read.timeout_mins, read.disable_rollback), (Some(5), Some(false)));
        assert_eq!(read.tags, Some(vec!["a=b".to_owned()]));
        let refused = |query: &str| settings(&params(query)).unwrap_err().code;
        assert_eq!(refused("TimeoutInMinutes=x"), "InvalidParameterValue");
        assert_eq!(refused("TimeoutInMinutes=0"), "InvalidParameterValue");
        assert_eq!(refused("OnFailure=EXPLODE"), "InvalidParameterValue");
        assert_eq!(refused("OnFailure=DO_NOTHING&DisableRollback=true"), "InvalidParameterCombination");
        assert_eq!(refused("Tags.member.1.Key=a,b"), "InvalidParameterValue");
        assert_eq!(refused("Tags.member.1.Value=b"), "MissingParameter");
    }
}
