//! Plans a refactoring of stacks.

use std::collections::BTreeMap;

use kiln_service::RefactorPlan;
use kiln_store::StackId;
use kiln_value::{Value, value};

use super::Action;
use super::parameter::{optional, required};
use crate::call::{Call, live};
use crate::fault::Fault;
use crate::input;
use crate::stack_refactor::{Body, Head, KIND, Move, MoveAction, SeenStack};

/// The longest description, as in AWS.
const LONGEST: usize = 1024;

/// The handler asks for the rule of the REST call, too.
pub(super) static ACTION: Action = Action {
    name: "CreateStackRefactor",
    rule: "cloudformation:UpdateStack",
    parameters: &[&[
        required("StackDefinitions", "StackName with TemplateBody or TemplateURL of each stack"),
        optional("ResourceMappings", "Source and Destination, each with StackName and LogicalResourceId"),
        optional("Description", "Description of the refactor"),
    ]],
    run: |call| Box::pin(run(call)),
};

async fn run(call: &Call) -> Result<Value, Fault> {
    call.allow("refactors:create")?;
    let description = call.params.get("Description").unwrap_or_default().to_owned();
    if description.chars().count() > LONGEST {
        return Err(Fault::validation(format!("A description has at most {LONGEST} characters.")));
    }
    let definitions = call.params.members("StackDefinitions");
    let (mut stacks, mut seen, mut templates) = (Vec::new(), Vec::new(), Vec::new());
    let mut names = BTreeMap::new();
    for entry in definitions.into_values() {
        let field = |name: &str| entry.get(name).copied().filter(|text| !text.is_empty());
        let name = field("StackName").ok_or_else(|| Fault::missing("A stack definition has no StackName."))?;
        let stack = live(call.find(name).await?)?;
        let text = input::text_of(call, field("TemplateBody"), field("TemplateURL")).await?;
        templates.push(text.ok_or_else(input::no_template)?);
        names.insert(name.to_owned(), stack.id);
        names.insert(stack.name.clone(), stack.id);
        seen.push(SeenStack { id: stack.id, name: stack.name.clone(), generation: stack.generation });
        stacks.push(stack);
    }
    let body = Body { templates, moves: moves(call, &names)?, actions: Vec::new() };
    let refactor = body.refactor(call, stacks)?;
    let given = refactor.moves.clone();
    let RefactorPlan { moves, obstacles, .. } = call.service().plan_refactor(&call.caller, refactor).await?;
    let failure = (!obstacles.is_empty()).then(|| obstacles.join("; "));
    let actions = moves.iter().filter_map(|moved| MoveAction::of(moved, &given, &seen)).collect();
    let head = Head { description, stacks: seen, failure, begun: None };
    let id = call.keep(KIND, None, (&head, &Body { actions, ..body })).await?;
    Ok(value!({ "StackRefactorId": (id.to_string()) }))
}

/// `ResourceMappings.member.N.Source.StackName=…`.
fn moves(call: &Call, stacks: &BTreeMap<String, StackId>) -> Result<Vec<Move>, Fault> {
    let one = |entry: BTreeMap<&str, &str>| {
        let place = |side: &str| {
            let field = |name: &str| {
                let found = entry.get(format!("{side}.{name}").as_str()).copied().filter(|text| !text.is_empty());
                found.ok_or_else(|| Fault::missing(&format!("The {side} of a mapping has no {name}.")))
            };
            let (stack, resource) = (field("StackName")?, field("LogicalResourceId")?);
            let id = stacks.get(stack).copied();
            let id = id.ok_or_else(|| Fault::validation(format!("The stack {stack} is not in StackDefinitions")))?;
            Ok::<_, Fault>((id, resource.to_owned()))
        };
        Ok(Move { from: place("Source")?, to: place("Destination")? })
    };
    call.params.members("ResourceMappings").into_values().map(one).collect()
}

#[cfg(test)]
mod tests {
    use crate::support::App;

    #[tokio::test]
    async fn what_is_given_is_checked() {
        let app = App::new().await;
        app.create("web").await;
        let stack = ("StackDefinitions.member.1.StackName", "web");
        let none = ("StackDefinitions.member.1.StackName", "none");
        let body = ("StackDefinitions.member.1.TemplateBody", "{\"heat_template_version\": \"2018-08-31\"}");
        let from = ("ResourceMappings.member.1.Source.StackName", "web");
        let (resource, to) = ("ResourceMappings.member.1.Source.LogicalResourceId", "value");
        let other = ("ResourceMappings.member.1.Destination.StackName", "db");
        let other_resource = ("ResourceMappings.member.1.Destination.LogicalResourceId", "value");
        let create = ("EnableStackCreation", "true");
        for (given, code, why) in [
            (&[][..], "MissingParameter", "StackDefinitions was not given"),
            (&[body], "MissingParameter", "no StackName"),
            (&[stack], "MissingParameter", "TemplateBody"),
            (&[none, body], "ValidationError", "none does not exist"),
            (&[stack, body, from], "MissingParameter", "The Source of a mapping has no LogicalResourceId"),
            (&[stack, body, from, (resource, to), other, other_resource], "ValidationError", "db is not in"),
            (&[stack, body, create], "InvalidParameterValue", "EnableStackCreation is not supported"),
            (&[stack, body], "InvalidAction", "in progress"),
        ] {
            let refused = app.post("CreateStackRefactor", given).await;
            assert_eq!(refused.element("Code"), code, "{}", refused.text);
            assert!(refused.element("Message").contains(why), "{}", refused.text);
        }
    }
}
