//! Scans the project. The scan is complete when the request is answered.

use kiln_value::{Value, value};
use kiln_view::import::scanned_types;

use super::Action;
use super::parameter::{TOKEN, optional};
use crate::call::Call;
use crate::fault::Fault;
use crate::resource_scan::{Body, Head, KIND, WORD};

/// Objects of a scan: larger ones are for filters.
const MOST: usize = 20_000;

/// The handler asks for the rule of the REST call, too.
pub(super) static ACTION: Action = Action {
    name: "StartResourceScan",
    rule: "cloudformation:DescribeStackResources",
    parameters: &[&[TOKEN, optional("ScanFilters", "Types of the only entry: only these, such as OS::Nova::*")]],
    run: |call| Box::pin(run(call)),
};

async fn run(call: &Call) -> Result<Value, Fault> {
    call.allow("imports:scan")?;
    let filter = filter(call)?;
    let is_wanted = |kind: &str| filter.is_empty() || filter.iter().any(|pattern| fits(pattern, kind));
    let began = call.backends().clock.now();
    let inventory = call.service().inventory(&call.caller).await?;
    let body = Body::of(&inventory, is_wanted);
    if body.objects.len() > MOST {
        let text = format!("The project has more than {MOST} objects: scan some types of them");
        return Err(Fault { code: "ResourceScanLimitExceeded", ..Fault::validation(text) });
    }
    let unlisted = inventory.scan.unlisted.into_iter().filter(|(kind, _)| is_wanted(kind)).collect();
    let head = Head {
        began,
        ended: call.backends().clock.now(),
        types: body.objects.iter().map(|one| one.resource_type.clone()).collect(),
        number: body.objects.len(),
        unlisted,
        filter,
    };
    let id = call.keep(KIND, None, (&head, &body)).await?;
    Ok(value!({ "ResourceScanId": (call.kept_arn(WORD, id)) }))
}

/// `ScanFilters.member.1.Types.member.N=…`.
fn filter(call: &Call) -> Result<Vec<String>, Fault> {
    let filters = call.params.members("ScanFilters");
    if filters.len() > 1 {
        return Err(Fault::validation("A scan has one filter at most"));
    }
    let types = filters.into_values().flatten().filter(|(field, _)| field.starts_with("Types.member."));
    let types: Vec<String> = types.map(|(_, pattern)| pattern.to_owned()).collect();
    match types.iter().find(|pattern| !scanned_types().any(|kind| fits(pattern, kind))) {
        Some(other) => Err(Fault::invalid(&format!("a scan finds no objects of the type {other}"))),
        None => Ok(types),
    }
}

/// Whether a type fits a pattern: `OS::Nova::*`.
fn fits(pattern: &str, kind: &str) -> bool {
    pattern.strip_suffix('*').map_or_else(|| kind == pattern, |prefix| kind.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use crate::support::App;

    #[tokio::test]
    async fn a_scan_is_kept_with_its_filter() {
        let app = App::new().await;
        let filter = [
            ("ScanFilters.member.1.Types.member.1", "OS::Nova::*"),
            ("ScanFilters.member.1.Types.member.2", "OS::Neutron::Port"),
        ];
        let started = app.post("StartResourceScan", &filter).await;
        let id = started.element("ResourceScanId").to_owned();
        assert!(id.starts_with("arn:openstack:heat::tenant1:resourceScan/"), "{id}");
        let shown = app.get("DescribeResourceScan", &[("ResourceScanId", &id)]).await;
        assert_eq!((shown.element("ResourceScanId"), shown.element("Status")), (id.as_str(), "COMPLETE"));
        assert!(shown.text.contains("<Types><member>OS::Nova::*</member>"), "{}", shown.text);
        let listed = app.get("ListResourceScans", &[("ScanTypeFilter", "PARTIAL")]).await;
        assert!(listed.text.contains(&id), "{}", listed.text);
        let listed = app.get("ListResourceScans", &[("ScanTypeFilter", "FULL")]).await;
        assert!(!listed.text.contains(&id), "{}", listed.text);
    }

    #[tokio::test]
    async fn a_filter_names_types_that_a_scan_finds() {
        let app = App::new().await;
        let refused = app.post("StartResourceScan", &[("ScanFilters.member.1.Types.member.1", "OS::Trove::*")]).await;
        assert!(refused.element("Message").contains("no objects of the type OS::Trove::*"), "{}", refused.text);
        let two = ["1", "2"].map(|number| format!("ScanFilters.member.{number}.Types.member.1"));
        let two = [(two[0].as_str(), "OS::Nova::*"), (two[1].as_str(), "OS::Nova::*")];
        assert_eq!(app.post("StartResourceScan", &two).await.element("Code"), "ValidationError");
    }
}
