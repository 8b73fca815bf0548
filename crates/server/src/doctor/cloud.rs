//! What the doctor checks in the cloud.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use http::HeaderMap;
use jiff::Timestamp;
use kiln_cloud::{
    CloudError, Connector, Credentials, HttpRequest, HttpResponse, Interface, Session, Token, Transport, TransportError,
};
use kiln_config::options::{kiln, stacks};
use kiln_config::{Account, Config};
use kiln_credentials::Signalling;
use kiln_plugin::Plugins;
use kiln_resource::{CloudRequest, Method, RegisteredType};
use kiln_value::{Chain, Value};
use tokio::time::Instant;
use url::{Host, Url};

use super::{Grade, PATIENCE, Report, certificates, clock, root, shown};
use crate::{clients, heat_behind, resource_types, runtime, service_cloud};

/// A call of a service that takes longer is slow.
const SLOW_CALL: Duration = Duration::from_secs(1);
/// The services that nearly every template uses.
const USUAL_SERVICES: [&str; 3] = ["compute", "network", "image"];

pub(super) async fn check(config: &Config, report: &mut Report) {
    let prepared = || -> Result<_> {
        let service = config.account("keystone_authtoken")?;
        Ok((clients::connector(config, &service)?, clients::transport(config, &service)?, service))
    };
    let (connector, transport, service) = match prepared() {
        Ok(prepared) => prepared,
        Err(error) => {
            return report.add("Keystone", Grade::Failed, Chain(&*error).to_string(), "see [keystone_authtoken]");
        }
    };
    let keystone = connector.options().auth_url.clone();
    let Some(date) = answer("Keystone", &keystone, &*transport, report).await else { return };
    if let Some(date) = date {
        clock("clock of Keystone", date.duration_since(runtime::now()).as_secs_f64(), report);
    }
    let mut addresses = BTreeSet::from([keystone]);
    for (name, option) in [("API of Heat", &kiln::HEAT_API_URL), ("CloudFormation API of Heat", &kiln::HEAT_CFN_URL)] {
        // The check of the configuration tells what is wrong with an URL.
        if let Ok(Some(url)) = heat_behind::url(config, option) {
            answer(name, &url, &*transport, report).await;
        }
    }
    let own =
        user("service user", service_cloud::credentials(&service, "keystone_authtoken", true), &connector, report)
            .await;
    trustee(config, &service, &connector, report).await;
    let signalling = domain(config, &service, &connector, report).await;
    if let Some(Signalling { domain_admin: Some(admin), role: name, .. }) = &signalling {
        let missing = "wait conditions and software deployments fail";
        let hint = format!("openstack role create {name}, or correct [DEFAULT] heat_stack_user_role");
        role("role of stack users", name, missing, &hint, &connector.session(admin.clone()), report).await;
    }
    if let Ok(credentials) = service_cloud::credentials(&service, "keystone_authtoken", true) {
        let session = connector.session(credentials);
        for name in config.list(&stacks::TRUSTS_DELEGATED_ROLES) {
            let hint = format!("openstack role create {name}, or correct [DEFAULT] trusts_delegated_roles");
            role("delegated role", &name, "no user can create a stack", &hint, &session, report).await;
        }
    }
    if let Some(token) = own {
        let url = signalling.and_then(|signalling| signalling.cfn);
        signal_url(url, &token, &connector, &*transport, report).await;
        services(config, &token, &connector, report);
        catalog(&token, &connector, &*transport, &mut addresses, report).await;
    }
    certificates(&addresses, report).await;
}

/// Whether a service answers, with its clock if it tells it. `None`: it does not.
async fn answer(check: &str, url: &Url, transport: &dyn Transport, report: &mut Report) -> Option<Option<Timestamp>> {
    match sent(url, transport).await {
        Ok((response, time)) => {
            let grade = match response.status.as_u16() {
                500.. => Grade::Failed,
                _ if time > SLOW_CALL => Grade::Warning,
                _ => Grade::Ok,
            };
            let hint = if response.status.is_server_error() { "see the log of the service" } else { "it is slow" };
            report.add(check, grade, format!("{url} answers {} in {}", response.status.as_u16(), shown(time)), hint);
            let date = response.header("date").and_then(|date| jiff::fmt::rfc2822::parse(date).ok());
            Some(date.map(|date| date.timestamp()))
        }
        Err(error) => {
            report.add(
                check,
                Grade::Failed,
                format!("{url}: {error}"),
                "check the address, the network and certificates",
            );
            None
        }
    }
}

/// The response of an address, and how long it took.
async fn sent(url: &Url, transport: &dyn Transport) -> Result<(HttpResponse, Duration), TransportError> {
    let (method, headers) = (http::Method::GET, HeaderMap::new());
    let request = HttpRequest { method, url: url.clone(), headers, body: None, timeout: PATIENCE };
    let start = Instant::now();
    Ok((transport.send(request).await?, start.elapsed()))
}

/// The token of a user, if Keystone gives one.
async fn user(
    check: &str,
    credentials: Result<Credentials>,
    connector: &Connector,
    report: &mut Report,
) -> Option<std::sync::Arc<Token>> {
    const HINT: &str = "check user name, password, project and domains";
    let credentials = match credentials {
        Ok(credentials) => credentials,
        Err(error) => {
            report.add(check, Grade::Failed, Chain(&*error).to_string(), HINT);
            return None;
        }
    };
    match connector.session(credentials).token().await {
        Ok(token) => {
            let roles: Vec<&str> = token.info.roles.iter().map(|role| role.name.as_str()).collect();
            let roles = if roles.is_empty() { String::new() } else { format!(", roles {}", roles.join(", ")) };
            report.add(check, Grade::Ok, format!("token given{roles}"), "");
            Some(token)
        }
        Err(error) => {
            let cause = match error {
                CloudError::NoToken { cause, .. } => *cause,
                error => error,
            };
            report.add(check, Grade::Failed, cause.to_string(), HINT);
            None
        }
    }
}

async fn trustee(config: &Config, service: &Account, connector: &Connector, report: &mut Report) {
    match config.account("trustee") {
        Ok(account) if account.has_user() => {
            user("trustee", service_cloud::credentials(&account, "trustee", false), connector, report).await;
        }
        Ok(_) => {
            let name = service.username.as_deref().unwrap_or_default();
            report.add("trustee", Grade::Ok, format!("the service user {name}"), "");
        }
        Err(error) => report.add("trustee", Grade::Failed, Chain(&*error).to_string(), "see [trustee]"),
    }
}

/// How servers report, without a domain whose administrator gets no token.
async fn domain(config: &Config, service: &Account, connector: &Connector, report: &mut Report) -> Option<Signalling> {
    const CHECK: &str = "domain of stack users";
    let mut signalling = match service_cloud::signalling(config, service) {
        Ok(signalling) => signalling,
        Err(error) => {
            report.add(CHECK, Grade::Failed, Chain(&*error).to_string(), "see [DEFAULT] stack_user_domain_id");
            return None;
        }
    };
    match &signalling.domain_admin {
        Some(admin) if user(CHECK, Ok(admin.clone()), connector, report).await.is_none() => {
            signalling.domain_admin = None;
        }
        Some(_) => {}
        None => report.add(
            CHECK,
            Grade::Warning,
            "not set: wait conditions and software deployments by CFN signals fail",
            "run 'kiln manage setup-domain'",
        ),
    }
    Some(signalling)
}

/// Whether Keystone has a role that stacks need.
async fn role(check: &str, name: &str, missing: &str, hint: &str, session: &Session, report: &mut Report) {
    let request = CloudRequest::new("identity", Method::Get, "/v3/roles").query("name", name);
    let (grade, details) = match session.call(&request).await {
        Ok(response) => {
            let roles = response.body.get("roles").and_then(Value::as_list).unwrap_or_default();
            if roles.iter().any(|found| found.str_at("name") == Some(name)) {
                (Grade::Ok, name.to_owned())
            } else {
                (Grade::Failed, format!("Keystone has no role {name}: {missing}"))
            }
        }
        // Not every user may list roles.
        Err(error) => (Grade::Warning, format!("{name}: {error}")),
    };
    report.add(check, grade, details, hint);
}

/// Where servers report to wait conditions, which this host can only guess: it is not a server.
async fn signal_url(
    configured: Option<String>,
    token: &Token,
    connector: &Connector,
    transport: &dyn Transport,
    report: &mut Report,
) {
    const CHECK: &str = "URL for servers";
    const HINT: &str = "set [DEFAULT] heat_waitcondition_server_url to an address that servers reach";
    let region = connector.options().region.as_deref();
    let registered = || token.info.catalog.endpoint("cloudformation", Interface::Public, region).map(str::to_owned);
    let Some(text) = configured.or_else(registered) else {
        return report.add(CHECK, Grade::Warning, "not set, and the catalog has no service cloudformation", HINT);
    };
    let url = match Url::parse(&text) {
        Ok(url) => url,
        Err(error) => return report.add(CHECK, Grade::Failed, format!("{text}: {error}"), HINT),
    };
    let is_loopback = match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback() || address.is_unspecified(),
        Some(Host::Ipv6(address)) => address.is_loopback() || address.is_unspecified(),
        None => true,
    };
    if is_loopback {
        return report.add(CHECK, Grade::Warning, format!("for a server, {url} is the server itself"), HINT);
    }
    match sent(&root(&url), transport).await {
        Ok((response, time)) => {
            let details = format!("{url} answers {} in {}", response.status.as_u16(), shown(time));
            report.add(CHECK, Grade::Ok, details, "");
        }
        Err(error) => report.add(CHECK, Grade::Warning, format!("{url}: {error}"), "start the service, or correct it"),
    }
}

/// The services that resource types need.
fn services(config: &Config, token: &Token, connector: &Connector, report: &mut Report) {
    const CHECK: &str = "services of types";
    let types = match resource_types::of_service(config, Plugins::default()) {
        Ok(types) => types,
        Err(error) => return report.add(CHECK, Grade::Failed, Chain(&*error).to_string(), "see the error"),
    };
    let (catalog, options) = (&token.info.catalog, connector.options());
    let is_there = |service: &str| {
        let interface = options.interfaces.get(service).copied().unwrap_or(options.interface);
        catalog.endpoint(service, interface, options.region.as_deref()).is_some()
    };
    let of_type = |entry: &Arc<RegisteredType>| entry.resource_type.service.clone();
    let needed: BTreeSet<Vec<String>> = types.types.iter().map(of_type).filter(|any| !any.is_empty()).collect();
    let missing = needed.iter().filter(|any| !any.iter().any(|service| is_there(service)));
    let missing: Vec<&str> = missing.filter_map(|any| any.first()).map(String::as_str).collect();
    if missing.is_empty() {
        return report.add(CHECK, Grade::Ok, format!("all {} are in the catalog", needed.len()), "");
    }
    let hint = "if the cloud does not have them, do nothing: their resource types fail";
    report.add(CHECK, Grade::Warning, format!("not in the catalog: {}", missing.join(", ")), hint);
}

async fn catalog(
    token: &Token,
    connector: &Connector,
    transport: &dyn Transport,
    addresses: &mut BTreeSet<Url>,
    report: &mut Report,
) {
    let (catalog, options) = (&token.info.catalog, connector.options());
    let region = options.region.as_deref();
    let own = catalog.endpoint("orchestration", Interface::Public, region);
    let (grade, details) = match own {
        Some(url) => (Grade::Ok, url.to_owned()),
        None => (Grade::Warning, "the catalog has no service orchestration".to_owned()),
    };
    let hint = "register it with the URL http://HOST:8004/v1/%(tenant_id)s; register the type cloudformation too";
    report.add("own endpoint", grade, details, hint);
    for service in USUAL_SERVICES {
        let check = format!("service {service}");
        let interface = options.interfaces.get(service).copied().unwrap_or(options.interface);
        let Some(url) = catalog.endpoint(service, interface, region) else {
            let hint = "check region_name_for_services and [clients] endpoint_type; resources of the service fail";
            report.add(check, Grade::Warning, "not in the catalog", hint);
            continue;
        };
        match Url::parse(url) {
            Ok(url) => {
                answer(&check, &root(&url), transport, report).await;
                addresses.insert(url);
            }
            Err(error) => report.add(check, Grade::Failed, format!("{url}: {error}"), "correct the catalog"),
        }
    }
}
