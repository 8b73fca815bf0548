//! Resources.

use kiln_resource::Resource;
use kiln_stack::LoadedStack;
use kiln_store::Stack;
use kiln_value::{Map, Value, value};

use super::{arn, instant, state};
use crate::call::Call;
use crate::fault::Fault;

/// The resources of a stack.
pub(crate) struct Resources {
    view: LoadedStack,
    rows: Vec<Resource>,
}

impl Resources {
    pub(crate) async fn of(call: &Call, stack: Stack) -> Result<Self, Fault> {
        let view = call.service().view(stack).await?;
        let rows = kiln_view::listed(&view);
        Ok(Self { view, rows })
    }

    pub(crate) fn stack(&self) -> &Stack {
        &self.view.stack
    }

    pub(crate) fn rows(&self) -> &[Resource] {
        &self.rows
    }

    /// An entry of `DescribeStackResources`.
    pub(crate) fn entry(&self, row: &Resource) -> Map {
        with(self.of_stack(row), value!({ "Timestamp": (instant(row.updated)) }))
    }

    /// The resource of `DescribeStackResource`.
    pub(crate) fn detail(&self, row: &Resource) -> Map {
        with(self.of_stack(row), value!({ "LastUpdatedTimestamp": (instant(row.updated)) }))
    }

    fn of_stack(&self, row: &Resource) -> Map {
        let definition = self.view.blueprint.definitions().get(&row.name);
        let description = definition.map_or("", |definition| definition.description.as_str());
        let more = value!({
            "StackId": (arn(self.stack(), "")),
            "StackName": (&self.stack().name),
            "Description": description,
        });
        with(common(row), more)
    }
}

/// An entry of `ListStackResources`.
pub(crate) fn summary(row: &Resource) -> Map {
    with(common(row), value!({ "LastUpdatedTimestamp": (instant(row.updated)) }))
}

fn common(row: &Resource) -> Map {
    let shown = value!({
        "LogicalResourceId": (&row.name),
        "PhysicalResourceId": (row.physical_id.clone().unwrap_or_default()),
        "ResourceType": (&row.resource_type),
        "ResourceStatus": (state(row.state.action.as_str(), row.state.status)),
        "ResourceStatusReason": (&row.reason),
    });
    with(Map::new(), shown)
}

fn with(mut entries: Map, more: Value) -> Map {
    if let Value::Map(more) = more {
        entries.extend(more);
    }
    entries
}
