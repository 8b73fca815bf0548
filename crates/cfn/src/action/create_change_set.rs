//! Prepares the create or the update of a stack, or the import of objects into one.

use kiln_resource::Converge;
use kiln_service::{CreateStack, NewChangeSet, StackChange, StackContent};
use kiln_store::Stack;
use kiln_value::{Value, value};

use super::Action;
use super::parameter::{PARAMETERS, SETTINGS, STACK_NAME, TEMPLATE, USE_PREVIOUS_TEMPLATE, optional, required};
use crate::call::Call;
use crate::fault::Fault;
use crate::input;
use crate::view::change_set::{arn, stack_arn};

/// The handler asks for the rule of the change, too.
pub(super) static ACTION: Action = Action {
    name: "CreateChangeSet",
    rule: "cloudformation:DescribeStacks",
    parameters: &[
        &[
            STACK_NAME,
            optional("ClientToken", "A request with the same token and parameters is carried out once"),
            required("ChangeSetName", "Name of the change set"),
            optional("ChangeSetType", "CREATE, UPDATE (the default) or IMPORT"),
            optional("Description", "Description of the change set"),
            optional("DeploymentMode", "REVERT_DRIFT: also give drifted objects the values of the template again"),
            optional(
                "ResourcesToImport",
                "Objects that become resources: LogicalResourceId, ResourceType, ResourceIdentifier",
            ),
            optional(
                "ImportExistingResources",
                "Whether new resources take over the objects in no stack that have their names",
            ),
            USE_PREVIOUS_TEMPLATE,
            PARAMETERS,
        ],
        TEMPLATE,
        SETTINGS,
    ],
    run: |call| Box::pin(run(call)),
};

async fn run(call: &Call) -> Result<Value, Fault> {
    let params = &call.params;
    let (stack_name, name) = (params.required("StackName")?, params.required("ChangeSetName")?.to_owned());
    check_name(&name)?;
    let mut import = input::import(params)?;
    let by_name = params.boolean("ImportExistingResources")?.unwrap_or(false);
    let reverts_drift = match params.get("DeploymentMode") {
        None => false,
        Some("REVERT_DRIFT") if params.get("ChangeSetType").is_none_or(|kind| kind == "UPDATE") => true,
        Some("REVERT_DRIFT") => {
            return Err(Fault::combination("The DeploymentMode REVERT_DRIFT requires the ChangeSetType UPDATE"));
        }
        Some(other) => return Err(Fault::invalid(&format!("DeploymentMode must be REVERT_DRIFT, not \"{other}\""))),
    };
    let mut change = match params.get("ChangeSetType").unwrap_or("UPDATE") {
        "CREATE" | "UPDATE" if !import.is_empty() => {
            return Err(Fault::combination("ResourcesToImport requires the ChangeSetType IMPORT"));
        }
        "IMPORT" if by_name => {
            return Err(Fault::combination("ImportExistingResources requires the ChangeSetType CREATE or UPDATE"));
        }
        "IMPORT" if import.is_empty() => return Err(Fault::missing("ResourcesToImport was not given.")),
        "CREATE" => create(call, stack_name).await?,
        "UPDATE" => update(call, call.stack().await?).await?,
        "IMPORT" => match call.stack().await {
            Ok(stack) => update(call, stack).await?,
            Err(fault) if fault.code == Fault::no_stack(stack_name).code => create(call, stack_name).await?,
            Err(fault) => return Err(fault),
        },
        other => {
            return Err(Fault::invalid(&format!("ChangeSetType must be CREATE, UPDATE or IMPORT, not \"{other}\"")));
        }
    };
    if let (StackChange::Update(_, update), true) = (&mut change, reverts_drift) {
        update.settings.converge = Some(Converge::all());
    }
    if by_name {
        import = call.service().objects_by_name(&call.caller, &change).await?;
    }
    let description = params.get("Description").unwrap_or_default().to_owned();
    let prepared =
        call.service().create_change_set(&call.caller, NewChangeSet { name, description, change, import }).await?;
    Ok(value!({ "Id": (arn(&prepared.set)), "StackId": (stack_arn(&prepared.set)) }))
}

async fn update(call: &Call, stack: Stack) -> Result<StackChange, Fault> {
    call.allow("cloudformation:UpdateStack")?;
    let update = input::update(call, &stack).await?;
    Ok(StackChange::Update(Box::new(stack), update))
}

async fn create(call: &Call, name: &str) -> Result<StackChange, Fault> {
    call.allow("cloudformation:CreateStack")?;
    let params = &call.params;
    let template = input::template(call).await?.ok_or_else(input::no_template)?;
    let parameters = input::Parameters::of(params)?;
    let content = StackContent { sections: parameters.sections()?, ..StackContent::default() };
    let (name, settings) = (name.to_owned(), input::settings(params)?);
    Ok(StackChange::Create(CreateStack { name, template, content, settings, adopt: None }))
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

#[cfg(test)]
mod tests {
    use crate::support::{App, TEMPLATE};

    #[tokio::test]
    async fn a_change_set_of_a_new_stack_has_an_id_and_a_type() {
        let app = App::new().await;
        let of = |kind| {
            [("StackName", "new"), ("ChangeSetName", "one"), ("TemplateBody", TEMPLATE), ("ChangeSetType", kind)]
        };
        let refused = app.post("CreateChangeSet", &of("REPLACE")).await;
        assert!(
            refused.element("Message").contains("ChangeSetType must be CREATE, UPDATE or IMPORT"),
            "{}",
            refused.text
        );
        let reverting = [&of("CREATE")[..], &[("DeploymentMode", "REVERT_DRIFT")]].concat();
        let refused = app.post("CreateChangeSet", &reverting).await;
        assert_eq!(refused.element("Code"), "InvalidParameterCombination", "{}", refused.text);
        let made = app.post("CreateChangeSet", &of("CREATE")).await;
        assert!(made.element("Id").contains("one") && made.element("StackId").contains("new"), "{}", made.text);
    }
}
