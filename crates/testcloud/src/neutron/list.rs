//! Lists: filters, selected fields, sorting and paging.

use serde_json::{Value, json};

use super::attributes::{Noun, boolean};
use super::refusal;
use crate::reply::{Outcome, Refusal, Reply};
use crate::request::ServiceCall;
use crate::state::CloudState;
use crate::table::{Fields, Row, Table};

/// Query parameters that are not filters.
const CONTROLS: [&str; 7] = ["fields", "limit", "marker", "page_reverse", "sort_key", "sort_dir", "verbose"];

/// Lists the rows that `visible` allows the caller to see, formatted by `show`.
pub(super) fn answer(
    world: &CloudState,
    request: &ServiceCall,
    noun: &Noun,
    table: &Table,
    visible: impl Fn(&Row) -> bool,
    show: impl Fn(&CloudState, &Row) -> Row,
) -> Outcome {
    let filters = filters(request, noun)?;
    // Several values would change the order of the table.
    let indexed = filters
        .iter()
        .filter(|(_, values)| values.len() == 1)
        .find_map(|(name, values)| table.index_of(name).map(|field| (field, values)));
    let single = filters.iter().find(|(name, _)| *name == "id");
    let rows: Box<dyn Iterator<Item = &Row>> = match (single, indexed) {
        (Some((_, ids)), _) => Box::new(ids.iter().filter_map(|id| table.get(id.as_str()?))),
        (None, Some((field, values))) => {
            Box::new(values.iter().filter_map(Value::as_str).flat_map(move |value| table.by(field, value)))
        }
        (None, None) => Box::new(table.iter()),
    };
    let fits = |row: &Row| visible(row) && filters.iter().all(|(name, values)| matches(row, name, values));
    let mut rows: Vec<&Row> = rows.filter(|row| fits(row)).collect();
    let keys = request.query.iter().filter(|(name, _)| name == "sort_key").map(|(_, key)| key.as_str());
    let directions: Vec<&str> =
        request.query.iter().filter(|(name, _)| name == "sort_dir").map(|(_, direction)| direction.as_str()).collect();
    // Sort by the last key first: sorting is stable.
    for (at, key) in keys.enumerate().collect::<Vec<_>>().into_iter().rev() {
        rows.sort_by_key(|row| row.get(key).map(sortable).unwrap_or_default());
        if directions.get(at).or(directions.last()) == Some(&"desc") {
            rows.reverse();
        }
    }
    if let Some(marker) = request.param("marker") {
        let at = rows.iter().position(|row| row.text("id") == marker);
        let at = at.ok_or_else(|| {
            refusal(400, "BadRequest", format!("Bad {} request: Marker {marker} could not be found.", noun.one))
        })?;
        rows.drain(..=at);
    }
    let limit = request.param("limit").map(|limit| {
        let invalid = || {
            refusal(
                400,
                "BadRequest",
                format!("Bad limit request: Limit must be an integer 0 or greater and not '{limit}'."),
            )
        };
        limit.parse::<usize>().map_err(|_| invalid())
    });
    let more = match limit.transpose()? {
        Some(limit) if limit > 0 && rows.len() >= limit => {
            rows.truncate(limit);
            true
        }
        _ => false,
    };
    let mut reply = json!({});
    if more && let Some(last) = rows.last() {
        let rest = request.query.iter().filter(|(name, _)| name != "marker");
        let query = rest.fold(String::new(), |query, (name, value)| query + name + "=" + value + "&");
        let link = format!("{}/network/v2.0{}?{query}marker={}", world.base, request.local_path(), last.text("id"));
        reply[format!("{}_links", noun.many)] = json!([{"rel": "next", "href": link}]);
    }
    let shown: Vec<Value> = rows.into_iter().map(|row| Value::Object(pick(request, show(world, row)))).collect();
    reply[noun.many] = Value::Array(shown);
    Ok(Reply::ok(reply))
}

/// Only the `fields` of the query.
pub(super) fn pick(request: &ServiceCall, row: Row) -> Row {
    let wanted: Vec<&str> =
        request.query.iter().filter(|(name, _)| name == "fields").map(|(_, field)| field.as_str()).collect();
    if wanted.is_empty() { row } else { row.into_iter().filter(|(name, _)| wanted.contains(&name.as_str())).collect() }
}

/// The filters of a query, grouped by name.
fn filters<'a>(request: &'a ServiceCall, noun: &Noun) -> Result<Vec<(&'a str, Vec<Value>)>, Refusal> {
    let mut filters: Vec<(&str, Vec<Value>)> = Vec::new();
    for (name, value) in request.query.iter().filter(|(name, _)| !CONTROLS.contains(&name.as_str())) {
        let name = match name.as_str() {
            "tenant_id" => "project_id",
            name => name,
        };
        let extra = matches!(name, "tags" | "tags-any" | "not-tags" | "not-tags-any" | "changed_since");
        if !(extra || noun.has(name)) {
            let message = format!("['{name}'] is invalid attribute for filtering");
            return Err(refusal(400, "HTTPBadRequest", message));
        }
        let text = Value::from(value.as_str());
        let value = if noun.is_bool(name) { boolean(&text)? } else { text };
        match filters.iter_mut().find(|(known, _)| *known == name) {
            Some((_, values)) => values.push(value),
            None => filters.push((name, vec![value])),
        }
    }
    Ok(filters)
}

fn matches(row: &Row, name: &str, values: &[Value]) -> bool {
    let tags = |any: bool| {
        let own = row.texts("tags");
        let mut wanted = values.iter().filter_map(Value::as_str).flat_map(|text| text.split(','));
        let has = |tag: &str| own.iter().any(|own| own == tag);
        if any { wanted.any(has) } else { wanted.all(has) }
    };
    match name {
        "tags" => return tags(false),
        "tags-any" => return tags(true),
        "not-tags" => return !tags(false),
        "not-tags-any" => return !tags(true),
        "fixed_ips" => return values.iter().filter_map(Value::as_str).all(|wanted| has_fixed_ip(row, wanted)),
        _ => {}
    }
    let actual = row.get(name).unwrap_or(&Value::Null);
    values.iter().any(|wanted| match actual {
        Value::Array(items) => items.contains(wanted),
        Value::Null => wanted.as_str().is_some_and(str::is_empty),
        Value::Number(number) => wanted.as_str() == Some(number.to_string().as_str()),
        actual => actual == wanted,
    })
}

/// Matches `ip_address=10.0.0.3` or `subnet_id=…` with a port.
fn has_fixed_ip(row: &Row, wanted: &str) -> bool {
    let (field, value) = wanted.split_once('=').unwrap_or(("ip_address", wanted));
    row.list("fixed_ips").iter().any(|ip| ip.get(field).and_then(Value::as_str) == Some(value))
}

fn sortable(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => format!("{:020}", number.as_i64().unwrap_or_default()),
        other => other.to_string(),
    }
}
