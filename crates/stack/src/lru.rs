//! A cache of a limited size that drops what was used least recently.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::time::Duration;

struct Entry<V> {
    value: V,
    bytes: usize,
    /// The number of its last use, which orders the entries.
    turn: u64,
    used: Duration,
}

/// Entries with their sizes. Times are monotonic.
pub struct Lru<K, V> {
    by_key: HashMap<K, Entry<V>>,
    by_turn: BTreeMap<u64, K>,
    bytes: usize,
    turns: u64,
    capacity: usize,
    idle: Duration,
}

impl<K: Clone + Eq + Hash, V: Clone> Lru<K, V> {
    /// At most `capacity` bytes; entries that are not used for longer than `idle` expire.
    pub fn new(capacity: usize, idle: Duration) -> Self {
        Self { by_key: HashMap::new(), by_turn: BTreeMap::new(), bytes: 0, turns: 0, capacity, idle }
    }

    /// The number of entries and their bytes.
    pub fn size(&self) -> (usize, usize) {
        (self.by_key.len(), self.bytes)
    }

    /// The value of a key.
    pub fn get(&mut self, key: &K, now: Duration) -> Option<V> {
        let entry = self.by_key.get_mut(key)?;
        self.by_turn.remove(&entry.turn);
        self.turns += 1;
        entry.turn = self.turns;
        entry.used = now;
        self.by_turn.insert(entry.turn, key.clone());
        Some(entry.value.clone())
    }

    /// Replaces an entry. One above the capacity is not kept.
    pub fn put(&mut self, key: K, value: V, bytes: usize, now: Duration) {
        self.take(&key);
        if bytes > self.capacity {
            return;
        }
        while self.bytes + bytes > self.capacity
            && let Some((_, oldest)) = self.by_turn.pop_first()
        {
            self.take(&oldest);
        }
        self.turns += 1;
        self.by_turn.insert(self.turns, key.clone());
        self.by_key.insert(key, Entry { value, bytes, turn: self.turns, used: now });
        self.bytes += bytes;
    }

    /// Removes an entry and returns it.
    fn take(&mut self, key: &K) -> Option<V> {
        let entry = self.by_key.remove(key)?;
        self.by_turn.remove(&entry.turn);
        self.bytes -= entry.bytes;
        Some(entry.value)
    }

    /// Drops what has not been used for a while.
    pub fn expire(&mut self, now: Duration) {
        while let Some((_, oldest)) = self.by_turn.first_key_value()
            && self.by_key.get(oldest).is_some_and(|entry| now.saturating_sub(entry.used) > self.idle)
        {
            let oldest = oldest.clone();
            self.take(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDLE: Duration = Duration::from_secs(30);

    fn cache() -> Lru<&'static str, ()> {
        Lru::new(99, IDLE)
    }

    #[test]
    fn what_was_used_last_is_kept() {
        let mut cache = cache();
        for name in ["a", "b", "c"] {
            cache.put(name, (), 33, Duration::ZERO);
        }
        assert!(cache.get(&"a", Duration::ZERO).is_some());
        cache.put("d", (), 33, Duration::ZERO);
        assert!(cache.get(&"b", Duration::ZERO).is_none());
        assert!(cache.get(&"a", Duration::ZERO).is_some());
        assert_eq!(cache.size(), (3, 99));
        assert_eq!(cache.by_key.len(), cache.by_turn.len());
    }

    #[test]
    fn an_entry_above_the_capacity_is_not_kept() {
        let mut cache = cache();
        cache.put("small", (), 1, Duration::ZERO);
        cache.put("big", (), 100, Duration::ZERO);
        assert!(cache.get(&"big", Duration::ZERO).is_none());
        assert!(cache.get(&"small", Duration::ZERO).is_some());
    }

    #[test]
    fn an_unused_entry_expires() {
        let mut cache = cache();
        cache.put("old", (), 1, Duration::ZERO);
        cache.put("used", (), 1, Duration::ZERO);
        assert!(cache.get(&"used", IDLE).is_some());
        cache.expire(IDLE + Duration::from_secs(1));
        assert!(cache.get(&"old", IDLE).is_none());
        assert!(cache.get(&"used", IDLE).is_some());
        assert_eq!(cache.size(), (1, 1));
    }
}
