//! How long operations of resources took, of all projects together: plans estimate their time with it.

use std::collections::BTreeMap;
use std::time::Duration;

use kiln_resource::Action;

/// The duration of the first bucket's begin, in seconds.
const FIRST: f64 = 0.01;
/// Buckets per doubling of the duration.
const PER_DOUBLING: f64 = 2.0;
/// The last bucket: more than a day.
const LAST: u8 = 47;
/// So many operations are remembered. When there are more, all counts are halved: recent ones weigh more than old ones.
pub(crate) const MOST: u64 = 1_000;

/// The operations of a type of resource by how long they took. A bucket ends at about 1.4 times of its begin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    /// The number of operations by the number of the bucket.
    pub counts: BTreeMap<u8, u64>,
}

/// Histograms by the type of the resource and the action.
pub type Durations = BTreeMap<(String, Action), Histogram>;

impl Histogram {
    /// Counts an operation.
    pub fn add(&mut self, time: Duration) {
        let bucket = ((time.as_secs_f64() / FIRST).max(1.0).log2() * PER_DOUBLING).floor();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small positive number")]
        let bucket = bucket.min(f64::from(LAST)) as u8;
        *self.counts.entry(bucket).or_default() += 1;
    }

    /// Adds the operations of another one.
    pub fn merge(&mut self, other: &Self) {
        for (bucket, count) in &other.counts {
            *self.counts.entry(*bucket).or_default() += count;
        }
    }

    /// The number of operations.
    pub fn total(&self) -> u64 {
        self.counts.values().sum()
    }

    /// The duration, in seconds, that this share of the operations did not exceed, within a fifth; `None`: there are none.
    pub fn quantile(&self, share: f64) -> Option<f64> {
        #[expect(clippy::cast_precision_loss, reason = "at most some thousands")]
        let wanted = self.total() as f64 * share;
        let mut passed = 0.0;
        let found = self.counts.iter().find(|(_, count)| {
            #[expect(clippy::cast_precision_loss, reason = "at most some thousands")]
            let count = **count as f64;
            passed += count;
            passed >= wanted
        });
        found.map(|(bucket, _)| FIRST * ((f64::from(*bucket) + 0.5) / PER_DOUBLING).exp2())
    }

    /// Halves all counts if there are too many.
    pub(crate) fn age(&mut self) {
        if self.total() > MOST {
            self.counts.values_mut().for_each(|count| *count /= 2);
            self.counts.retain(|_, count| *count > 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(times: &[f64]) -> Histogram {
        let mut histogram = Histogram::default();
        for time in times {
            histogram.add(Duration::from_secs_f64(*time));
        }
        histogram
    }

    #[test]
    fn quantiles_are_within_a_fifth() {
        assert_eq!(Histogram::default().quantile(0.5), None);
        for time in [0.011, 0.1, 1.0, 7.5, 60.0, 3_600.0, 86_000.0] {
            let found = of(&[time]).quantile(0.5).unwrap();
            assert!((found / time - 1.0).abs() < 0.2, "{time}: {found}");
        }
        // Shorter and longer ones than there are buckets.
        assert!(of(&[0.0]).quantile(0.5).unwrap() < 0.015);
        assert!(of(&[1e9]).quantile(0.5).unwrap() > 100_000.0);
        let many = of(&[1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 100.0]);
        assert!(many.quantile(0.9).unwrap() < 1.3 && many.quantile(0.95).unwrap() > 80.0);
    }

    #[test]
    fn recent_operations_weigh_more() {
        let mut histogram = of(&[1.0; 1_000]);
        histogram.merge(&of(&[30.0]));
        histogram.age();
        assert_eq!(histogram.counts.values().copied().collect::<Vec<_>>(), [500], "one of 1,001 is forgotten");
        for _ in 0..6 {
            histogram.merge(&of(&[30.0; 200]));
            histogram.age();
        }
        assert!(histogram.quantile(0.5).unwrap() > 20.0, "{histogram:?}");
        assert!(histogram.total() <= MOST);
    }
}
