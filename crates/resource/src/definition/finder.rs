//! The sections `finder` and `finders` of a definition file.

use super::node::Node;
use crate::ResourceType;
use crate::finder::{Complaint, Finder, FinderClient, Ids, Missing, Several};
use kiln_value::{Class, text};

/// The keys of a finder.
pub(super) const KEYS: [&str; 16] = [
    "name",
    "by",
    "ids",
    "client",
    "word",
    "service",
    "extension",
    "collection",
    "item",
    "id",
    "filter",
    "pages",
    "query",
    "within",
    "missing",
    "several",
];

/// The finder of the objects of a type; `None` if a key is missing or wrong. A text is the name.
pub(super) fn read(node: &Node<'_>, this: &ResourceType) -> Option<Finder> {
    if node.value.as_str().is_some() {
        let name = node.text()?;
        return finder(node, name, &|_| None, this, true);
    }
    node.only(&KEYS);
    finder(node, named(node)?, &|key| node.get(key), this, true)
}

/// The finder of objects that no type creates.
pub(super) fn read_other(node: &Node<'_>, this: &ResourceType) -> Option<Finder> {
    node.only(&KEYS);
    finder(node, named(node)?, &|key| node.get(key), this, false)
}

fn named(node: &Node<'_>) -> Option<String> {
    let name = node.text_at("name");
    if name.is_none() {
        node.complain("missing key name");
    }
    name
}

/// `is_own`: for what is not given, the requests of the type are meant.
fn finder<'a>(
    node: &Node<'a>,
    name: String,
    get: &dyn Fn(&str) -> Option<Node<'a>>,
    this: &ResourceType,
    is_own: bool,
) -> Option<Finder> {
    let text = |key: &str| get(key)?.text();
    let rest = this.rest.as_ref().filter(|_| is_own);
    let Some(service) = text("service").or_else(|| this.service.first().cloned()) else {
        node.complain("a finder requires the key service, here or of the type");
        return None;
    };
    let Some(collection) = text("collection").or_else(|| Some(rest?.collection.clone())) else {
        node.complain(if is_own {
            "a finder requires the key collection, here or in a rest section"
        } else {
            "missing key collection"
        });
        return None;
    };
    let client = get("client").map_or(FinderClient::Heat, |node| client(&node));
    let of_client = || match client {
        FinderClient::Neutron | FinderClient::NeutronExtension => rest.and_then(|rest| rest.member.clone()),
        FinderClient::Heat | FinderClient::Osc | FinderClient::Sdk => None,
    };
    let flag = |key: &str, default: bool| get(key).and_then(|node| node.flag()).unwrap_or(default);
    let has_id = get("id").is_none_or(|id| id.value.as_bool() != Some(false));
    let by = match get("by") {
        None => Some("name".to_owned()),
        Some(by) if by.value.as_bool() == Some(false) => None,
        Some(by) => by.text(),
    };
    Some(Finder {
        name,
        service,
        extension: text("extension"),
        item: text("item").unwrap_or_else(|| format!("{collection}/{{id}}")),
        collection,
        id: has_id.then(|| text("id").or_else(|| Some(rest?.id.clone())).unwrap_or_else(|| "id".to_owned())),
        ids: get("ids").map_or(Ids::Read, |node| ids(&node)),
        by,
        filter: flag("filter", true),
        pages: flag("pages", false),
        query: get("query").map(|node| query(&node)).unwrap_or_default(),
        within: get("within").and_then(|node| within(&node)),
        client,
        word: text("word").or_else(of_client).unwrap_or_else(|| this.class.clone()),
        missing: get("missing").map_or(Missing::Usual, |node| match node.value.as_bool() {
            Some(false) => Missing::Response,
            _ => complaint(&node).map(Missing::Custom).unwrap_or_default(),
        }),
        several: get("several").map_or(Several::Usual, |node| match node.value.as_str() {
            Some("first") => Several::First,
            Some("missing") => Several::Missing,
            _ => complaint(&node).map(Several::Custom).unwrap_or_default(),
        }),
    })
}

fn ids(node: &Node<'_>) -> Ids {
    match (node.value.as_str(), node.value.as_bool()) {
        (Some("read"), _) => Ids::Read,
        (Some("uuid"), _) => Ids::Uuid,
        (Some("taken"), _) => Ids::Taken,
        (Some("url"), _) => Ids::Url,
        (Some("list"), _) => Ids::List,
        (_, Some(false)) => Ids::Never,
        _ => {
            node.complain("expected read, uuid, taken, url, list or false");
            Ids::Read
        }
    }
}

fn query(node: &Node<'_>) -> Vec<(String, String)> {
    node.entries().into_iter().map(|(key, value)| (key.to_owned(), text::str(value.value))).collect()
}

fn within(node: &Node<'_>) -> Option<(String, String)> {
    let entries = node.entries();
    if let [(key, finder)] = entries.as_slice() {
        return Some(((*key).to_owned(), finder.text()?));
    }
    node.complain("expected one entry: a query parameter with the name of a finder");
    None
}

/// `Class: text`.
fn complaint(node: &Node<'_>) -> Option<Complaint> {
    let text = node.text()?;
    match text.split_once(": ") {
        Some((class, text)) if !class.is_empty() && class.bytes().all(|b| b.is_ascii_alphanumeric()) => {
            Some(Complaint { class: Class::of(class.to_owned()), text: text.to_owned() })
        }
        _ => {
            node.complain("expected the class of the error, a colon and its text: 'NotFound: There is no {value}.'");
            None
        }
    }
}

fn client(node: &Node<'_>) -> FinderClient {
    match node.value.as_str() {
        Some("heat") => FinderClient::Heat,
        Some("osc") => FinderClient::Osc,
        Some("sdk") => FinderClient::Sdk,
        Some("neutron") => FinderClient::Neutron,
        Some("neutron_extension") => FinderClient::NeutronExtension,
        _ => {
            node.complain("expected heat, osc, sdk, neutron or neutron_extension");
            FinderClient::Heat
        }
    }
}
