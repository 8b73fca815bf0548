//! Drift that is watched: users say how often their stacks are compared with their objects, and engines do it.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::future::{self, Either};
use jiff::Timestamp;
use kiln_identity::Caller;
use kiln_resource::Status;
use kiln_store::drift::{
    DriftCheck, DriftReport, DriftSchedule, DriftStatus, DriftStore, DriftedResource, WatchedQuery, WatchedStack,
};
use kiln_store::{Author, Stack, StackId};
use kiln_view::stack_drift::{Drift, StackDrift};

use crate::drift_repair::Wanted;
use crate::{Door, Error, Guarded, Service};

/// Stacks that an engine compares at the same time.
const AT_ONCE: u32 = 4;
/// The time between two looks at what is due, for all engines together.
const PAUSE: Duration = Duration::from_secs(10);
/// The longest time that a comparison may take, and a repair.
const LONGEST: Duration = Duration::from_mins(10);
/// When a claim ends whose engine has died.
const TTL: Duration = Duration::from_mins(15);
/// When a stack is looked at again that was in progress, or that could not be read from the database.
const LATER: Duration = Duration::from_mins(1);
/// The longest period.
const LONGEST_PERIOD: Duration = Duration::from_hours(24 * 366);

/// How often, and how much, is compared.
#[derive(Clone, Debug)]
pub struct DriftLimits {
    /// The period of stacks without a schedule; `None`: they are not compared.
    pub usual: Option<Duration>,
    /// The shortest period that users may choose.
    pub shortest: Duration,
    /// How many resources an engine compares in a second, in the long run.
    pub resources_per_second: u32,
}

/// The schedules of comparisons, and what they have found.
#[derive(Clone)]
pub struct DriftWatch {
    /// Their store.
    pub store: Arc<dyn DriftStore>,
    /// What compares stacks.
    pub service: Service,
    /// Limits.
    pub limits: DriftLimits,
}

impl DriftWatch {
    /// Sets how often a root stack, or the stacks of the caller's project, are compared. `None`: never. With `repair`, what has
    /// drifted is repaired where that has a low risk.
    ///
    /// # Errors
    /// [`Error::Value`]: the period is too short or too long; and errors of the store.
    pub async fn schedule(
        &self,
        caller: &Caller,
        stack: Option<&Stack>,
        every: Option<Duration>,
        repair: bool,
    ) -> Result<DriftSchedule, Error> {
        let shortest = self.limits.shortest;
        if every.is_some_and(|every| every < shortest || every > LONGEST_PERIOD) {
            return Err(Error::Value(format!(
                "The time between comparisons must be {} to {} seconds, or 0 for never.",
                shortest.as_secs(),
                LONGEST_PERIOD.as_secs()
            )));
        }
        if repair && every.is_none() {
            return Err(Error::Value("What is not compared cannot be repaired.".to_owned()));
        }
        let schedule = DriftSchedule {
            project: stack.map_or_else(|| caller.project_id.clone(), |stack| stack.project.clone()),
            stack: stack.map(|stack| stack.root),
            every,
            repair,
            author: Author { user_id: caller.user_id.clone(), username: caller.username.clone() },
            created: self.service.backends.clock.now(),
        };
        self.store.schedule_drift(&schedule).await?;
        let stack = schedule.stack.as_ref().map(StackId::to_string);
        let (project, seconds) = (&schedule.project, every.map_or(0, |every| every.as_secs()));
        tracing::info!(project, stack, seconds, repair, user = caller.user_id, "schedule of drift set");
        Ok(schedule)
    }

    /// Removes the schedule of a root stack, which then has that of its project, or that of the caller's project.
    ///
    /// # Errors
    /// [`Error::NotFound`], and errors of the store.
    pub async fn unschedule(&self, caller: &Caller, stack: Option<&Stack>) -> Result<(), Error> {
        let project = stack.map_or(&caller.project_id, |stack| &stack.project);
        let root = stack.map(|stack| stack.root);
        if !self.store.unschedule_drift(project, root).await? {
            return Err(Error::NotFound(format!("Schedule of {}", stack.map_or("the project", |stack| &stack.name))));
        }
        let stack = root.as_ref().map(StackId::to_string);
        tracing::info!(project, stack, user = caller.user_id, "schedule of drift removed");
        Ok(())
    }

    /// The schedules of the caller's project.
    pub async fn schedules(&self, caller: &Caller) -> Result<Vec<DriftSchedule>, Error> {
        Ok(self.store.drift_schedules(&caller.project_id).await?)
    }

    /// Stacks that are watched, and what was found.
    pub async fn watched(&self, query: &WatchedQuery) -> Result<Vec<WatchedStack>, Error> {
        Ok(self.store.watched_stacks(query).await?)
    }

    /// Compares what is due, for ever. Several engines share the work.
    pub async fn run(&self) {
        let backends = &self.service.backends;
        loop {
            if let Err(error) = self.round().await {
                tracing::warn!(%error, "failed to compare stacks with their objects");
            }
            let engines = backends.store.engines().await.map_or(1, |engines| engines.len().max(1));
            let pause = PAUSE.saturating_mul(u32::try_from(engines).unwrap_or(u32::MAX));
            backends.clock.sleep(backends.chance.jitter(pause)).await;
        }
    }

    /// Compares what is due now.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn round(&self) -> Result<(), Error> {
        while self.store.plan_drift_checks(self.limits.usual).await? {}
        let workers = (0..AT_ONCE).map(|_| self.work());
        let ended: Vec<Result<(), Error>> =
            futures::stream::iter(workers).buffer_unordered(AT_ONCE as usize).collect().await;
        ended.into_iter().collect()
    }

    /// Compares one stack after the other, until nothing is due.
    async fn work(&self) -> Result<(), Error> {
        let backends = &self.service.backends;
        loop {
            let mark = backends.chance.uuid();
            let Some(check) = self.store.claim_drift_check(mark, TTL, self.limits.usual).await? else { return Ok(()) };
            let resources = Box::pin(self.check(&check)).await?;
            let rate = self.limits.resources_per_second.max(1);
            backends
                .clock
                .sleep(Duration::from_secs(1).saturating_mul(resources).mul_f64(f64::from(AT_ONCE)) / rate)
                .await;
        }
    }

    /// Makes a comparison; returns how many resources were compared.
    async fn check(&self, check: &DriftCheck) -> Result<u32, Error> {
        let backends = &self.service.backends;
        let began = backends.clock.now();
        let stack = match backends.store.stack(check.stack).await? {
            Some(stack) if stack.state.status != Status::InProgress => stack,
            _ => {
                self.store.postpone_drift_check(check, LATER).await?;
                return Ok(0);
            }
        };
        let compared = self.in_time(Box::pin(self.compared(&stack))).await;
        let mut wanted = Wanted::default();
        let (mut report, resources) = match compared {
            Ok(compared) => {
                if check.repair && stack.state.status == Status::Complete && self.store.may_repair().await? {
                    let drifted = compared.drifted();
                    let drifted = drifted.iter().map(|(path, one)| (path.clone(), &one.drift));
                    wanted = Wanted::of(drifted, &check.repairs, began);
                }
                (report(&compared), u32::try_from(compared.extent().resources).unwrap_or(u32::MAX))
            }
            Err(error) => {
                // The text is about the database, which is for the operator.
                tracing::warn!(stack = %stack.id, project = stack.project, %error, "failed to compare a stack with its objects");
                let reason = Some("the stack could not be compared; the log of the engine says why".to_owned());
                let (resources, repairs, stopped) = (Vec::new(), Vec::new(), Vec::new());
                (DriftReport { status: DriftStatus::NotChecked, resources, drifted: 0, reason, repairs, stopped }, 1)
            }
        };
        // What was compared may have changed meanwhile.
        let now = backends.store.stack(check.stack).await?;
        if now.is_none_or(|now| now.generation != stack.generation || now.state != stack.state) {
            self.store.postpone_drift_check(check, LATER).await?;
            return Ok(resources);
        }
        // What is begun is written first: after a kill a repair is missing, and never one too many.
        report.repairs = wanted.recorded(&check.repairs, began);
        report.stopped = wanted.stopped();
        if self.end(check, &stack, &report, began).await?
            && let Err(error) = self.in_time(Box::pin(self.repair(&stack, &wanted))).await
        {
            tracing::warn!(stack = %stack.id, project = stack.project, %error, "failed to repair drift");
        }
        Ok(resources)
    }

    /// A cloud that hangs must not stop the comparisons of other stacks.
    async fn in_time<T>(&self, work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        match future::select(pin!(work), self.service.backends.clock.sleep(LONGEST)).await {
            Either::Left((result, _)) => result,
            Either::Right(_) => Err(Error::Value(format!("it took more than {} s", LONGEST.as_secs()))),
        }
    }

    async fn end(
        &self,
        check: &DriftCheck,
        stack: &Stack,
        report: &DriftReport,
        began: Timestamp,
    ) -> Result<bool, Error> {
        let status = report.status.as_str();
        let ended = self.store.end_drift_check(check, stack, report, began).await?;
        if ended {
            tracing::trace!(target: "kiln::metric", metric = "drift_checks", status);
            let (id, name, project) = (stack.id.to_string(), &stack.name, &stack.project);
            tracing::debug!(
                stack = id,
                name,
                project,
                status,
                drifted = report.drifted,
                "stack compared with its objects"
            );
        }
        Ok(ended)
    }

    async fn compared(&self, stack: &Stack) -> Result<StackDrift, Error> {
        let view = self.service.view(stack.clone()).await?;
        let compared = self.service.compared(&view, &[]).await?;
        let hidden = self.service.hidden_values_of_tree(stack).await?;
        Ok(Guarded::new(compared, hidden).into_shown(Door::Drift))
    }
}

/// What is kept of a comparison: no values. What can never be read, such as a password, does not count as not checked.
fn report(compared: &StackDrift) -> DriftReport {
    let mut drifted = compared.drifted();
    drifted.sort_by(|(one, _), (other, _)| one.cmp(other));
    let resource = |(path, one): &(String, &kiln_view::stack_drift::ResourceDrift)| DriftedResource {
        path: path.clone(),
        properties: match &one.drift {
            Drift::Modified(properties) => {
                let mut names: Vec<String> = properties.iter().map(|property| property.name.clone()).collect();
                names.sort();
                names
            }
            _ => Vec::new(),
        },
    };
    let reason = compared.unreadable();
    let status = match (drifted.is_empty(), reason) {
        (false, _) => DriftStatus::Drifted,
        (true, Some(_)) => DriftStatus::NotChecked,
        (true, None) => DriftStatus::InSync,
    };
    DriftReport {
        status,
        resources: drifted.iter().take(DriftReport::LISTED).map(resource).collect(),
        drifted: drifted.len() as u64,
        reason: reason.map(str::to_owned),
        repairs: Vec::new(),
        stopped: Vec::new(),
    }
}
