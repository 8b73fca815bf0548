//! Addresses and ranges.

use std::net::IpAddr;

/// An address as a number, with the IP version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Address {
    version: u8,
    number: u128,
}

impl Address {
    pub(super) fn of(text: &str) -> Option<Self> {
        Some(match text.parse().ok()? {
            IpAddr::V4(address) => Self { version: 4, number: u128::from(address.to_bits()) },
            IpAddr::V6(address) => Self { version: 6, number: address.to_bits() },
        })
    }
}

/// Addresses from the first to the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range(Address, Address);

impl Range {
    pub(super) fn of(first: &str, last: &str) -> Option<Self> {
        let range = Self(Address::of(first)?, Address::of(last)?);
        (range.0.version == range.1.version && range.0 <= range.1).then_some(range)
    }

    /// All addresses of a CIDR.
    pub(super) fn of_cidr(cidr: &str) -> Option<Self> {
        let (address, bits) = cidr.split_once('/')?;
        let (address, bits) = (Address::of(address)?, bits.parse::<u32>().ok()?);
        let width: u32 = if address.version == 4 { 32 } else { 128 };
        let free = width.checked_sub(bits).filter(|_| bits <= width)?;
        let hosts = if free == 128 { u128::MAX } else { (1_u128 << free) - 1 };
        let first = address.number & !hosts;
        let number = |number| Address { number, ..address };
        Some(Self(number(first), number(first | hosts)))
    }

    pub(super) fn has(&self, address: Address) -> bool {
        self.0.version == address.version && self.0 <= address && address <= self.1
    }

    pub(super) fn size(&self) -> u128 {
        (self.1.number - self.0.number).saturating_add(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_compared_within_their_version() {
        let range = Range::of_cidr("10.0.0.9/29").unwrap();
        assert_eq!((range, range.size()), (Range::of("10.0.0.8", "10.0.0.15").unwrap(), 8));
        let has = |text| range.has(Address::of(text).unwrap());
        assert_eq!(["10.0.0.8", "10.0.0.15", "10.0.0.16", "::a00:8"].map(has), [true, true, false, false]);
        assert_eq!(Range::of_cidr("::/0").unwrap().size(), u128::MAX);
        assert_eq!(Range::of_cidr("2001:db8::/126").unwrap().size(), 4);
        for wrong in ["10.0.0.0", "10.0.0.0/33", "x/8", "10.0.0.0/-1"] {
            assert_eq!(Range::of_cidr(wrong), None, "{wrong}");
        }
        assert_eq!(Range::of("10.0.0.2", "10.0.0.1"), None);
    }
}
