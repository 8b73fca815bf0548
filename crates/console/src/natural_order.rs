//! The order of names: numbers in them count by value.

use std::cmp::Ordering;

/// A part of a name; numbers come before texts.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Part<'a> {
    /// Length and digits, without leading zeros.
    Number(usize, &'a str),
    Text(char),
}

/// Compares names: `9`, `10`, `node9`, `node10`.
pub fn natural_order(a: &str, b: &str) -> Ordering {
    parts(a).cmp(parts(b)).then_with(|| a.cmp(b))
}

fn parts(mut name: &str) -> impl Iterator<Item = Part<'_>> {
    std::iter::from_fn(move || {
        let first = name.chars().next()?;
        let digits = name.find(|c: char| !c.is_ascii_digit()).unwrap_or(name.len());
        let (part, rest) = name.split_at(digits.max(first.len_utf8()));
        name = rest;
        if digits == 0 {
            return Some(Part::Text(first));
        }
        let number = part.trim_start_matches('0');
        Some(Part::Number(number.len(), number))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_count_by_value() {
        let mut names = ["node10", "1a", "10", "b", "9", "a", "node9", "09", "100000000000000000000000", ""];
        names.sort_by(|a, b| natural_order(a, b));
        assert_eq!(names, ["", "1a", "09", "9", "10", "100000000000000000000000", "a", "b", "node9", "node10"]);
    }

    // `slice::sort_by` may panic if an order is not total.
    proptest! {
        #[test]
        fn the_order_is_total(a in "[0-2a9é-]{0,4}", b in "[0-2a9é-]{0,4}", c in "[0-2a9é-]{0,4}") {
            prop_assert_eq!(natural_order(&a, &b), natural_order(&b, &a).reverse());
            prop_assert_eq!(natural_order(&a, &b) == Ordering::Equal, a == b);
            if natural_order(&a, &b).is_le() && natural_order(&b, &c).is_le() {
                prop_assert!(natural_order(&a, &c).is_le());
            }
        }
    }
}
