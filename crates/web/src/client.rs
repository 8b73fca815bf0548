//! The address that a request is from.

use std::net::{IpAddr, SocketAddr};

use http::request::Parts;
use ipnet::IpNet;

use crate::address::element;
use crate::server::connection_slots;

/// The proxies before the service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proxies {
    /// Whether their headers are used: `Forwarded` and `X-Forwarded-…` (`enable_proxy_headers_parsing`).
    pub headers: bool,
    /// The networks that they are in (`trusted_proxies`). What connects by a Unix socket is trusted too.
    pub trusted: Vec<IpNet>,
}

impl Proxies {
    /// The address of the client: that of the connection, or, if that is a trusted proxy, the last address in its header
    /// that is not one. `None` for a request by a Unix socket without a header.
    pub fn client(&self, head: &Parts) -> Option<IpAddr> {
        self.behind(connection_slots::peer(), head)
    }

    fn behind(&self, peer: Option<IpAddr>, head: &Parts) -> Option<IpAddr> {
        let mut client = peer;
        if self.headers && peer.is_none_or(|peer| self.trusts(peer)) {
            // The proxy that is nearest has added the last one; a client may have made up the first ones.
            for hop in hops(head).iter().rev() {
                let Some(address) = parsed(hop) else { break };
                client = Some(address);
                if !self.trusts(address) {
                    break;
                }
            }
        }
        client
    }

    fn trusts(&self, address: IpAddr) -> bool {
        self.trusted.iter().any(|network| network.contains(&address))
    }
}

/// The addresses in the headers, as they are written.
fn hops(head: &Parts) -> Vec<&str> {
    let lists = |name: &str| {
        let values = head.headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
        values.flat_map(|value| value.split(',').map(str::trim)).collect::<Vec<_>>()
    };
    let forwarded = lists("forwarded");
    if forwarded.is_empty() {
        return lists("x-forwarded-for");
    }
    forwarded.into_iter().map(|hop| element(hop, "for").unwrap_or_default()).collect()
}

/// `10.0.0.1`, `10.0.0.1:80`, `2001:db8::1`, `[2001:db8::1]` or `[2001:db8::1]:80`.
fn parsed(hop: &str) -> Option<IpAddr> {
    let bare = hop.trim_start_matches('[').trim_end_matches(']');
    let address = bare.parse().or_else(|_| hop.parse::<SocketAddr>().map(|address| address.ip()));
    address.ok().map(|address: IpAddr| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(peer: Option<&str>, headers: &[(&str, &str)]) -> Option<String> {
        let trusted = ["127.0.0.0/8", "10.0.0.0/24"].map(|network| network.parse().unwrap()).to_vec();
        let mut request = http::Request::builder().uri("/v1");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let head = request.body(()).unwrap().into_parts().0;
        let proxies = Proxies { headers: true, trusted };
        proxies.behind(peer.map(|peer| peer.parse().unwrap()), &head).map(|address| address.to_string())
    }

    #[test]
    fn only_trusted_proxies_name_the_client() {
        let forged = ("x-forwarded-for", "1.1.1.1, 192.0.2.7, 10.0.0.9");
        assert_eq!(client(Some("127.0.0.1"), &[forged]).unwrap(), "192.0.2.7");
        assert_eq!(client(None, &[forged]).unwrap(), "192.0.2.7");
        assert_eq!(client(Some("192.0.2.1"), &[forged]).unwrap(), "192.0.2.1");
        assert_eq!(client(Some("127.0.0.1"), &[]).unwrap(), "127.0.0.1");
        assert_eq!(client(None, &[]), None);
    }

    #[test]
    fn both_headers_in_all_their_notations() {
        let peer = Some("127.0.0.1");
        let new = ("forwarded", "for=1.1.1.1, For=\"[2001:db8::7]:4711\";proto=https, for=10.0.0.9");
        assert_eq!(client(peer, &[new, ("x-forwarded-for", "3.3.3.3")]).unwrap(), "2001:db8::7");
        assert_eq!(client(peer, &[("x-forwarded-for", "192.0.2.7:80")]).unwrap(), "192.0.2.7");
        // Two lines are one list; a name that is not an address ends the chain.
        assert_eq!(
            client(peer, &[("x-forwarded-for", "192.0.2.7"), ("x-forwarded-for", "10.0.0.2")]).unwrap(),
            "192.0.2.7"
        );
        assert_eq!(client(peer, &[("x-forwarded-for", "192.0.2.7, unknown, 10.0.0.2")]).unwrap(), "10.0.0.2");
    }
}
