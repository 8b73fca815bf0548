//! Saved plans.

use async_trait::async_trait;
use jiff::Timestamp;
use kiln_value::Value;

use super::MemoryStore;
use super::state::{State, micro, micros_of, time_of};
use crate::limits::{PLAN_KEPT, STACKS};
use crate::plan::{NewPlan, PlanPart, PlanQuery, PlanState, PlanStore};
use crate::{Approval, Author, Error, Plan, PlanId, Stack, WebhookMessage};

/// A plan with its parts.
pub(super) struct StoredPlan {
    pub(super) plan: Plan,
    parts: Vec<PlanPart>,
    approvals: Vec<Approval>,
}

impl StoredPlan {
    /// The number of rows that a database has for it.
    fn rows(&self) -> usize {
        1 + self.parts.len() + self.approvals.len()
    }
}

#[async_trait]
impl PlanStore for MemoryStore {
    async fn save_plan(&self, new: &NewPlan) -> Result<(), Error> {
        let (mut state, now) = self.open();
        let plan = Plan { created: micro(new.plan.created), expires: new.plan.expires.map(micro), ..new.plan.clone() };
        if let Some(name) = &plan.name
            && state
                .plans
                .values()
                .any(|other| other.plan.stack == plan.stack && other.plan.name.as_ref() == Some(name))
        {
            return Err(Error::NameTaken(name.clone()));
        }
        if let Some(desired) = &new.desired {
            state.store_contents(desired, now);
        }
        let told = WebhookMessage::of_plan(&plan, "saved", plan.author.as_ref(), plan.created);
        state.tell_webhooks(&plan.project, told, now);
        let seq = state.next();
        state.plans.insert(seq, StoredPlan { plan, parts: new.parts.clone(), approvals: Vec::new() });
        Ok(())
    }

    async fn plan(&self, project: &str, id: PlanId) -> Result<Option<Plan>, Error> {
        let (state, _) = self.open();
        let mut all = state.plans.values().map(|stored| &stored.plan);
        Ok(all.find(|plan| plan.id == id && plan.project == project).cloned())
    }

    async fn plans(&self, query: &PlanQuery) -> Result<Vec<Plan>, Error> {
        let (state, _) = self.open();
        let of_project = || state.plans.iter().filter(|(_, stored)| stored.plan.project == query.project);
        let before = match query.marker {
            Some(marker) => match of_project().find(|(_, stored)| stored.plan.id == marker) {
                Some((seq, _)) => *seq,
                None => return Err(Error::NotFound(format!("plan {marker}"))),
            },
            None => u64::MAX,
        };
        let is_asked = |plan: &&Plan| {
            let has_name = query.stack_name.as_ref().is_none_or(|name| *name == plan.stack_name);
            has_name && query.stack.is_none_or(|stack| stack == plan.stack)
        };
        let limit = query.limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
        let older = of_project().rev().filter(|(seq, _)| **seq < before).map(|(_, stored)| &stored.plan);
        let asked = older.filter(is_asked).take(limit).cloned();
        let body = |plan: &Plan| if query.without_bodies { Value::Null } else { plan.body.clone() };
        Ok(asked.map(|plan| Plan { body: body(&plan), ..plan }).collect())
    }

    async fn count_plans(&self, project: &str) -> Result<u64, Error> {
        let (state, _) = self.open();
        Ok(state.plans.values().filter(|stored| stored.plan.project == project).count() as u64)
    }

    async fn plan_parts(&self, plan: PlanId, path: Option<&str>) -> Result<Vec<String>, Error> {
        let (state, _) = self.open();
        let stored = state.plans.values().filter(|stored| stored.plan.id == plan);
        let parts = stored.flat_map(|stored| &stored.parts);
        Ok(parts.filter(|part| path.is_none_or(|path| path == part.path)).map(|part| part.body.clone()).collect())
    }

    async fn reject_plan(&self, plan: PlanId) -> Result<bool, Error> {
        let (mut state, now) = self.open();
        let is_ready = |stored: &&mut StoredPlan| stored.plan.id == plan && stored.plan.state == PlanState::Ready;
        let Some(ready) = state.plans.values_mut().find(is_ready) else { return Ok(false) };
        ready.plan.state = PlanState::Rejected;
        let plan = ready.plan.clone();
        state.tell_of_plan(&plan, "rejected", None, now);
        Ok(true)
    }

    async fn approve_plan(&self, approval: &Approval) -> Result<(), Error> {
        let (mut state, now) = self.open();
        let is_new = |stored: &&mut StoredPlan| {
            let others = stored.approvals.iter().map(|other| &other.author.user_id);
            stored.plan.id == approval.plan && others.into_iter().all(|other| *other != approval.author.user_id)
        };
        if let Some(stored) = state.plans.values_mut().find(is_new) {
            stored.approvals.push(Approval { time: micro(approval.time), ..approval.clone() });
            let plan = stored.plan.clone();
            state.tell_of_plan(&plan, "approved", Some(&approval.author), now);
        }
        Ok(())
    }

    async fn approvals(&self, plan: PlanId) -> Result<Vec<Approval>, Error> {
        let (state, _) = self.open();
        let stored = state.plans.values().filter(|stored| stored.plan.id == plan);
        let mut found: Vec<Approval> = stored.flat_map(|stored| stored.approvals.clone()).collect();
        found.sort_by_key(|approval| approval.time);
        Ok(found)
    }

    async fn delete_plans(&self, ids: &[PlanId]) -> Result<Vec<PlanId>, Error> {
        let (mut state, _) = self.open();
        let named = state.plans.values().map(|stored| &stored.plan).filter(|plan| ids.contains(&plan.id));
        let kept: Vec<PlanId> = named.filter(|plan| state.is_executing(plan)).map(|plan| plan.id).collect();
        state.plans.retain(|_, stored| !ids.contains(&stored.plan.id) || kept.contains(&stored.plan.id));
        Ok(kept)
    }
}

impl State {
    /// Refuses a request whose plan cannot be used.
    pub(super) fn check_plan(&self, plan: PlanId, now: i64) -> Result<(), Error> {
        let is_valid = |stored: &StoredPlan| {
            let expires = stored.plan.expires.map(Timestamp::as_microsecond);
            stored.plan.id == plan
                && stored.plan.state == PlanState::Ready
                && expires.is_none_or(|expires| expires > now)
        };
        if self.plans.values().any(is_valid) { Ok(()) } else { Err(Error::PlanUsed(plan)) }
    }

    /// Uses up a checked plan.
    pub(super) fn use_plan(&mut self, plan: PlanId, now: i64) {
        if let Some(stored) = self.plans.values_mut().find(|stored| stored.plan.id == plan) {
            stored.plan.state = PlanState::Executed;
            let plan = stored.plan.clone();
            self.tell_of_plan(&plan, "executed", None, now);
        }
    }

    /// Tells webhooks about a change of a plan.
    fn tell_of_plan(&mut self, plan: &Plan, what: &str, by: Option<&Author>, now: i64) {
        self.tell_webhooks(&plan.project, WebhookMessage::of_plan(plan, what, by, time_of(now)), now);
    }

    /// Whether the request of a plan is in progress. It is the next one of the stack after the plan.
    fn is_executing(&self, plan: &Plan) -> bool {
        let stack = self.stacks.get(&plan.stack).map(|row| &row.stack);
        let is_its = |stack: &Stack| stack.is_pending() && stack.generation == plan.generation + 1;
        plan.state == PlanState::Executed && stack.is_some_and(is_its)
    }

    /// Deletes plans that expired long ago and are not being executed; returns the number of rows.
    pub(super) fn forget_plans(&mut self, now: i64) -> usize {
        let before = now.saturating_sub(micros_of(PLAN_KEPT));
        let is_old = |stored: &StoredPlan| {
            let expires = stored.plan.expires;
            expires.is_some_and(|time| time.as_microsecond() < before) && !self.is_executing(&stored.plan)
        };
        let old: Vec<u64> = self.plans.iter().filter(|(_, stored)| is_old(stored)).map(|(seq, _)| *seq).collect();
        old.into_iter()
            .take(STACKS)
            .filter_map(|seq| self.plans.remove(&seq))
            .map(|stored| 1 + stored.parts.len())
            .sum()
    }

    /// Deletes the plans that a filter finds; returns the number of rows.
    pub(super) fn remove_plans(&mut self, is_one: impl Fn(&Plan) -> bool) -> usize {
        let found: Vec<u64> =
            self.plans.iter().filter(|(_, stored)| is_one(&stored.plan)).map(|(seq, _)| *seq).collect();
        found.into_iter().filter_map(|seq| self.plans.remove(&seq)).map(|stored| stored.rows()).sum()
    }
}
