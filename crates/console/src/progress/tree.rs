//! The resources of a stack and its nested stacks, with their progress. Pure: times are passed in.

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use kiln_client::reason::{announces_replacement, was_stopped};

use indexmap::IndexMap;

use crate::natural_order::natural_order;

/// The phase of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Not started.
    Waiting,
    /// Running.
    Running,
    /// Complete.
    Done,
    /// Failed.
    Failed,
}

/// News about a resource or a stack.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct News {
    /// ID of the stack.
    pub stack: String,
    /// Name of the resource.
    pub name: String,
    /// Type; empty if unknown.
    pub kind: String,
    /// Action and status: `CREATE_IN_PROGRESS`.
    pub status: String,
    /// Reason.
    pub reason: String,
    /// ID of the nested stack of the resource; empty if there is none or it is unknown.
    pub nested: String,
    /// Physical ID; empty if there is none or it is unknown.
    pub physical: String,
    /// Names of the resources that wait for this one.
    pub required_by: Vec<String>,
    /// Time since the start of the operation.
    pub at: Duration,
}

/// A resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Name in the template.
    pub name: String,
    /// Type.
    pub kind: String,
    /// `CREATE`, `UPDATE` …
    pub action: String,
    /// The phase.
    pub phase: Phase,
    /// The status reason.
    pub reason: String,
    /// What it waits for at the moment, other than the resources that it requires; may be empty.
    pub waits: String,
    /// Start of the action.
    pub began: Option<Duration>,
    /// End of the action.
    pub ended: Option<Duration>,
    /// Whether the resource existed before the action.
    existed: bool,
    /// Whether the resource is being replaced.
    pub replaced: bool,
    /// ID of its nested stack, if the service reports one.
    nested: String,
    /// Physical ID; for a nested stack, the ID of the stack.
    physical: String,
}

/// A failure. It is kept when a rollback deletes the resource.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Fault {
    stack: String,
    name: String,
    reason: String,
}

impl Node {
    /// ID of the nested stack of the resource.
    pub fn inner(&self) -> &str {
        if self.nested.is_empty() { &self.physical } else { &self.nested }
    }

    /// Whether the resource existed before the action, which has not changed it so far.
    pub fn is_untouched(&self) -> bool {
        self.existed && self.phase == Phase::Waiting
    }

    /// Duration of the action.
    pub fn spent(&self, now: Duration) -> Option<Duration> {
        Some(self.ended.unwrap_or(now).saturating_sub(self.began?))
    }
}

/// Number of resources in each phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Complete.
    pub done: usize,
    /// Failed.
    pub failed: usize,
    /// Running.
    pub running: usize,
    /// Existing ones without changes so far.
    pub untouched: usize,
    /// All.
    pub all: usize,
}

/// The root cause of a failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// Path of the resource through nested stacks: `group/0/server`.
    pub path: String,
    /// Its type.
    pub kind: String,
    /// Its reason.
    pub reason: String,
}

/// Its path, its type and its reason.
impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.path)?;
        if !self.kind.is_empty() {
            write!(f, " ({})", self.kind)?;
        }
        write!(f, ": {}", self.reason)
    }
}

/// A stack with its nested stacks.
#[derive(Clone, Debug)]
pub struct Tree {
    /// Name of the stack.
    pub name: String,
    /// Action and status of the stack.
    pub status: String,
    root: String,
    partly: bool,
    stacks: IndexMap<String, IndexMap<String, Node>>,
    /// The stack and the name of the resource of each nested stack, also of one that is replaced.
    parents: HashMap<String, (String, String)>,
    /// The number of resources in the plan of the operation, with nested stacks; 0 if it is unknown.
    planned: usize,
    /// By stack and name of a resource, the names of those that it requires.
    requires: HashMap<(String, String), Vec<String>>,
    /// In the order of their events.
    faults: Vec<Fault>,
    /// The number of faults before the rollback began.
    before_rollback: Option<usize>,
}

impl Tree {
    /// A stack without resources.
    pub fn new(name: &str, id: &str) -> Self {
        let stacks = IndexMap::from([(id.to_owned(), IndexMap::new())]);
        Self {
            name: name.to_owned(),
            status: String::new(),
            root: id.to_owned(),
            partly: false,
            stacks,
            parents: HashMap::new(),
            planned: 0,
            requires: HashMap::new(),
            faults: Vec::new(),
            before_rollback: None,
        }
    }

    /// Whether a resource is known, with its type and its path: an event has neither of them.
    pub fn knows(&self, stack: &str, name: &str) -> bool {
        let has_path = stack == self.root || self.parents.contains_key(stack);
        has_path && self.node(stack, name).is_some_and(|node| !node.kind.is_empty())
    }

    /// Adds a resource, which is waiting until there is news about it.
    pub fn learn(&mut self, news: &News) {
        for dependent in &news.required_by {
            let required = self.requires.entry((news.stack.clone(), dependent.clone())).or_default();
            if !required.contains(&news.name) {
                required.push(news.name.clone());
            }
        }
        for inner in [&news.nested, &news.physical].into_iter().filter(|inner| !inner.is_empty()) {
            self.parents.entry(inner.clone()).or_insert_with(|| (news.stack.clone(), news.name.clone()));
        }
        let resources = self.stacks.entry(news.stack.clone()).or_default();
        if let Some(node) = resources.get_mut(&news.name) {
            if !news.kind.is_empty() {
                node.kind.clone_from(&news.kind);
            }
            if !news.nested.is_empty() {
                node.nested.clone_from(&news.nested);
            }
            if !news.physical.is_empty() {
                node.physical.clone_from(&news.physical);
            }
            return;
        }
        let node = Node {
            name: news.name.clone(),
            kind: news.kind.clone(),
            action: String::new(),
            phase: Phase::Waiting,
            reason: String::new(),
            waits: String::new(),
            began: None,
            ended: None,
            existed: false,
            replaced: false,
            nested: news.nested.clone(),
            physical: news.physical.clone(),
        };
        resources.insert(news.name.clone(), node);
    }

    /// Marks all resources as existing, before an update that may not change them.
    pub fn settle(&mut self) {
        self.partly = true;
        for node in self.stacks.values_mut().flat_map(IndexMap::values_mut) {
            node.existed = true;
        }
    }

    /// Sets the number of resources that the plan of a create has, of nested stacks too as far as it knows them.
    pub(crate) fn plan(&mut self, resources: usize) {
        self.planned = resources;
    }

    /// Whether the action may leave resources unchanged.
    pub fn is_partly(&self) -> bool {
        self.partly
    }

    /// A resource of a stack has another name than before. Returns whether that is new.
    pub fn rename(&mut self, stack: &str, from: &str, to: &str) -> bool {
        let Some(resources) = self.stacks.get_mut(stack) else { return false };
        let Some(place) = resources.get_index_of(from) else { return false };
        let Some((_, mut node)) = resources.shift_remove_index(place) else { return false };
        to.clone_into(&mut node.name);
        // The list may have been read when it had its present name already.
        if !resources.contains_key(to) {
            resources.shift_insert(place, to.to_owned(), node);
        }
        for (parent, name) in self.parents.values_mut() {
            if parent == stack && name == from {
                to.clone_into(name);
            }
        }
        true
    }

    /// Processes news about a resource. Returns whether anything changed.
    pub fn apply(&mut self, news: &News) -> bool {
        self.learn(news);
        let Some(node) = self.stacks.get_mut(&news.stack).and_then(|resources| resources.get_mut(&news.name)) else {
            return false;
        };
        let (action, phase) = read(&news.status);
        if action == "SIGNAL" {
            return false;
        }
        // A new object is created and then the old one is deleted: this is one replacement.
        let rolls_back = self.status.starts_with("ROLLBACK");
        node.replaced |= node.existed && action == "CREATE" && !rolls_back;
        let action =
            if node.replaced && !rolls_back && matches!(action, "CREATE" | "DELETE") { "REPLACE" } else { action };
        // That the new object exists was told; the deletion of the old one is the rest of the same replacement.
        let is_rest = node.replaced && news.status.starts_with("DELETE_") && node.action == "REPLACE";
        if announces_replacement(&news.status, &news.reason) {
            node.replaced = true;
            return false;
        }
        if is_rest && phase != Phase::Failed {
            node.phase = phase;
            node.ended = (phase == Phase::Done).then_some(news.at);
            return false;
        }
        if node.action == action && node.phase == phase {
            return false;
        }
        if phase == Phase::Running || node.action != action {
            (node.began, node.ended) = (Some(news.at), None);
        }
        match phase {
            Phase::Waiting => node.began = None,
            Phase::Running => {}
            Phase::Done | Phase::Failed => node.ended = Some(news.at),
        }
        action.clone_into(&mut node.action);
        node.phase = phase;
        node.reason.clone_from(&news.reason);
        node.waits.clear();
        if phase == Phase::Failed {
            let (stack, name) = (news.stack.clone(), news.name.clone());
            self.faults.push(Fault { stack, name, reason: news.reason.clone() });
        }
        true
    }

    /// Sets what a resource waits for at the moment; may be empty. Returns whether there is something to tell.
    pub fn wait(&mut self, stack: &str, name: &str, what: &str) -> bool {
        let node = self.stacks.get_mut(stack).and_then(|resources| resources.get_mut(name));
        let Some(node) = node.filter(|node| node.phase != Phase::Failed && node.waits != what) else { return false };
        what.clone_into(&mut node.waits);
        !what.is_empty()
    }

    /// The names of the resources that a waiting resource of a stack waits for.
    pub fn awaited(&self, stack: &str, node: &Node) -> Vec<&str> {
        let required = self.requires.get(&(stack.to_owned(), node.name.clone())).into_iter().flatten();
        let is_open = |name: &&String| {
            self.node(stack, name).is_some_and(|other| other.phase != Phase::Done && !other.is_untouched())
        };
        required.filter(is_open).map(String::as_str).collect()
    }

    /// ID of the stack itself.
    pub fn root(&self) -> &str {
        &self.root
    }

    /// The resources of a stack, in [`natural_order`].
    pub fn of(&self, stack: &str) -> impl Iterator<Item = &Node> {
        let mut nodes: Vec<&Node> = self.stacks.get(stack).into_iter().flat_map(IndexMap::values).collect();
        nodes.sort_by(|a, b| natural_order(&a.name, &b.name));
        nodes.into_iter()
    }

    /// A resource.
    pub fn node(&self, stack: &str, name: &str) -> Option<&Node> {
        self.stacks.get(stack)?.get(name)
    }

    /// Path of a resource through nested stacks: `group/0/server`.
    pub fn path(&self, stack: &str, name: &str) -> String {
        // Deeper than Heat's default limit; stops at cycles in the answer of the service.
        const DEEPEST: usize = 64;
        let mut path = vec![name];
        let mut stack = stack;
        while stack != self.root && path.len() < DEEPEST {
            let Some((above, name)) = self.parents.get(stack) else { break };
            path.push(name);
            stack = above;
        }
        path.reverse();
        path.join("/")
    }

    /// Number of resources in each phase, including nested stacks.
    pub fn count(&self) -> Count {
        let mut count = Count::default();
        for node in self.stacks.values().flat_map(IndexMap::values) {
            count.all += 1;
            match node.phase {
                Phase::Done => count.done += 1,
                Phase::Failed => count.failed += 1,
                Phase::Running => count.running += 1,
                Phase::Waiting => count.untouched += usize::from(node.is_untouched()),
            }
        }
        count.all = count.all.max(self.planned);
        count
    }

    /// The failures after this one belong to the rollback.
    pub fn roll_back(&mut self) {
        self.before_rollback.get_or_insert(self.faults.len());
    }

    /// The root cause: of a rollback that failed its own, else that of the operation.
    pub fn cause(&self) -> Option<Cause> {
        self.cause_of_rollback().or_else(|| self.cause_among(&self.faults))
    }

    /// The root cause of the operation that a failed rollback should undo.
    pub fn cause_before_rollback(&self) -> Option<Cause> {
        self.cause_of_rollback()?;
        self.cause_among(self.faults.get(..self.before_rollback?)?)
    }

    /// The root cause of a rollback that failed because of a resource.
    pub fn cause_of_rollback(&self) -> Option<Cause> {
        self.cause_among(self.faults.get(self.before_rollback?..)?)
    }

    /// The first failure of a resource that has no failed resource in its nested stack and was not stopped because of
    /// another failure.
    fn cause_among(&self, faults: &[Fault]) -> Option<Cause> {
        let node = |fault: &Fault| self.node(&fault.stack, &fault.name);
        let has_inner =
            |fault: &&Fault| node(fault).is_some_and(|node| faults.iter().any(|inner| inner.stack == node.inner()));
        // The earliest fault takes precedence.
        let fault = faults.iter().filter(|fault| !has_inner(fault)).min_by_key(|fault| was_stopped(&fault.reason))?;
        Some(Cause {
            path: self.path(&fault.stack, &fault.name),
            kind: node(fault).map(|node| node.kind.clone()).unwrap_or_default(),
            reason: fault.reason.clone(),
        })
    }
}

/// Action and phase of `CREATE_IN_PROGRESS`.
fn read(status: &str) -> (&str, Phase) {
    let (action, rest) = status.split_once('_').unwrap_or((status, ""));
    let phase = match (action, rest) {
        ("" | "INIT", _) => Phase::Waiting,
        (_, "COMPLETE") => Phase::Done,
        (_, "FAILED") => Phase::Failed,
        _ => Phase::Running,
    };
    (action, phase)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn news(stack: &str, name: &str, status: &str, reason: &str, at: u64) -> News {
        let (stack, name) = (stack.to_owned(), name.to_owned());
        let (status, reason) = (status.to_owned(), reason.to_owned());
        News { stack, name, status, reason, at: Duration::from_secs(at), ..News::default() }
    }

    fn tree() -> Tree {
        let mut tree = Tree::new("web", "s");
        tree.learn(&News {
            kind: "OS::Heat::ResourceGroup".into(),
            nested: "n".into(),
            ..news("s", "group", "INIT_COMPLETE", "", 0)
        });
        tree.learn(&News { kind: "OS::Heat::Value".into(), ..news("n", "0", "INIT_COMPLETE", "", 0) });
        tree.learn(&news("s", "other", "INIT_COMPLETE", "", 0));
        tree
    }

    #[test]
    fn times_are_those_of_the_action() {
        let mut tree = tree();
        assert!(tree.apply(&news("s", "other", "CREATE_IN_PROGRESS", "", 1)));
        assert!(!tree.apply(&news("s", "other", "CREATE_IN_PROGRESS", "", 2)));
        assert_eq!(tree.node("s", "other").unwrap().spent(Duration::from_secs(4)), Some(Duration::from_secs(3)));
        tree.apply(&news("s", "other", "CREATE_COMPLETE", "", 3));
        assert_eq!(tree.node("s", "other").unwrap().spent(Duration::from_secs(9)), Some(Duration::from_secs(2)));
        assert_eq!(tree.count(), Count { done: 1, all: 3, ..Count::default() });
    }

    #[test]
    fn the_cause_is_the_first_failure_at_the_bottom() {
        let mut tree = tree();
        tree.apply(&news("s", "other", "CREATE_FAILED", "CREATE aborted (user triggered cancel)", 1));
        tree.apply(&news("n", "0", "CREATE_FAILED", "ValueError: no", 2));
        tree.apply(&news("s", "group", "CREATE_FAILED", "ValueError: resources.group.resources[0]: no", 3));
        let cause = tree.cause().unwrap();
        assert_eq!((cause.path.as_str(), cause.reason.as_str()), ("group/0", "ValueError: no"));
    }

    #[test]
    fn an_operation_whose_time_has_run_out_is_a_cause() {
        let mut tree = tree();
        let reason = "CREATE aborted (user triggered cancel); it was waiting for the status ACTIVE, not BUILD";
        tree.apply(&news("s", "other", "CREATE_FAILED", reason, 1));
        assert_eq!(tree.cause().map(|cause| cause.reason), Some(reason.to_owned()));
    }

    #[test]
    fn the_cause_is_remembered_over_a_rollback() {
        let mut tree = Tree::new("web", "s");
        tree.apply(&News { physical: "n".into(), ..news("s", "group", "CREATE_IN_PROGRESS", "", 1) });
        tree.apply(&news("n", "0", "CREATE_FAILED", "ValueError: no", 2));
        tree.apply(&news("s", "group", "CREATE_FAILED", "ValueError: resources.group.resources[0]: no", 3));
        tree.apply(&news("n", "0", "DELETE_COMPLETE", "", 4));
        tree.apply(&news("s", "group", "DELETE_COMPLETE", "", 5));
        assert_eq!(tree.cause().unwrap().path, "group/0");
    }

    #[test]
    fn a_replacement_is_one_thing() {
        let mut tree = tree();
        tree.settle();
        assert!(tree.apply(&news("s", "other", "CREATE_IN_PROGRESS", "", 1)));
        assert_eq!(tree.node("s", "other").unwrap().action, "REPLACE");
        tree.apply(&news("s", "other", "CREATE_COMPLETE", "", 2));
        assert_eq!(tree.count().done, 1);
        assert!(!tree.apply(&news("s", "other", "DELETE_IN_PROGRESS", "", 3)));
        assert_eq!(tree.count(), Count { running: 1, untouched: 2, all: 3, ..Count::default() });
        assert!(!tree.apply(&news("s", "other", "DELETE_COMPLETE", "", 4)), "it was told");
        let node = tree.node("s", "other").unwrap();
        assert_eq!((node.action.as_str(), node.phase, node.replaced), ("REPLACE", Phase::Done, true));
        // A new resource that is deleted again counts as deleted.
        tree.apply(&news("s", "new", "CREATE_COMPLETE", "", 5));
        tree.apply(&news("s", "new", "DELETE_COMPLETE", "", 6));
        assert_eq!(tree.node("s", "new").unwrap().action, "DELETE");
    }

    #[test]
    fn what_existed_and_has_no_events_is_unchanged() {
        let mut tree = tree();
        assert_eq!(tree.count().untouched, 0);
        tree.settle();
        assert_eq!((tree.count().untouched, tree.count().done), (3, 0));
        tree.apply(&news("s", "other", "UPDATE_IN_PROGRESS", "", 1));
        assert_eq!((tree.count().untouched, tree.count().running), (2, 1));
    }

    #[test]
    fn a_create_counts_what_is_planned_in_nested_stacks() {
        let mut tree = Tree::new("web", "s");
        tree.plan(3);
        tree.learn(&news("s", "group", "INIT_COMPLETE", "", 0));
        assert_eq!(tree.count(), Count { all: 3, ..Count::default() });
        for name in ["0", "1", "2"] {
            tree.apply(&news("n", name, "CREATE_COMPLETE", "", 1));
        }
        assert_eq!(tree.count(), Count { done: 3, all: 4, ..Count::default() }, "more than was known before");
    }

    #[test]
    fn there_is_one_order() {
        let mut tree = Tree::new("web", "s");
        // By numbers and by texts compared in pairs, 9 < 10 < 1a < 9.
        for name in ["10", "b", "9", "a", "1a"] {
            tree.learn(&news("s", name, "INIT_COMPLETE", "", 0));
        }
        let names: Vec<&str> = tree.of(tree.root()).map(|node| node.name.as_str()).collect();
        assert_eq!(names, ["1a", "9", "10", "a", "b"]);
    }

    #[test]
    fn members_of_a_replaced_nested_stack_keep_their_path() {
        let mut tree = tree();
        tree.learn(&News { nested: "new".into(), ..news("s", "group", "INIT_COMPLETE", "", 0) });
        assert_eq!((tree.path("n", "0"), tree.path("new", "0")), ("group/0".to_owned(), "group/0".to_owned()));
    }

    #[test]
    fn a_resource_is_known_with_its_type_and_its_path() {
        let mut tree = tree();
        assert!(tree.knows("n", "0") && !tree.knows("n", "1"));
        let member = news("later", "0", "CREATE_IN_PROGRESS", "", 1);
        tree.apply(&member);
        assert!(!tree.knows("later", "0"), "an event has no type");
        tree.learn(&News { kind: "OS::Heat::Value".into(), ..member });
        assert!(!tree.knows("later", "0"), "nor a path");
        tree.learn(&News { nested: "later".into(), ..news("s", "more", "", "", 1) });
        assert!(tree.knows("later", "0"));
    }

    #[test]
    fn unknown_resources_are_added() {
        let mut tree = tree();
        assert!(tree.apply(&news("s", "new", "CREATE_IN_PROGRESS", "", 1)));
        assert_eq!(tree.of(tree.root()).count(), 3);
    }
}
