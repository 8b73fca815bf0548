//! Network addresses, as validated by Neutron and netaddr.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use kiln_value::{Value, text};

/// An IP address in the usual notation.
pub(super) fn address(value: &Value) -> Result<(), String> {
    match value {
        Value::Str(text) if text.parse::<IpAddr>().is_ok() => Ok(()),
        _ => Err("Invalid IP address".to_owned()),
    }
}

/// A MAC address in any notation of netaddr: six bytes, three words, two halves, or twelve digits.
pub(super) fn mac(value: &Value) -> Result<(), String> {
    let is_mac = |text: &str| {
        let groups = |separator: char, count: usize, digits: std::ops::RangeInclusive<usize>| {
            let parts: Vec<&str> = text.split(separator).collect();
            let fits = |part: &&str| digits.contains(&part.len()) && part.bytes().all(|b| b.is_ascii_hexdigit());
            parts.len() == count && parts.iter().all(fits)
        };
        groups(':', 6, 1..=2)
            || groups('-', 6, 1..=2)
            || groups(':', 3, 1..=4)
            || groups('-', 3, 1..=4)
            || groups('.', 3, 1..=4)
            || groups('-', 2, 5..=6)
            || groups(':', 2, 5..=6)
            || groups(':', 1, 11..=12)
    };
    match value {
        Value::Str(text) if is_mac(text) => Ok(()),
        _ => Err("Invalid MAC address.".to_owned()),
    }
}

/// A network with its prefix length; host bits may be set.
pub(super) fn cidr(value: &Value) -> Result<(), String> {
    let text = text::str(value);
    let whole = verbose(&text).unwrap_or_else(|| text.clone());
    match read(&whole) {
        Network::Canonical if whole != text => Err(not_a_subnet(&text)),
        Network::Canonical => Ok(()),
        Network::Readable => Err(not_a_subnet(&text)),
        Network::TwoPrefixes => Err("Invalid net cidr IPAddress() does not support netmasks or subnet prefixes! See \
                                     documentation for details. "
            .to_owned()),
        Network::Invalid => Err(format!("Invalid net cidr invalid IPNetwork {whole} ")),
    }
}

/// An IP address, or with a slash a network as for [`cidr`].
pub(super) fn address_or_cidr(value: &Value) -> Result<(), String> {
    let Value::Str(text) = value else { return Err(format!("{} is not a valid IP or CIDR", text::str(value))) };
    if !text.contains('/') {
        return address(value).map_err(|_| format!("'{text}' is not a valid IP address"));
    }
    if read(text) == Network::Canonical { Ok(()) } else { Err(not_a_subnet(text)) }
}

fn not_a_subnet(text: &str) -> String {
    format!("'{text}' is not a valid IP subnet")
}

#[derive(PartialEq)]
enum Network {
    /// Address and prefix length as printed.
    Canonical,
    /// Another notation that netaddr accepts: without a prefix, or with a mask.
    Readable,
    TwoPrefixes,
    Invalid,
}

/// An IPv4 network with the parts that netaddr adds: missing octets, and the prefix length of the address class.
fn verbose(text: &str) -> Option<String> {
    if text.contains(':') || text.is_empty() {
        return None;
    }
    let number = |digits: &str| digits.trim().parse::<u32>().ok();
    let class = |octet: &str| {
        Some(match number(octet)? {
            0..=127 => 8,
            128..=191 => 16,
            192..=223 => 24,
            224..=239 => 4,
            240..=255 => 32,
            _ => return None,
        })
    };
    if let Some(octet) = number(text) {
        return Some(format!("{octet}.0.0.0/{}", class(text)?));
    }
    let (address, prefix) = match text.split_once('/') {
        Some((address, prefix)) => (address, Some(prefix.to_owned())),
        None => (text, None),
    };
    let mut octets: Vec<&str> = address.split('.').collect();
    if octets.len() > 4 || prefix.as_deref().is_some_and(|p| number(p).is_none_or(|n| n > 32)) {
        return None;
    }
    octets.resize(4, "0");
    let prefix = prefix.or_else(|| class(octets[0]).map(|n: u32| n.to_string()))?;
    Some(format!("{}/{prefix}", octets.join(".")))
}

fn read(text: &str) -> Network {
    let (address, prefix) = match text.split_once('/') {
        Some((address, prefix)) => (address, Some(prefix)),
        None => (text, None),
    };
    let Ok(address) = address.parse::<IpAddr>() else { return Network::Invalid };
    let Some(prefix) = prefix else { return Network::Readable };
    if prefix.contains('/') {
        return Network::TwoPrefixes;
    }
    let (most, is_mask) = match address {
        IpAddr::V4(_) => (32, prefix.parse::<Ipv4Addr>().is_ok()),
        IpAddr::V6(_) => (128, prefix.parse::<Ipv6Addr>().is_ok()),
    };
    match prefix.parse::<u8>() {
        Ok(length) if length > most => Network::Invalid,
        Ok(length) if address.is_ipv4() && length.to_string() != prefix => Network::Readable,
        Ok(_) => Network::Canonical,
        Err(_) if is_mask && address.is_ipv4() => Network::Readable,
        Err(_) if is_mask => Network::Canonical,
        Err(_) => Network::Invalid,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn abbreviated_networks_are_completed_in_errors() {
        let refusal = |text: &str| cidr(&text.into()).unwrap_err();
        assert_eq!(refusal("192.168.1/24"), "'192.168.1/24' is not a valid IP subnet");
        assert_eq!(refusal("5"), "'5' is not a valid IP subnet");
        assert_eq!(refusal("10.0.x"), "Invalid net cidr invalid IPNetwork 10.0.x.0/8 ");
        assert_eq!(refusal("10.0.0.01"), "Invalid net cidr invalid IPNetwork 10.0.0.01/8 ");
        assert_eq!(refusal("x/24/1"), "Invalid net cidr invalid IPNetwork x/24/1 ");
        assert_eq!(cidr(&"10.0.0.1/8".into()), Ok(()));
    }
}
