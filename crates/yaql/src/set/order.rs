//! CPython's iteration order of a set of integers: that of its hash table. The order of strings differs in every
//! process of the reference, so it is not imitated.

use super::Members;
use crate::object::{Key, Object};

/// Number of slots that are probed linearly before the search jumps.
const LINEAR_PROBES: usize = 9;

/// The same members; a set of integers in the order of the reference.
pub(super) fn as_walked(members: Members) -> Members {
    let hashes: Option<Vec<u64>> = members.iter().map(hash).collect();
    let Some(hashes) = hashes else { return members };
    let mut slots: Vec<Option<usize>> = vec![None; 8];
    for used in 1..=hashes.len() {
        place(&mut slots, &hashes, used - 1);
        if used * 5 >= (slots.len() - 1) * 3 {
            let wanted = if used > 50_000 { used * 2 } else { used * 4 };
            let mut grown = vec![None; (wanted + 1).next_power_of_two().max(8)];
            for member in slots.into_iter().flatten() {
                place(&mut grown, &hashes, member);
            }
            slots = grown;
        }
    }
    slots.into_iter().flatten().filter_map(|member| members.get_index(member).cloned()).collect()
}

/// Python's hash of a small integer or boolean.
fn hash(member: &Key) -> Option<u64> {
    match member.object() {
        Object::Bool(b) => Some(u64::from(*b)),
        Object::Int(-1) => Some((-2i64).cast_unsigned()),
        Object::Int(i) if i.unsigned_abs() < (1 << 61) - 1 => Some(i.cast_unsigned()),
        _ => None,
    }
}

/// Inserts a member into the first free slot of its probe sequence.
fn place(slots: &mut [Option<usize>], hashes: &[u64], member: usize) {
    let mask = slots.len() - 1;
    let low = |bits: u64| usize::try_from(bits & u64::try_from(mask).unwrap_or(u64::MAX)).unwrap_or(0);
    let mut perturb = hashes.get(member).copied().unwrap_or(0);
    let mut index = low(perturb);
    loop {
        let last = if index + LINEAR_PROBES <= mask { index + LINEAR_PROBES } else { index };
        let free = slots.get_mut(index..=last).and_then(|run| run.iter_mut().find(|slot| slot.is_none()));
        if let Some(slot) = free {
            *slot = Some(member);
            return;
        }
        perturb >>= 5;
        index = low(u64::try_from(index).unwrap_or(0).wrapping_mul(5).wrapping_add(1).wrapping_add(perturb));
    }
}
