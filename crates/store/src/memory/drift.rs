//! Drift that is watched.

use std::collections::BTreeSet;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use kiln_resource::Status;
use uuid::Uuid;

use super::MemoryStore;
use super::state::{State, micro, micros_of, time_of};
use crate::drift::{
    DriftCheck, DriftReport, DriftSchedule, DriftStatus, DriftStore, WatchedQuery, WatchedStack, first_delay,
};
use crate::limits::WATCHED;
use crate::outbox::announced;
use crate::{Error, Stack, StackId, WebhookMessage};

/// A stack that is watched.
#[derive(Default)]
pub(super) struct Watched {
    due: Option<i64>,
    mark: Option<Uuid>,
    report: Option<DriftReport>,
    checked: Option<Timestamp>,
    since: Option<Timestamp>,
}

impl State {
    /// Deletes what is stored of the drift of a stack; returns the number of rows.
    pub(super) fn remove_drift_of(&mut self, stack: StackId) -> usize {
        let before = self.drift_schedules.len();
        self.drift_schedules.retain(|schedule| schedule.stack != Some(stack));
        before - self.drift_schedules.len() + usize::from(self.drift.remove(&stack).is_some())
    }

    /// The number of stacks that have drifted.
    pub(super) fn count_drifted(&self) -> u64 {
        let has_drifted =
            |watched: &Watched| watched.report.as_ref().is_some_and(|report| report.status == DriftStatus::Drifted);
        self.drift.iter().filter(|(id, watched)| has_drifted(watched) && self.live(**id).is_some()).count() as u64
    }

    /// The schedule of a live root stack: its own, or that of its project.
    fn schedule(&self, stack: StackId) -> Option<&DriftSchedule> {
        let stack = self.live(stack).filter(|stack| stack.parent.is_none())?;
        let set = |of: Option<StackId>| {
            self.drift_schedules.iter().find(|schedule| schedule.project == stack.project && schedule.stack == of)
        };
        set(Some(stack.id)).or_else(|| set(None))
    }

    /// The period of a stack, and whether it has a schedule of its own. `None`: it is not compared.
    fn period(&self, stack: StackId, usual: Option<Duration>) -> Option<(Duration, bool)> {
        self.live(stack).filter(|stack| stack.parent.is_none())?;
        match self.schedule(stack) {
            Some(schedule) => Some((schedule.every?, schedule.stack.is_some())),
            None => Some((usual?, false)),
        }
    }

    fn decide_again(&mut self, project: &str, stack: Option<StackId>) {
        let of_project = |id: &StackId| self.stacks.get(id).is_some_and(|row| row.stack.project == project);
        for (id, watched) in &mut self.drift {
            if stack.map_or_else(|| of_project(id), |stack| stack == *id) {
                (watched.due, watched.mark) = (None, None);
            }
        }
    }

    fn claimed(&mut self, check: &DriftCheck) -> Option<&mut Watched> {
        self.drift.get_mut(&check.stack).filter(|watched| watched.mark == Some(check.mark))
    }
}

#[async_trait]
impl DriftStore for MemoryStore {
    async fn schedule_drift(&self, schedule: &DriftSchedule) -> Result<(), Error> {
        let (mut state, _) = self.open();
        let is_it = |one: &DriftSchedule| one.project == schedule.project && one.stack == schedule.stack;
        state.drift_schedules.retain(|one| !is_it(one));
        state.drift_schedules.push(DriftSchedule { created: micro(schedule.created), ..schedule.clone() });
        state.decide_again(&schedule.project, schedule.stack);
        Ok(())
    }

    async fn unschedule_drift(&self, project: &str, stack: Option<StackId>) -> Result<bool, Error> {
        let (mut state, _) = self.open();
        let before = state.drift_schedules.len();
        state.drift_schedules.retain(|one| one.project != project || one.stack != stack);
        state.decide_again(project, stack);
        Ok(state.drift_schedules.len() < before)
    }

    async fn drift_schedules(&self, project: &str) -> Result<Vec<DriftSchedule>, Error> {
        let (state, _) = self.open();
        let of_project = state.drift_schedules.iter().filter(|one| one.project == project);
        let mut found: Vec<DriftSchedule> = of_project.cloned().collect();
        found.sort_by_key(|one| one.stack);
        Ok(found)
    }

    async fn plan_drift_checks(&self, usual: Option<Duration>) -> Result<bool, Error> {
        let (mut state, now) = self.open();
        let known: BTreeSet<StackId> = state.drift.keys().copied().collect();
        let roots = state.stacks.keys().filter(|id| known.contains(id) || state.period(**id, usual).is_some());
        let is_open = |id: &&StackId| state.drift.get(id).is_none_or(|watched| watched.due.is_none());
        let undecided: Vec<StackId> =
            roots.filter(is_open).filter(|id| state.live(**id).is_some()).take(WATCHED).copied().collect();
        for id in &undecided {
            match state.period(*id, usual) {
                None => drop(state.drift.remove(id)),
                Some((every, is_its_own)) => {
                    let due = now + micros_of(first_delay(*id, every, is_its_own));
                    state.drift.entry(*id).or_default().due = Some(due);
                }
            }
        }
        let mut drift = std::mem::take(&mut state.drift);
        for (id, watched) in &mut drift {
            let was_updated = state
                .live(*id)
                .is_some_and(|stack| stack.updated > watched.checked && stack.state.status != Status::InProgress);
            let has_drifted = watched.report.as_ref().is_some_and(|report| report.status == DriftStatus::Drifted);
            if was_updated && has_drifted && watched.mark.is_none() && watched.due.is_some_and(|due| due > now) {
                watched.due = Some(now);
            }
        }
        state.drift = drift;
        Ok(undecided.len() >= WATCHED)
    }

    async fn claim_drift_check(
        &self,
        mark: Uuid,
        ttl: Duration,
        usual: Option<Duration>,
    ) -> Result<Option<DriftCheck>, Error> {
        let (mut state, now) = self.open();
        let due = state.drift.iter().filter_map(|(id, watched)| Some((watched.due.filter(|due| *due <= now)?, *id)));
        let due: BTreeSet<(i64, StackId)> = due.collect();
        for (_, stack) in due {
            let Some((every, _)) = state.period(stack, usual) else {
                state.drift.remove(&stack);
                continue;
            };
            let repair = state.schedule(stack).is_some_and(|schedule| schedule.repair);
            let watched = state.drift.entry(stack).or_default();
            (watched.mark, watched.due) = (Some(mark), Some(now + micros_of(ttl)));
            let repairs = watched.report.as_ref().map(|report| report.repairs.clone()).unwrap_or_default();
            return Ok(Some(DriftCheck { stack, mark, every, repair, repairs }));
        }
        Ok(None)
    }

    async fn postpone_drift_check(&self, check: &DriftCheck, delay: Duration) -> Result<(), Error> {
        let (mut state, now) = self.open();
        if let Some(watched) = state.claimed(check) {
            (watched.mark, watched.due) = (None, Some(now + micros_of(delay)));
        }
        Ok(())
    }

    async fn end_drift_check(
        &self,
        check: &DriftCheck,
        stack: &Stack,
        report: &DriftReport,
        began: Timestamp,
    ) -> Result<bool, Error> {
        let (mut state, now) = self.open();
        let began = micro(began);
        let Some(watched) = state.claimed(check) else { return Ok(false) };
        let earlier = watched.report.take();
        watched.report = Some(report.after(earlier.as_ref()));
        let is_as_before = earlier.as_ref().is_some_and(|earlier| earlier.status == report.status);
        watched.since = watched.since.filter(|_| is_as_before).or(Some(began));
        (watched.mark, watched.due) = (None, Some(now + micros_of(check.every)));
        watched.checked = Some(began);
        if let Some(news) = report.news_since(earlier.as_ref()) {
            let message = WebhookMessage::of_drift(stack, report, news, began);
            if state.notifications {
                state.write_entries(announced(stack, &[message.announcement(news != "resolved")]), now);
            }
            state.tell_webhooks(&stack.project, message, now);
        }
        Ok(true)
    }

    async fn may_repair(&self) -> Result<bool, Error> {
        Ok(true)
    }

    async fn watched_stacks(&self, query: &WatchedQuery) -> Result<Vec<WatchedStack>, Error> {
        let (state, _) = self.open();
        let all = state.drift.iter().filter_map(|(id, watched)| {
            let stack = state.live(*id)?;
            Some(WatchedStack {
                stack: *id,
                name: stack.name.clone(),
                project: stack.project.clone(),
                report: watched.report.clone(),
                checked: watched.checked,
                since: watched.since,
                due: watched.due.map(time_of),
            })
        });
        let found = all
            .filter(|one| query.project.as_ref().is_none_or(|project| *project == one.project))
            .filter(|one| {
                query.status.is_none_or(|status| one.report.as_ref().is_some_and(|report| report.status == status))
            })
            .filter(|one| query.marker.is_none_or(|marker| one.stack > marker));
        Ok(found.take(usize::try_from(query.limit).unwrap_or(usize::MAX)).collect())
    }
}
