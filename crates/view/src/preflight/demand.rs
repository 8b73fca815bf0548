//! How much of something a plan needs.

use super::planned::{Does, Planned};

/// The need for one thing: servers, GiB, addresses.
#[derive(Clone, Debug, Default)]
pub(super) struct Demand {
    /// The change until the end.
    end: i64,
    /// The largest need of a replacement, whose old object is still there.
    beside: i64,
    /// What deletes free, which may come first.
    freed: i64,
    /// The most that is used at one time beyond today, if all deletes come last.
    most: i64,
    /// The resources that need more.
    pub(super) resources: Vec<String>,
}

impl Demand {
    /// Adds a resource that needs `now` today and `then` afterwards.
    pub(super) fn add(&mut self, planned: &Planned<'_>, now: i64, then: i64) {
        let (now, more) = if planned.is_retained { (0, then) } else { (now, then - now) };
        let at_least = |more: i64| if planned.is_certain { more } else { more.min(0) };
        match planned.does {
            Does::Keep => return,
            Does::Create => {
                self.end += at_least(then);
                self.most += then;
            }
            Does::Update => {
                self.end += at_least(more);
                self.most += more.max(0);
            }
            Does::Replace => {
                self.end += at_least(more);
                self.most += then;
                if planned.is_certain {
                    self.beside = self.beside.max(then);
                }
            }
            Does::Delete => {
                self.end -= now;
                self.freed += now;
            }
        }
        let needs_more = match planned.does {
            Does::Update => more > 0,
            _ => then > 0,
        };
        if needs_more {
            self.resources.push(planned.path.clone());
        }
    }

    /// The most that is certainly used at one time beyond today.
    pub(super) fn least(&self) -> i64 {
        self.end.max(self.beside - self.freed)
    }

    /// The most that may be used at one time beyond today.
    pub(super) fn most(&self) -> i64 {
        self.most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planned(does: Does, is_certain: bool) -> Planned<'static> {
        let path = "a".to_owned();
        Planned { path, kind: "T", does, is_certain, current: None, after: None, is_retained: false }
    }

    #[test]
    fn the_least_counts_only_what_is_certain() {
        let demand = |parts: &[(Does, bool, i64, i64)]| {
            let mut demand = Demand::default();
            for (does, certain, now, then) in parts {
                demand.add(&planned(*does, *certain), *now, *then);
            }
            (demand.least(), demand.most())
        };
        assert_eq!(demand(&[(Does::Create, true, 0, 2), (Does::Create, true, 0, 1)]), (3, 3));
        // The delete may come first or last.
        assert_eq!(demand(&[(Does::Create, true, 0, 2), (Does::Delete, true, 1, 0)]), (1, 2));
        // The old object is still there. Two replacements may come one after the other.
        assert_eq!(demand(&[(Does::Replace, true, 4, 4)]), (4, 4));
        assert_eq!(demand(&[(Does::Replace, true, 4, 4), (Does::Replace, true, 1, 1)]), (4, 5));
        assert_eq!(demand(&[(Does::Replace, false, 4, 4)]), (0, 4));
        assert_eq!(demand(&[(Does::Update, true, 2, 5), (Does::Update, true, 5, 1)]), (0, 3));
        assert_eq!(demand(&[(Does::Update, false, 2, 5)]), (0, 3));
        assert_eq!(demand(&[(Does::Keep, true, 2, 2)]), (0, 0));
        let mut retained = Demand::default();
        retained.add(&Planned { is_retained: true, ..planned(Does::Delete, true) }, 3, 0);
        assert_eq!((retained.least(), retained.most()), (0, 0));
    }
}
