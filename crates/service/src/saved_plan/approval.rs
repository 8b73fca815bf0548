//! Approvals: plans that others than their authors have seen.

use std::collections::BTreeMap;

use kiln_identity::Caller;
use kiln_plan_document::{Decision, Entry, PlanDocument};
use kiln_store::{Approval, Author};

use super::{PlanStatus, SavedPlan};
use crate::{Error, Service};

impl Service {
    /// Approves a plan, in the name of the caller. The approval is of this plan only, because a plan never changes.
    ///
    /// # Errors
    /// [`Error::Approval`] if the caller made the plan, or acts for somebody else; [`Error::PlanState`] if it cannot be
    /// executed.
    pub async fn approve_plan(&self, caller: &Caller, saved: &SavedPlan) -> Result<(), Error> {
        let plan = saved.plan.id;
        let refused = |why| Err(Error::Approval { plan, why });
        if saved.authors().any(|author| author == caller.user_id) {
            return refused("you made it");
        }
        if caller.by_trust {
            return refused("your token is that of a trust");
        }
        if caller.has_role(&self.options.stack_user_role) {
            return refused("you are a user of a stack");
        }
        if let Some(why) = saved.status.obstacle() {
            return Err(Error::PlanState { plan, why });
        }
        let author = Author { user_id: caller.user_id.clone(), username: caller.username.clone() };
        let approval = Approval { plan, author, time: self.backends.clock.now() };
        Ok(self.backends.store.approve_plan(&approval).await?)
    }

    /// The approvals of a plan, oldest first.
    pub async fn approvals(&self, saved: &SavedPlan) -> Result<Vec<Approval>, Error> {
        Ok(self.backends.store.approvals(saved.plan.id).await?)
    }

    /// Refuses a plan that too few others have approved.
    pub(super) async fn refuse_unapproved(&self, caller: &Caller, saved: &SavedPlan) -> Result<(), Error> {
        let needed = self.options.plan_approvals;
        if needed == 0 {
            return Ok(());
        }
        let is_other = |user: &str| user != caller.user_id && saved.authors().all(|author| author != user);
        let given = self.approvals(saved).await?;
        let given = given.iter().filter(|approval| is_other(&approval.author.user_id)).count();
        if given >= needed { Ok(()) } else { Err(Error::Unapproved { plan: saved.plan.id, given, needed }) }
    }

    /// Makes a plan again, for the present state of its stack, in the name of the caller. If it does nothing more than the
    /// plan that was approved, it has the same approvals. The former plan cannot be executed any more.
    ///
    /// # Errors
    /// [`Error::PlanState`] if the plan was executed or rejected.
    pub async fn renew_plan(&self, caller: &Caller, saved: &SavedPlan) -> Result<SavedPlan, Error> {
        let plan = saved.plan.id;
        if let PlanStatus::Executed | PlanStatus::Rejected = saved.status {
            return Err(Error::PlanState { plan, why: "it was executed or rejected" });
        }
        if saved.plan.name.is_some() {
            return Err(Error::PlanState { plan, why: "a change set is not renewed, but created again" });
        }
        let before = self.plan_document(saved).await?;
        let checked = Box::pin(self.check_again(caller, saved)).await?;
        let mut checked = self.fenced(checked, saved.description().to_owned(), saved.content.fenced).await?;
        checked.content.earlier_authors = saved.authors().map(str::to_owned).collect();
        let keeps_approvals = before.is_some_and(|before| does_no_more(&checked.document, &before));
        let lifetime = saved.plan.expires.map(|end| end.duration_since(saved.plan.created).unsigned_abs());
        let renewed = self.keep_plan(caller, checked, None, Some(self.lifetime(lifetime))).await?;
        if !self.backends.store.reject_plan(plan).await? {
            self.backends.store.delete_plans(&[renewed.plan.id]).await?;
            return Err(Error::PlanState { plan, why: "it was executed or rejected" });
        }
        if keeps_approvals {
            for approval in self.approvals(saved).await? {
                // Who makes a plan does not approve it.
                if renewed.authors().all(|author| author != approval.author.user_id) {
                    self.backends.store.approve_plan(&Approval { plan: renewed.plan.id, ..approval }).await?;
                }
            }
        }
        Ok(renewed)
    }
}

/// Whether a plan does nothing to any resource that another plan does not do.
fn does_no_more(new: &PlanDocument, old: &PlanDocument) -> bool {
    let key = |entry: &Entry| (entry.path.clone(), entry.former, entry.object.clone());
    let old: BTreeMap<_, &Entry> = old.resources.iter().map(|entry| (key(entry), entry)).collect();
    let mut changed = new.resources.iter().filter(|entry| !entry.is_unchanged());
    changed.all(|entry| old.get(&key(entry)).is_some_and(|old| is_no_more(entry, old)))
}

fn is_no_more(new: &Entry, old: &Entry) -> bool {
    let rank = |decision: Decision| match decision {
        Decision::Keep => Some(0),
        Decision::Update => Some(1),
        Decision::Replace => Some(2),
        _ => None,
    };
    let (most, before) = (new.decision.at_most, old.decision.at_most);
    let is_less = most == before || matches!((rank(most), rank(before)), (Some(most), Some(before)) if most < before);
    let properties = new.properties.iter().all(|property| old.properties.contains(property));
    let moves_no_more = new.moved_from.is_none() || new.moved_from == old.moved_from;
    is_less
        && moves_no_more
        && new.risk <= old.risk
        && properties
        && new.lost.iter().all(|lost| old.lost.contains(lost))
}

#[cfg(test)]
mod tests {
    use kiln_plan_document::{Action, Bounds, Property, Side};
    use kiln_value::value;

    use super::*;

    #[test]
    fn a_renewed_plan_keeps_its_approvals_only_if_it_does_no_more() {
        let entry = |decision| Entry {
            decision: Bounds::certain(decision),
            ..Entry::kept("web".to_owned(), "OS::Nova::Server".to_owned())
        };
        let plan = |entries: Vec<Entry>| PlanDocument::new(Action::Update, "s".to_owned(), entries, Vec::new());
        let update = |name: &str| {
            let name = Property::new("name".to_owned(), None, Some(Side::from(value!(name))));
            Entry { properties: vec![name], ..entry(Decision::Update) }
        };
        let old = plan(vec![update("a")]);
        assert!(does_no_more(&old, &old) && does_no_more(&plan(vec![]), &old));
        assert!(does_no_more(&plan(vec![entry(Decision::Keep)]), &old));
        assert!(!does_no_more(&plan(vec![update("b")]), &old));
        assert!(!does_no_more(&plan(vec![entry(Decision::Replace)]), &old));
        assert!(!does_no_more(&plan(vec![entry(Decision::Delete)]), &old));
        assert!(!does_no_more(&plan(vec![Entry { path: "db".to_owned(), ..update("a") }]), &old));
        let moved = |from: &str| plan(vec![Entry { moved_from: Some(from.to_owned()), ..entry(Decision::Keep) }]);
        assert!(!does_no_more(&moved("old"), &old) && does_no_more(&moved("old"), &moved("old")));
        assert!(!does_no_more(&moved("older"), &moved("old")));
        assert!(does_no_more(
            &plan(vec![update("a")]),
            &plan(vec![Entry { decision: Bounds::certain(Decision::Replace), ..update("a") }])
        ));
    }
}
