//! The generated templates of the project.

use kiln_value::Value;

use super::Action;
use super::parameter::PAGE;
use crate::call::Call;
use crate::fault::Fault;
use crate::generated_template::{Head, KIND};
use crate::page;
use crate::worksheet::read;

/// The handler asks for the rule of the REST call, too.
pub(super) static ACTION: Action = Action {
    name: "ListGeneratedTemplates",
    rule: "cloudformation:DescribeStackResources",
    parameters: &[PAGE],
    run: |call| Box::pin(run(call)),
};

async fn run(call: &Call) -> Result<Value, Fault> {
    call.allow("imports:write")?;
    let (sheets, next) = page::marked(call, call.all_kept(KIND).await?, |sheet| sheet.id.to_string())?;
    let mut summaries = Vec::with_capacity(sheets.len());
    for sheet in &sheets {
        let head: Head = read(&sheet.head)?;
        let mut summary = head.summary(call, sheet);
        let number = i64::try_from(head.number).unwrap_or(i64::MAX);
        summary.insert("NumberOfResources".to_owned(), number.into());
        summaries.push(Value::Map(summary));
    }
    Ok(page::list("Summaries", summaries.into(), next))
}

#[cfg(test)]
mod tests {
    use crate::support::App;

    #[tokio::test]
    async fn templates_are_listed_newest_first_in_pages() {
        let app = App::new().await;
        for name in ["one", "two", "three"] {
            let made = app.post("CreateGeneratedTemplate", &[("GeneratedTemplateName", name)]).await;
            assert_eq!(made.status.as_u16(), 200, "{}", made.text);
        }
        let page = app.get("ListGeneratedTemplates", &[("MaxResults", "2")]).await;
        assert_eq!((page.element("GeneratedTemplateName"), page.element("NumberOfResources")), ("three", "0"));
        let page = app.get("ListGeneratedTemplates", &[("NextToken", page.element("NextToken"))]).await;
        assert_eq!(page.element("GeneratedTemplateName"), "one");
    }
}
