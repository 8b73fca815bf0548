//! Which rows of a growing table were read.

use std::collections::BTreeSet;

/// The numbered rows that were read. Numbers are assigned before the rows are committed, so a lower one may appear after a
/// higher one. Therefore each poll starts at the end of the table two polls ago. A row that appears still later is not found:
/// who waits also looks without a ring.
#[derive(Debug)]
pub(super) struct SeenNumbers {
    /// The highest numbers of the last polls, oldest first.
    highest: [i64; 3],
    /// The received numbers above the oldest of them.
    numbers: BTreeSet<i64>,
}

impl SeenNumbers {
    pub(super) fn from(newest: i64) -> Self {
        Self { highest: [newest; 3], numbers: BTreeSet::new() }
    }

    /// No new rows are expected up to this number.
    pub(super) fn floor(&self) -> i64 {
        let [floor, ..] = self.highest;
        floor
    }

    pub(super) fn newest(&self) -> i64 {
        let [.., newest] = self.highest;
        newest
    }

    pub(super) fn is_new(&mut self, number: i64) -> bool {
        self.numbers.insert(number)
    }

    pub(super) fn next_look(&mut self) {
        let [_, older, old] = self.highest;
        let newest = self.numbers.last().copied().unwrap_or(old);
        self.highest = [older, old, std::cmp::max(newest, old)];
        let floor = self.floor();
        self.numbers.retain(|number| *number > floor);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_committed_late_is_heard_once() {
        let mut seen = SeenNumbers::from(5);
        assert!(seen.is_new(8));
        seen.next_look();
        assert_eq!(seen.floor(), 5);
        assert!(!seen.is_new(8) && seen.is_new(7));
        seen.next_look();
        assert!(!seen.is_new(7) && seen.is_new(6));
        seen.next_look();
        assert_eq!((seen.floor(), seen.newest()), (8, 8));
        assert!(seen.numbers.is_empty());
    }
}
