//! Random numbers by key: the numbers of one part do not depend on other parts, so that a run stays similar when parts
//! of the scenario are removed.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, PoisonError};

/// Draws random numbers from a seed.
#[derive(Debug)]
pub struct Dice {
    seed: u64,
    drawn: Mutex<BTreeMap<u64, u64>>,
}

impl Dice {
    /// Random numbers for a seed.
    pub fn new(seed: u64) -> Self {
        Self { seed, drawn: Mutex::default() }
    }

    /// The next number of a key.
    pub fn draw(&self, key: impl Hash) -> u64 {
        let key = hash((self.seed, key));
        let mut drawn = self.drawn.lock().unwrap_or_else(PoisonError::into_inner);
        let count = drawn.entry(key).or_default();
        *count += 1;
        hash((key, *count))
    }

    /// A number from 0 to `most`.
    pub fn up_to(&self, key: impl Hash, most: u64) -> u64 {
        self.draw(key) % (most + 1)
    }

    /// True with this probability in thousandths.
    pub fn chance(&self, key: impl Hash, of_thousand: u64) -> bool {
        of_thousand > 0 && self.draw(key) % 1000 < of_thousand
    }
}

/// A hash of a value that is the same in every run.
pub fn hash(value: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}
