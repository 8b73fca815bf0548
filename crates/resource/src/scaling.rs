//! The size of groups, and the batches in which members change.
//!
//! Behavior of Heat's `scaling/scalingutil.py` and `scaling/rolling_update.py`.

/// What an adjustment means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Adjustment {
    /// The new size.
    Exact,
    /// A difference.
    Change,
    /// A difference in percent of the size, towards zero but for less than one member.
    Percent,
}

impl Adjustment {
    /// By its name in either language (`exact_capacity`, `ExactCapacity`). What has no name is a percentage.
    pub fn named(name: &str) -> Self {
        match name {
            "exact_capacity" | "ExactCapacity" => Self::Exact,
            "change_in_capacity" | "ChangeInCapacity" => Self::Change,
            _ => Self::Percent,
        }
    }

    /// The size after an adjustment of `by`, within `minimum` and `maximum`. A percentage changes the size by at least
    /// `min_step` members, if that is given.
    pub fn new_size(self, current: i64, by: i64, min_step: Option<i64>, minimum: i64, maximum: i64) -> i64 {
        let wanted = match self {
            Self::Exact => by,
            Self::Change => current.saturating_add(by),
            Self::Percent => current.saturating_add(at_least(percent(current, by), min_step)),
        };
        // Not `clamp`, which panics where a minimum is above the maximum.
        if wanted > maximum { maximum } else { wanted.max(minimum) }
    }
}

fn percent(current: i64, by: i64) -> i64 {
    let hundredths = i128::from(current) * i128::from(by);
    let whole = hundredths / 100;
    let members = if whole == 0 { hundredths.signum() } else { whole };
    i64::try_from(members).unwrap_or(if members > 0 { i64::MAX } else { i64::MIN })
}

fn at_least(by: i64, min_step: Option<i64>) -> i64 {
    match min_step {
        Some(step) if step > by.saturating_abs() => {
            if by > 0 {
                step
            } else {
                -step
            }
        }
        _ => by,
    }
}

/// A rolling update in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rolling {
    /// Members that there shall be.
    pub target: u64,
    /// Members that there are.
    pub current: u64,
    /// Members that have the latest definition already; not more than there are.
    pub up_to_date: u64,
}

/// The next step of a rolling update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batch {
    /// The size of the group during the step.
    pub size: u64,
    /// Members that get the latest definition.
    pub changes: u64,
}

impl Rolling {
    /// The state after a step of a group that removes its oldest members first: members in addition to the target stay,
    /// and members without the latest definition go in their place.
    #[must_use]
    pub fn after(self, batch: Batch) -> Self {
        Self { current: batch.size, up_to_date: self.up_to_date.saturating_add(batch.changes), ..self }
    }

    /// The state after a step of a group of numbered members: those in addition to the target are removed again, so
    /// they do not count as up to date.
    #[must_use]
    pub fn after_numbered(self, batch: Batch) -> Self {
        let temporary = batch.size.saturating_sub(self.current.max(self.target));
        let after = self.after(batch);
        Self { up_to_date: after.up_to_date.saturating_sub(temporary), ..after }
    }

    /// The number of steps, with [`Rolling::after`] or [`Rolling::after_numbered`].
    pub fn steps(self, batch_size: u64, min_in_service: u64, after: fn(Self, Batch) -> Self) -> u64 {
        let (mut rolling, mut steps) = (self, 0);
        while rolling.needs_update()
            && let Some(batch) = rolling.next_batch(batch_size, min_in_service)
        {
            let next = after(rolling, batch);
            if next == rolling {
                break;
            }
            (rolling, steps) = (next, steps + 1);
        }
        steps
    }

    /// Whether steps are left.
    pub fn needs_update(self) -> bool {
        !(self.up_to_date >= self.current && self.current == self.target)
    }

    /// The next step, of at most `batch_size` members, while `min_in_service` others stay as they are. `None` if more
    /// members are said to be up to date than there are.
    pub fn next_batch(self, batch_size: u64, min_in_service: u64) -> Option<Batch> {
        if self.up_to_date > self.current {
            return None;
        }
        let in_service = min_in_service.min(self.target).min(self.current);
        let changes = batch_size.min(self.target.saturating_sub(self.up_to_date));
        // Without room beside the batch the group grows for the step.
        let beside = self.current.min(self.target.saturating_sub(changes)).max(in_service);
        Some(Batch { size: changes.saturating_add(beside), changes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_change_at_least_one_member() {
        assert_eq!(Adjustment::Percent.new_size(3, 10, None, 0, 100), 4);
        assert_eq!(Adjustment::Percent.new_size(7, 33, None, 0, 100), 9);
        assert_eq!(Adjustment::Percent.new_size(3, -10, Some(2), 0, 100), 1);
        assert_eq!(Adjustment::Change.new_size(i64::MAX, 1, None, 0, 10), 10);
        assert_eq!(Adjustment::Exact.new_size(1, 5, None, 9, 3), 3);
    }

    #[test]
    fn a_rolling_update_ends() {
        let mut rolling = Rolling { target: 5, current: 5, up_to_date: 0 };
        let mut steps = 0;
        while rolling.needs_update() {
            let batch = rolling.next_batch(2, 4).unwrap();
            rolling = rolling.after(batch);
            steps += 1;
            assert!(steps < 10 && batch.size - batch.changes >= 4.min(rolling.target - batch.changes));
        }
        assert_eq!((rolling.current, rolling.up_to_date, steps), (5, 5, 3));
    }

    #[test]
    fn steps_are_counted() {
        let steps = |target, current, batch_size, min_in_service, after| {
            Rolling { target, current, up_to_date: 0 }.steps(batch_size, min_in_service, after)
        };
        assert_eq!(steps(5, 5, 2, 4, Rolling::after), 3);
        assert_eq!(steps(5, 5, 2, 4, Rolling::after_numbered), 4);
        assert_eq!(steps(5, 5, 2, 20, Rolling::after), 4);
        assert_eq!(steps(0, 4, 1, 0, Rolling::after), 1);
        assert_eq!(steps(0, 0, 1, 0, Rolling::after), 0);
        assert_eq!(steps(7, 0, 3, 0, Rolling::after_numbered), 3);
    }
}
