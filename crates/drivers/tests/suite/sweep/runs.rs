//! The runs of a case: one without faults, then one for every fault in every call and every repetition of a step.

use std::time::Duration;

use kiln_resource::change::Comparison;
use kiln_resource::{Failure, Operation};
use kiln_testcloud::{Action, Fault, Snapshot, When};
use kiln_value::Class;

use crate::resource::{Ending, Resource};
use crate::sweep::cases::Case;
use crate::sweep::compare::differences;
use crate::sweep::stage::Stage;
use crate::sweep::wire::Disturbance;

/// The operations of a case, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Create,
    Update,
    Delete,
}

const PARTS: [Part; 3] = [Part::Create, Part::Update, Part::Delete];

/// The disturbance of one operation of a run.
#[derive(Clone, Copy, Debug)]
enum Harm {
    None,
    Call(usize, Disturbance),
    /// The step with this number is not stored.
    Repeat(usize),
    /// The first build fails, and a call of the undo or near it is disturbed.
    Build(Option<(usize, Disturbance)>),
    /// The first build fails, and the step with this number is not stored.
    BuildRepeat(usize),
}

/// The calls, steps and result of an undisturbed operation.
struct Measure {
    calls: Vec<String>,
    steps: usize,
    left: Snapshot,
}

/// All runs of a case; panics with a list of those with a different result.
pub(crate) async fn sweep(case: Case) {
    let furnished = Stage::furnished(&case).await;
    let mut measures = Vec::new();
    for part in case.parts() {
        measures
            .push((part, run(&case, &furnished, part, Harm::None).await.unwrap_or_else(|problem| panic!("{problem}"))));
    }
    let mut problems = Vec::new();
    let mut runs = 0;
    for (part, measure) in &measures {
        let mut harms: Vec<Harm> = disturbances(measure).map(|(call, d)| Harm::Call(call, d)).collect();
        harms.extend((1..=measure.steps).map(Harm::Repeat));
        if let (Part::Create, Some(_)) = (part, case.build) {
            let built =
                run(&case, &furnished, *part, Harm::Build(None)).await.unwrap_or_else(|problem| panic!("{problem}"));
            harms.extend(disturbances(&built).map(|disturbed| Harm::Build(Some(disturbed))));
            harms.extend((1..=built.steps).map(Harm::BuildRepeat));
        }
        for harm in harms {
            runs += 1;
            match run(&case, &furnished, *part, harm).await {
                Err(problem) => problems.push(format!("{part:?} {harm:?}: {problem}")),
                Ok(end) => {
                    let differences = differences(&measure.left, &end.left);
                    if !differences.is_empty() {
                        problems.push(format!(
                            "{part:?} {harm:?}: {}\n    {}",
                            differences.join("\n    "),
                            calls_of(&end)
                        ));
                    }
                }
            }
        }
    }
    for stop in 0..=measures[0].1.steps {
        for call in 0..=measures[0].1.calls.len() {
            // A stop after some steps, and a failure of the engine within any call.
            let harm = if call == 0 { None } else { Some((call, Disturbance::DeathAfter)) };
            if call > 0 && stop > 0 {
                continue;
            }
            runs += 1;
            if let Err(problem) = abandon(&case, &furnished, stop, harm).await {
                problems.push(format!("abandoned after {stop} steps, {harm:?}: {problem}"));
            }
        }
    }
    println!("{runs} runs");
    assert!(problems.is_empty(), "{} of {runs} runs:\n{}", problems.len(), problems.join("\n"));
}

/// Every disturbance of every call; for a read only the relevant ones.
fn disturbances(measure: &Measure) -> impl Iterator<Item = (usize, Disturbance)> {
    measure
        .calls
        .iter()
        .enumerate()
        .flat_map(|(index, call)| Disturbance::of(call).iter().map(move |kind| (index + 1, *kind)))
}

fn calls_of(measure: &Measure) -> String {
    measure.calls.join(", ")
}

impl Case {
    fn parts(&self) -> Vec<Part> {
        PARTS.into_iter().filter(|part| *part != Part::Update || self.update.is_some()).collect()
    }

    async fn operation(&self, resource: &mut Resource, stage: &Stage, part: Part) -> Operation {
        match (part, &self.update) {
            (Part::Create, _) => Operation::Create,
            (Part::Update, Some(given)) => {
                let before = resource.facts.properties.clone();
                stage.give(resource, given).await;
                let difference = resource.difference(&before, &resource.facts.properties);
                let Comparison::Update { changed } = difference else { panic!("no update: {difference:?}") };
                Operation::Update { before, changed }
            }
            (Part::Update, None) | (Part::Delete, _) => Operation::Delete,
        }
    }

    /// The objects that remain after the delete, except those that it deletes too.
    fn left(&self, stage: &Stage) -> Vec<String> {
        let left = differences(&stage.before, &stage.testcloud.snapshot());
        let is_expected =
            |line: &String| self.takes_along.is_some_and(|kind| line.starts_with(&format!("{kind} lacks")));
        left.into_iter().filter(|line| !is_expected(line)).collect()
    }
}

async fn delete(resource: &mut Resource) -> Result<(), Failure> {
    resource.act(Operation::Delete).await?;
    resource.delete_user_project().await;
    Ok(())
}

/// Waits until the cloud has completed all operations in progress.
async fn settle() {
    tokio::time::sleep(Duration::from_mins(1)).await;
}

/// Runs the case to the end of one operation, which is disturbed, and measures it; then deletes the resource, and
/// checks that nothing is left.
async fn run(case: &Case, furnished: &Stage, harmed: Part, harm: Harm) -> Result<Measure, String> {
    let stage = furnished.fork(case).await;
    let mut resource = stage.resource(case.type_name, "it");
    stage.give(&mut resource, &case.create).await;
    for part in case.parts().into_iter().filter(|part| *part < harmed) {
        let operation = case.operation(&mut resource, &stage, part).await;
        resource.act(operation).await.map_err(|failure| format!("{part:?} before it: {failure}"))?;
        settle().await;
    }
    if let Harm::Repeat(step) | Harm::BuildRepeat(step) = harm {
        resource.engine.discards = Some(step);
    }
    if let (Harm::Build(_) | Harm::BuildRepeat(_), Some((service, path))) = (harm, case.build) {
        stage.testcloud.faults().add(Fault::new(service, "POST", path, Action::FailBuild).when(When::Nth(1)));
    }
    let operation = case.operation(&mut resource, &stage, harmed).await;
    stage.wire.arm(match harm {
        Harm::Call(call, disturbance) | Harm::Build(Some((call, disturbance))) => Some((call, disturbance)),
        _ => None,
    });
    let ended = resource.carry(&operation).await;
    let calls = stage.wire.calls();
    stage.wire.arm(None);
    stage.testcloud.faults().clear();
    if operation == Operation::Delete {
        resource.delete_user_project().await;
    }
    let problem = |text: String| format!("{text}\n    {}", calls.join(", "));
    match ended {
        Ok(Ending::Done) => {}
        Err(failure) if failure.class == Class::of("Unknown") && case.is_untold => {
            return Ok(Measure { calls, steps: resource.steps, left: untold(case, furnished, &stage).await });
        }
        other => return Err(problem(format!("{other:?}"))),
    }
    settle().await;
    let measure = Measure { steps: resource.steps, left: stage.testcloud.snapshot(), calls: calls.clone() };
    if case.keeps.is_some_and(|key| harmed != Part::Delete && !resource.facts.data.contains_key(key)) {
        return Err(problem(format!("data is lost: {:?}", resource.facts.data)));
    }
    if harmed == Part::Create && case.shows_no_mark {
        let marked = marks(&measure.left);
        if !marked.is_empty() {
            return Err(problem(format!("a mark remains in the description: {}", marked.join("; "))));
        }
    }
    resource.engine.discards = None;
    if harmed != Part::Delete && matches!(harm, Harm::None) {
        let drift = resource.drift().await;
        if !drift.is_empty() {
            return Err(problem(format!("nobody has changed the object, but it differs: {drift:?}")));
        }
        if let Some(text) = resource.misread().await {
            return Err(problem(text));
        }
    }
    let is_clean = || {
        let left = case.left(&stage);
        if left.is_empty() { Ok(()) } else { Err(problem(format!("left after the delete: {}", left.join("; ")))) }
    };
    if harmed == Part::Delete {
        is_clean()?;
    }
    // The delete of a missing object succeeds.
    delete(&mut resource).await.map_err(|failure| problem(format!("delete after it: {failure}")))?;
    settle().await;
    is_clean()?;
    Ok(measure)
}

/// The objects whose description is an ID: a mark with which Kiln finds a lost create. The ports that Kiln creates for
/// a server keep theirs.
fn marks(snapshot: &Snapshot) -> Vec<String> {
    let is_id = |text: &str| uuid::Uuid::try_parse(text).is_ok();
    let rows = snapshot.objects.iter().flat_map(|(kind, rows)| rows.iter().map(move |row| (kind, row)));
    let marked = rows.filter(|(_, row)| row.get("description").and_then(|d| d.as_str()).is_some_and(is_id));
    let kept =
        marked.filter(|(_, row)| row.get("device_owner").is_none_or(|owner| owner.as_str() != Some("compute:nova")));
    kept.map(|(kind, row)| format!("{kind} {:?}", row.get("name"))).collect()
}

/// The expected result of an unidentifiable create: at most one object, as if it had been created.
async fn untold(case: &Case, furnished: &Stage, stage: &Stage) -> Snapshot {
    settle().await;
    let added = stage.before.added_in(&stage.testcloud.snapshot());
    assert!(added.len() <= 1, "{}: {added:?}", case.type_name);
    let stage = furnished.fork(case).await;
    let mut resource = stage.resource(case.type_name, "it");
    stage.give(&mut resource, &case.create).await;
    resource.act(Operation::Create).await.unwrap();
    stage.testcloud.snapshot()
}

/// A create that is canceled after some stored steps, or in a call in which its engine failed: the delete that follows
/// leaves nothing.
async fn abandon(
    case: &Case,
    furnished: &Stage,
    stop: usize,
    death: Option<(usize, Disturbance)>,
) -> Result<(), String> {
    let stage = furnished.fork(case).await;
    let mut resource = stage.resource(case.type_name, "it");
    stage.give(&mut resource, &case.create).await;
    if death.is_some() || stop > 0 {
        resource.engine.stops_after = Some(stop).filter(|stop| *stop > 0);
        stage.wire.arm(death);
        resource.engine.is_replaced = false;
        drop(resource.carry(&Operation::Create).await);
        stage.wire.arm(None);
        (resource.engine.stops_after, resource.engine.is_replaced) = (None, true);
    }
    if !case.is_untold {
        resource.take_stock().await;
    }
    delete(&mut resource).await.map_err(|failure| failure.to_string())?;
    settle().await;
    let left = case.left(&stage);
    if left.is_empty() || case.is_untold { Ok(()) } else { Err(left.join("; ")) }
}
