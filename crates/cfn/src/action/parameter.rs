//! The parameters in the rows of actions.

use crate::params::Parameter;

/// A parameter that must be there.
pub(super) const fn required(name: &'static str, about: &'static str) -> Parameter {
    Parameter { name, about, is_required: true }
}

/// A parameter that may be missing.
pub(super) const fn optional(name: &'static str, about: &'static str) -> Parameter {
    Parameter { name, about, is_required: false }
}

pub(super) const STACK_NAME: Parameter = required("StackName", "Name or ARN of the stack");
pub(super) const LOGICAL_ID: Parameter = required("LogicalResourceId", "Name of the resource");
pub(super) const PARAMETERS: Parameter = optional("Parameters", "ParameterKey with ParameterValue or UsePreviousValue");
pub(super) const USE_PREVIOUS_TEMPLATE: Parameter = optional("UsePreviousTemplate", "Keep the template of the stack");

/// A template.
pub(super) const TEMPLATE: &[Parameter] = &[
    optional("TemplateBody", "Text of the template"),
    optional("TemplateURL", "URL of the template, instead of its text"),
    optional("TemplateUrl", "The same, as Heat spells it"),
];

/// How a stack is created or updated.
pub(super) const SETTINGS: &[Parameter] = &[
    optional("TimeoutInMinutes", "Timeout of the operation"),
    optional("DisableRollback", "Keep what is done if the operation fails"),
    optional("OnFailure", "DO_NOTHING, ROLLBACK or DELETE, instead of DisableRollback"),
    optional("Tags", "Key and Value of each tag"),
];

/// A change set.
pub(super) const CHANGE_SET: &[Parameter] = &[
    required("ChangeSetName", "Name or ARN of the change set"),
    optional("StackName", "Name or ARN of the stack; required with the name of a change set"),
];

pub(super) const STACK_REFACTOR: Parameter = required("StackRefactorId", "ID of the refactor");
pub(super) const RESOURCE_SCAN: Parameter = required("ResourceScanId", "ARN of the scan");
pub(super) const GENERATED_TEMPLATE: Parameter =
    required("GeneratedTemplateName", "Name or ARN of the generated template");

/// How the resources of a generated template are kept.
pub(super) const TEMPLATE_CONFIGURATION: &[Parameter] = &[
    optional("TemplateConfiguration.DeletionPolicy", "DELETE (the default) or RETAIN: what becomes of the objects"),
    optional("TemplateConfiguration.UpdateReplacePolicy", "DELETE: no other is supported"),
];

/// The token of a request that may be sent again.
pub(super) const TOKEN: Parameter =
    optional("ClientRequestToken", "A request with the same token and parameters is carried out once");

/// A page of a list.
pub(super) const PAGE: &[Parameter] = &[
    optional("NextToken", "Where the page before this one ended"),
    optional("MaxResults", "Maximum number of entries"),
];
