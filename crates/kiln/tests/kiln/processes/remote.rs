//! Checks of a stack with the cloud before it is stored, and stacks of a remote orchestration service.

use std::sync::Arc;
use std::time::Duration;

use kiln_client::{Bundle, Client, StackRequest};
use kiln_cloud::{Connector, Credentials, Options};
use kiln_resource::{CloudRequest, Method};
use kiln_testcloud::Testcloud;
use kiln_value::{Map, Value, value};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};

use crate::processes::cluster::{Cluster, Limits, end_of};

const CHILD: &str = "heat_template_version: 2018-08-31
parameters: {word: {type: string}}
outputs: {said: {value: {get_param: word}}}
";

/// Uses a file, and a type and a default of the environment.
const INNER: &str = "heat_template_version: 2018-08-31
parameters: {number: {type: number}}
resources: {it: {type: 'My::Type'}}
outputs:
  said: {value: {get_attr: [it, said]}}
  note: {value: {get_file: note.txt}}
  number: {value: {get_param: number}}
";

fn request(resource_type: &str, properties: &Value) -> StackRequest {
    let it = value!({"type": resource_type, "properties": properties});
    let template = value!({
        "heat_template_version": "2018-08-31",
        "resources": {"it": it},
        "outputs": {"inner": {"value": {"get_attr": ["it", "outputs"]}}},
    });
    let files = value!({"child.yaml": CHILD, "note.txt": "noted"});
    let environment =
        value!({"resource_registry": {"My::Type": "child.yaml"}, "parameter_defaults": {"word": "default"}});
    let bundle = Bundle {
        template: Some(template),
        files: files.as_map().cloned().unwrap_or_default(),
        environment: environment.as_map().cloned().unwrap_or_default(),
        ..Bundle::default()
    };
    StackRequest { bundle, ..StackRequest::default() }
}

async fn refusal(client: &Client, resource_type: &str, properties: &Value) -> String {
    let mut request = request(resource_type, properties);
    if let Some(template) = request.bundle.template.as_mut().and_then(Value::as_map_mut) {
        template.shift_remove("outputs");
    }
    let refused = client.create_stack("refused", &request).await.expect_err("a refusal");
    refused.to_string()
}

async fn settled(client: &Client, stack: &str) -> String {
    let (status, reason) = end_of(client, stack, Duration::from_mins(1)).await;
    assert!(!status.ends_with("_IN_PROGRESS"), "stuck in {status}");
    if status.ends_with("_COMPLETE") { status } else { reason }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stack_of_another_service_is_validated_and_gets_files_and_environment() {
    let cloud = Testcloud::builder().start().await.expect("a simulated cloud");
    let cluster = Cluster::start(cloud, "sqlite", 1, Limits::default()).await;
    cluster.cloud.add_service("orchestration", &cluster.url());
    let client = cluster.client(cluster.cloud.users().demo);

    let template = |text: &str| value!({"template": text, "parameters": {"number": 7}});
    let wrong = refusal(&client, "OS::Heat::Stack", &template(&INNER.replace("2018-08-31", "2018-08-32"))).await;
    let begin = "Failed validating stack template using Heat endpoint at region \"None\" due to \"ERROR: The template \
                 version is invalid";
    assert!(wrong.contains(begin), "{wrong}");
    let away = value!({"template": INNER, "context": {"region_name": "Away"}});
    let wrong = refusal(&client, "OS::Heat::Stack", &away).await;
    let text = "Cannot establish connection to Heat endpoint at region \"Away\" due to \"publicURL endpoint for \
                orchestration service in Away region not found\"";
    assert!(wrong.contains(text), "{wrong}");
    let wrong = refusal(&client, "OS::Nova::KeyPair", &value!({"name": "k"})).await;
    assert!(wrong.contains("The public_key property is required by the nova API version currently used."), "{wrong}");

    client.create_stack("outer", &request("OS::Heat::Stack", &template(INNER))).await.expect("accepted");
    assert_eq!(settled(&client, "outer").await, "CREATE_COMPLETE");
    let output = client.output("outer", "inner").await.expect("an output");
    let inner: Map = output.get("output_value").and_then(Value::as_map).cloned().unwrap_or_default();
    assert_eq!(Value::Map(inner), value!({"said": "default", "note": "noted", "number": 7}));

    // A snapshot of the outer stack is one of the inner stack too, and a restore brings it back.
    let made = client.create_snapshot("outer", Some("before")).await.expect("accepted");
    assert_eq!(settled(&client, "outer").await, "SNAPSHOT_COMPLETE");
    let changed = value!({"template": INNER, "parameters": {"number": 8}});
    client.update_stack("outer", &request("OS::Heat::Stack", &changed)).await.expect("accepted");
    assert_eq!(settled(&client, "outer").await, "UPDATE_COMPLETE");
    let number = async || {
        let output = client.output("outer", "inner").await.expect("an output");
        output.get("output_value").and_then(|inner| inner.get("number")).cloned().unwrap_or_default()
    };
    assert_eq!(number().await, 8.into());
    let id = made.str_at("id").expect("an ID");
    client.restore_snapshot("outer", id).await.expect("accepted");
    assert_eq!(settled(&client, "outer").await, "RESTORE_COMPLETE");
    assert_eq!(number().await, 7.into());
    let inner = client.resource("outer", "it", &[]).await.expect("a resource").physical_id().to_owned();
    assert_eq!(client.snapshots(&inner).await.expect("a list").len(), 1);

    client.delete_stack("outer").await.expect("accepted");
    assert_eq!(settled(&client, "outer").await, "DELETE_COMPLETE");
    let stacks = client.stacks(&kiln_client::StackFilter::default()).await.expect("stacks");
    assert!(stacks.is_empty(), "{stacks:?}");
    cluster.end().await;
}

/// Stores a secret with the credentials of a user and returns its ID.
async fn secret(cloud: &Testcloud, payload: &Value) -> String {
    let options = Options::new(cloud.auth_url().parse().expect("a URL"));
    let user = cloud.users().demo;
    let credentials = Credentials::password(user.user, user.password, user.project, "Default");
    let session = Connector::new(cloud.transport(), options).session(credentials);
    let body = value!({"payload": kiln_value::text::json(payload), "payload_content_type": "text/plain"});
    let request = CloudRequest::new("key-manager", Method::Post, "/v1/secrets").body(body);
    let response = session.call(&request).await.expect("a secret");
    let url = response.body.str_at("secret_ref").expect("a URL");
    url.rsplit('/').next().expect("an ID").to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stack_of_another_cloud_uses_credentials_from_the_key_manager() {
    let cloud = || async { Testcloud::builder().start().await.expect("a simulated cloud") };
    let networks = "[kiln]\nremote_cloud_networks = 127.0.0.0/8\n";
    let here = Cluster::start_with(cloud().await, "sqlite", 1, Limits::default(), networks).await;
    let there = Cluster::start(cloud().await, "sqlite", 1, Limits::default()).await;
    for cluster in [&here, &there] {
        cluster.cloud.add_service("orchestration", &cluster.url());
    }
    let client = here.client(here.cloud.users().demo);
    let remote = there.client(there.cloud.users().alt_demo);

    let user = there.cloud.users().alt_demo;
    let auth = value!({
        "auth_url": there.cloud.auth_url(), "username": user.user, "password": user.password,
        "project_name": user.project, "user_domain_id": "default", "project_domain_id": "default",
    });
    let credential = async |kind: &str, change: Value| {
        let mut auth = auth.as_map().cloned().unwrap_or_default();
        auth.extend(change.as_map().cloned().unwrap_or_default());
        secret(&here.cloud, &value!({"auth_type": kind, "auth": auth})).await
    };
    let properties = |id: &str, number: i64| {
        let context = value!({"credential_secret_id": id});
        value!({"template": INNER, "parameters": {"number": number}, "context": context})
    };

    // What is wrong with the credentials is reported before a stack is stored.
    let connection = "Cannot establish connection to Heat endpoint at remote cloud due to \"";
    let unauthorized = "Authorization failed.Failed to validate auth_plugin with error ";
    let bare = secret(&here.cloud, &value!({"auth": {}})).await;
    for (id, why) in [
        ("none".to_owned(), "The Secret (secrets/none) could not be found.".to_owned()),
        (bare, "Missing key in auth information, the correct format contains ['auth_type', 'auth'].".to_owned()),
        (credential("v3password", value!({"password": "wrong"})).await, format!("{unauthorized}Keystone refuses")),
        (
            credential("v3password", value!({"cacert": "/etc/passwd"})).await,
            format!("{unauthorized}invalid value for auth: cacert is not an option of the credentials"),
        ),
        (
            credential("v3password", value!({"auth_url": "http://10.1.2.3/v3"})).await,
            format!(
                "{unauthorized}Unable to establish connection to http://10.1.2.3/v3/auth/tokens: no address of 10.1.2.3"
            ),
        ),
    ] {
        let wrong = refusal(&client, "OS::Heat::Stack", &properties(&id, 1)).await;
        assert!(wrong.contains(&format!("{connection}{why}")), "{wrong}");
    }

    let right = credential("v3password", value!({})).await;
    let wrong = refusal(
        &client,
        "OS::Heat::Stack",
        &value!({
            "template": INNER.replace("2018-08-31", "2018-08-32"), "context": {"credential_secret_id": right.as_str()},
        }),
    )
    .await;
    let begin = "Failed validating stack template using Heat endpoint at remote cloud due to \"ERROR: The template";
    assert!(wrong.contains(begin), "{wrong}");

    client.create_stack("outer", &request("OS::Heat::Stack", &properties(&right, 7))).await.expect("accepted");
    assert_eq!(settled(&client, "outer").await, "CREATE_COMPLETE");
    let inner = client.resource("outer", "it", &[]).await.expect("a resource").physical_id().to_owned();
    assert_eq!(remote.stack(&inner, false).await.expect("a stack there").status(), "CREATE_COMPLETE");
    client.update_stack("outer", &request("OS::Heat::Stack", &properties(&right, 8))).await.expect("accepted");
    assert_eq!(settled(&client, "outer").await, "UPDATE_COMPLETE");
    let output = client.output("outer", "inner").await.expect("an output");
    let expected = value!({"said": "default", "note": "noted", "number": 8});
    assert_eq!(output.get("output_value"), Some(&expected));

    client.delete_stack("outer").await.expect("accepted");
    assert_eq!(settled(&client, "outer").await, "DELETE_COMPLETE");
    assert!(remote.stacks(&kiln_client::StackFilter::default()).await.expect("stacks").is_empty());
    here.end().await;
    there.end().await;
}

fn certificate(name: &str) -> String {
    format!("{}/../server/tests/data/tls/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// Accepts TLS connections and passes on what they contain to a port; returns its own port.
async fn tls_proxy(port: u16) -> u16 {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let own = CertificateDer::from_pem_file(certificate("server.pem")).expect("a certificate");
    let key = PrivateKeyDer::from_pem_file(certificate("server.key")).expect("a key");
    let server = ServerConfig::builder().with_no_client_auth().with_single_cert(vec![own], key).expect("a pair");
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(server));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let own_port = listener.local_addr().expect("an address").port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let Ok(mut stream) = acceptor.accept(stream).await else { return };
                let mut to = TcpStream::connect(("127.0.0.1", port)).await.expect("the API");
                let _ = copy_bidirectional(&mut stream, &mut to).await;
            });
        }
    });
    own_port
}

#[tokio::test(flavor = "multi_thread")]
async fn the_certificate_of_a_remote_service_is_verified_as_the_context_says() {
    let cloud = Testcloud::builder().start().await.expect("a simulated cloud");
    let cluster = Cluster::start(cloud, "sqlite", 1, Limits::default()).await;
    let port = tls_proxy(cluster.port()).await;
    cluster.cloud.add_service("orchestration", &format!("https://localhost:{port}/v1/%(project_id)s"));
    let client = cluster.client(cluster.cloud.users().demo);
    let properties = |context: Value| value!({"template": CHILD, "parameters": {"word": "w"}, "context": context});

    let wrong = refusal(&client, "OS::Heat::Stack", &properties(value!({}))).await;
    assert!(wrong.contains("Unable to establish connection") && wrong.contains("certificate"), "{wrong}");
    let wrong =
        refusal(&client, "OS::Heat::Stack", &properties(value!({"ca_cert": "-----BEGIN CERTIFICATE-----"}))).await;
    assert!(wrong.contains("the certificates of the context cannot be used"), "{wrong}");

    let authority = std::fs::read_to_string(certificate("ca.pem")).expect("a certificate");
    for (name, context) in [("verified", value!({"ca_cert": authority})), ("insecure", value!({"insecure": true}))] {
        client.create_stack(name, &request("OS::Heat::Stack", &properties(context))).await.expect("accepted");
        assert_eq!(settled(&client, name).await, "CREATE_COMPLETE");
        client.delete_stack(name).await.expect("accepted");
        assert_eq!(settled(&client, name).await, "DELETE_COMPLETE");
    }
    cluster.end().await;
}
