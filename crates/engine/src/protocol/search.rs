//! Visits all states of a model, breadth first.

use std::collections::HashSet;
use std::fmt::Debug;
use std::hash::{DefaultHasher, Hash, Hasher as _};

/// A state of a model.
pub(super) trait World: Clone + Hash {
    /// A step from one state to the next.
    type Step: Copy + Debug;
    /// The rules of a check.
    type Rules;

    /// All steps that can be taken.
    fn steps(&self, rules: &Self::Rules) -> Vec<Self::Step>;

    /// The next state, or the property that the step violates.
    fn after(&self, step: Self::Step, rules: &Self::Rules) -> Result<Self, String>;
}

/// Visits all states; the number of states, or the shortest way to a violation. States are told apart by hashes of 64 bits:
/// two of a million are mistaken for one with a probability of one to thirty million.
pub(super) fn visit_all<W: World>(start: &W, rules: &W::Rules) -> Result<usize, String> {
    let mut seen = HashSet::from([hash(start)]);
    // How each state was reached: the one before, and the step.
    let mut ways: Vec<(usize, Option<W::Step>)> = vec![(0, None)];
    let mut reached = vec![(0, start.clone())];
    while !reached.is_empty() {
        let mut next = Vec::new();
        for (number, world) in reached {
            for step in world.steps(rules) {
                let after = world.after(step, rules).map_err(|violation| {
                    let mut way = vec![format!("{step:?}")];
                    let mut at = number;
                    while let (before, Some(step)) = ways[at] {
                        way.push(format!("{step:?}"));
                        at = before;
                    }
                    way.reverse();
                    format!("{violation}, after {}", way.join(", "))
                })?;
                if seen.insert(hash(&after)) {
                    ways.push((number, Some(step)));
                    next.push((ways.len() - 1, after));
                }
            }
        }
        reached = next;
    }
    Ok(ways.len())
}

fn hash(world: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    world.hash(&mut hasher);
    hasher.finish()
}
