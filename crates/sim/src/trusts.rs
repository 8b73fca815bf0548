//! Checks trusts: recorded before they are created, used while their stack exists, then deleted.

use std::time::Duration;

use kiln_resource::{Failure, FailureKind};
use kiln_store::{CredentialsId, Error, Stack, Store, UnusedCredentials};
use kiln_value::{Class, Secret};
use serde_json::json;

use crate::rule::Rule;
use crate::sabotage::Sabotage;
use crate::simulation::{Label, Simulation};

/// Maximum time until the trusts of deleted stacks are deleted after the last fault.
const BOUND: Duration = Duration::from_mins(20);

/// The record of a trust by its mark.
fn plan_of(mark: &str) -> Secret<String> {
    Secret::new(json!({"mark": mark}).to_string())
}

fn mark_in(plan: &Secret<String>) -> Option<String> {
    let plan: serde_json::Value = serde_json::from_str(plan.expose()).ok()?;
    Some(plan.get("mark")?.as_str()?.to_owned())
}

/// Creates the trust of a new stack as the service does; it may be interrupted anywhere.
pub(crate) async fn make(sim: &Simulation, store: &dyn Store, mark: &str) -> Result<CredentialsId, Error> {
    let id = store.plan_credentials(&plan_of(mark)).await?;
    sim.ledger.planned(id, mark);
    tokio::time::sleep(Duration::from_millis(1 + sim.dice.up_to("trust", 50))).await;
    sim.cloud().trusts.insert(mark.to_owned());
    sim.trace.note("cloud", || format!("trust {mark} given"));
    if sim.noise().is_some_and(|noise| sim.dice.chance("trust lost", noise.lost_reply)) {
        return Err(Error::Database("no reply from identity".into()));
    }
    store.keep_credentials(id, &plan_of(mark)).await?;
    sim.ledger.share(id);
    Ok(id)
}

/// The credentials of another stack, possibly a deleted one, that a new stack may share. A user whose first attempt fails
/// gets a trust.
pub(crate) fn shared(sim: &Simulation, attempt: u32) -> Option<CredentialsId> {
    sim.ledger.shared().filter(|_| attempt == 0 && sim.dice.chance("trust shared", 400))
}

/// Whether the trust of a root stack exists. It must exist as long as the stack.
pub(crate) async fn holds(sim: &Simulation, root: &Stack) -> bool {
    let Some(id) = root.credentials else { return true };
    let mark = sim.ledger.mark_of(id);
    let holds = mark.is_some_and(|mark| sim.cloud().trusts.contains(&mark));
    let lives = sim.store.stack(root.id).await.is_ok_and(|stack| stack.is_some_and(|stack| stack.deleted.is_none()));
    if !holds && lives {
        sim.accuse(Rule::Credentials, format!("the trust of {} is gone, and it is {}", root.name, root.state));
    }
    holds
}

/// Deletes a trust.
pub(crate) async fn revoke(sim: &Simulation, label: Label, unused: &UnusedCredentials) -> Result<(), Failure> {
    let passing = || Failure::new(FailureKind::Unavailable, Class::ServiceUnavailable, "identity is not there");
    tokio::time::sleep(Duration::from_millis(1 + sim.dice.up_to("revoke", 50))).await;
    let cut = sim.switches().cloud_cut.contains(&label.slot) || sim.switches().services_out.contains("identity");
    let hit = |what: &str, of: u64| sim.dice.chance((what, "revoke"), of);
    let refused = cut || sim.noise().is_some_and(|noise| hit("refused", 4 * noise.refused));
    if refused {
        return if sim.has(Sabotage::SweepForgets) { Ok(()) } else { Err(passing()) };
    }
    let Some(mark) = mark_in(&unused.plan) else { return Ok(()) };
    if !sim.has(Sabotage::RevokeLies) {
        sim.cloud().trusts.remove(&mark);
    }
    sim.trace.note(&label.to_string(), || format!("trust {mark} taken back"));
    if sim.noise().is_some_and(|noise| hit("lost", noise.lost_reply)) { Err(passing()) } else { Ok(()) }
}

/// Every trust is recorded, and those of deleted stacks are deleted within a time limit.
pub(crate) async fn check(sim: &Simulation, roots: &[Stack]) {
    let used: Vec<_> =
        roots.iter().filter(|stack| stack.deleted.is_none()).filter_map(|stack| stack.credentials).collect();
    let of_deleted = roots.iter().filter(|stack| stack.deleted.is_some()).filter_map(|stack| stack.credentials);
    let unused = of_deleted.filter(|id| !used.contains(id));
    let marks: Vec<String> = unused.filter_map(|id| sim.ledger.mark_of(id)).collect();
    let start = sim.time.elapsed();
    while let Some(mark) = marks.iter().find(|mark| sim.cloud().trusts.contains(*mark)) {
        if sim.time.elapsed() > start + BOUND {
            sim.accuse(Rule::Credentials, format!("the trust {mark} of a deleted stack is not taken back"));
            return;
        }
        tokio::time::sleep(Duration::from_secs(5)).await;
    }
    if sim.scenario.sets_store_clock_back() {
        // Older records are not listed for a long time.
        return;
    }
    let unused = sim.store.unused_credentials(Duration::ZERO, 1_000).await.unwrap_or_default();
    let recorded: Vec<String> = unused.iter().filter_map(|unused| mark_in(&unused.plan)).collect();
    let lost = sim.cloud().trusts.iter().find(|mark| !recorded.contains(mark)).cloned();
    if let Some(mark) = lost {
        sim.accuse(Rule::Credentials, format!("nobody knows of the trust {mark}"));
    }
}
