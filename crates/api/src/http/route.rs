//! The route table, matched on the decoded path.
//!
//! It is used instead of axum's router because Heat's clients rely on behavior that modern routers do not have: `%2F`
//! separates segments, a trailing slash is a different path, a name may be an ARN with slashes, known paths answer
//! OPTIONS with 204 and other methods with 405, and unknown paths return 404 with a page (`routes_in_match_order` of
//! reference/rest_api.json).

use http::Method;

use crate::endpoint::{ENDPOINTS, Endpoint, LOOKUP};

const ANY: &[Method] = &[Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE];

/// The subpaths that may follow a name to look up, by method.
const LOOKUP_SUBPATHS: &[(Method, &[&str])] = &[
    (Method::GET, &["resources", "events", "template", "actions", "environment", "files", "drift"]),
    (Method::POST, &["resources", "events", "template", "actions"]),
];

/// All routes with their methods. Those that lead from a name to the canonical path come last.
pub(crate) fn all() -> impl Iterator<Item = (String, Method, &'static Endpoint)> {
    let own = ENDPOINTS.iter().map(|endpoint| (endpoint.path.to_owned(), endpoint.method.clone(), *endpoint));
    let whole = ANY.iter().map(|method| (LOOKUP.path.to_owned(), method.clone(), LOOKUP));
    let subpaths = LOOKUP_SUBPATHS.iter().flat_map(|(method, subpaths)| {
        subpaths.iter().map(|subpath| (format!("{}/{subpath}", LOOKUP.path), method.clone(), LOOKUP))
    });
    own.chain(whole).chain(subpaths)
}

/// The decoded variable parts of a path, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PathParams(Vec<(&'static str, String)>);

impl PathParams {
    /// A part; empty if the path has no part with that name.
    pub(crate) fn get(&self, name: &str) -> &str {
        self.0.iter().find(|(key, _)| *key == name).map_or("", |(_, value)| value)
    }
}

/// The result of matching a path and method.
pub(crate) enum Match {
    /// An endpoint.
    Found(&'static Endpoint, PathParams),
    /// The path is known, but only with these methods.
    Method(Vec<Method>),
    /// No match.
    None,
}

/// Matches a decoded path after the version.
pub(crate) fn find(method: &Method, path: &str) -> Match {
    if let Some(params) = lookup(method, path) {
        return Match::Found(LOOKUP, params);
    }
    let mut known: Option<&str> = None;
    for endpoint in ENDPOINTS {
        let Some(params) = capture(endpoint.path, path) else { continue };
        if endpoint.method == *method {
            return Match::Found(endpoint, params);
        }
        known = known.or(Some(endpoint.path));
    }
    match known {
        Some(path) => Match::Method(
            ENDPOINTS.iter().filter(|endpoint| endpoint.path == path).map(|endpoint| endpoint.method.clone()).collect(),
        ),
        None => lookup_methods(path).map_or(Match::None, Match::Method),
    }
}

/// A name instead of a canonical path: `/t/stacks/name`, `/t/stacks/name/events`, `/t/stacks/arn:…`.
fn lookup(method: &Method, path: &str) -> Option<PathParams> {
    let (tenant, rest) = stacks(path)?;
    if rest.starts_with("arn:") {
        return ANY.contains(method).then(|| params(tenant, rest, ""));
    }
    match rest.split_once('/') {
        // `preview` and `detail` are also names, except for the method that has its own endpoint.
        None => {
            let taken = matches!((method.as_str(), rest), ("POST", "preview") | ("GET", "detail"));
            (ANY.contains(method) && !rest.is_empty() && !taken).then(|| params(tenant, rest, ""))
        }
        Some((name, subpath)) => {
            let subpaths = LOOKUP_SUBPATHS.iter().find(|(have, _)| have == method).map(|(_, subpaths)| *subpaths)?;
            (!name.is_empty() && subpaths.contains(&subpath)).then(|| params(tenant, name, subpath))
        }
    }
}

/// The methods of a path that is only used for lookups.
fn lookup_methods(path: &str) -> Option<Vec<Method>> {
    let (_, rest) = stacks(path)?;
    (!rest.is_empty() && (!rest.contains('/') || rest.starts_with("arn:"))).then(|| ANY.to_vec())
}

fn stacks(path: &str) -> Option<(&str, &str)> {
    let (tenant, rest) = path.strip_prefix('/')?.split_once('/')?;
    let rest = rest.strip_prefix("stacks/")?;
    (!tenant.is_empty()).then_some((tenant, rest))
}

fn params(tenant: &str, name: &str, subpath: &str) -> PathParams {
    let owned = [("tenant_id", tenant), ("stack_name", name), ("path", subpath)];
    PathParams(owned.map(|(key, value)| (key, value.to_owned())).to_vec())
}

/// The variable parts of a path that matches the pattern. No part is empty.
fn capture(pattern: &'static str, path: &str) -> Option<PathParams> {
    let mut have = path.split('/');
    let mut captured = Vec::new();
    for want in pattern.split('/') {
        let have = have.next()?;
        match want.strip_prefix('{').and_then(|name| name.strip_suffix('}')) {
            Some(name) if !have.is_empty() => captured.push((name, have)),
            None if want == have => {}
            _ => return None,
        }
    }
    let captured = captured.into_iter().map(|(name, value)| (name, value.to_owned()));
    have.next().is_none().then(|| PathParams(captured.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The name of the endpoint.
    fn endpoint(method: &Method, path: &str) -> Option<&'static str> {
        match find(method, path) {
            Match::Found(endpoint, _) => Some(endpoint.name),
            _ => None,
        }
    }

    #[test]
    fn names_and_arns_are_looked_up() {
        for path in
            ["/t/stacks/name", "/t/stacks/preview", "/t/stacks/arn:openstack:heat::t:stacks/n/i", "/t/stacks/n/files"]
        {
            assert_eq!(endpoint(&Method::GET, path), Some("Lookup"), "{path}");
        }
        assert_eq!(endpoint(&Method::GET, "/t/stacks/detail"), Some("DetailStacks"));
        assert_eq!(endpoint(&Method::DELETE, "/t/stacks/detail"), Some("Lookup"));
        assert_eq!(endpoint(&Method::POST, "/t/stacks/preview"), Some("PreviewStack"));
        let Match::Method(methods) = find(&Method::POST, "/t/stacks/n/files") else { panic!("found") };
        assert_eq!(methods, [Method::GET, Method::PUT, Method::PATCH, Method::DELETE]);
    }

    #[test]
    fn nothing_is_guessed() {
        for path in ["", "/", "/t", "/t/stacks/", "//stacks", "/t//stacks", "/t/nope", "/t/stacks/n/i/events/e"] {
            assert!(matches!(find(&Method::GET, path), Match::None), "{path:?}");
        }
    }

    #[test]
    fn parts_are_named() {
        let Match::Found(endpoint, params) = find(&Method::GET, "/t/stacks/n/i/resources/r s/events/e") else {
            panic!("not found");
        };
        assert_eq!(endpoint.name, "ShowEvent");
        assert_eq!((params.get("resource_name"), params.get("event_id")), ("r s", "e"));
    }
}
