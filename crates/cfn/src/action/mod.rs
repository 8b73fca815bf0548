//! The actions, one file each. The names are those of AWS.

mod cancel_update_stack;
mod create_change_set;
mod create_stack;
mod delete_change_set;
mod delete_stack;
mod describe_change_set;
mod describe_stack_drift_detection_status;
mod describe_stack_events;
mod describe_stack_resource;
mod describe_stack_resource_drifts;
mod describe_stack_resources;
mod describe_stacks;
mod detect_stack_drift;
mod detect_stack_resource_drift;
mod estimate_template_cost;
mod execute_change_set;
mod get_template;
mod get_template_summary;
mod list_change_sets;
mod list_stack_resources;
mod list_stacks;
mod update_stack;
mod validate_template;

use kiln_value::Value;

use crate::call::Call;
use crate::fault::Fault;

macro_rules! actions {
    ($($name:ident $file:ident,)*) => {
        /// The actions.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Action { $($name,)* }

        impl Action {
            /// The action with a name.
            pub(crate) fn of_name(name: &str) -> Option<Self> {
                match name {
                    $(stringify!($name) => Some(Self::$name),)*
                    _ => None,
                }
            }

            /// The name.
            pub(crate) fn name(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)*
                }
            }

            /// Executes it; returns the content of the result.
            pub(crate) async fn run(self, call: &Call) -> Result<Value, Fault> {
                match self {
                    $(Self::$name => $file::run(call).await,)*
                }
            }
        }
    };
}

impl Action {
    /// The rule of the policy. Heat has no change sets and no drift: they are subject to the rules of stacks. Creating and executing
    /// one checks the rule of its change too, once it is known.
    pub(crate) fn rule(self) -> String {
        let action = match self {
            // The action checks the rule of what it reads.
            Self::GetTemplateSummary => Self::EstimateTemplateCost,
            Self::CreateChangeSet | Self::DescribeChangeSet | Self::ExecuteChangeSet | Self::ListChangeSets => {
                Self::DescribeStacks
            }
            Self::DeleteChangeSet => Self::UpdateStack,
            // They show what the resources show.
            Self::DescribeStackDriftDetectionStatus
            | Self::DescribeStackResourceDrifts
            | Self::DetectStackDrift
            | Self::DetectStackResourceDrift => Self::DescribeStackResources,
            action => action,
        };
        format!("cloudformation:{}", action.name())
    }
}

actions! {
    CancelUpdateStack cancel_update_stack,
    CreateChangeSet create_change_set,
    CreateStack create_stack,
    DeleteChangeSet delete_change_set,
    DeleteStack delete_stack,
    DescribeChangeSet describe_change_set,
    DescribeStackEvents describe_stack_events,
    DescribeStackResource describe_stack_resource,
    DescribeStackResources describe_stack_resources,
    DescribeStackDriftDetectionStatus describe_stack_drift_detection_status,
    DescribeStackResourceDrifts describe_stack_resource_drifts,
    DescribeStacks describe_stacks,
    DetectStackDrift detect_stack_drift,
    DetectStackResourceDrift detect_stack_resource_drift,
    EstimateTemplateCost estimate_template_cost,
    ExecuteChangeSet execute_change_set,
    GetTemplate get_template,
    GetTemplateSummary get_template_summary,
    ListChangeSets list_change_sets,
    ListStackResources list_stack_resources,
    ListStacks list_stacks,
    UpdateStack update_stack,
    ValidateTemplate validate_template,
}
