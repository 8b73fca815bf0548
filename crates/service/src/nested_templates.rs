//! The templates of `AWS::CloudFormation::Stack`: they become files of the stack when it is requested, because engines
//! read no URLs.

use std::collections::BTreeSet;
use std::sync::Arc;

use kiln_plan::Sources;
use kiln_template::source;
use kiln_value::Value;

use crate::{Error, Service};

const STACK: &str = "AWS::CloudFormation::Stack";

/// More templates are not read for one request.
const MAX: usize = 32;

/// The URLs in a template that stand in it as they are.
fn urls(template: &Value) -> Vec<String> {
    let resources = ["resources", "Resources"].iter().filter_map(|words| template.get(words)?.as_map());
    let stacks = resources.flat_map(kiln_value::Map::values).filter(|resource| {
        let kind = resource.str_at("type").or_else(|| resource.str_at("Type"));
        kind == Some(STACK)
    });
    let properties = stacks.filter_map(|stack| stack.get("properties").or_else(|| stack.get("Properties")));
    properties.filter_map(|properties| properties.str_at("TemplateURL").map(str::to_owned)).collect()
}

impl Service {
    /// Adds the templates of nested stacks that are no files yet, if the operator allows URLs. Without them, the nested
    /// stack is refused.
    pub(crate) async fn with_nested_templates(&self, sources: Sources) -> Result<Sources, Error> {
        if self.templates.is_none() {
            return Ok(sources);
        }
        let mut files = Arc::clone(&sources.files);
        let (mut waiting, mut seen, mut read) = (urls(&sources.template), BTreeSet::new(), 0_usize);
        while let Some(url) = waiting.pop() {
            if !seen.insert(url.clone()) {
                continue;
            }
            if files.get(&url).is_none() && (url.starts_with("http://") || url.starts_with("https://")) {
                read = read.saturating_add(1);
                if read > MAX {
                    return Err(Error::TemplateUrl(format!("a stack has more than {MAX} nested templates")));
                }
                let text = self.template_at(&url).await?;
                Arc::make_mut(&mut files).0.insert(url.clone(), text);
            }
            let inner = files.get(&url).and_then(|text| source::parse(text, &url, self.options.limits.template).ok());
            waiting.extend(inner.map(|document| urls(&document.value)).unwrap_or_default());
        }
        Ok(Sources { files, ..sources })
    }
}
