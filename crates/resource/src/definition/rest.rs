//! The `rest` section of a definition file.

use std::time::Duration;

use kiln_value::number;

use super::node::{Node, dotted};
use crate::rest::{Adopt, Filter, Ready, Rest, RestCreate, RestDelete, RestPart, RestUpdate};
use crate::{Method, ResourceType};

/// The keys of the `rest` section.
pub(super) const KEYS: [&str; 16] = [
    "collection",
    "item",
    "member",
    "list",
    "id",
    "microversion",
    "name",
    "create",
    "update",
    "delete",
    "ready",
    "adopt",
    "filter",
    "bare",
    "busy",
    "parts",
];

/// The requests of a type; `None` if the collection is missing.
pub(super) fn read(node: &Node<'_>, resource_type: &ResourceType) -> Option<Rest> {
    node.only(&KEYS);
    let Some(collection) = node.text_at("collection") else {
        node.complain("missing key collection");
        return None;
    };
    let item = node.text_at("item").unwrap_or_else(|| format!("{collection}/{{id}}"));
    let last = collection.rsplit('/').next().unwrap_or_default();
    let name = match node.get("name") {
        Some(off) if off.value.as_bool() == Some(false) => None,
        Some(name) => name.text(),
        None => resource_type.properties.contains_key("name").then(|| "name".to_owned()),
    };
    if let Some(name) = name.as_ref().filter(|name| !resource_type.properties.contains_key(*name)) {
        node.complain(format!("unknown property {name}"));
    }
    let ready = node.get("ready").map(|ready| self::ready(&ready));
    let failed = ready.as_ref().map(|ready| ready.failed.clone()).unwrap_or_default();
    Some(Rest {
        member: node.text_at("member"),
        list: node.text_at("list").unwrap_or_else(|| last.to_owned()),
        id: node.text_at("id").unwrap_or_else(|| "id".to_owned()),
        microversion: node.text_at("microversion"),
        create: create(node.get("create"), &collection),
        update: node.get("update").and_then(|update| self::update(&update, &item)),
        delete: delete(node.get("delete"), &item, &failed),
        ready,
        adopt: adopt(node.get("adopt"), name.is_some(), resource_type.properties.contains_key("description")),
        filter: filter(node.get("filter")),
        bare: node.flag_at("bare", false),
        busy: node.texts_at("busy"),
        parts: node
            .get("parts")
            .map(|parts| parts.entries())
            .unwrap_or_default()
            .into_iter()
            .filter_map(|(name, node)| Some((name.to_owned(), part(name, &node)?)))
            .collect(),
        name,
        collection,
        item,
    })
}

fn filter(node: Option<Node<'_>>) -> Filter {
    let Some(node) = node else { return Filter::Values };
    if node.value.as_bool() == Some(false) {
        return Filter::Nothing;
    }
    if node.value.as_str() == Some("q") {
        return Filter::Query;
    }
    node.complain("filter must be q or false");
    Filter::Values
}

fn create(node: Option<Node<'_>>, collection: &str) -> RestCreate {
    let (path, nothing) = (collection.to_owned(), kiln_value::Map::new);
    let mut create = RestCreate { method: Method::Post, path, omit: Vec::new(), add: nothing(), query: nothing() };
    if let Some(node) = node {
        node.only(&["method", "path", "omit", "add", "query"]);
        create.method = method_at(&node).unwrap_or(create.method);
        create.path = node.text_at("path").unwrap_or(create.path);
        create.omit = node.texts_at("omit");
        create.query = node.get("query").and_then(|query| query.map()).unwrap_or_default();
        create.add = node.get("add").and_then(|add| add.map()).unwrap_or_default();
    }
    create
}

fn update(node: &Node<'_>, item: &str) -> Option<RestUpdate> {
    if node.value.as_str().is_some() {
        return Some(RestUpdate {
            method: method(node)?,
            path: item.to_owned(),
            omit: Vec::new(),
            whole: false,
            json_patch: false,
        });
    }
    node.only(&["method", "path", "omit", "whole", "json_patch"]);
    Some(RestUpdate {
        method: method_at(node).unwrap_or(Method::Put),
        path: node.text_at("path").unwrap_or_else(|| item.to_owned()),
        omit: node.texts_at("omit"),
        whole: node.flag_at("whole", false),
        json_patch: node.flag_at("json_patch", false),
    })
}

fn delete(node: Option<Node<'_>>, item: &str, failed: &[String]) -> RestDelete {
    let mut delete =
        RestDelete { path: item.to_owned(), wait: false, failed: failed.to_vec(), query: kiln_value::Map::new() };
    if let Some(node) = node {
        node.only(&["path", "wait", "failed", "query"]);
        if node.get("failed").is_some() {
            delete.failed = node.texts_at("failed");
        }
        delete.query = node.get("query").and_then(|query| query.map()).unwrap_or_default();
        delete.path = node.text_at("path").unwrap_or(delete.path);
        delete.wait = node.flag_at("wait", false);
    }
    delete
}

fn ready(node: &Node<'_>) -> Ready {
    node.only(&["at", "done", "updated", "failed", "waiting", "reason", "every"]);
    let seconds = node.get("every").map_or(Some(1.0), |every| number::to_f64(every.value));
    let every = seconds.and_then(|s| Duration::try_from_secs_f64(s).ok());
    if every.is_none() {
        node.complain("every must be a number of seconds");
    }
    let done = node.texts_at("done");
    if done.is_empty() {
        node.complain("done must contain at least one state");
    }
    Ready {
        at: dotted(&node.text_at("at").unwrap_or_else(|| "status".to_owned())),
        done,
        updated: node.texts_at("updated"),
        failed: node.texts_at("failed"),
        waiting: node.texts_at("waiting"),
        reason: node.text_at("reason").map(|path| dotted(&path)),
        every: every.unwrap_or(Duration::from_secs(1)),
    }
}

/// The default is the unique name, and a mark in the description if this is a property.
fn adopt(node: Option<Node<'_>>, named: bool, described: bool) -> Adopt {
    let by_name = Adopt { name: named, ..Adopt::default() };
    let Some(node) = node else {
        return Adopt { mark: described.then(|| "description".to_owned()), ..by_name };
    };
    if node.value.as_str() == Some("name") && named {
        return by_name;
    }
    if node.value.as_bool() == Some(false) {
        return Adopt::default();
    }
    if node.value.as_map().is_some() {
        node.only(&["id", "mark", "created", "listed", "match"]);
        return Adopt {
            id: node.flag_at("id", false),
            mark: node.text_at("mark"),
            created: node.text_at("created"),
            listed: node.flag_at("listed", false),
            key: node.texts_at("match"),
            ..by_name
        };
    }
    node.complain("adopt must be name (if the type has one), false, or a map with id, mark, created, listed or match");
    Adopt::default()
}

fn part(name: &str, node: &Node<'_>) -> Option<RestPart> {
    node.only(&["method", "path", "as"]);
    let Some(path) = node.text_at("path") else {
        node.complain("missing key path");
        return None;
    };
    Some(RestPart {
        method: method_at(node).unwrap_or(Method::Put),
        path,
        wire: node.text_at("as").unwrap_or_else(|| name.to_owned()),
    })
}

fn method_at(node: &Node<'_>) -> Option<Method> {
    method(&node.get("method")?)
}

fn method(node: &Node<'_>) -> Option<Method> {
    let method = match node.text()?.as_str() {
        "get" => Method::Get,
        "post" => Method::Post,
        "put" => Method::Put,
        "patch" => Method::Patch,
        "delete" => Method::Delete,
        _ => {
            node.complain("expected get, post, put, patch or delete");
            return None;
        }
    };
    Some(method)
}
