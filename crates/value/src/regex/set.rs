//! Sets of characters.

use std::sync::LazyLock;

use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange, HirKind};

/// `\d`, `\w` or `\s`, or its complement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Category {
    pub kind: Kind,
    pub ascii: bool,
    pub negated: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Digit,
    Word,
    Space,
}

impl Category {
    pub(super) fn contains(self, c: char) -> bool {
        let inside = match self.kind {
            Kind::Digit if self.ascii || c.is_ascii() => c.is_ascii_digit(),
            Kind::Digit => within(&DIGITS, c),
            Kind::Word if self.ascii || c.is_ascii() => c.is_ascii_alphanumeric() || c == '_',
            Kind::Word => within(&WORDS, c),
            Kind::Space if self.ascii => matches!(c, '\t'..='\r' | ' '),
            Kind::Space => c.is_whitespace() || matches!(c, '\x1c'..='\x1f'),
        };
        inside != self.negated
    }
}

static DIGITS: LazyLock<Ranges> = LazyLock::new(|| ranges(r"\p{Nd}"));
// Python's `\w` does not contain marks, unlike that of the regex crate.
static WORDS: LazyLock<Ranges> = LazyLock::new(|| ranges(r"[\p{L}\p{N}]"));
static NAME_STARTS: LazyLock<Ranges> = LazyLock::new(|| ranges(r"[\p{XID_Start}_]"));
static NAME_PARTS: LazyLock<Ranges> = LazyLock::new(|| ranges(r"\p{XID_Continue}"));

type Ranges = Box<[(char, char)]>;

fn ranges(class: &str) -> Ranges {
    match regex_syntax::parse(class).map(regex_syntax::hir::Hir::into_kind) {
        Ok(HirKind::Class(regex_syntax::hir::Class::Unicode(class))) => pairs(&class),
        _ => Box::default(),
    }
}

fn pairs(class: &ClassUnicode) -> Ranges {
    class.iter().map(|range| (range.start(), range.end())).collect()
}

fn within(ranges: &[(char, char)], c: char) -> bool {
    let at = ranges.partition_point(|(_, end)| *end < c);
    ranges.get(at).is_some_and(|(start, _)| *start <= c)
}

/// Whether a text is a Python identifier.
pub(super) fn is_identifier(text: &str) -> bool {
    text.chars().next().is_some_and(|c| within(&NAME_STARTS, c)) && text.chars().all(|c| within(&NAME_PARTS, c))
}

/// The case folding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fold {
    No,
    Ascii,
    Unicode,
}

/// A set of characters.
#[derive(Debug)]
pub(super) struct Set {
    /// The first 128 characters, for fast lookups.
    ascii: u128,
    ranges: Ranges,
    categories: Vec<Category>,
    negated: bool,
}

impl Set {
    /// A set of code points; lone surrogates never match.
    pub(super) fn new(codes: &[(u32, u32)], mut categories: Vec<Category>, negated: bool, fold: Fold) -> Self {
        let mut class = ClassUnicode::empty();
        for (low, high) in codes {
            let (low, high) = (low.max(&0), high.min(&0x0010_ffff));
            for (low, high) in [(*low, *high.min(&0xd7ff)), (*low.max(&0xe000), *high)] {
                if let (true, Some(low), Some(high)) = (low <= high, char::from_u32(low), char::from_u32(high)) {
                    class.push(ClassUnicodeRange::new(low, high));
                }
            }
        }
        fold_case(&mut class, fold);
        categories.dedup();
        let mut set = Self { ascii: 0, ranges: pairs(&class), categories, negated };
        set.ascii = (0..128_u8).filter(|c| set.holds(char::from(*c))).fold(0, |bits, c| bits | 1 << c);
        set
    }

    pub(super) fn contains(&self, c: char) -> bool {
        if c.is_ascii() { self.ascii >> u32::from(c) & 1 == 1 } else { self.holds(c) }
    }

    fn holds(&self, c: char) -> bool {
        let inside = within(&self.ranges, c) || self.categories.iter().any(|category| category.contains(c));
        inside != self.negated
    }

    /// The only character of the set, if it has exactly one.
    pub(super) fn single(&self) -> Option<char> {
        match (&*self.ranges, self.negated || !self.categories.is_empty()) {
            ([(low, high)], false) if low == high => Some(*low),
            _ => None,
        }
    }
}

/// Adds the other cases of every character.
fn fold_case(class: &mut ClassUnicode, fold: Fold) {
    match fold {
        Fold::No => {}
        Fold::Ascii => {
            let other = |range: &ClassUnicodeRange, from: u8, to: u8| {
                let (low, high) = (range.start().max(char::from(from)), range.end().min(char::from(from + 25)));
                let moved = |c: char| u8::try_from(c).ok().map(|c| char::from(c - from + to));
                (low <= high).then(|| Some(ClassUnicodeRange::new(moved(low)?, moved(high)?))).flatten()
            };
            let more: Vec<_> =
                class.iter().flat_map(|range| [other(range, b'a', b'A'), other(range, b'A', b'a')]).flatten().collect();
            for range in more {
                class.push(range);
            }
        }
        Fold::Unicode => {
            // This fails only without the Unicode tables.
            _ = class.try_case_fold_simple();
            // Four letters are equal in Python but not in Unicode case folding.
            let dotted = ClassUnicode::new(['I', 'i', 'İ', 'ı'].map(|c| ClassUnicodeRange::new(c, c)));
            let mut common = class.clone();
            common.intersect(&dotted);
            if common.iter().next().is_some() {
                class.union(&dotted);
            }
        }
    }
}
