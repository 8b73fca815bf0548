//! Refactorings of stacks: they are planned when they are created, and carried out later, if the stacks are still the same.
//!
//! The state of an execution follows from the stacks, so that it is right even if the process dies: one transaction raises the
//! generations of all of them.

use std::collections::HashMap;
use std::time::Duration;

use jiff::Timestamp;
use kiln_service::{MovedResource, PlaceOfResource, RefactorStacks, ResourceMove, UpdateStack};
use kiln_store::{Stack, StackId, StackQuery, Worksheet, WorksheetKind};
use kiln_template::StackIdentity;
use kiln_value::{Map, Value, value};
use serde::{Deserialize, Serialize};

use crate::call::Call;
use crate::fault::Fault;
use crate::input;
use crate::worksheet::read;

pub(crate) const KIND: WorksheetKind = WorksheetKind::Refactor;

/// After this time, the process that has begun an execution is gone.
const LONGEST: Duration = Duration::from_mins(5);

/// The head of a worksheet.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Head {
    pub(crate) description: String,
    pub(crate) stacks: Vec<SeenStack>,
    /// Why it cannot be executed.
    pub(crate) failure: Option<String>,
    /// When its execution began.
    pub(crate) begun: Option<Timestamp>,
}

/// A stack as it was when the refactoring was planned.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct SeenStack {
    pub(crate) id: StackId,
    pub(crate) name: String,
    pub(crate) generation: i64,
}

/// The body of a worksheet.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Body {
    /// The new templates, in the order of the stacks.
    pub(crate) templates: Vec<String>,
    /// The moves that the request has named.
    pub(crate) moves: Vec<Move>,
    pub(crate) actions: Vec<MoveAction>,
}

/// A move that the request has named.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Move {
    pub(crate) from: (StackId, String),
    pub(crate) to: (StackId, String),
}

/// A move of the plan, in the names of stacks and resources.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct MoveAction {
    from: (String, String),
    to: (String, String),
    physical_id: Option<String>,
    /// Whether the request has named it.
    is_given: bool,
}

impl MoveAction {
    pub(crate) fn of(moved: &MovedResource, given: &[ResourceMove], stacks: &[SeenStack]) -> Option<Self> {
        let place = |text: &str| {
            let (stack, resource) = text.split_once('/')?;
            let id = stacks.iter().find(|one| one.name == stack)?.id;
            Some((
                (stack.to_owned(), resource.to_owned()),
                PlaceOfResource { stack: id, resource: resource.to_owned() },
            ))
        };
        let ((from, from_place), (to, to_place)) = (place(&moved.from)?, place(&moved.to)?);
        let is_given = given.iter().any(|one| one.from == from_place && one.to == to_place);
        Some(Self { from, to, physical_id: moved.physical_id.clone(), is_given })
    }

    pub(crate) fn view(&self) -> Value {
        let (detection, reason) = if self.is_given {
            ("MANUAL", "The request names it in ResourceMappings.")
        } else {
            ("AUTO", "The resource leaves one template and appears in another one.")
        };
        let place =
            |(stack, resource): &(String, String)| value!({ "StackName": stack, "LogicalResourceId": resource });
        value!({
            "Action": "MOVE",
            "Entity": "RESOURCE",
            "PhysicalResourceId": (self.physical_id.clone()),
            "ResourceIdentifier": (self.physical_id.clone()),
            "Description": "The object stays as it is.",
            "Detection": detection,
            "DetectionReason": reason,
            "TagResources": [],
            "UntagResources": [],
            "ResourceMapping": { "Source": (place(&self.from)), "Destination": (place(&self.to)) },
        })
    }
}

/// The state of an execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Execution {
    Unavailable,
    Available,
    InProgress,
    Complete,
    Obsolete,
}

impl Execution {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Unavailable => "UNAVAILABLE",
            Self::Available => "AVAILABLE",
            Self::InProgress => "EXECUTE_IN_PROGRESS",
            Self::Complete => "EXECUTE_COMPLETE",
            Self::Obsolete => "OBSOLETE",
        }
    }
}

impl Head {
    /// The state of the execution. `now` are the stacks that still exist.
    pub(crate) fn execution(&self, stacks: &HashMap<StackId, Stack>, now: Timestamp) -> Execution {
        let is_raised = |seen: &SeenStack| stacks.get(&seen.id).is_none_or(|stack| stack.generation > seen.generation);
        let raised = self.stacks.iter().filter(|seen| is_raised(seen)).count();
        match self.begun {
            _ if self.failure.is_some() => Execution::Unavailable,
            Some(_) if raised == self.stacks.len() => Execution::Complete,
            Some(begun) if raised == 0 && now.duration_since(begun).unsigned_abs() < LONGEST => Execution::InProgress,
            _ if raised == 0 => Execution::Available,
            _ => Execution::Obsolete,
        }
    }

    /// The entry of a list.
    pub(crate) fn summary(&self, sheet: &Worksheet, execution: Execution) -> Map {
        let (status, reason) = match &self.failure {
            None => ("CREATE_COMPLETE", None),
            Some(reason) => ("CREATE_FAILED", Some(reason.clone())),
        };
        let obsolete = "A stack was changed after the refactor was created.";
        let description = Some(self.description.as_str()).filter(|text| !text.is_empty());
        let shown = value!({
            "StackRefactorId": (sheet.id.to_string()),
            "Description": description,
            "Status": status,
            "StatusReason": reason,
            "ExecutionStatus": (execution.as_str()),
            "ExecutionStatusReason": ((execution == Execution::Obsolete).then_some(obsolete)),
        });
        shown.as_map().cloned().unwrap_or_default()
    }

    /// The ARNs of the stacks.
    pub(crate) fn arns(&self, project: &str) -> Value {
        let identity = |seen: &SeenStack| StackIdentity {
            tenant: project.to_owned(),
            stack_name: seen.name.clone(),
            stack_id: seen.id.to_string(),
            path: String::new(),
        };
        self.stacks.iter().map(|seen| Value::from(identity(seen).arn())).collect()
    }
}

impl Body {
    /// The refactoring of the stacks as they are now.
    pub(crate) fn refactor(&self, call: &Call, stacks: Vec<Stack>) -> Result<RefactorStacks, Fault> {
        let update = |text: &String| {
            Ok(UpdateStack { template: Some(input::parsed(call, text)?), existing: true, ..UpdateStack::default() })
        };
        let updates = self.templates.iter().map(update).collect::<Result<Vec<_>, Fault>>()?;
        let place =
            |(stack, resource): &(StackId, String)| PlaceOfResource { stack: *stack, resource: resource.clone() };
        let moves = self.moves.iter().map(|one| ResourceMove { from: place(&one.from), to: place(&one.to) });
        Ok(RefactorStacks { stacks: stacks.into_iter().zip(updates).collect(), moves: moves.collect() })
    }
}

impl Call {
    /// The refactoring of the request.
    pub(crate) async fn stack_refactor(&self) -> Result<(Worksheet, Head, Body), Fault> {
        let id = self.params.required("StackRefactorId")?;
        let sheet = match id.parse() {
            Ok(id) => self.kept(KIND, id).await?,
            Err(_) => None,
        };
        let sheet = sheet.ok_or_else(|| Fault::no_stack_refactor(id))?;
        let (head, body) = (read(&sheet.head)?, read(&sheet.body)?);
        Ok((sheet, head, body))
    }

    /// The stacks of refactorings that still exist.
    pub(crate) async fn stacks_of_refactors(&self, heads: &[&Head]) -> Result<HashMap<StackId, Stack>, Fault> {
        let ids: Vec<StackId> = heads.iter().flat_map(|head| &head.stacks).map(|seen| seen.id).collect();
        if ids.is_empty() {
            return Ok(HashMap::new());
        }
        let project = Some(self.caller.project_id.clone());
        let stacks = self.store().stacks(&StackQuery { project, ids, ..StackQuery::default() }).await?;
        Ok(stacks.into_iter().map(|stack| (stack.id, stack)).collect())
    }

    /// The state of the execution of a refactoring.
    pub(crate) async fn execution_of(&self, head: &Head) -> Result<(Execution, HashMap<StackId, Stack>), Fault> {
        let stacks = self.stacks_of_refactors(&[head]).await?;
        Ok((head.execution(&stacks, self.backends().clock.now()), stacks))
    }
}

#[cfg(test)]
mod tests {
    use kiln_store::{DesiredText, NewStack};

    use super::*;

    fn stack(number: u128, generation: i64) -> Stack {
        let text = || "{}".to_owned();
        let desired = DesiredText { template: text(), environment: text(), files: text() };
        let id = StackId(uuid::Uuid::from_u128(number));
        let new = NewStack::new(id, "s".to_owned(), "p".to_owned(), desired, Timestamp::UNIX_EPOCH);
        Stack { generation, ..Stack::started(&new) }
    }

    #[test]
    fn the_state_of_an_execution_follows_from_the_stacks() {
        let seen = |number| SeenStack { id: stack(number, 0).id, name: "s".to_owned(), generation: 3 };
        let head = Head { description: String::new(), stacks: vec![seen(1), seen(2)], failure: None, begun: None };
        let begun = Head { begun: Some(Timestamp::UNIX_EPOCH), ..head.clone() };
        let state = |head: &Head, generations: [i64; 2], seconds: i64| {
            let [one, two] = generations;
            let stacks = [stack(1, one), stack(2, two)].into_iter().filter(|stack| stack.generation > 0);
            let stacks = stacks.map(|stack| (stack.id, stack)).collect();
            head.execution(&stacks, Timestamp::from_second(seconds).expect("a time")).as_str()
        };
        assert_eq!(state(&head, [3, 3], 1), "AVAILABLE");
        assert_eq!(state(&head, [3, 4], 1), "OBSOLETE");
        assert_eq!(state(&head, [4, 4], 1), "OBSOLETE", "by something else");
        assert_eq!(state(&head, [3, 0], 1), "OBSOLETE", "one is deleted");
        assert_eq!(state(&begun, [3, 3], 1), "EXECUTE_IN_PROGRESS");
        assert_eq!(state(&begun, [3, 3], 600), "AVAILABLE", "its process has ended");
        assert_eq!(state(&begun, [4, 4], 1), "EXECUTE_COMPLETE");
        assert_eq!(state(&begun, [9, 0], 600), "EXECUTE_COMPLETE", "and much has happened since");
        assert_eq!(state(&begun, [3, 4], 600), "OBSOLETE");
        assert_eq!(state(&Head { failure: Some(String::new()), ..head }, [3, 3], 1), "UNAVAILABLE");
    }
}
