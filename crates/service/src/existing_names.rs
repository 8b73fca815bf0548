//! The names that exist in a cloud, for the error about one that does not.

use kiln_resource::translation::Lookup;
use kiln_resource::{Cloud, CloudRequest, Finder, Method, shipped};
use kiln_template::hint::nearest;
use kiln_value::{Diagnostic, Value};

/// Lists that are read for the errors of one request.
const MOST_LISTS: usize = 3;
/// Objects that are asked for.
const PAGE: &str = "200";
/// Names that a hint lists.
const MOST_NAMED: usize = 10;

/// Adds the names that exist to errors about lookups that found nothing (`missing`, each with its reason).
pub(crate) async fn hint_at_existing(cloud: &dyn Cloud, missing: &[(Lookup, String)], errors: &mut [Diagnostic]) {
    let mut lists = 0;
    for (Lookup { finder, value }, reason) in missing {
        let is_about = |error: &Diagnostic| !reason.is_empty() && error.text.ends_with(reason.as_str());
        let Some(finder) = shipped::finders().get(finder) else { continue };
        if lists == MOST_LISTS || !errors.iter().any(is_about) {
            continue;
        }
        lists += 1;
        let hints = hints(&names(cloud, finder).await, value);
        errors.iter_mut().filter(|error| is_about(error)).for_each(|error| error.hints.extend(hints.clone()));
    }
}

/// The names of the objects of a finder, as far as the first page has them; empty if the cloud does not answer.
async fn names(cloud: &dyn Cloud, finder: &Finder) -> Vec<String> {
    let Some(by) = &finder.by else { return Vec::new() };
    let mut request = CloudRequest::new(finder.service.as_str(), Method::Get, finder.collection.as_str());
    if finder.pages {
        request = request.query("limit", PAGE);
    }
    let Ok(answer) = cloud.call(request).await else { return Vec::new() };
    let mut lists = answer.body.as_map().into_iter().flatten().filter(|(key, _)| !key.ends_with("links"));
    let objects = lists.find_map(|(_, list)| list.as_list()).unwrap_or_default();
    // A key pair is in a map with one entry.
    let inner = |object: &'_ Value| object.as_map()?.values().next()?.str_at(by).map(str::to_owned);
    let name = |object: &Value| object.str_at(by).map(str::to_owned).or_else(|| inner(object));
    let mut names: Vec<String> = objects.iter().filter_map(name).filter(|name| !name.is_empty()).collect();
    names.sort();
    names.dedup();
    names
}

/// The nearest name, and what there is: names with the word in them come first.
fn hints(names: &[String], word: &str) -> Vec<String> {
    if names.is_empty() {
        return Vec::new();
    }
    let near = nearest(word, names.iter().map(String::as_str));
    let lower = word.to_lowercase();
    let mut shown: Vec<&str> = names.iter().map(String::as_str).collect();
    shown.sort_by_key(|name| (Some(*name) != near, !name.to_lowercase().contains(&lower)));
    let more = match shown.len().saturating_sub(MOST_NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    shown.truncate(MOST_NAMED);
    let near = near.map(|near| format!("did you mean {near}?"));
    near.into_iter().chain([format!("there is {}{more}", shown.join(", "))]).collect()
}
