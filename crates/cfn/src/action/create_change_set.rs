//! Prepares the create or the update of a stack.

use kiln_service::{CreateStack, NewChangeSet, StackChange, StackContent};
use kiln_value::{Value, value};

use crate::call::Call;
use crate::fault::Fault;
use crate::input;
use crate::view::change_set::{arn, stack_arn};

pub(super) async fn run(call: &Call) -> Result<Value, Fault> {
    let params = &call.params;
    let (stack_name, name) = (params.required("StackName")?, params.required("ChangeSetName")?.to_owned());
    check_name(&name)?;
    let change = match params.get("ChangeSetType").unwrap_or("UPDATE") {
        "CREATE" => {
            call.allow("cloudformation:CreateStack")?;
            StackChange::Create(create(call, stack_name).await?)
        }
        "UPDATE" => {
            call.allow("cloudformation:UpdateStack")?;
            let stack = call.stack().await?;
            let update = input::update(call, &stack).await?;
            StackChange::Update(Box::new(stack), update)
        }
        other => return Err(Fault::invalid(&format!("ChangeSetType must be CREATE or UPDATE, not \"{other}\""))),
    };
    let description = params.get("Description").unwrap_or_default().to_owned();
    let prepared = call.service().create_change_set(&call.caller, NewChangeSet { name, description, change }).await?;
    Ok(value!({ "Id": (arn(&prepared.set)), "StackId": (stack_arn(&prepared.set)) }))
}

async fn create(call: &Call, name: &str) -> Result<CreateStack, Fault> {
    let params = &call.params;
    let template = input::template(call).await?.ok_or_else(input::no_template)?;
    let parameters = input::Parameters::of(params)?;
    let content = StackContent { sections: parameters.sections()?, ..StackContent::default() };
    Ok(CreateStack { name: name.to_owned(), template, content, settings: input::settings(params)?, adopt: None })
}

/// The rules of AWS.
fn check_name(name: &str) -> Result<(), Fault> {
    let starts = name.starts_with(|c: char| c.is_ascii_alphabetic());
    if starts && name.len() <= 128 && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') {
        return Ok(());
    }
    let text = "a ChangeSetName starts with a letter and has at most 128 letters, digits and hyphens";
    Err(Fault::validation(text))
}
