//! Address allocation of a subnet.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

/// The addresses of a subnet.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(into = "SavedPool", try_from = "SavedPool")]
pub(crate) struct Pool {
    pub(super) net: IpNet,
    /// First and last address of each pool, inclusive.
    pub(super) ranges: Vec<(u128, u128)>,
    used: BTreeSet<u128>,
    /// Start of the next search, so that a released address is not reused immediately.
    cursor: u128,
}

/// A pool in JSON, whose numbers have no 128 bits.
#[derive(Serialize, Deserialize)]
struct SavedPool {
    net: String,
    ranges: Vec<(IpAddr, IpAddr)>,
    used: Vec<IpAddr>,
    cursor: IpAddr,
}

impl From<Pool> for SavedPool {
    fn from(pool: Pool) -> Self {
        let text = |number: u128| address(number, pool.net);
        SavedPool {
            ranges: pool.ranges.iter().map(|(first, last)| (text(*first), text(*last))).collect(),
            used: pool.used.iter().copied().map(text).collect(),
            cursor: text(pool.cursor),
            net: pool.net.to_string(),
        }
    }
}

impl TryFrom<SavedPool> for Pool {
    type Error = ipnet::AddrParseError;

    fn try_from(saved: SavedPool) -> Result<Self, Self::Error> {
        Ok(Pool {
            net: saved.net.parse()?,
            ranges: saved.ranges.into_iter().map(|(first, last)| (number(first), number(last))).collect(),
            used: saved.used.into_iter().map(number).collect(),
            cursor: number(saved.cursor),
        })
    }
}

impl Pool {
    pub(super) fn new(net: IpNet, ranges: Vec<(u128, u128)>) -> Self {
        Pool { net, ranges, used: BTreeSet::new(), cursor: 0 }
    }

    /// Allocates the next free address; `None` if there is none.
    pub(super) fn take(&mut self) -> Option<IpAddr> {
        let found = self.search(self.cursor).or_else(|| self.search(0))?;
        self.used.insert(found);
        self.cursor = found.saturating_add(1);
        Some(address(found, self.net))
    }

    fn search(&self, from: u128) -> Option<u128> {
        self.ranges.iter().find_map(|(start, end)| {
            let mut candidate = from.max(*start);
            if candidate > *end {
                return None;
            }
            // Iterates over the used addresses until there is a gap.
            for used in self.used.range(candidate..=*end) {
                if *used != candidate {
                    break;
                }
                candidate += 1;
            }
            (candidate <= *end).then_some(candidate)
        })
    }

    /// Allocates a specific address; false if it is in use.
    pub(super) fn claim(&mut self, wanted: IpAddr) -> bool {
        self.used.insert(number(wanted))
    }

    pub(super) fn free(&mut self, released: IpAddr) {
        self.used.remove(&number(released));
    }

    pub(super) fn in_use(&self) -> usize {
        self.used.len()
    }

    /// Whether a host may use this address: it is in the network, and is neither the network nor the broadcast address.
    pub(super) fn admits(&self, wanted: IpAddr) -> bool {
        is_host(self.net, wanted)
    }
}

/// Whether a host of `net` may use the address.
pub(super) fn is_host(net: IpNet, wanted: IpAddr) -> bool {
    let short = net.prefix_len() + 1 >= net.max_prefix_len();
    net.contains(&wanted)
        && (short || wanted != net.network())
        && (short || wanted.is_ipv6() || wanted != net.broadcast())
}

/// An address as a number.
pub(super) fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u32::from(address).into(),
        IpAddr::V6(address) => address.into(),
    }
}

/// A number as an address of the same version as `net`.
pub(super) fn address(number: u128, net: IpNet) -> IpAddr {
    match net {
        // The numbers of a version 4 network are version 4 addresses.
        IpNet::V4(_) => Ipv4Addr::from(u32::try_from(number).unwrap_or(u32::MAX)).into(),
        IpNet::V6(_) => Ipv6Addr::from(number).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allocates_every_address_once() {
        let net: IpNet = "10.0.0.0/29".parse().unwrap();
        let mut pool = Pool::new(net, vec![(number("10.0.0.2".parse().unwrap()), number("10.0.0.4".parse().unwrap()))]);
        assert!(pool.claim("10.0.0.3".parse().unwrap()));
        assert_eq!(pool.take().unwrap().to_string(), "10.0.0.2");
        assert_eq!(pool.take().unwrap().to_string(), "10.0.0.4");
        assert_eq!(pool.take(), None);
        pool.free("10.0.0.2".parse().unwrap());
        assert_eq!(pool.take().unwrap().to_string(), "10.0.0.2");
    }

    #[test]
    fn hosts() {
        let net: IpNet = "10.0.0.0/24".parse().unwrap();
        assert!(!is_host(net, "10.0.0.0".parse().unwrap()));
        assert!(!is_host(net, "10.0.0.255".parse().unwrap()));
        assert!(is_host("10.0.0.0/31".parse().unwrap(), "10.0.0.0".parse().unwrap()));
    }
}
