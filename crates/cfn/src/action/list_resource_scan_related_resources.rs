//! What belongs together with objects of a scan.

use std::collections::BTreeSet;

use kiln_value::Value;

use super::Action;
use super::parameter::{PAGE, RESOURCE_SCAN, required};
use crate::call::Call;
use crate::fault::Fault;
use crate::resource_scan::ScannedObject;
use crate::{input, page};

/// The handler asks for the rule of the REST call, too.
pub(super) static ACTION: Action = Action {
    name: "ListResourceScanRelatedResources",
    rule: "cloudformation:DescribeStackResources",
    parameters: &[&[RESOURCE_SCAN, required("Resources", "ResourceType and ResourceIdentifier of objects")], PAGE],
    run: |call| Box::pin(run(call)),
};

async fn run(call: &Call) -> Result<Value, Fault> {
    call.allow("imports:scan")?;
    let (_, _, body) = call.resource_scan().await?;
    let mut places = BTreeSet::new();
    for (_, object) in input::objects(&call.params, "Resources")? {
        let is_it = |one: &ScannedObject| one.resource_type == object.resource_type && one.id == object.physical_id;
        let place = body.objects.iter().position(is_it);
        let missing = || format!("The scan has no {} {}", object.resource_type, object.physical_id);
        places.insert(place.ok_or_else(|| Fault::validation(missing()))?);
    }
    let (shown, next) = page::numbered(call, body.related(&places))?;
    Ok(page::list("RelatedResources", shown.into_iter().map(ScannedObject::view).collect(), next))
}

#[cfg(test)]
mod tests {
    use crate::support::App;

    #[tokio::test]
    async fn objects_of_the_scan_are_given() {
        let app = App::new().await;
        let scan = app.post("StartResourceScan", &[]).await;
        let id = ("ResourceScanId", scan.element("ResourceScanId"));
        let refused = app.get("ListResourceScanRelatedResources", &[id]).await;
        assert_eq!(refused.element("Code"), "MissingParameter", "{}", refused.text);
        let net = [
            id,
            ("Resources.member.1.ResourceType", "OS::Neutron::Net"),
            ("Resources.member.1.ResourceIdentifier.entry.1.key", "PhysicalResourceId"),
            ("Resources.member.1.ResourceIdentifier.entry.1.value", "n-1"),
        ];
        let refused = app.get("ListResourceScanRelatedResources", &net).await;
        assert!(refused.element("Message").contains("no OS::Neutron::Net n-1"), "{}", refused.text);
    }
}
