//! Notifications from `kiln api` and `kiln engine` to RabbitMQ, also after the connection was lost, and with TLS. They
//! need a broker:
//!
//! ```sh
//! crates/kiln/tests/rabbitmq.sh cargo test -p kiln --test kiln -- --ignored notifications
//! ```

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use amqprs::channel::{BasicConsumeArguments, ExchangeDeclareArguments, QueueBindArguments, QueueDeclareArguments};
use amqprs::connection::{Connection, OpenConnectionArguments};
use kiln_client::{Bundle, Client, StackRequest};
use kiln_testcloud::Testcloud;
use kiln_value::{Value, value};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::UnboundedReceiver;

use crate::processes::cluster::{Cluster, Limits};
use crate::run::Folder;
use crate::running::Running;

const STACK: &str = "noted";

fn broker(variable: &str) -> String {
    std::env::var(variable).unwrap_or_else(|_| panic!("{variable} is not set: see crates/kiln/tests/rabbitmq.sh"))
}

/// A consumer of the notifications, connected directly.
struct Consumer {
    _connection: Connection,
    _channel: amqprs::channel::Channel,
    deliveries: UnboundedReceiver<amqprs::channel::ConsumerMessage>,
}

impl Consumer {
    async fn new(exchange: &str) -> Self {
        let address = broker("KILN_TEST_RABBITMQ");
        let (host, port) = address.split_once(':').expect("host:port");
        let arguments = OpenConnectionArguments::new(host, port.parse().expect("a port"), "guest", "guest");
        let connection = Connection::open(&arguments).await.expect("a connection");
        let channel = connection.open_channel(None).await.expect("a channel");
        channel.exchange_declare(ExchangeDeclareArguments::new(exchange, "topic")).await.expect("an exchange");
        let mut queue = QueueDeclareArguments::new("");
        let queue = channel.queue_declare(queue.exclusive(true).finish()).await.expect("a queue");
        let (queue, ..) = queue.expect("an answer");
        for key in ["notifications.info", "notifications.error"] {
            channel.queue_bind(QueueBindArguments::new(&queue, exchange, key)).await.expect("a binding");
        }
        let mut consume = BasicConsumeArguments::new(&queue, "");
        let (_, deliveries) = channel.basic_consume_rx(consume.auto_ack(true).finish()).await.expect("a consumer");
        Self { _connection: connection, _channel: channel, deliveries }
    }

    /// The next notification: its routing key and its content.
    async fn next(&mut self) -> (String, serde_json::Value) {
        let delivery = tokio::time::timeout(Duration::from_secs(40), self.deliveries.recv()).await;
        let delivery = delivery.expect("a notification in time").expect("an open channel");
        let key = delivery.deliver.as_ref().expect("a delivery").routing_key().to_owned();
        let properties = delivery.basic_properties.as_ref().expect("properties");
        assert_eq!(properties.content_type().map(String::as_str), Some("application/json"));
        let envelope: serde_json::Value = serde_json::from_slice(&delivery.content.expect("content")).expect("JSON");
        assert_eq!(envelope["oslo.version"], "2.0");
        (key, serde_json::from_str(envelope["oslo.message"].as_str().expect("a text")).expect("JSON"))
    }

    /// The event types up to one.
    async fn up_to(&mut self, last: &str) -> Vec<String> {
        let mut types: Vec<String> = Vec::new();
        let mut seen = std::collections::BTreeSet::new();
        while types.last().is_none_or(|kind| kind != last) {
            let (_, message) = self.next().await;
            if seen.insert(message["message_id"].as_str().expect("an ID").to_owned()) {
                types.push(message["event_type"].as_str().expect("a type").to_owned());
            }
        }
        types
    }
}

/// A TCP proxy in front of the broker, which can be cut.
struct Proxy {
    port: u16,
    is_cut: Arc<AtomicBool>,
}

impl Proxy {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let is_cut = Arc::new(AtomicBool::new(false));
        let cut = Arc::clone(&is_cut);
        tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let cut = Arc::clone(&cut);
                tokio::spawn(async move {
                    let Ok(mut server) = TcpStream::connect(broker("KILN_TEST_RABBITMQ")).await else { return };
                    let gone = async {
                        while !cut.load(Ordering::Relaxed) {
                            tokio::time::sleep(Duration::from_millis(5)).await;
                        }
                    };
                    tokio::select! {
                        _ = copy_bidirectional(&mut client, &mut server) => {}
                        () = gone => {}
                    }
                });
            }
        });
        Self { port, is_cut }
    }
}

fn request(networks: usize) -> StackRequest {
    let name = |number: usize| format!("net{number}");
    let resources: kiln_value::Map =
        (0..networks).map(|number| (name(number), value!({"type": "OS::Neutron::Net"}))).collect();
    let template = value!({
        "heat_template_version": "2018-08-31", "description": "Networks.", "resources": (Value::Map(resources)),
    });
    let bundle = Bundle { template: Some(template), ..Bundle::default() };
    StackRequest { bundle, disable_rollback: Some(true), ..StackRequest::default() }
}

async fn settled(client: &Client) {
    let start = Instant::now();
    while let Ok(stack) = client.stack(STACK, false).await {
        if !stack.status().ends_with("_IN_PROGRESS") {
            return;
        }
        assert!(start.elapsed() < Duration::from_mins(1), "stuck");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn cluster(exchange: &str, options: &str) -> (Cluster, Client) {
    let cloud = Testcloud::builder().latency(Duration::from_millis(2)).start().await.expect("a simulated cloud");
    let limits = Limits { lease: Duration::from_secs(2), ..Limits::default() };
    let options = format!(
        "[DEFAULT]\ncontrol_exchange = {exchange}\nhost = here\n[oslo_messaging_notifications]\ndriver = messagingv2\n{options}"
    );
    let cluster = Cluster::start_with(cloud, "sqlite", 1, limits, &options).await;
    let client = cluster.client(cluster.cloud.users().demo);
    (cluster, client)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs RabbitMQ: crates/kiln/tests/rabbitmq.sh"]
async fn notifications_arrive_although_the_connection_is_lost() {
    let (mut consumer, proxy) = (Consumer::new("heat-a").await, Proxy::start().await);
    let url = format!("transport_url = rabbit://guest:guest@127.0.0.1:1,guest:guest@127.0.0.1:{}/\n", proxy.port);
    let (mut cluster, client) = cluster("heat-a", &url).await;
    client.create_stack(STACK, &request(1)).await.expect("a create");
    settled(&client).await;
    let (key, first) = consumer.next().await;
    assert_eq!(
        (key.as_str(), &first["event_type"]),
        ("notifications.info", &"orchestration.stack.create.start".into())
    );
    assert_eq!((&first["publisher_id"], &first["priority"]), (&"orchestration.here".into(), &"INFO".into()));
    let payload = &first["payload"];
    assert_eq!((&payload["stack_name"], &payload["state"]), (&STACK.into(), &"CREATE_IN_PROGRESS".into()));
    assert_eq!(payload["description"], "Networks.");
    assert_eq!(payload["updated_at"], serde_json::Value::Null);
    assert_eq!(consumer.up_to("orchestration.stack.create.end").await, ["orchestration.stack.create.end"]);

    // The broker is away during an update and a restart of the engine.
    proxy.is_cut.store(true, Ordering::Relaxed);
    client.update_stack(STACK, &request(2)).await.expect("an update");
    settled(&client).await;
    cluster.engines[0].kill();
    cluster.restart(0);
    tokio::time::sleep(Duration::from_secs(1)).await;
    proxy.is_cut.store(false, Ordering::Relaxed);
    client.delete_stack(STACK).await.expect("a delete");
    settled(&client).await;
    let rest =
        ["update.start", "update.end", "delete.start", "delete.end"].map(|end| format!("orchestration.stack.{end}"));
    assert_eq!(consumer.up_to(&rest[3]).await, rest);

    // A failure has its own priority.
    let mut broken = request(1);
    let template = value!({"heat_template_version": "2018-08-31", "resources": {
        "r": {"type": "OS::Heat::TestResource", "properties": {"fail": true}},
    }});
    broken.bundle.template = Some(template);
    client.create_stack("broken", &broken).await.expect("a create");
    let (_, started) = consumer.next().await;
    assert_eq!(started["payload"]["stack_name"], "broken");
    let (key, error) = consumer.next().await;
    assert_eq!((key.as_str(), &error["priority"]), ("notifications.error", &"ERROR".into()));
    assert_eq!(error["event_type"], "orchestration.stack.create.error");
    cluster.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs RabbitMQ: crates/kiln/tests/rabbitmq.sh"]
async fn notifications_go_over_tls() {
    let (address, authority) = (broker("KILN_TEST_RABBITMQ_TLS"), broker("KILN_TEST_RABBITMQ_CA"));
    over_tls(
        "heat-b",
        &format!(
            "[DEFAULT]\ntransport_url = rabbit://guest:guest@{address}/\n[oslo_messaging_rabbit]\nssl = true\nssl_ca_file = {authority}\n"
        ),
    )
    .await;
}

/// As openstack-ansible writes it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs RabbitMQ: crates/kiln/tests/rabbitmq.sh"]
async fn notifications_go_over_tls_if_the_url_says_it() {
    let (address, authority) = (broker("KILN_TEST_RABBITMQ_TLS"), broker("KILN_TEST_RABBITMQ_CA"));
    let query = format!("ssl=1&ssl_version=TLSv1_2&ssl_ca_file={authority}");
    over_tls("heat-c", &format!("[DEFAULT]\ntransport_url = rabbit://guest:guest@{address}//?{query}\n")).await;
}

async fn over_tls(exchange: &str, options: &str) {
    let mut consumer = Consumer::new(exchange).await;
    let (cluster, client) = cluster(exchange, options).await;
    client.create_stack(STACK, &request(1)).await.expect("a create");
    let all = ["create.start", "create.end"].map(|end| format!("orchestration.stack.{end}"));
    assert_eq!(consumer.up_to(&all[1]).await, all);
    cluster.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs RabbitMQ: crates/kiln/tests/rabbitmq.sh"]
async fn audit_notifications_survive_a_broker_that_is_away_and_a_killed_service() {
    let (mut consumer, proxy) = (Consumer::new("heat-audit").await, Proxy::start().await);
    let folder = Folder::new("audit-bus");
    let cloud = Testcloud::builder().start().await.expect("a simulated cloud");
    let spool = folder.path().join("spool");
    let options = format!(
        "control_exchange = heat-audit\n[kiln]\naudit = true\naudit_spool = {}\ncfn_api = false\n\
         [audit_middleware_notifications]\ndriver = messagingv2\ntransport_url = rabbit://guest:guest@127.0.0.1:{}/\n",
        spool.display(),
        proxy.port,
    );
    let config = folder.configured(&cloud, &options);
    folder.write("t.yaml", "heat_template_version: 2018-08-31\n");
    let create = |service: &Running, name: &str| {
        let args = ["stack", "create", "-t", "t.yaml", name];
        let ran = folder.client(&cloud, &service.url(), &args).output().expect("a client");
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    };
    let service = Running::start(folder.kiln(&["serve", "--config-file", &config]));
    create(&service, "one");
    let (key, before) = consumer.next().await;
    assert_eq!((key.as_str(), &before["event_type"]), ("notifications.info", &"audit.http.request".into()));
    assert_eq!((&before["publisher_id"], &before["priority"]), (&"heat-api".into(), &"INFO".into()));
    assert_eq!(before["payload"]["outcome"], "pending");
    let (_, after) = consumer.next().await;
    assert_eq!(
        (&after["event_type"], &after["payload"]["outcome"]),
        (&"audit.http.response".into(), &"success".into())
    );
    assert_eq!(after["payload"]["id"], before["payload"]["id"]);

    proxy.is_cut.store(true, Ordering::Relaxed);
    create(&service, "two");
    service.signal("KILL");
    service.wait();
    let file = std::fs::read_dir(&spool).expect("the spool").next().expect("a file").expect("an entry").path();
    assert!(std::fs::metadata(&file).expect("a file").len() > 0);
    proxy.is_cut.store(false, Ordering::Relaxed);
    let service = Running::start(folder.kiln(&["serve", "--config-file", &config]));
    // What was confirmed before the kill may come again.
    let mut seen = Vec::new();
    while seen.len() < 2 {
        let (_, message) = consumer.next().await;
        let stack = message["payload"]["attachments"][0]["content"].clone();
        if message["payload"]["id"] != before["payload"]["id"] {
            seen.push((message["event_type"].clone(), stack.is_string()));
        }
    }
    assert_eq!(seen, [("audit.http.request".into(), false), ("audit.http.response".into(), true)]);
    let (code, log) = service.stop();
    assert_eq!(code, 0, "{log}");
    assert!(!file.exists());
}
