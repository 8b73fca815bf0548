//! The scans of the project.

use kiln_value::Value;

use super::Action;
use super::parameter::{PAGE, optional};
use crate::call::Call;
use crate::fault::Fault;
use crate::page;
use crate::resource_scan::{Head, KIND};
use crate::worksheet::read;

/// The handler asks for the rule of the REST call, too.
pub(super) static ACTION: Action = Action {
    name: "ListResourceScans",
    rule: "cloudformation:DescribeStackResources",
    parameters: &[&[optional("ScanTypeFilter", "FULL, or PARTIAL: only scans of some types")], PAGE],
    run: |call| Box::pin(run(call)),
};

async fn run(call: &Call) -> Result<Value, Fault> {
    call.allow("imports:scan")?;
    let wanted = call.params.get("ScanTypeFilter");
    let mut summaries = Vec::new();
    for sheet in call.all_kept(KIND).await? {
        let head: Head = read(&sheet.head)?;
        if wanted.is_none_or(|wanted| wanted == head.scan_type()) {
            let mut summary = head.summary(call, &sheet);
            summary.insert("ScanType".to_owned(), head.scan_type().into());
            summaries.push(Value::Map(summary));
        }
    }
    let id = |summary: &Value| summary.str_at("ResourceScanId").unwrap_or_default().to_owned();
    let (summaries, next) = page::marked(call, summaries, id)?;
    Ok(page::list("ResourceScanSummaries", summaries.into(), next))
}

#[cfg(test)]
mod tests {
    use crate::support::App;

    #[tokio::test]
    async fn scans_are_listed_newest_first_in_pages() {
        let app = App::new().await;
        let mut ids = Vec::new();
        for _ in 0..3 {
            ids.push(app.post("StartResourceScan", &[]).await.element("ResourceScanId").to_owned());
        }
        let page = app.get("ListResourceScans", &[("MaxResults", "2")]).await;
        assert!(page.text.find(&ids[2]) < page.text.find(&ids[1]) && !page.text.contains(&ids[0]), "{}", page.text);
        let page = app.get("ListResourceScans", &[("NextToken", page.element("NextToken"))]).await;
        assert_eq!(page.element("ResourceScanId"), ids[0]);
        assert!(!page.text.contains("NextToken"), "{}", page.text);
    }
}
