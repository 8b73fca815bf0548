//! The kinds of objects of which projects have many: their lists, and which resources they become.

use kiln_resource::{Cloud, CloudRequest, Failure, Method};
use kiln_value::Value;

/// Objects in a page of a list.
const PAGE: usize = 1_000;

/// A kind of objects, listed in whole.
pub(crate) struct ObjectKind {
    /// The type of the resource that such an object becomes; `None`: it belongs to another object.
    pub(crate) resource_type: Option<&'static str>,
    /// The type of the service.
    pub(crate) service: &'static str,
    /// The path of an object without its ID. The entries of the list are what a read of one object returns; `None`: they are
    /// not.
    pub(crate) item: Option<&'static str>,
    /// The path of the list.
    pub(crate) path: &'static str,
    /// Key of the list, and of the object in the response to a read, or in an entry of the list without `item`.
    pub(crate) keys: (&'static str, &'static str),
    /// Whether the list has objects of other projects if nobody asks for those of one project.
    pub(crate) is_shared: bool,
    /// Whether the service returns the list in pages.
    pages: bool,
}

const fn neutron(
    resource_type: Option<&'static str>,
    item: &'static str,
    list: &'static str,
    member: &'static str,
) -> ObjectKind {
    ObjectKind {
        resource_type,
        service: "network",
        item: Some(item),
        path: item,
        keys: (list, member),
        is_shared: true,
        pages: true,
    }
}

const fn octavia(
    resource_type: &'static str,
    item: &'static str,
    list: &'static str,
    member: &'static str,
) -> ObjectKind {
    let kind = neutron(Some(resource_type), item, list, member);
    ObjectKind { service: "load-balancer", ..kind }
}

/// In the order in which a generated template has their resources.
pub(crate) const KINDS: &[ObjectKind] = &[
    ObjectKind {
        resource_type: Some("OS::Nova::KeyPair"),
        service: "compute",
        item: None,
        path: "/os-keypairs",
        keys: ("keypairs", "keypair"),
        is_shared: false,
        pages: false,
    },
    ObjectKind {
        resource_type: Some("OS::Nova::ServerGroup"),
        service: "compute",
        item: None,
        path: "/os-server-groups",
        keys: ("server_groups", ""),
        is_shared: false,
        pages: false,
    },
    neutron(Some("OS::Neutron::SecurityGroup"), "/v2.0/security-groups", "security_groups", "security_group"),
    neutron(None, "/v2.0/security-group-rules", "security_group_rules", "security_group_rule"),
    neutron(Some("OS::Neutron::Net"), "/v2.0/networks", "networks", "network"),
    neutron(Some("OS::Neutron::Subnet"), "/v2.0/subnets", "subnets", "subnet"),
    neutron(Some("OS::Neutron::Router"), "/v2.0/routers", "routers", "router"),
    neutron(Some("OS::Neutron::Port"), "/v2.0/ports", "ports", "port"),
    neutron(Some("OS::Neutron::Trunk"), "/v2.0/trunks", "trunks", "trunk"),
    neutron(Some("OS::Neutron::FloatingIP"), "/v2.0/floatingips", "floatingips", "floatingip"),
    ObjectKind {
        resource_type: Some("OS::Cinder::Volume"),
        service: "block-storage",
        item: Some("/v3/volumes"),
        path: "/v3/volumes/detail",
        keys: ("volumes", "volume"),
        is_shared: false,
        pages: true,
    },
    ObjectKind {
        resource_type: Some("OS::Nova::Server"),
        service: "compute",
        item: Some("/servers"),
        path: "/servers/detail",
        keys: ("servers", "server"),
        is_shared: false,
        pages: true,
    },
    octavia("OS::Octavia::LoadBalancer", "/v2/lbaas/loadbalancers", "loadbalancers", "loadbalancer"),
    octavia("OS::Octavia::Pool", "/v2/lbaas/pools", "pools", "pool"),
    octavia("OS::Octavia::Listener", "/v2/lbaas/listeners", "listeners", "listener"),
    octavia("OS::Octavia::HealthMonitor", "/v2/lbaas/healthmonitors", "healthmonitors", "healthmonitor"),
    octavia("OS::Octavia::L7Policy", "/v2/lbaas/l7policies", "l7policies", "l7policy"),
    ObjectKind {
        resource_type: Some("OS::Designate::Zone"),
        service: "dns",
        item: None,
        path: "/v2/zones",
        keys: ("zones", ""),
        is_shared: false,
        pages: true,
    },
];

impl ObjectKind {
    /// Reads the objects of the project of a cloud, at most so many pages of them. Returns the objects of the pages that were
    /// read, whether these are all, and why a page could not be read.
    pub(crate) async fn list(
        &self,
        cloud: &dyn Cloud,
        microversion: Option<&String>,
        pages: usize,
    ) -> (Vec<Value>, bool, Option<Failure>) {
        let (list, member) = self.keys;
        let mut objects = Vec::new();
        let project = match cloud.project_id().await {
            Ok(project) => Some(project).filter(|_| self.is_shared),
            Err(_) if !self.is_shared => None,
            Err(failure) => return (objects, false, Some(failure)),
        };
        let mut marker: Option<String> = None;
        for _ in 0..pages {
            let mut request = CloudRequest::new(self.service, Method::Get, self.path);
            if self.pages {
                request = request.query("limit", PAGE.to_string());
            }
            request.microversion = microversion.cloned();
            request.query.extend(project.iter().map(|project| ("project_id".to_owned(), project.clone())));
            request.query.extend(marker.iter().map(|marker| ("marker".to_owned(), marker.clone())));
            let mut response = match cloud.call(request).await {
                Ok(response) => response,
                Err(failure) => return (objects, false, Some(failure)),
            };
            let links = [format!("{list}_links"), "links".to_owned()];
            let next = |body: &Value| match (body.get(&links[0]), body.get(&links[1])) {
                (Some(links), _) => links.is_truthy(),
                (None, Some(links)) => links.get("next").is_some_and(Value::is_truthy),
                (None, None) => false,
            };
            let has_more = self.pages && next(&response.body);
            let page = response.body.as_map_mut().and_then(|body| body.swap_remove(list));
            let Some(Value::List(page)) = page else { return (objects, true, None) };
            let end = page.last().and_then(|object| object.str_at("id")).map(str::to_owned);
            objects.extend(page.into_iter().map(|object| match object {
                Value::Map(mut entry) if self.item.is_none() && entry.len() == 1 => {
                    entry.swap_remove(member).unwrap_or(Value::Map(entry))
                }
                object => object,
            }));
            if !has_more || end.is_none() || end == marker {
                return (objects, true, None);
            }
            marker = end;
        }
        (objects, false, None)
    }
}
