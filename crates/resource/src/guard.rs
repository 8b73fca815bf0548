//! Guards: what nobody may do with a stack and its resources until the guard is lifted.

use std::collections::BTreeSet;

use kiln_value::glob;
use serde::{Deserialize, Serialize};

use crate::Action;
use crate::stack_policy::StackPolicy;
use crate::words;

words! {
    /// What would be done with a resource.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    Verb {
        /// Its object is created.
        Create = "create",
        /// Its object is changed in place.
        Update = "update",
        /// Another object takes its place, and its own is deleted.
        Replace = "replace",
        /// Its object is deleted.
        Delete = "delete",
    }
}

impl Verb {
    /// What the object would be.
    pub fn participle(self) -> &'static str {
        match self {
            Self::Create => "created",
            Self::Update => "updated",
            Self::Replace => "replaced",
            Self::Delete => "deleted",
        }
    }
}

/// What a guard forbids.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum GuardRule {
    /// Resources, or whole stacks, are protected from these verbs. To replace an object is to delete it, and to change the
    /// resource: all three verbs protect from a replacement.
    Protect {
        /// From what: not [`Verb::Create`], and of whole stacks not [`Verb::Replace`].
        from: BTreeSet<Verb>,
        /// The paths of the resources below the root stack, with the wildcards of a shell in each name (`web/*/server`). What
        /// is inside of one that matches is protected with it. `None`: the stack as a whole is neither updated nor deleted.
        resources: Option<String>,
        /// Whether the services of the cloud lock the objects too, if they can.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        lock: bool,
    },
    /// Nothing changes.
    Freeze {
        /// Whether resources receive no signals either.
        signals: bool,
    },
    /// Changes need a saved plan.
    RequirePlans,
    /// The stack policy of CloudFormation.
    StackPolicy(StackPolicy),
    /// What others do with some properties is no drift.
    Ignore {
        /// A path as in [`Self::Protect`], but of the resource itself, and its property: `group/*/server.tags`, `db.*`.
        properties: BTreeSet<String>,
        /// Whether these properties of an existing object are never written. Else only drift does not show them.
        leave: bool,
    },
}

/// A request, as guards see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GuardedRequest {
    /// What is requested of the root stack.
    pub action: Action,
    /// Whether a signal to a resource has caused it.
    pub is_signal: bool,
}

impl GuardRule {
    /// Whether it forbids a request to a whole stack. A cancel is never forbidden, nor is what it takes back: both are
    /// [`Action::Rollback`].
    pub fn forbids_request(&self, request: GuardedRequest) -> bool {
        match self {
            Self::Protect { from, resources: None, .. } => match request.action {
                Action::Delete => from.contains(&Verb::Delete),
                Action::Update | Action::Restore => from.contains(&Verb::Update),
                _ => false,
            },
            Self::Freeze { signals } => request.action != Action::Rollback && (*signals || !request.is_signal),
            Self::Protect { resources: Some(_), .. }
            | Self::RequirePlans
            | Self::StackPolicy(_)
            | Self::Ignore { .. } => false,
        }
    }

    /// Whether it forbids to do this with a resource, as a part of the request. `path`: below the root stack.
    pub fn forbids(&self, verb: Verb, path: &str, resource_type: &str, request: GuardedRequest) -> bool {
        match self {
            Self::Protect { from, resources: Some(pattern), .. } => {
                from.iter().any(|from| covers(*from, verb)) && is_within(path, pattern)
            }
            Self::Protect { resources: None, .. } | Self::Freeze { .. } => self.forbids_request(request),
            Self::RequirePlans | Self::Ignore { .. } => false,
            Self::StackPolicy(policy) => request.action == Action::Update && policy.denies(verb, path, resource_type),
        }
    }

    /// Whether what others do with a property is no drift, and whether the property is not written either. `path`: of the
    /// resource, below the root stack.
    pub fn ignores(&self, path: &str, property: &str) -> Option<bool> {
        let Self::Ignore { properties, leave } = self else { return None };
        let fits = |pattern: &String| {
            pattern
                .rsplit_once('.')
                .is_some_and(|(resource, name)| is_at(path, resource) && glob::matches(name, property))
        };
        properties.iter().any(fits).then_some(*leave)
    }

    /// Whether it locks objects in the cloud too.
    pub fn has_lock(&self) -> bool {
        matches!(self, Self::Protect { lock: true, .. })
    }

    /// Whether the object of a resource is locked in the cloud too. `path`: below the root stack.
    pub fn locks(&self, path: &str) -> bool {
        match self {
            Self::Protect { resources, lock, .. } => {
                *lock && resources.as_ref().is_none_or(|pattern| is_within(path, pattern))
            }
            _ => false,
        }
    }
}

/// Whether protection from one verb is also protection from another one.
fn covers(from: Verb, verb: Verb) -> bool {
    from == verb || verb == Verb::Replace
}

/// Whether a path matches a pattern name by name, or is inside of something that does.
fn is_within(path: &str, pattern: &str) -> bool {
    let mut names = path.split('/');
    pattern.split('/').all(|pattern| names.next().is_some_and(|name| glob::matches(pattern, name)))
}

/// Whether a path matches a pattern name by name.
fn is_at(path: &str, pattern: &str) -> bool {
    is_within(path, pattern) && path.split('/').count() == pattern.split('/').count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(action: Action) -> GuardedRequest {
        GuardedRequest { action, is_signal: false }
    }

    fn protect(from: &[Verb], resources: Option<&str>) -> GuardRule {
        GuardRule::Protect {
            from: from.iter().copied().collect(),
            resources: resources.map(str::to_owned),
            lock: false,
        }
    }

    #[test]
    fn resources_are_protected_with_what_is_inside_of_them() {
        for (pattern, path, wanted) in [
            ("db", "db", true),
            ("db", "db2", false),
            ("d*", "db2", true),
            ("group", "group/0/server", true),
            ("group/*/server", "group/0/server", true),
            ("group/*/server", "group/0/port", false),
            ("group/*/server", "group/0", false),
            ("group/*", "group", false),
            ("*", "group/0/server", true),
            ("*/server", "a/b/server", false),
        ] {
            let guard = protect(&[Verb::Delete], Some(pattern));
            assert_eq!(guard.forbids(Verb::Delete, path, "T", request(Action::Update)), wanted, "{pattern} {path}");
        }
    }

    #[test]
    fn properties_are_ignored_by_patterns() {
        let properties = BTreeSet::from(["group/*/server.tags".to_owned(), "a.b.*".to_owned()]);
        for leave in [false, true] {
            let guard = GuardRule::Ignore { properties: properties.clone(), leave };
            for (path, property, is_ignored) in [
                ("group/0/server", "tags", true),
                ("group/0/server", "name", false),
                ("group/0", "tags", false),
                ("group/0/server/x", "tags", false),
                ("a.b", "anything", true),
                ("a", "b", false),
            ] {
                assert_eq!(guard.ignores(path, property), is_ignored.then_some(leave), "{path} {property}");
                assert!(!guard.forbids(Verb::Delete, path, "T", request(Action::Update)));
            }
        }
    }

    #[test]
    fn each_verb_protects_from_a_replacement() {
        use Verb::{Create, Delete, Replace, Update};
        for (from, forbidden) in
            [(Delete, vec![Replace, Delete]), (Replace, vec![Replace]), (Update, vec![Update, Replace])]
        {
            let guard = protect(&[from], Some("*"));
            for action in [Action::Update, Action::Delete, Action::Rollback] {
                let forbids = |verb: &Verb| guard.forbids(*verb, "a", "T", request(action));
                assert_eq!(
                    [Create, Update, Replace, Delete].into_iter().filter(forbids).collect::<Vec<_>>(),
                    forbidden
                );
            }
        }
    }

    #[test]
    fn a_stack_is_protected_as_a_whole() {
        let all = [Action::Update, Action::Delete, Action::Restore, Action::Suspend, Action::Check, Action::Rollback];
        for (rule, forbidden) in [
            (protect(&[Verb::Delete], None), vec![Action::Delete]),
            (protect(&[Verb::Update], None), vec![Action::Update, Action::Restore]),
            (protect(&[Verb::Delete], Some("*")), vec![]),
            (GuardRule::Freeze { signals: false }, all[..5].to_vec()),
            (GuardRule::RequirePlans, vec![]),
        ] {
            let forbids = |action: &Action| rule.forbids_request(request(*action));
            assert_eq!(all.into_iter().filter(forbids).collect::<Vec<_>>(), forbidden, "{rule:?}");
        }
        // What an operation of the same kind has not done yet, it does no more.
        assert!(protect(&[Verb::Delete], None).forbids(Verb::Delete, "a", "T", request(Action::Delete)));
        assert!(!protect(&[Verb::Delete], None).forbids(Verb::Delete, "a", "T", request(Action::Update)));
    }

    #[test]
    fn signals_change_a_frozen_stack_unless_they_are_frozen_too() {
        let signal = GuardedRequest { action: Action::Update, is_signal: true };
        for signals in [false, true] {
            let freeze = GuardRule::Freeze { signals };
            assert_eq!(freeze.forbids(Verb::Delete, "group/0", "T", signal), signals);
            assert_eq!(freeze.forbids_request(signal), signals);
            assert!(freeze.forbids(Verb::Delete, "group/0", "T", request(Action::Update)));
        }
    }
}
