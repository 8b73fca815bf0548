//! The objects of a scan.

use kiln_value::Value;

use super::Action;
use super::parameter::{PAGE, RESOURCE_SCAN, optional};
use crate::call::Call;
use crate::fault::Fault;
use crate::page;
use crate::resource_scan::ScannedObject;

/// The handler asks for the rule of the REST call, too.
pub(super) static ACTION: Action = Action {
    name: "ListResourceScanResources",
    rule: "cloudformation:DescribeStackResources",
    parameters: &[
        &[
            RESOURCE_SCAN,
            optional(
                "ResourceIdentifier",
                "Only the objects with this ID or name; objects of stacks are found by their IDs",
            ),
            optional("ResourceTypePrefix", "Only types that begin so: OS::Neutron"),
            optional("TagKey", "Only objects in no stack with this tag, or with a tag KEY=VALUE with this key"),
            optional("TagValue", "Only objects in no stack with a tag KEY=VALUE with this value"),
        ],
        PAGE,
    ],
    run: |call| Box::pin(run(call)),
};

async fn run(call: &Call) -> Result<Value, Fault> {
    call.allow("imports:scan")?;
    let (_, _, body) = call.resource_scan().await?;
    let given = |name: &str| call.params.get(name);
    let (called, prefix) = (given("ResourceIdentifier"), given("ResourceTypePrefix"));
    let (key, value) = (given("TagKey"), given("TagValue"));
    let wanted = body.objects.iter().filter(|one| {
        called.is_none_or(|called| one.is_called(called))
            && prefix.is_none_or(|prefix| one.resource_type.starts_with(prefix))
            && (key.is_none() && value.is_none() || one.has_tag(key, value))
    });
    let (shown, next) = page::numbered(call, wanted)?;
    Ok(page::list("Resources", shown.into_iter().map(ScannedObject::view).collect(), next))
}

#[cfg(test)]
mod tests {
    use crate::support::App;

    #[tokio::test]
    async fn without_a_cloud_there_are_no_objects() {
        let app = App::new().await;
        let scan = app.post("StartResourceScan", &[]).await;
        let id = ("ResourceScanId", scan.element("ResourceScanId"));
        let listed = app.get("ListResourceScanResources", &[id, ("TagKey", "a")]).await;
        assert!(listed.status.as_u16() == 200 && listed.element("Resources").is_empty(), "{}", listed.text);
    }
}
