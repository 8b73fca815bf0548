//! Addresses of networks, as Neutron's validators and netaddr read them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use kiln_value::{Value, text};

/// An IP address in its usual form.
pub(super) fn address(value: &Value) -> Result<(), String> {
    match value {
        Value::Str(text) if text.parse::<IpAddr>().is_ok() => Ok(()),
        _ => Err("Invalid IP address".to_owned()),
    }
}

/// A MAC address in any notation that netaddr knows: six bytes, three words or two halves, or twelve digits at once.
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

/// A network with its prefix length; bits of the host may be set.
pub(super) fn cidr(value: &Value) -> Result<(), String> {
    let text = text::str(value);
    match read(&text) {
        Network::Canonical => Ok(()),
        Network::Readable => Err(not_a_subnet(&text)),
        Network::TwoPrefixes => Err("Invalid net cidr IPAddress() does not support netmasks or subnet prefixes! See \
                                     documentation for details. "
            .to_owned()),
        Network::Invalid => Err(format!("Invalid net cidr invalid IPNetwork {text} ")),
    }
}

/// An IP address, or a network as for [`cidr`] if there is a slash.
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
    /// Address and prefix length as they are printed.
    Canonical,
    /// Something that netaddr understands: no prefix, a mask, fewer than four octets.
    Readable,
    TwoPrefixes,
    Invalid,
}

fn read(text: &str) -> Network {
    let (address, prefix) = match text.split_once('/') {
        Some((address, prefix)) => (address, Some(prefix)),
        None => (text, None),
    };
    let fits = |max: u8| prefix.is_none_or(|p| p.parse::<u8>().is_ok_and(|p| p <= max));
    if prefix.is_some_and(|p| p.contains('/')) {
        return Network::TwoPrefixes;
    }
    if address.parse::<Ipv6Addr>().is_ok() {
        return match prefix {
            None => Network::Readable,
            Some(_) if fits(128) => Network::Canonical,
            Some(mask) if mask.parse::<Ipv6Addr>().is_ok() => Network::Canonical,
            Some(_) => Network::Invalid,
        };
    }
    let octets: Vec<&str> = address.split('.').collect();
    let octet = |o: &&str| !o.is_empty() && o.bytes().all(|b| b.is_ascii_digit()) && o.parse::<u8>().is_ok();
    if octets.len() > 4 || !octets.iter().all(octet) {
        return Network::Invalid;
    }
    let is_mask = prefix.is_some_and(|p| p.parse::<Ipv4Addr>().is_ok());
    if !fits(32) && !is_mask {
        return Network::Invalid;
    }
    let printed = |p: &str| address.parse::<Ipv4Addr>().is_ok() && p.parse::<u8>().is_ok_and(|n| n.to_string() == p);
    if prefix.is_some_and(printed) { Network::Canonical } else { Network::Readable }
}
