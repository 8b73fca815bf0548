//! A scan.

use kiln_value::{Value, value};

use super::Action;
use super::parameter::RESOURCE_SCAN;
use crate::call::Call;
use crate::fault::Fault;

/// The handler asks for the rule of the REST call, too.
pub(super) static ACTION: Action = Action {
    name: "DescribeResourceScan",
    rule: "cloudformation:DescribeStackResources",
    parameters: &[&[RESOURCE_SCAN]],
    run: |call| Box::pin(run(call)),
};

async fn run(call: &Call) -> Result<Value, Fault> {
    call.allow("imports:scan")?;
    let (sheet, head, _) = call.resource_scan().await?;
    let mut shown = head.summary(call, &sheet);
    let number = i64::try_from(head.number).unwrap_or(i64::MAX);
    let filters: Vec<Value> = match head.filter.as_slice() {
        [] => Vec::new(),
        types => vec![value!({ "Types": (types.iter().collect::<Value>()) })],
    };
    let more = value!({
        "ResourceTypes": (head.types.iter().collect::<Value>()),
        "ResourcesScanned": number,
        "ResourcesRead": number,
        "ScanFilters": filters,
    });
    shown.extend(more.as_map().cloned().unwrap_or_default());
    Ok(shown.into())
}

#[cfg(test)]
mod tests {
    use crate::support::App;

    #[tokio::test]
    async fn a_scan_that_does_not_exist_has_a_code_of_its_own() {
        let app = App::new().await;
        let foreign = "arn:openstack:heat::tenant2:resourceScan/3f2504e0-4f89-41d3-9a0c-0305e82c3301";
        for id in ["none", foreign, &foreign.replace("tenant2", "tenant1")] {
            for action in ["DescribeResourceScan", "ListResourceScanResources"] {
                let missing = app.get(action, &[("ResourceScanId", id)]).await;
                assert_eq!((missing.status.as_u16(), missing.element("Code")), (400, "ResourceScanNotFound"));
            }
        }
    }
}
