//! The route table, matched on the decoded path.
//!
//! It is used instead of axum's router because Heat's clients rely on behavior that modern routers do not have: `%2F`
//! separates segments, a trailing slash is a different path, a name may be an ARN with slashes, known paths answer
//! OPTIONS with 204 and other methods with 405, and unknown paths return 404 with a page (`routes_in_match_order` of
//! reference/rest_api.json).

use http::Method;

macro_rules! routes {
    ($( $path:literal { $($method:ident $endpoint:ident,)* } )*) => {
        /// The endpoints.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Endpoint { Lookup, $($($endpoint,)*)* }

        const ROUTES: &[Route] = &[
            $(Route { path: $path, methods: &[$((Method::$method, Endpoint::$endpoint),)*] },)*
        ];
    };
}

// Paths after `/v1`. If two paths match, Heat's order decides. The three lookup paths are separate because many of
// their methods lead to one endpoint.
routes! {
    "/{tenant_id}/validate" { POST ValidateTemplate, }
    "/{tenant_id}/resource_types" { GET ListResourceTypes, }
    "/{tenant_id}/resource_types/{type_name}" { GET ShowResourceType, }
    "/{tenant_id}/resource_types/{type_name}/template" { GET ResourceTypeTemplate, }
    "/{tenant_id}/topology_types" { GET ListTopologyTypes, }
    "/{tenant_id}/template_versions" { GET ListTemplateVersions, }
    "/{tenant_id}/template_versions/{template_version}/functions" { GET ListTemplateFunctions, }
    "/{tenant_id}/stacks" { GET ListStacks, POST CreateStack, }
    "/{tenant_id}/stacks/preview" { POST PreviewStack, }
    "/{tenant_id}/stacks/detail" { GET DetailStacks, }
    "/{tenant_id}/stacks/{stack_name}/{stack_id}" {
        GET ShowStack, PUT UpdateStack, PATCH PatchStack, DELETE DeleteStack,
    }
    "/{tenant_id}/stacks/{stack_name}/{stack_id}/template" { GET ShowTemplate, }
    "/{tenant_id}/stacks/{stack_name}/{stack_id}/original" { GET ShowOriginal, }
    "/{tenant_id}/stacks/{stack_name}/{stack_id}/environment" { GET ShowEnvironment, }
    "/{tenant_id}/stacks/{stack_name}/{stack_id}/files" { GET ListFiles, }
    "/{tenant_id}/stacks/{stack_name}/{stack_id}/preview" { PUT PreviewUpdate, PATCH PreviewPatch, }
    "/{tenant_id}/stacks/{stack_name}/{stack_id}/drift" { GET CompareStack, }
    "/{tenant_id}/stacks/{stack_name}/{stack_id}/abandon" { DELETE AbandonStack, }
    "/{tenant_id}/stacks/{stack_name}/{stack_id}/export" { GET ExportStack, }
    "/{tenant_id}/stacks/{stack_name}/{stack_id}/snapshots" { POST CreateSnapshot, GET ListSnapshots, }
    "/{tenant_id}/stacks/{stack_name}/{stack_id}/snapshots/{snapshot_id}" { GET ShowSnapshot, DELETE DeleteSnapshot, }
    "/{tenant_id}/stacks/{stack_name}/{stack_id}/snapshots/{snapshot_id}/restore" { POST RestoreSnapshot, }
    "/{tenant_id}/stacks/{stack_name}/{stack_id}/outputs" { GET ListOutputs, }
    "/{tenant_id}/stacks/{stack_name}/{stack_id}/outputs/{output_key}" { GET ShowOutput, }
    "/{tenant_id}/stacks/{stack_name}/{stack_id}/resources" { GET ListResources, }
    "/{tenant_id}/stacks/{stack_name}/{stack_id}/resources/{resource_name}" { GET ShowResource, PATCH MarkUnhealthy, }
    "/{tenant_id}/stacks/{stack_name}/{stack_id}/resources/{resource_name}/metadata" { GET ShowMetadata, }
    "/{tenant_id}/stacks/{stack_name}/{stack_id}/resources/{resource_name}/signal" { POST SignalResource, }
    "/{tenant_id}/stacks/{stack_name}/{stack_id}/resources/{resource_name}/forget" { POST ForgetResource, }
    "/{tenant_id}/stacks/{stack_name}/{stack_id}/events" { GET ListEvents, }
    "/{tenant_id}/stacks/{stack_name}/{stack_id}/resources/{resource_name}/events" { GET ListResourceEvents, }
    "/{tenant_id}/stacks/{stack_name}/{stack_id}/resources/{resource_name}/events/{event_id}" { GET ShowEvent, }
    "/{tenant_id}/stacks/{stack_name}/{stack_id}/actions" { POST Act, }
    "/{tenant_id}/events" { GET WatchProject, }
    "/{tenant_id}/orphans" { GET ListOrphans, }
    "/{tenant_id}/orphans/{orphan_id}" { DELETE DeleteOrphan, }
    "/{tenant_id}/build_info" { GET BuildInfo, }
    "/{tenant_id}/software_configs" { GET ListConfigs, POST CreateConfig, }
    "/{tenant_id}/software_configs/{config_id}" { GET ShowConfig, DELETE DeleteConfig, }
    "/{tenant_id}/software_deployments" { GET ListDeployments, POST CreateDeployment, }
    "/{tenant_id}/software_deployments/metadata/{server_id}" { GET DeploymentMetadata, }
    "/{tenant_id}/software_deployments/{deployment_id}" {
        GET ShowDeployment, PUT UpdateDeployment, DELETE DeleteDeployment,
    }
    "/{tenant_id}/services" { GET ListServices, }
    "/{tenant_id}/report" { GET Report, }
}

const ANY: &[Method] = &[Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE];

/// The subpaths that may follow a name to look up, by method.
const LOOKUP_SUBPATHS: &[(Method, &[&str])] = &[
    (Method::GET, &["resources", "events", "template", "actions", "environment", "files", "drift"]),
    (Method::POST, &["resources", "events", "template", "actions"]),
];

impl Endpoint {
    /// The pattern of the path.
    pub(crate) fn route(self) -> &'static str {
        let of = |route: &&Route| route.methods.iter().any(|(_, endpoint)| *endpoint == self);
        ROUTES.iter().find(of).map_or("/{tenant_id}/stacks/{stack_name}", |route| route.path)
    }

    /// Whether the body is a template with its files, or a package or document that becomes one.
    pub(crate) fn takes_template(self) -> bool {
        matches!(
            self,
            Self::ValidateTemplate
                | Self::CreateStack
                | Self::PreviewStack
                | Self::UpdateStack
                | Self::PatchStack
                | Self::PreviewUpdate
                | Self::PreviewPatch
        )
    }
}

struct Route {
    path: &'static str,
    methods: &'static [(Method, Endpoint)],
}

/// All routes with their methods. Those that lead from a name to the canonical path come last.
pub(crate) fn all() -> impl Iterator<Item = (String, Method, Endpoint)> {
    let own = ROUTES.iter().flat_map(|route| {
        route.methods.iter().map(|(method, endpoint)| (route.path.to_owned(), method.clone(), *endpoint))
    });
    let named = "/{tenant_id}/stacks/{stack_name}";
    let whole = ANY.iter().map(move |method| (named.to_owned(), method.clone(), Endpoint::Lookup));
    let subpaths = LOOKUP_SUBPATHS.iter().flat_map(move |(method, subpaths)| {
        subpaths.iter().map(move |subpath| (format!("{named}/{subpath}"), method.clone(), Endpoint::Lookup))
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
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Match {
    /// An endpoint.
    Found(Endpoint, PathParams),
    /// The path is known, but only with these methods.
    Method(Vec<Method>),
    /// No match.
    None,
}

/// Matches a decoded path after the version.
pub(crate) fn find(method: &Method, path: &str) -> Match {
    if let Some(params) = lookup(method, path) {
        return Match::Found(Endpoint::Lookup, params);
    }
    let mut known: Option<&Route> = None;
    for route in ROUTES {
        let Some(params) = capture(route.path, path) else { continue };
        if let Some((_, endpoint)) = route.methods.iter().find(|(have, _)| have == method) {
            return Match::Found(*endpoint, params);
        }
        known = known.or(Some(route));
    }
    match known {
        Some(route) => Match::Method(route.methods.iter().map(|(method, _)| method.clone()).collect()),
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

    fn endpoint(method: &Method, path: &str) -> Option<Endpoint> {
        match find(method, path) {
            Match::Found(endpoint, _) => Some(endpoint),
            _ => None,
        }
    }

    #[test]
    fn names_and_arns_are_looked_up() {
        for path in
            ["/t/stacks/name", "/t/stacks/preview", "/t/stacks/arn:openstack:heat::t:stacks/n/i", "/t/stacks/n/files"]
        {
            assert_eq!(endpoint(&Method::GET, path), Some(Endpoint::Lookup), "{path}");
        }
        assert_eq!(endpoint(&Method::GET, "/t/stacks/detail"), Some(Endpoint::DetailStacks));
        assert_eq!(endpoint(&Method::DELETE, "/t/stacks/detail"), Some(Endpoint::Lookup));
        assert_eq!(endpoint(&Method::POST, "/t/stacks/preview"), Some(Endpoint::PreviewStack));
        assert_eq!(
            find(&Method::POST, "/t/stacks/n/files"),
            Match::Method([Method::GET, Method::PUT, Method::PATCH, Method::DELETE].to_vec())
        );
    }

    #[test]
    fn nothing_is_guessed() {
        for path in ["", "/", "/t", "/t/stacks/", "//stacks", "/t//stacks", "/t/nope", "/t/stacks/n/i/events/e"] {
            assert_eq!(find(&Method::GET, path), Match::None, "{path:?}");
        }
    }

    #[test]
    fn parts_are_named() {
        let Match::Found(Endpoint::ShowEvent, params) = find(&Method::GET, "/t/stacks/n/i/resources/r s/events/e")
        else {
            panic!("not found");
        };
        assert_eq!((params.get("resource_name"), params.get("event_id")), ("r s", "e"));
    }
}
