//! The resources of a stack, compared with their objects.

use kiln_value::Value;

use super::Action;
use super::parameter::{PAGE, STACK_NAME, optional};
use crate::call::Call;
use crate::fault::Fault;
use crate::page::{self, Page};
use crate::view::property_differences::resource;

pub(super) static ACTION: Action = Action {
    name: "DescribeStackResourceDrifts",
    rule: "cloudformation:DescribeStackResources",
    parameters: &[
        &[STACK_NAME, optional("StackResourceDriftStatusFilters", "Only resources with these statuses")],
        PAGE,
    ],
    run: |call| Box::pin(run(call)),
};

async fn run(call: &Call) -> Result<Value, Fault> {
    let wanted = call.params.list("StackResourceDriftStatusFilters");
    let page: Page<String> = Page::of(call)?;
    let compared = call.service().drift(call.stack().await?, &[]).await?;
    let mut shown: Vec<_> = compared.resources.iter().collect();
    shown.retain(|one| wanted.is_empty() || wanted.contains(&one.drift.status().0));
    shown.sort_by(|one, other| one.row.name.cmp(&other.row.name));
    if let Some(marker) = &page.marker {
        shown.retain(|one| one.row.name > *marker);
    }
    let next = page.cut(&mut shown, |last| last.row.name.clone());
    Ok(page::list("StackResourceDrifts", shown.iter().map(|one| resource(call, &compared, one)).collect(), next))
}

#[cfg(test)]
mod tests {
    use crate::support::App;

    #[tokio::test]
    async fn a_resource_that_is_not_made_yet_has_no_drift() {
        let app = App::new().await;
        app.create("app").await;
        let drifts = app.get("DescribeStackResourceDrifts", &[("StackName", "app")]).await;
        assert!(drifts.status.as_u16() == 200 && !drifts.text.contains("LogicalResourceId"), "{}", drifts.text);
        let refused = app.get("DescribeStackResourceDrifts", &[("StackName", "none")]).await;
        assert_eq!((refused.status.as_u16(), refused.element("Code")), (400, "ValidationError"));
    }
}
