//! How long operations of resources took in this process.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use kiln_resource::Action;
use kiln_store::Durations;

/// How long operations of resources took, until that is stored.
#[derive(Default)]
pub struct Stopwatch(Mutex<Durations>);

impl Stopwatch {
    /// An operation of a type of resource has ended well.
    pub fn add(&self, resource_type: &str, action: Action, time: Duration) {
        let mut durations = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        durations.entry((resource_type.to_owned(), action)).or_default().add(time);
    }

    /// Those of [`Self::take`] that could not be stored.
    pub fn put_back(&self, taken: &Durations) {
        let mut durations = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (of, histogram) in taken {
            durations.entry(of.clone()).or_default().merge(histogram);
        }
    }

    /// What is not stored yet, for the store.
    pub fn take(&self) -> Durations {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_not_be_stored_is_stored_with_what_comes_later() {
        let (stopwatch, second) = (Stopwatch::default(), Duration::from_secs(1));
        stopwatch.add("A", Action::Create, second);
        let taken = stopwatch.take();
        assert!(stopwatch.take().is_empty());
        stopwatch.add("A", Action::Create, second);
        stopwatch.put_back(&taken);
        assert_eq!(stopwatch.take()[&("A".to_owned(), Action::Create)].total(), 2);
    }
}
