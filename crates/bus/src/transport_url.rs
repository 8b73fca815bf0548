//! The transport URL of oslo.messaging: `rabbit://USER:PASSWORD@HOST:PORT,USER:PASSWORD@HOST:PORT/VHOST?OPTION=VALUE`.

use anyhow::{Context as _, Result, bail};
use kiln_value::Secret;
use url::form_urlencoded;

use kiln_config::option::ConfigOption;
use kiln_config::options::messages;

/// RabbitMQ's port and account, if the URL has none.
const PORT: u16 = 5672;
const GUEST: &str = "guest";

/// The nodes of a RabbitMQ cluster.
#[derive(Clone, Debug)]
pub(super) struct Transport {
    /// At least one.
    pub(super) nodes: Vec<Node>,
    /// The virtual host.
    pub(super) vhost: String,
    /// Options of `[oslo_messaging_rabbit]`, which take precedence over those of the files.
    pub(super) options: Vec<(&'static ConfigOption, String)>,
}

/// A node with an account.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Node {
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) user: String,
    pub(super) password: Secret<String>,
}

impl Transport {
    /// Reads a URL. Errors do not show it, because it contains passwords.
    pub(super) fn parse(url: &str) -> Result<Self> {
        let (scheme, rest) = url.split_once("://").context("it is not a URL")?;
        if !matches!(scheme, "rabbit" | "amqp" | "kombu+amqp") {
            bail!("Kiln supports only rabbit://, not {scheme}://");
        }
        let rest = rest.split('#').next().unwrap_or_default();
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let options = form_urlencoded::parse(query.as_bytes()).map(|(name, value)| option(&name, &value));
        let options = options.collect::<Result<_>>()?;
        let (nodes, vhost) = rest.split_once('/').unwrap_or((rest, ""));
        let nodes = nodes.split(',').filter(|node| !node.is_empty()).map(Node::parse).collect::<Result<Vec<_>>>()?;
        if nodes.is_empty() {
            bail!("it has no host");
        }
        let vhost = if vhost.is_empty() { "/".to_owned() } else { decoded(vhost)? };
        if vhost.len() > super::LONGEST_NAME {
            bail!("the name of its virtual host is too long");
        }
        Ok(Self { nodes, vhost, options })
    }
}

/// An option of the query.
fn option(name: &str, value: &str) -> Result<(&'static ConfigOption, String)> {
    let of_rabbit = || messages::TABLE.iter().copied().filter(|option| option.section() == messages::SSL.section());
    if let Some(option) = of_rabbit().find(|option| option.name() == name) {
        return Ok((option, value.to_owned()));
    }
    let known: Vec<&str> = of_rabbit().map(ConfigOption::name).collect();
    bail!("Kiln does not know its option {name}; the known ones are {}", known.join(", "))
}

impl Node {
    fn parse(text: &str) -> Result<Self> {
        let (account, place) = text.rsplit_once('@').unwrap_or(("", text));
        let (user, password) = account.split_once(':').unwrap_or((account, ""));
        let or_guest = |text: &str| if account.is_empty() { Ok(GUEST.to_owned()) } else { decoded(text) };
        let (host, port) = match place.strip_prefix('[').and_then(|place| place.split_once(']')) {
            Some((host, port)) => (host, port.strip_prefix(':')),
            None => match place.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (place, None),
            },
        };
        if host.is_empty() {
            bail!("it has no host");
        }
        let port = match port {
            Some(port) => port.parse().ok().filter(|port| *port > 0).context("its port is not a number")?,
            None => PORT,
        };
        Ok(Self { host: host.to_owned(), port, user: or_guest(user)?, password: Secret::new(or_guest(password)?) })
    }
}

/// Replaces `%XX`.
fn decoded(text: &str) -> Result<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
        let value = digit(rest.next()).zip(digit(rest.next())).map(|(high, low)| high * 16 + low);
        bytes.push(value.and_then(|value| u8::try_from(value).ok()).context("it contains an invalid % sequence")?);
    }
    String::from_utf8(bytes).context("it is not UTF-8")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(host: &str, port: u16, user: &str, password: &str) -> Node {
        let password = Secret::new(password.to_owned());
        Node { host: host.to_owned(), port, user: user.to_owned(), password }
    }

    #[test]
    fn all_parts_are_read() {
        let parse = |url: &str| Transport::parse(url).unwrap();
        let one = parse("rabbit://h");
        assert_eq!((one.nodes, one.vhost.as_str()), (vec![node("h", 5672, "guest", "guest")], "/"));
        let two = parse("rabbit://u:p%40ss%2F@h1:5673,v:w@[::1]:5674/heat%2Fx?ssl=1&ssl_ca_file=%2Fca");
        assert_eq!(two.nodes, [node("h1", 5673, "u", "p@ss/"), node("::1", 5674, "v", "w")]);
        assert_eq!(two.vhost, "heat/x");
        let options: Vec<_> = two.options.iter().map(|(option, value)| (option.name(), value.as_str())).collect();
        assert_eq!(options, [("ssl", "1"), ("ssl_ca_file", "/ca")]);
        assert_eq!(parse("rabbit://u@h//").vhost, "/");
    }

    #[test]
    fn errors_do_not_show_the_password() {
        for url in [
            "h",
            "fake://u:secret@h",
            "rabbit://",
            "rabbit://u:secret@h:port",
            "rabbit://u:secret%@h",
            "rabbit://u:secret@:1",
            "rabbit://u:secret@h/?ssl_cipher=secret",
        ] {
            let error = format!("{:#}", Transport::parse(url).unwrap_err());
            assert!(!error.contains("secret"), "{error}");
        }
        assert!(!format!("{:?}", Transport::parse("rabbit://u:secret@h").unwrap()).contains("secret"));
    }
}
