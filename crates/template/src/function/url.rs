//! `make_url`.

use kiln_value::{Class, Diagnostic, Map, Value, text};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::{Function, fault};
use crate::expr::{Call, Context, Node, validate_args};

/// A URL built from its parts, which are quoted as required.
#[derive(Debug)]
pub(crate) struct MakeUrl;

const KEYS: [&str; 8] = ["scheme", "username", "password", "host", "port", "path", "query", "fragment"];

/// Characters that Python's `quote` does not change.
const QUOTED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'_').remove(b'.').remove(b'-').remove(b'~');
const QUOTED_PATH: &AsciiSet = &QUOTED.remove(b'/');
const QUOTED_HOST: &AsciiSet = &QUOTED.remove(b':');

/// Schemes with `//` in their URLs even without a host (Python's `uses_netloc`).
const WITH_AUTHORITY: [&str; 24] = [
    "ftp", "http", "gopher", "nntp", "telnet", "imap", "wais", "file", "mms", "https", "shttp", "snews", "prospero",
    "rtsp", "rtspu", "rsync", "svn", "svn+ssh", "sftp", "nfs", "git", "git+ssh", "ws", "wss",
];

fn quote(text: &str, set: &'static AsciiSet) -> String {
    utf8_percent_encode(text, set).to_string()
}

/// Checks the parts in order. Calls are accepted; as in Heat, nothing after `query` is checked.
fn check(name: &str, args: &Node) -> Result<(), Diagnostic> {
    let Some(map) = args.as_map() else { return Ok(()) };
    for key in KEYS {
        match (key, map.get(key)) {
            ("query", Some(Node::Map(_) | Node::Call(_))) => return Ok(()),
            ("query", Some(_)) => {
                return Err(fault::type_error(format!("The \"query\" argument to \"{name}\" must be a map")));
            }
            (_, None | Some(Node::Call(_) | Node::Absent)) => {}
            ("port", Some(number)) => check_port(name, &number.source(), args)?,
            (_, Some(text)) if text.as_str().is_some() => {}
            (key, Some(_)) => {
                return Err(fault::type_error(format!("The \"{key}\" argument to \"{name}\" must be a string")));
            }
        }
    }
    Ok(())
}

fn check_port(name: &str, port: &Value, args: &Node) -> Result<(), Diagnostic> {
    let number = fault::int(port).map_err(|error| match error.class {
        Class::ValueError => fault::value_error(format!(
            "Invalid URL port \"{}\" for {name} called with {}",
            text::str(port),
            text::repr(&args.source())
        )),
        _ => error,
    })?;
    match number {
        Value::Int(1..=65535) => Ok(()),
        other => {
            let message = format!("Invalid URL port {}, must be in range 1-65535", text::str(&other));
            Err(fault::value_error(message))
        }
    }
}

impl Function for MakeUrl {
    fn validate(&self, call: &Call, context: &Context) -> Result<(), Diagnostic> {
        validate_args(call, context)?;
        let name = call.name;
        let Some(args) = call.args.as_map() else {
            return Err(fault::type_error(format!("The arguments to \"{name}\" must be a map")));
        };
        let unknown: Vec<_> = args.keys().map(String::as_str).filter(|key| !KEYS.contains(key)).collect();
        if !unknown.is_empty() {
            return Err(fault::value_error(format!("Invalid arguments to \"{name}\": {}", unknown.join(", "))));
        }
        check(name, &call.args)
    }

    fn resolve(&self, call: &Call, context: &Context) -> Result<Option<Value>, Diagnostic> {
        let args = match call.resolved_args(context)? {
            Value::Map(args) => args,
            other @ (Value::Str(_) | Value::List(_)) => return Err(fault::no_attribute(&other, "get")),
            other => {
                let kind = fault::type_name(&other);
                return Err(fault::type_error(format!("argument of type '{kind}' is not iterable")));
            }
        };
        let literal = args.iter().map(|(key, value)| (key.clone(), Node::literal(value))).collect();
        check(call.name, &Node::Map(literal))?;
        Ok(Some(Value::Str(url(&args)?)))
    }
}

fn url(args: &Map) -> Result<String, Diagnostic> {
    let part = |key: &str| match args.get(key) {
        None => Ok(""),
        Some(Value::Str(text)) => Ok(text.as_str()),
        // Only a fragment after a query arrives here unchecked.
        Some(_) => Err(fault::type_error("quote_from_bytes() expected bytes")),
    };
    let scheme = part("scheme")?;
    if scheme.contains(':') {
        return Err(fault::value_error("URL \"scheme\" should not contain ':'"));
    }
    let authority = authority(part("username")?, part("password")?, part("host")?, args.get("port"));
    let mut path = quote(part("path")?, QUOTED_PATH);
    let query = args.get("query").and_then(Value::as_map).map(query).unwrap_or_default();
    let fragment = quote(part("fragment")?, QUOTED_PATH);

    let scheme_has_authority = WITH_AUTHORITY.contains(&scheme) && !path.starts_with("//");
    if !authority.is_empty() || scheme_has_authority {
        if !path.is_empty() && !path.starts_with('/') {
            path.insert(0, '/');
        }
        path = format!("//{authority}{path}");
    }
    let mut url = String::new();
    if !scheme.is_empty() {
        url = format!("{scheme}:");
    }
    url.push_str(&path);
    for (mark, part) in [('?', query), ('#', fragment)] {
        if !part.is_empty() {
            url.push(mark);
            url.push_str(&part);
        }
    }
    Ok(url)
}

fn authority(username: &str, password: &str, host: &str, port: Option<&Value>) -> String {
    let mut authority = String::new();
    if !username.is_empty() || !password.is_empty() {
        authority.push_str(&quote(username, QUOTED));
        if !password.is_empty() {
            authority.push(':');
            authority.push_str(&quote(password, QUOTED));
        }
        authority.push('@');
    }
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let host = quote(host, QUOTED_HOST);
    if host.contains(':') {
        authority.extend(["[", &host, "]"]);
    } else {
        authority.push_str(&host);
    }
    if let Some(port) = port.filter(|port| port.is_truthy()) {
        authority.push(':');
        authority.push_str(&text::str(port));
    }
    authority
}

/// Form encoding; slashes are not encoded.
fn query(query: &Map) -> String {
    let encode = |text: &str| quote(text, QUOTED_PATH).replace("%20", "+");
    let pairs: Vec<_> =
        query.iter().map(|(key, value)| format!("{}={}", encode(key), encode(&text::str(value)))).collect();
    pairs.join("&")
}
