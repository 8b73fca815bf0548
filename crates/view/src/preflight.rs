//! The pre-flight: checks of a plan that need the cloud, before its first call that changes something.
//!
//! A check reads, and decides by what the services say today. It fails only if the change would certainly fail; if it may
//! fail, it warns. What cannot be read is no failure: the check is skipped, with the reason.

mod addresses;
mod demand;
mod fixed_addresses;
mod flavors;
mod limits;
mod names;
mod network;
mod planned;
mod ports;
mod quotas;
mod reader;
mod refusals;
mod rights;
mod zones;

use std::time::Duration;

use futures::FutureExt as _;
use futures::future::{BoxFuture, join_all};
use kiln_plan::hidden::{Door, Guarded, HiddenValues};
use kiln_plan_document::{Action, Check, Verdict};
use kiln_resource::{Cloud, StackId};
use kiln_stack::{Backends, Clock, LoadedStack};
use kiln_store::Error;

use crate::plan_document::Plan;
use crate::preview::{self, Preview, Terms};
use planned::Work;
use reader::Reader;

/// How long the pre-flight waits for the services. What they have not answered by then is skipped.
const LIMIT: Duration = Duration::from_secs(20);

/// What a check has found. Nothing: it has passed.
type Findings = Vec<Finding>;

/// Something that a check has found.
struct Finding {
    verdict: Verdict,
    message: String,
    resources: Vec<String>,
}

impl Finding {
    fn fail(message: String, resources: Vec<String>) -> Self {
        Self { verdict: Verdict::Fail, message, resources }
    }

    fn warn(message: String, resources: Vec<String>) -> Self {
        Self { verdict: Verdict::Warn, message, resources }
    }

    fn skipped(message: String, resources: Vec<String>) -> Self {
        Self { verdict: Verdict::Skipped, message, resources }
    }
}

/// What the checks look at.
struct Flight<'a> {
    work: Work<'a>,
    cloud: Reader<'a>,
    most_resources: Option<usize>,
}

/// A check: `None` if the plan has nothing that it looks at.
type Run = for<'a> fn(&'a Flight<'a>) -> BoxFuture<'a, Option<Findings>>;

/// The checks by their names.
const CHECKS: [(&str, Run); 10] = [
    ("definitions", |flight| async { Some(refusals::check(flight)) }.boxed()),
    ("limits", |flight| async { limits::check(flight) }.boxed()),
    ("names", |flight| names::check(flight).boxed()),
    ("quotas", |flight| quotas::check(flight).boxed()),
    ("flavors", |flight| flavors::check(flight).boxed()),
    ("zones", |flight| zones::check(flight).boxed()),
    ("addresses", |flight| addresses::check(flight).boxed()),
    ("fixed addresses", |flight| fixed_addresses::check(flight).boxed()),
    ("ports", |flight| ports::check(flight).boxed()),
    ("rights", |flight| rights::check(flight).boxed()),
];

/// Checks what a preview would do with the cloud. `most_resources` is the maximum number of resources of a tree of stacks.
/// Nothing is changed. The texts have values that clients must not see.
pub async fn preflight(
    preview: &Preview,
    cloud: &dyn Cloud,
    clock: &dyn Clock,
    most_resources: Option<usize>,
) -> Vec<Check> {
    let flight = Flight { work: Work::of(preview), cloud: Reader::new(cloud), most_resources };
    if !flight.work.changes_something() {
        return Vec::new();
    }
    let run = async |name: &str, check: BoxFuture<'_, Option<Findings>>| {
        let late = async {
            clock.sleep(LIMIT).await;
            let message = format!("the services did not answer within {} seconds", LIMIT.as_secs());
            Some(vec![Finding::skipped(message, Vec::new())])
        };
        let findings = futures::future::select(check, late.boxed()).await.factor_first().0?;
        let result = |verdict, message, resources| Check { check: name.to_owned(), verdict, message, resources };
        if findings.is_empty() {
            return Some(vec![result(Verdict::Passed, String::new(), Vec::new())]);
        }
        Some(findings.into_iter().map(|one| result(one.verdict, one.message, one.resources)).collect())
    };
    let results = join_all(CHECKS.iter().map(|(name, check)| run(name, check(&flight)))).await;
    results.into_iter().flatten().flatten().collect()
}

/// Checks the create or the update of a stack that is about to begin, with its own credentials. The texts are masked.
///
/// # Errors
/// Errors of the store.
pub async fn preflight_of_request(
    backends: &Backends,
    stack: StackId,
    most_resources: Option<usize>,
) -> Result<Vec<Check>, Error> {
    let Some(mut view) = LoadedStack::load(backends, stack).await? else { return Ok(Vec::new()) };
    let new = view.blueprint.clone();
    let mut hidden = HiddenValues::of(&[new.sources()]);
    let terms = Terms { converge: view.stack.details.converge.clone(), ..Terms::default() };
    let mut planned = preview::preview(backends, &mut view, new, terms, &mut hidden).await?;
    planned.preflight = match backends.clouds.cloud(view.root()).await {
        Ok(cloud) => preflight(&planned, &*cloud, &*backends.clock, most_resources).await,
        Err(failure) => {
            vec![Check::skipped("credentials", format!("the credentials of the stack: {failure}"))]
        }
    };
    let planned = Guarded::new(planned, hidden);
    Ok(planned.shown(Door::Plan, |planned| Plan::of(planned, Action::Update)).0.preflight)
}

/// `a`, `a and b`, `a, b and 3 more`.
fn named(paths: &[String]) -> String {
    match paths {
        [] => String::new(),
        [one] => one.clone(),
        [one, two] => format!("{one} and {two}"),
        [one, two, rest @ ..] => format!("{one}, {two} and {} more", rest.len()),
    }
}
