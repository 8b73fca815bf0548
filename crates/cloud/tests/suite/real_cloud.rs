//! Tests with the real OpenStack of the `OS_*` variables: `cargo test -p kiln-cloud -- --ignored`.

use std::sync::Arc;

use kiln_cloud::{
    Connector, Credentials, Options, SharedClient, TlsOptions, create_trust, delete_trust, validate_token,
};
use kiln_resource::{Cloud, CloudRequest, FailureKind, Method};
use kiln_value::value;

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set"))
}

fn connector() -> Connector {
    let client = SharedClient::new(&TlsOptions::default()).expect("a client");
    Connector::new(Arc::new(client), Options::new(variable("OS_AUTH_URL").parse().expect("a URL")))
}

fn credentials() -> Credentials {
    let domain = variable("OS_USER_DOMAIN_NAME");
    Credentials::password(&variable("OS_USERNAME"), &variable("OS_PASSWORD"), &variable("OS_PROJECT_NAME"), &domain)
}

#[tokio::test]
#[ignore = "needs a real OpenStack"]
async fn finders_match_heat() {
    let cloud = connector().cloud(&credentials()).await;
    let id = cloud.find("neutron.network", "public").await.unwrap();
    assert_eq!(cloud.find("neutron.network", &id).await.unwrap(), id);
    cloud.find("nova.flavor", "m1.tiny").await.unwrap();
    cloud.find("neutron.security_group", "default").await.unwrap();
    assert!(cloud.has_extension("network", "router").await.unwrap());
    assert!(cloud.has_service("volume").await.unwrap() && !cloud.has_service("nosuch").await.unwrap());
    for (finder, text) in [
        ("neutron.network", "NotFound: Unable to find network with name or id 'nosuch'"),
        ("nova.flavor", "NotFound: No Flavor matching {'name': 'nosuch'}. (HTTP 404)"),
        ("glance.image", "EntityMatchNotFound: No images matching {'name': 'nosuch'}."),
        ("nova.keypair", "EntityNotFound: The Key (nosuch) could not be found."),
        ("cinder.volume", "EntityNotFound: The Volume (nosuch) could not be found."),
        ("cinder.vtype", "EntityNotFound: The VolumeType (nosuch) could not be found."),
    ] {
        let failure = cloud.find(finder, "nosuch").await.unwrap_err();
        assert_eq!((failure.to_string().as_str(), failure.kind), (text, FailureKind::NotFound));
    }
}

#[tokio::test]
#[ignore = "needs a real OpenStack"]
async fn a_network_is_created_and_deleted() {
    let cloud = connector().cloud(&credentials()).await;
    let body = value!({"network": {"name": "kiln-cloud-test"}});
    let made = cloud.call(CloudRequest::new("network", Method::Post, "/v2.0/networks").body(body)).await.unwrap();
    let id = made.body.get("network").and_then(|n| n.str_at("id")).unwrap().to_owned();
    let path = format!("/v2.0/networks/{id}");
    cloud.call(CloudRequest::new("network", Method::Delete, &path)).await.unwrap();
    let gone = cloud.call(CloudRequest::new("network", Method::Get, &path)).await.unwrap_err();
    let text =
        format!("NetworkNotFoundClient: Network {id} could not be found.\nNeutron server returns request_ids: ['req-");
    assert!(gone.to_string().starts_with(&text), "{gone}");
}

#[tokio::test]
#[ignore = "needs a real OpenStack"]
async fn a_trust_acts_for_its_trustor() {
    let connector = connector();
    let own = connector.session(credentials());
    let token = own.token().await.unwrap();
    // The trustor as their own trustee; normally it is a service user.
    let trust = create_trust(&own, &token.info.user.id, &["member".to_owned()], None).await.unwrap();
    let trusted = connector.session(credentials().with_trust(&trust));
    let acting = trusted.token().await.unwrap();
    assert_eq!(acting.info.trust.as_ref().map(|t| t.id.as_str()), Some(trust.as_str()));
    assert_eq!(acting.info.project, token.info.project);
    let seen = validate_token(&own, &acting.secret).await.unwrap();
    assert_eq!(seen.user, token.info.user);
    // The session of the stack can delete the trust of its owner.
    delete_trust(&trusted, &trust).await.unwrap();
    delete_trust(&own, &trust).await.unwrap();
}
