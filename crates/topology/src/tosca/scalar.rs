//! Sizes, times and frequencies: a number and a unit.

use kiln_value::{Value, number, text};

/// A kind of scalar unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scalar {
    Size,
    Time,
    Frequency,
    Bitrate,
}

const SIZE: [(&str, f64); 9] = [
    ("B", 1.0),
    ("kB", 1e3),
    ("KiB", 1024.0),
    ("MB", 1e6),
    ("MiB", 1_048_576.0),
    ("GB", 1e9),
    ("GiB", 1_073_741_824.0),
    ("TB", 1e12),
    ("TiB", 1_099_511_627_776.0),
];
const TIME: [(&str, f64); 7] =
    [("d", 86400.0), ("h", 3600.0), ("m", 60.0), ("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9)];
const FREQUENCY: [(&str, f64); 4] = [("Hz", 1.0), ("kHz", 1e3), ("MHz", 1e6), ("GHz", 1e9)];
const BITRATE: [(&str, f64); 5] = [("bps", 1.0), ("Kbps", 1e3), ("Mbps", 1e6), ("Gbps", 1e9), ("Tbps", 1e12)];

impl Scalar {
    /// The kind of a type name, such as `scalar-unit.size`.
    pub(crate) fn named(name: &str) -> Option<Self> {
        match name {
            "scalar-unit.size" => Some(Self::Size),
            "scalar-unit.time" => Some(Self::Time),
            "scalar-unit.frequency" => Some(Self::Frequency),
            "scalar-unit.bitrate" => Some(Self::Bitrate),
            _ => None,
        }
    }

    fn units(self) -> &'static [(&'static str, f64)] {
        match self {
            Self::Size => &SIZE,
            Self::Time => &TIME,
            Self::Frequency => &FREQUENCY,
            Self::Bitrate => &BITRATE,
        }
    }

    /// The number and the unit, which is compared without case where it is not exact. `None` if it is not a scalar.
    fn split(self, value: &Value) -> Option<(String, (&'static str, f64))> {
        let text = text::str(value);
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, unit) = text.split_at(end);
        let unit: String = unit.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        number::parse_float(number)?;
        let units = self.units();
        let exact = units.iter().find(|(known, _)| *known == unit);
        let found = exact.or_else(|| units.iter().find(|(known, _)| known.eq_ignore_ascii_case(&unit)))?;
        Some((number.to_owned(), *found))
    }

    /// The value in its usual form, `10 GB`; `None` if it is not a scalar.
    pub(crate) fn normal(self, value: &Value) -> Option<String> {
        self.split(value).map(|(number, (unit, _))| format!("{number} {unit}"))
    }

    /// The value in bytes, seconds or Hertz.
    pub(crate) fn amount(self, value: &Value) -> Option<f64> {
        let (number, (_, factor)) = self.split(value)?;
        Some(number::parse_float(&number)? * factor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_numbers_with_units() {
        assert_eq!(Scalar::Size.normal(&"4096 mb".into()).as_deref(), Some("4096 MB"));
        assert_eq!(Scalar::Size.normal(&"10GiB".into()).as_deref(), Some("10 GiB"));
        assert_eq!(Scalar::Size.amount(&"2 kB".into()), Some(2000.0));
        assert_eq!(Scalar::Time.amount(&"2 h".into()), Some(7200.0));
        for bad in [Value::Int(10), Value::Null, "GB".into(), "1 parsec".into(), "".into()] {
            assert_eq!(Scalar::Size.normal(&bad), None);
        }
    }
}
