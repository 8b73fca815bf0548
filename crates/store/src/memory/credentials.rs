//! Credentials. They are not encrypted, because they never leave the memory.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use kiln_value::Secret;
use uuid::Uuid;

use super::state::{Credentials, State, micros_of};
use crate::{CredentialsId, Error, StackId, UnusedCredentials, UnusedUserProject};

/// The field `touched` of credentials that are being revoked: no stack can get them.
const RETIRED: i64 = -1;

impl State {
    pub(super) fn plan_credentials(&mut self, plan: &Secret<String>, now: i64) -> CredentialsId {
        let id = CredentialsId(Uuid::new_v5(&Uuid::NAMESPACE_OID, &self.next().to_be_bytes()));
        let planned = Credentials { plan: plan.clone(), known: None, created: now, touched: now };
        self.credentials.insert(id, planned);
        id
    }

    pub(super) fn keep_credentials(
        &mut self,
        id: CredentialsId,
        known: &Secret<String>,
        now: i64,
    ) -> Result<(), Error> {
        self.check_credentials(Some(id))?;
        let credentials = self.credentials.get_mut(&id).ok_or_else(|| not_found(id))?;
        credentials.known = Some(known.clone());
        credentials.touched = now;
        Ok(())
    }

    pub(super) fn known_credentials(&self, id: CredentialsId) -> Result<Secret<String>, Error> {
        self.credentials.get(&id).and_then(|credentials| credentials.known.clone()).ok_or_else(|| not_found(id))
    }

    /// Refuses credentials that are deleted or about to be.
    pub(super) fn check_credentials(&self, id: Option<CredentialsId>) -> Result<(), Error> {
        let usable = |id| self.credentials.get(&id).is_some_and(|row| row.touched != RETIRED);
        match id {
            Some(id) if !usable(id) => Err(not_found(id)),
            _ => Ok(()),
        }
    }

    pub(super) fn touch_credentials(&mut self, id: CredentialsId, now: i64) {
        if let Some(credentials) = self.credentials.get_mut(&id).filter(|row| row.touched != RETIRED) {
            credentials.touched = now;
        }
    }

    pub(super) fn retire_credentials(&mut self, unused: &UnusedCredentials) -> bool {
        let is_used = self.live_credentials().contains(&unused.id);
        match self.credentials.get_mut(&unused.id) {
            Some(row) if !is_used && [unused.touched, RETIRED].contains(&row.touched) => {
                row.touched = RETIRED;
                true
            }
            _ => false,
        }
    }

    /// The credentials of live stacks.
    fn live_credentials(&self) -> BTreeSet<CredentialsId> {
        let live = self.stacks.values().filter(|row| row.stack.deleted.is_none());
        live.filter_map(|row| row.stack.credentials).collect()
    }

    pub(super) fn unused_credentials(&self, older_than: Duration, limit: usize, now: i64) -> Vec<UnusedCredentials> {
        let deleted = self.stacks.values().filter(|row| row.stack.deleted.is_some());
        let gone: BTreeSet<CredentialsId> = deleted.filter_map(|row| row.stack.credentials).collect();
        let mut live = self.live_credentials();
        // The last events of a deleted stack are still to be sent.
        let sending = self.outbox.values().filter_map(|row| self.stacks.get(&row.entry.root)?.stack.credentials);
        live.extend(sending);
        let old = now.saturating_sub(micros_of(older_than));
        let unused: BTreeMap<(i64, CredentialsId), &Credentials> = self
            .credentials
            .iter()
            .filter(|(id, row)| !live.contains(id) && (gone.contains(id) || row.created.max(row.touched) <= old))
            .map(|(id, row)| ((row.created, *id), row))
            .collect();
        unused
            .into_iter()
            .take(limit)
            .map(|((_, id), row)| {
                let (plan, credentials) = (row.plan.clone(), row.known.clone());
                UnusedCredentials { id, plan, credentials, touched: row.touched }
            })
            .collect()
    }

    pub(super) fn unused_user_projects(&self, limit: usize) -> Vec<UnusedUserProject> {
        let is_deleted = |id: &StackId| self.stacks.get(id).is_some_and(|row| row.stack.deleted.is_some());
        let stacks = self.stacks.values().map(|row| &row.stack).filter(|stack| is_deleted(&stack.root));
        let with_project = stacks.filter_map(|stack| {
            let project = stack.user_project.clone()?;
            Some(UnusedUserProject { stack: stack.id, project })
        });
        with_project.take(limit).collect()
    }

    pub(super) fn forget_user_project(&mut self, id: StackId) {
        if let Some(row) = self.stacks.get_mut(&id) {
            row.stack.user_project = None;
        }
    }
}

fn not_found(id: CredentialsId) -> Error {
    Error::NotFound(format!("credentials {id}"))
}
