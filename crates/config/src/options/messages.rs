//! Options of notifications.

use super::options;
use crate::option::Kind::{Choice, Flag, List, Path, Repeated, Text, Whole};
use crate::option::{ConfigOption, Place};

const MAIN: Place = Place::Section("DEFAULT");
const NOTIFICATIONS: Place = Place::Section("oslo_messaging_notifications");
const AUDIT: Place = Place::Section("audit_middleware_notifications");
const RABBIT: Place = Place::Section("oslo_messaging_rabbit");

options! {
    DEFAULT_TRANSPORT_URL = ConfigOption::new(
        MAIN, "transport_url", Text, "URL of RabbitMQ for notifications, unless [oslo_messaging_notifications] has one.",
    ).secret();
    CONTROL_EXCHANGE = ConfigOption::new(MAIN, "control_exchange", Text, "Exchange of the notifications.")
        .default("heat");
    DEFAULT_NOTIFICATION_LEVEL = ConfigOption::new(
        MAIN, "default_notification_level", Choice(&[
            "AUDIT", "DEBUG", "INFO", "WARN", "ERROR", "CRITICAL", "SAMPLE",
            "audit", "debug", "info", "warn", "error", "critical", "sample",
        ]),
        "Priority of notifications that are not about errors.",
    ).default("INFO");
    DEFAULT_PUBLISHER_ID = ConfigOption::new(MAIN, "default_publisher_id", Text, "Sender in notifications.")
        .computed("orchestration.HOST");
    DRIVER = ConfigOption::new(
        NOTIFICATIONS, "driver", Repeated,
        "Form of the notifications: messagingv2 or messaging, to RabbitMQ; log: each is a line of the log; noop: none. \
         Empty: none.",
    ).older(&["DEFAULT/notification_driver"]);
    NOTIFICATIONS_TRANSPORT_URL = ConfigOption::new(
        NOTIFICATIONS, "transport_url", Text, "URL of RabbitMQ: rabbit://USER:PASSWORD@HOST:5672/VHOST. Its query has options of [oslo_messaging_rabbit]: \
         ?ssl=1&ssl_ca_file=FILE.",
    ).older(&["DEFAULT/notification_transport_url"]).secret().computed("[DEFAULT] transport_url");
    TOPICS = ConfigOption::new(NOTIFICATIONS, "topics", List, "Routing keys are TOPIC.info and TOPIC.error.")
        .older(&["rpc_notifier2/topics", "DEFAULT/notification_topics"])
        .default("notifications");
    AUDIT_USE_OSLO_MESSAGING = ConfigOption::new(
        AUDIT, "use_oslo_messaging", Flag, "Send audit events as notifications; false: write them to the log.",
    ).default("true");
    AUDIT_DRIVER = ConfigOption::new(
        AUDIT, "driver", Choice(&["messagingv2", "messaging", "log", "noop"]),
        "Form of the audit events: messagingv2 or messaging, to RabbitMQ; log: a line of the log each; noop: none.",
    ).computed("[oslo_messaging_notifications] driver; without one, log");
    AUDIT_TRANSPORT_URL = ConfigOption::new(AUDIT, "transport_url", Text, "URL of RabbitMQ for audit events.")
        .secret()
        .computed("[oslo_messaging_notifications] transport_url");
    AUDIT_TOPICS = ConfigOption::new(AUDIT, "topics", List, "Routing keys of audit events are TOPIC.info.")
        .computed("[oslo_messaging_notifications] topics");
    SSL = ConfigOption::new(RABBIT, "ssl", Flag, "Connect with TLS.").older(&["rabbit_use_ssl"]).default("false");
    SSL_CA_FILE = ConfigOption::new(RABBIT, "ssl_ca_file", Path, "File with certificates of authorities.")
        .older(&["kombu_ssl_ca_certs"])
        .computed("the certificates of the system");
    SSL_CERT_FILE = ConfigOption::new(RABBIT, "ssl_cert_file", Path, "File with the client certificate.")
        .older(&["kombu_ssl_certfile"]);
    SSL_KEY_FILE = ConfigOption::new(RABBIT, "ssl_key_file", Path, "File with the key of the client certificate.")
        .older(&["kombu_ssl_keyfile"]);
    SSL_VERSION = ConfigOption::new(
        RABBIT, "ssl_version", Choice(&["TLSv1_2", "TLSv1_3", "SSLv23", "tlsv1_2", "tlsv1_3", "sslv23"]),
        "The only version of TLS; SSLv23: 1.2 or 1.3.",
    ).older(&["kombu_ssl_version"]).default("SSLv23");
    AMQP_DURABLE_QUEUES = ConfigOption::new(RABBIT, "amqp_durable_queues", Flag, "Declare durable queues.")
        .default("false");
    AMQP_AUTO_DELETE = ConfigOption::new(RABBIT, "amqp_auto_delete", Flag, "Declare queues that delete themselves.")
        .older(&["DEFAULT/amqp_auto_delete"])
        .default("false");
    RABBIT_QUORUM_QUEUE = ConfigOption::new(RABBIT, "rabbit_quorum_queue", Flag, "Declare quorum queues.")
        .default("false");
    HEARTBEAT_TIMEOUT_THRESHOLD = ConfigOption::new(
        RABBIT, "heartbeat_timeout_threshold", Whole(0, 65_535),
        "Time without an answer after which the connection is considered lost.",
    ).default("60").unit("seconds");
}
