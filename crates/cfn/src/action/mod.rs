//! The actions, one file each. The names are those of AWS.

mod cancel_update_stack;
mod create_stack;
mod delete_stack;
mod describe_stack_events;
mod describe_stack_resource;
mod describe_stack_resources;
mod describe_stacks;
mod estimate_template_cost;
mod get_template;
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

actions! {
    CancelUpdateStack cancel_update_stack,
    CreateStack create_stack,
    DeleteStack delete_stack,
    DescribeStackEvents describe_stack_events,
    DescribeStackResource describe_stack_resource,
    DescribeStackResources describe_stack_resources,
    DescribeStacks describe_stacks,
    EstimateTemplateCost estimate_template_cost,
    GetTemplate get_template,
    ListStackResources list_stack_resources,
    ListStacks list_stacks,
    UpdateStack update_stack,
    ValidateTemplate validate_template,
}
