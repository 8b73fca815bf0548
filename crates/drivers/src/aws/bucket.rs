//! AWS::S3::Bucket

use async_trait::async_trait;
use kiln_resource::{Context, Driver, Facts, Failure, FailureKind, Found, Method, Operation, Step, TypeRules};
use kiln_value::{Class, Map, Value, text, value};

use crate::call::SWIFT;
use crate::call::absent_is_fine;
use crate::queue;
use crate::swift::object;

/// A container of Swift. Its name is its ID and unique.
pub(super) struct Bucket;

/// The headers of the container: tags, website and access.
async fn headers(cx: &Context<'_>) -> Result<Vec<(String, String)>, Failure> {
    let facts = cx.facts;
    let mut headers = Vec::new();
    for tag in facts.property("Tags").as_list().unwrap_or_default() {
        let [key, value] = ["Key", "Value"].map(|name| tag.get(name).map(text::str).unwrap_or_default());
        headers.push((format!("{TAG}{key}"), value));
    }
    for (name, header) in
        [("IndexDocument", "X-Container-Meta-Web-Index"), ("ErrorDocument", "X-Container-Meta-Web-Error")]
    {
        let document = facts.property("WebsiteConfiguration").get(name).filter(|document| !document.is_null());
        headers.extend(document.map(|document| (header.to_owned(), text::str(document))));
    }
    let owner = cx.cloud.account_names().await?;
    let user = format!("{}:{}", owner.project, owner.user);
    let access = facts.property("AccessControl").as_str().unwrap_or_default();
    let read = match access {
        "PublicRead" | "PublicReadWrite" => ".r:*",
        "AuthenticatedRead" => &owner.project,
        _ => &user,
    };
    headers.push(("X-Container-Read".to_owned(), read.to_owned()));
    let write = if access == "PublicReadWrite" { ".r:*" } else { &user };
    headers.push(("X-Container-Write".to_owned(), write.to_owned()));
    Ok(headers)
}

/// The headers of tags.
const TAG: &str = "X-Container-Meta-S3-Tag-";

/// The tags of a container: the given ones by their names, then those of others.
fn tags(given: &Value, headers: &Map) -> Value {
    let given: Vec<String> =
        given.as_list().unwrap_or_default().iter().filter_map(|tag| tag.get("Key")).map(text::str).collect();
    let (header, front) = (|key: &str| object::header_name(&format!("{TAG}{key}")), object::header_name(TAG));
    let own = given.iter().filter_map(|key| Some((key.as_str(), headers.get(&header(key))?)));
    let is_other = |name: &str| !given.iter().any(|key| header(key).strip_prefix(&front) == Some(name));
    let others = headers.iter().filter_map(|(name, value)| Some((name.strip_prefix(&front)?, value)));
    let all = own.chain(others.filter(|(name, _)| is_other(name)));
    all.map(|(key, value)| value!({"Key": key, "Value": (value.clone())})).collect()
}

/// The access control list that the headers of a container mean: as given, if several mean this; the text of the list, if
/// none does.
fn access(given: &Value, project: &str, headers: &Map) -> Value {
    let list = |name: &str| object::header(headers, name).and_then(Value::as_str).unwrap_or_default();
    let (read, write) = (list("x-container-read"), list("x-container-write"));
    // The user who created the container may be another one.
    let is_user = |list: &str| {
        let user = list.strip_prefix(project).and_then(|rest| rest.strip_prefix(':'));
        user.is_some_and(|user| !user.contains([',', ':', '*']))
    };
    let private = ["Private", "BucketOwnerRead", "BucketOwnerFullControl"];
    match (read, write) {
        (".r:*", ".r:*") => "PublicReadWrite".into(),
        (".r:*", write) if is_user(write) => "PublicRead".into(),
        (read, write) if read == project && is_user(write) => "AuthenticatedRead".into(),
        (read, write) if is_user(read) && is_user(write) => {
            let given = given.as_str().filter(|given| private.contains(given));
            given.unwrap_or("Private").into()
        }
        _ => format!("{read} {write}").into(),
    }
}

async fn delete(cx: &Context<'_>, name: &str) -> Result<(), Failure> {
    match cx.cloud.call(object::request(Method::Delete, object::container_path(name), &[])).await {
        Err(failure) if failure.kind == FailureKind::Conflict => {
            if object::names(cx, name, "").await?.is_empty() {
                return Err(failure);
            }
            let text = format!("The bucket you tried to delete is not empty ({name}). is not supported for resource.");
            Err(Failure::other(Class::ResourceActionNotSupported, text))
        }
        outcome => absent_is_fine(outcome),
    }
}

impl TypeRules for Bucket {
    fn reference(&self, facts: &Facts) -> Value {
        facts.physical_id.as_deref().unwrap_or("None").into()
    }
}

#[async_trait]
impl Driver for Bucket {
    async fn start(&self, cx: &Context<'_>, operation: &Operation) -> Result<Step, Failure> {
        match operation {
            // The ID is stored before the first call, which is idempotent.
            Operation::Create => Ok(queue::now("put").id(cx.facts.physical_name.as_str())),
            Operation::Delete => match cx.facts.physical_id.as_deref() {
                Some(name) => delete(cx, name).await.map(|()| Step::done()),
                None => Ok(Step::done()),
            },
            Operation::Check => {
                let path = object::container_path(cx.facts.require_id()?);
                cx.cloud.call(object::request(Method::Head, path, &[])).await.map(|_| Step::done())
            }
            _ => Ok(Step::done()),
        }
    }

    async fn poll(&self, cx: &Context<'_>, _: &Operation, _: &Value) -> Result<Step, Failure> {
        let path = object::container_path(cx.facts.require_id()?);
        let mut request = object::request(Method::Put, path, &[]);
        request.headers = headers(cx).await?;
        cx.cloud.call(request).await.map(|_| Step::done())
    }

    /// No call is made before the ID is stored.
    async fn find(&self, _: &Context<'_>) -> Result<Found, Failure> {
        Ok(Found::NotMade)
    }

    async fn live(&self, cx: &Context<'_>) -> Result<Map, Failure> {
        let path = object::container_path(cx.facts.require_id()?);
        let headers = cx.cloud.call(object::request(Method::Head, path, &[])).await?.headers;
        let given = |name: &str| cx.facts.property(name);
        let document = |name: &str| object::header(&headers, &format!("x-container-meta-web-{name}")).cloned();
        let website = value!({"IndexDocument": (document("index")), "ErrorDocument": (document("error"))});
        let mut live = Map::from([
            ("WebsiteConfiguration".to_owned(), website),
            ("Tags".to_owned(), tags(given("Tags"), &headers)),
        ]);
        if given("AccessControl").is_truthy() {
            let owner = cx.cloud.account_names().await?;
            live.insert("AccessControl".to_owned(), access(given("AccessControl"), &owner.project, &headers));
        }
        Ok(live)
    }

    async fn attributes(&self, cx: &Context<'_>, names: &[&str]) -> Result<Map, Failure> {
        let url = cx.cloud.endpoint(SWIFT.0).await?.unwrap_or_default();
        let host = url.split("://").nth(1).and_then(|rest| rest.split(['/', ':']).next()).unwrap_or_default();
        let id = cx.facts.physical_id.as_deref().unwrap_or("None");
        let value = |name: &str| match name {
            "DomainName" => host.into(),
            "WebsiteURL" => format!("{}/{id}", url.trim_end_matches('/')).into(),
            _ => Value::Null,
        };
        Ok(names.iter().map(|name| ((*name).to_owned(), value(name))).collect())
    }
}
