//! State transitions (docs/heat-behaviour.md §1).

use std::collections::HashSet;
use std::sync::LazyLock;

use kiln_resource::{Action, State, Status};

/// Maximum number of transitions of a row in one commit.
const LONGEST: usize = 4;

/// Whether a direct transition of a resource is allowed.
pub fn resource_may(from: State, to: State) -> bool {
    use Action::{Adopt, Check, Create, Delete, Init, Resume, Snapshot, Suspend, Update};
    if from == to {
        return true;
    }
    match (from.status, to.status) {
        // A running action must end before another one starts.
        (Status::InProgress, Status::Complete | Status::Failed) => from.action == to.action,
        // `Update status to COMPLETE for FAILED resource neither update nor replace.`
        (Status::Failed, Status::Complete) => from.action == to.action && from.action != Delete,
        // A user marks it unhealthy.
        (_, Status::Failed) if to.action == Check && from.action != Delete => true,
        (Status::InProgress, Status::InProgress) | (_, Status::Complete | Status::Failed) => false,
        (status, Status::InProgress) => match to.action {
            Create => from.action == Init,
            // An existing object is adopted, then checked.
            Adopt => matches!(from.action, Init | Adopt),
            Delete => from.action != Init && from != State::new(Delete, Status::Complete),
            Update => !matches!(from.action, Init | Delete),
            Check => from != State::new(Delete, Status::Complete),
            Snapshot => from.action != Init && from != State::new(Delete, Status::Complete),
            Suspend => from.action != Delete && (status == Status::Complete || from.action == Suspend),
            Resume => from == State::new(Suspend, Status::Complete) || from.action == Resume,
            _ => false,
        },
    }
}

/// Whether a resource may change from one state to another within one commit, which stores only the last state.
pub fn resource_may_reach(from: State, to: State) -> bool {
    static REACHED: LazyLock<HashSet<(State, State)>> = LazyLock::new(|| {
        let mut reached: HashSet<(State, State)> = all().map(|state| (state, state)).collect();
        for _ in 0..LONGEST {
            let further = reached.iter().flat_map(|(from, at)| all().map(|to| (*from, *at, to)));
            let further: Vec<_> = further.filter(|(_, at, to)| resource_may(*at, *to)).collect();
            reached.extend(further.into_iter().map(|(from, _, to)| (from, to)));
        }
        reached
    });
    REACHED.contains(&(from, to))
}

fn all() -> impl Iterator<Item = State> {
    use Action::{Adopt, Check, Create, Delete, Init, Resume, Snapshot, Suspend, Update};
    [Init, Adopt, Check, Create, Delete, Resume, Snapshot, Suspend, Update].into_iter().flat_map(|action| {
        [Status::InProgress, Status::Complete, Status::Failed].map(|status| State::new(action, status))
    })
}

/// Whether a stack may change its state without a new request.
pub fn stack_may(from: State, to: State, rollback: bool) -> bool {
    use Action::{Adopt, Create, Restore, Rollback, Update};
    if from == to {
        return true;
    }
    if from.status != Status::InProgress {
        return false;
    }
    if to == State::new(Rollback, Status::InProgress) {
        return rollback && matches!(from.action, Create | Update | Adopt | Restore);
    }
    from.action == to.action
}

/// Whether a user may request an action in a state.
pub fn user_may_ask(from: State, pending: bool, action: Action) -> bool {
    use Action::{Check, Delete, Restore, Resume, Rollback, Snapshot, Suspend, Update};
    match action {
        Delete => !from.is_complete(Delete),
        Update => !matches!(from.action, Suspend | Delete),
        Rollback => from == State::new(Update, Status::InProgress),
        Restore => from.action != Delete,
        Check | Snapshot => !pending,
        Suspend | Resume => !pending && !from.is_complete(action),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(text: &str) -> State {
        let (action, status) = text.split_once('_').expect("a state");
        State::new(action.parse().expect("an action"), status.parse().expect("a status"))
    }

    #[test]
    fn states_move_as_the_reference_allows() {
        for (from, to, may) in [
            ("INIT_COMPLETE", "CREATE_IN_PROGRESS", true),
            ("INIT_COMPLETE", "UPDATE_IN_PROGRESS", false),
            ("INIT_COMPLETE", "DELETE_IN_PROGRESS", false),
            ("CREATE_IN_PROGRESS", "CREATE_FAILED", true),
            ("CREATE_IN_PROGRESS", "DELETE_IN_PROGRESS", false),
            ("CREATE_FAILED", "CREATE_IN_PROGRESS", false),
            ("CREATE_COMPLETE", "CREATE_FAILED", false),
            ("DELETE_FAILED", "UPDATE_IN_PROGRESS", false),
            ("DELETE_FAILED", "DELETE_IN_PROGRESS", true),
            ("CHECK_COMPLETE", "RESUME_IN_PROGRESS", false),
            ("SUSPEND_COMPLETE", "RESUME_IN_PROGRESS", true),
            ("UPDATE_FAILED", "SUSPEND_IN_PROGRESS", false),
        ] {
            assert_eq!(resource_may(state(from), state(to)), may, "{from} to {to}");
        }
        assert!(resource_may_reach(state("CREATE_IN_PROGRESS"), state("DELETE_IN_PROGRESS")));
        assert!(!resource_may_reach(state("CREATE_COMPLETE"), state("CREATE_IN_PROGRESS")));
    }
}
