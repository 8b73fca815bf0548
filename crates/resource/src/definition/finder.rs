//! The `finder` section of a definition file.

use super::node::Node;
use crate::ResourceType;
use crate::finder::{Finder, FinderClient};

/// The keys of the section.
pub(super) const KEYS: [&str; 7] = ["name", "by", "client", "word", "extension", "collection", "id"];

/// The finder of a type; `None` if a key is missing or wrong. A text is the name.
pub(super) fn read(node: &Node<'_>, this: &ResourceType) -> Option<Finder> {
    let is_short = node.value.as_str().is_some();
    if !is_short {
        node.only(&KEYS);
    }
    let text = |key: &str| if is_short { None } else { node.text_at(key) };
    let Some(name) = (if is_short { node.text() } else { node.text_at("name") }) else {
        node.complain("missing key name");
        return None;
    };
    let Some(service) = this.service.first().cloned() else {
        node.complain("a finder requires the key service of the type");
        return None;
    };
    let rest = this.rest.as_ref();
    let Some(collection) = text("collection").or_else(|| Some(rest?.collection.clone())) else {
        node.complain("a finder requires the key collection, here or in a rest section");
        return None;
    };
    let client = if is_short { FinderClient::Heat } else { client(node.get("client")) };
    let by = match node.get("by").filter(|_| !is_short) {
        None => Some("name".to_owned()),
        Some(by) if by.value.as_bool() == Some(false) => None,
        Some(by) => by.text(),
    };
    let of_client = || match client {
        FinderClient::Neutron | FinderClient::NeutronExtension => rest.and_then(|rest| rest.member.clone()),
        FinderClient::Heat | FinderClient::Osc | FinderClient::Sdk => None,
    };
    Some(Finder {
        name,
        service,
        extension: text("extension"),
        collection,
        id: text("id").or_else(|| Some(rest?.id.clone())).unwrap_or_else(|| "id".to_owned()),
        by,
        client,
        word: text("word").or_else(of_client).unwrap_or_else(|| this.class.clone()),
    })
}

fn client(node: Option<Node<'_>>) -> FinderClient {
    let Some(node) = node else { return FinderClient::Heat };
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
