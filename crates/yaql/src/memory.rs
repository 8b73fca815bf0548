//! The size of a value in CPython 3.11, without referenced values.

use crate::dict::Dict;
use crate::object::{List, ListKind, Object};
use crate::set::Set;

/// Sizes of dictionaries by maximum number of entries.
const DICT: [(usize, usize); 11] = [
    (0, 64),
    (5, 224),
    (10, 352),
    (21, 632),
    (42, 1168),
    (85, 2264),
    (170, 4688),
    (341, 9304),
    (682, 18_512),
    (1365, 36_952),
    (2730, 73_808),
];

/// Sizes of sets by maximum number of members.
const SET: [(usize, usize); 5] = [(4, 216), (18, 728), (76, 2264), (306, 8408), (1228, 32_984)];

/// `sys.getsizeof`.
pub(crate) fn size(object: &Object) -> usize {
    match object {
        Object::Null => 16,
        Object::Bool(_) | Object::Int(_) => 28,
        Object::BigInt(i) => 24 + 4 * usize::try_from(i.bits().div_ceil(30)).unwrap_or(usize::MAX / 8),
        Object::Float(_) => 24,
        Object::Str(text) => text_size(text),
        Object::List(list) => list_size(list),
        Object::Dict(dict) => dict_size(dict),
        Object::Set(set @ Set::Frozen(_)) => set_table(set.len()),
        Object::Set(_) | Object::Values(_) | Object::TimeSpan(_) => 40,
        Object::DateTime(_) | Object::Ordering(_) | Object::Context(_) | Object::Rule(_) => 56,
        Object::Iter(_) | Object::Regex(_) => 200,
    }
}

/// The size of a string: one, two or four bytes per character, depending on the widest one.
pub(crate) fn text_size(text: &str) -> usize {
    if text.is_ascii() {
        return 49 + text.len();
    }
    let widest = text.chars().max().map_or(0, u32::from);
    let count = text.chars().count();
    match widest {
        0..=0xff => 73 + count,
        0x100..=0xffff => 74 + 2 * count,
        _ => 76 + 4 * count,
    }
}

fn list_size(list: &List) -> usize {
    let len = list.items().len();
    match list.kind {
        ListKind::Tuple => 40 + 8 * len,
        ListKind::List => 56 + 8 * len,
    }
}

fn dict_size(dict: &Dict) -> usize {
    if dict.is_frozen() { 56 } else { dict_table(dict.len()) }
}

/// The size of a Python `dict` with this number of entries.
pub(crate) fn dict_table(len: usize) -> usize {
    table(&DICT, len)
}

/// The size of a Python `set` with this number of members.
pub(crate) fn set_table(len: usize) -> usize {
    table(&SET, len)
}

fn table(sizes: &[(usize, usize)], len: usize) -> usize {
    match sizes.iter().find(|(most, _)| len <= *most) {
        Some((_, size)) => *size,
        None => len.saturating_mul(27),
    }
}
