//! Notifications as oslo.messaging sends them, to RabbitMQ and the log. The options are those of heat.conf.

mod audit;
mod envelope;
mod log;
mod rabbit;
mod tls;
mod transport_url;

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use kiln_audit::Destination;
use kiln_config::Config;
use kiln_config::options::messages;
use kiln_engine::MessageBus;

use self::audit::AuditBus;
use self::envelope::{Envelope, Version};
use self::log::Log;
use self::rabbit::{Declarations, Rabbit};
use self::transport_url::Transport;

/// The section of the options of notifications.
const NOTIFICATIONS: &str = "oslo_messaging_notifications";
/// Names in AMQP have at most 255 bytes.
const LONGEST_NAME: usize = 255;

/// The drivers in use. Both are absent: notifications are off.
#[derive(Clone, Copy, Debug, Default)]
struct Drivers {
    /// RabbitMQ gets messages of this version.
    rabbit: Option<Version>,
    /// Each notification is a line of the log.
    log: bool,
}

impl Drivers {
    fn of(config: &Config) -> Result<Self> {
        let mut drivers = Self::default();
        for driver in config.all(&messages::DRIVER) {
            let version = match driver.as_str() {
                "messagingv2" => Version::Two,
                "messaging" => Version::One,
                "log" => {
                    drivers.log = true;
                    continue;
                }
                "noop" => continue,
                other => {
                    bail!("[{NOTIFICATIONS}] driver: Kiln supports messagingv2, messaging, log and noop, not {other:?}")
                }
            };
            if *drivers.rabbit.get_or_insert(version) != version {
                bail!("[{NOTIFICATIONS}] driver: messaging and messagingv2 cannot be used together");
            }
        }
        Ok(drivers)
    }
}

/// Whether notifications are on.
pub fn is_configured(config: &Config) -> Result<bool> {
    let drivers = Drivers::of(config)?;
    Ok(drivers.log || drivers.rabbit.is_some())
}

/// The configured message bus, not connected yet. `None`: notifications are off.
pub fn of_config(config: &Config, hostname: &str) -> Result<Option<Arc<dyn MessageBus>>> {
    let drivers = Drivers::of(config)?;
    let rabbit = drivers.rabbit.map(|version| rabbit(config, hostname, version)).transpose()?;
    if !drivers.log {
        return Ok(rabbit.map(|rabbit| Arc::new(rabbit) as Arc<dyn MessageBus>));
    }
    Ok(Some(Arc::new(Log { envelope: envelope(config, hostname, Version::One)?, first: rabbit })))
}

/// Where audit events are delivered, if that is RabbitMQ: `[audit_middleware_notifications]`, and where that says nothing, the
/// destination of notifications.
pub fn audit_of_config(config: &Config, publisher: &str) -> Result<AuditTo> {
    let mut options = vec![
        (&messages::DEFAULT_PUBLISHER_ID, publisher.to_owned()),
        (&messages::DEFAULT_NOTIFICATION_LEVEL, "INFO".to_owned()),
    ];
    if let Some(driver) = config.choice(&messages::AUDIT_DRIVER)? {
        options.push((&messages::DRIVER, driver));
    }
    if let Some(url) = config.text(&messages::AUDIT_TRANSPORT_URL) {
        options.push((&messages::NOTIFICATIONS_TRANSPORT_URL, url));
    }
    let topics = config.list(&messages::AUDIT_TOPICS);
    if !topics.is_empty() {
        options.push((&messages::TOPICS, topics.join(",")));
    }
    if !config.flag(&messages::AUDIT_USE_OSLO_MESSAGING)? {
        return Ok(AuditTo::Log);
    }
    let config = config.with(options);
    let drivers = config.all(&messages::DRIVER);
    if drivers.iter().any(|driver| driver == "log") || drivers.is_empty() {
        return Ok(AuditTo::Log);
    }
    Ok(match of_config(&config, "")? {
        Some(bus) => AuditTo::Bus(Arc::new(AuditBus(bus))),
        None => AuditTo::Nothing,
    })
}

/// Where audit events go.
pub enum AuditTo {
    /// Nowhere: the driver is `noop`.
    Nothing,
    /// To the log.
    Log,
    /// To RabbitMQ.
    Bus(Arc<dyn Destination>),
}

fn envelope(config: &Config, hostname: &str, version: Version) -> Result<Envelope> {
    let level = config.choice(&messages::DEFAULT_NOTIFICATION_LEVEL)?.unwrap_or_default().to_uppercase();
    let publisher = config.text(&messages::DEFAULT_PUBLISHER_ID).unwrap_or_else(|| format!("orchestration.{hostname}"));
    Ok(Envelope { version, publisher, level })
}

fn rabbit(config: &Config, hostname: &str, version: Version) -> Result<Rabbit> {
    let envelope = envelope(config, hostname, version)?;
    let url =
        config.text(&messages::NOTIFICATIONS_TRANSPORT_URL).or_else(|| config.text(&messages::DEFAULT_TRANSPORT_URL));
    let url = url.with_context(|| {
        format!("[{NOTIFICATIONS}] driver is set, but neither transport_url there nor in [DEFAULT]: set rabbit://…")
    })?;
    let mut transport = Transport::parse(&url).context("transport_url")?;
    let config = &config.with(std::mem::take(&mut transport.options));
    let exchange = config.text(&messages::CONTROL_EXCHANGE).unwrap_or_default();
    let topics = config.list(&messages::TOPICS);
    if let Some(name) = topics.iter().chain([&exchange]).find(|name| name.len() + 10 > LONGEST_NAME) {
        bail!("the name of an exchange or topic is too long: {name}");
    }
    let seconds = config.number::<u16>(&messages::HEARTBEAT_TIMEOUT_THRESHOLD)?;
    let declarations = Declarations {
        durable: config.flag(&messages::AMQP_DURABLE_QUEUES)?,
        auto_delete: config.flag(&messages::AMQP_AUTO_DELETE)?,
        quorum: config.flag(&messages::RABBIT_QUORUM_QUEUE)?,
    };
    let tls = if config.flag(&messages::SSL)? { Some(tls::connector(config)?) } else { None };
    let heartbeat = Duration::from_secs(u64::from(seconds));
    Ok(Rabbit::new(transport, tls, heartbeat, exchange, topics, declarations, envelope))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kiln_ini::DEFAULT;

    const RABBIT: &str = "oslo_messaging_rabbit";

    fn bus(options: &[(&str, &str, &str)]) -> Result<bool, String> {
        let options: Vec<_> = options.iter().map(|(group, name, value)| (*group, *name, (*value).to_owned())).collect();
        let config = Config::of_options(&options);
        of_config(&config, "host").map(|bus| bus.is_some()).map_err(|error| format!("{error:#}"))
    }

    #[test]
    fn notifications_are_off_by_default_and_wrong_options_are_refused() {
        let driver = (NOTIFICATIONS, "driver", "messagingv2");
        let url = (DEFAULT, "transport_url", "rabbit://u:p@h:1/v");
        assert_eq!(bus(&[]), Ok(false));
        assert_eq!(bus(&[url]), Ok(false));
        assert_eq!(bus(&[(NOTIFICATIONS, "driver", "noop")]), Ok(false));
        assert_eq!(bus(&[driver, url]), Ok(true));
        assert_eq!(bus(&[(NOTIFICATIONS, "driver", "log")]), Ok(true));
        assert_eq!(bus(&[driver, (NOTIFICATIONS, "transport_url", "rabbit://h")]), Ok(true));
        let refused = |options: &[(&str, &str, &str)]| bus(options).unwrap_err();
        assert!(refused(&[driver]).contains("transport_url"));
        assert!(refused(&[(NOTIFICATIONS, "driver", "routing")]).contains("not \"routing\""));
        assert!(refused(&[driver, (DEFAULT, "transport_url", "kafka://h")]).contains("kafka"));
        assert!(refused(&[driver, url, (DEFAULT, "default_notification_level", "loud")]).contains("loud"));
        assert!(
            refused(&[driver, url, (RABBIT, "ssl", "true"), (RABBIT, "ssl_ca_file", "/no/file")]).contains("/no/file")
        );
        // As openstack-ansible writes it.
        let by_url = |query: &str| refused(&[driver, (DEFAULT, "transport_url", &format!("rabbit://u:p@h/v?{query}"))]);
        assert!(by_url("ssl=1&ssl_version=TLSv1_2&ssl_ca_file=/no/file").contains("/no/file"));
        assert!(by_url("ssl=1&ssl_version=TLSv1").contains("ssl_version"));
        assert!(by_url("ssl=perhaps").contains("ssl"));
        assert!(by_url("failover_strategy=shuffle").contains("does not know its option failover_strategy"));
    }
}
