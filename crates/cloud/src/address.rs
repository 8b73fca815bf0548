//! The addresses that Kiln may connect to for a user: those of the Internet, and of networks that the operator lists.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};

use ipnet::IpNet;

/// IPv4 networks that are not part of the Internet: IANA's list of special-purpose addresses, and multicast.
const SPECIAL_V4: [(Ipv4Addr, u8); 16] = [
    (Ipv4Addr::UNSPECIFIED, 8),
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 0, 0, 0), 24),
    (Ipv4Addr::new(192, 0, 2, 0), 24),
    (Ipv4Addr::new(192, 88, 99, 0), 24),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    (Ipv4Addr::new(203, 0, 113, 0), 24),
    (Ipv4Addr::new(224, 0, 0, 0), 4),
    (Ipv4Addr::new(240, 0, 0, 0), 4),
    (Ipv4Addr::BROADCAST, 32),
];

/// A text that is not a network.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a network")]
pub struct NoNetwork(String);

/// Networks, each as `10.1.0.0/16` or an address.
///
/// # Errors
/// A text that is not a network.
pub fn networks(texts: &[String]) -> Result<Vec<IpNet>, NoNetwork> {
    let network = |text: &String| {
        let network = text.parse::<IpNet>().or_else(|_| text.parse::<IpAddr>().map(IpNet::from));
        network.map_err(|_| NoNetwork(text.clone()))
    };
    texts.iter().map(network).collect()
}

/// Addresses that users may direct the service to: public ones that are not of this machine, and those of networks that
/// the operator lists; or only the latter.
#[derive(Clone, Debug, Default)]
pub(crate) struct Addresses {
    listed: Vec<IpNet>,
    /// Whether public ones are not allowed.
    only_listed: bool,
}

impl Addresses {
    /// Public addresses and these networks, as `10.1.0.0/16` or an address.
    ///
    /// # Errors
    /// A text that is not a network.
    pub(crate) fn new(networks: &[String]) -> Result<Self, NoNetwork> {
        Ok(Self { listed: self::networks(networks)?, only_listed: false })
    }

    /// Only these networks.
    ///
    /// # Errors
    /// A text that is not a network.
    pub(crate) fn only(networks: &[String]) -> Result<Self, NoNetwork> {
        Ok(Self { listed: self::networks(networks)?, only_listed: true })
    }

    /// All addresses.
    pub(crate) fn any() -> Self {
        let any = |address: IpAddr| IpNet::new(address, 0);
        let networks = [any(Ipv4Addr::UNSPECIFIED.into()), any(Ipv6Addr::UNSPECIFIED.into())];
        Self { listed: networks.into_iter().flatten().collect(), only_listed: false }
    }

    /// Whether Kiln may connect to an address.
    pub(crate) fn allows(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        let is_listed = self.listed.iter().any(|network| network.contains(&address));
        is_listed || (!self.only_listed && is_public(address) && !is_own(address))
    }
}

/// Whether an address belongs to the Internet. For an IPv6 address that contains one of IPv4, that one decides.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => {
            let inside = |(network, bits): &(Ipv4Addr, u8)| {
                let mask = u32::MAX.checked_shl(32 - u32::from(*bits)).unwrap_or(0);
                address.to_bits() & mask == network.to_bits()
            };
            !SPECIAL_V4.iter().any(inside)
        }
        IpAddr::V6(address) => {
            let [a, b, c, ..] = address.segments();
            match (a, b) {
                // NAT64 (RFC 6052), local-use NAT64 (RFC 8215).
                (0x64, 0xff9b) => c == 0 && is_public(embedded(address, 96)),
                // 6to4; Teredo, ORCHID and documentation are in 2001::/23, 2001:db8::/32 and 3fff::/20.
                (0x2002, _) => is_public(embedded(address, 16)),
                (0x2001, b) if b < 0x200 || b == 0xdb8 => false,
                (0x3fff, b) if b < 0x1000 => false,
                // Only 2000::/3 is in use.
                (a, _) => a & 0xe000 == 0x2000,
            }
        }
    }
}

/// The IPv4 address after this number of bits.
fn embedded(address: Ipv6Addr, bits: u32) -> IpAddr {
    let address = (address.to_bits() << bits) >> 96;
    Ipv4Addr::from_bits(u32::try_from(address).unwrap_or_default()).into()
}

/// Whether an address belongs to this machine: a packet to it would be sent from it. Sends nothing.
fn is_own(address: IpAddr) -> bool {
    let any: IpAddr = if address.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let source = UdpSocket::bind((any, 0)).and_then(|socket| {
        socket.connect((address, 9))?;
        socket.local_addr()
    });
    source.is_ok_and(|source| source.ip() == address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_public_addresses() {
        let public = Addresses::default();
        for address in [
            "127.0.0.1",
            "127.8.8.8",
            "0.0.0.0",
            "10.1.2.3",
            "172.31.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "::1",
            "::",
            "fe80::1",
            "fc00::1",
            "fd00:ec2::254",
            "ff02::1",
            "::ffff:127.0.0.1",
            "::127.0.0.1",
            "64:ff9b::a00:1",
            "64:ff9b:1::808:808",
            "2002:7f00:1::",
            "2001:db8::1",
            "2001::1",
        ] {
            assert!(!public.allows(address.parse().unwrap()), "{address}");
        }
        for address in ["8.8.8.8", "172.32.0.1", "2606:4700::1111", "64:ff9b::808:808", "2002:808:808::"] {
            assert!(is_public(address.parse().unwrap()), "{address}");
        }
        assert!(is_own("127.0.0.1".parse().unwrap()));
    }

    #[test]
    fn listed_networks() {
        let listed = Addresses::new(&["10.1.0.0/16".to_owned(), "192.168.0.7".to_owned()]).unwrap();
        for (address, is_allowed) in
            [("10.1.2.3", true), ("10.2.0.0", false), ("192.168.0.7", true), ("192.168.0.8", false), ("::1", false)]
        {
            assert_eq!(listed.allows(address.parse().unwrap()), is_allowed, "{address}");
        }
        for address in ["127.0.0.1", "::1", "10.2.0.0", "fe80::1"] {
            assert!(Addresses::any().allows(address.parse().unwrap()), "{address}");
        }
        Addresses::new(&["10.1".to_owned()]).unwrap_err();
    }
}
