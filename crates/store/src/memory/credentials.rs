//! Credentials. They are not encrypted, because they never leave the memory.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use kiln_value::Secret;
use uuid::Uuid;

use super::state::{Credentials, State, micros_of};
use crate::{CredentialsId, Error, UnusedCredentials};

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
        let credentials = self.credentials.get_mut(&id).ok_or_else(|| not_found(id))?;
        credentials.known = Some(known.clone());
        credentials.touched = now;
        Ok(())
    }

    pub(super) fn known_credentials(&self, id: CredentialsId) -> Result<Secret<String>, Error> {
        self.credentials.get(&id).and_then(|credentials| credentials.known.clone()).ok_or_else(|| not_found(id))
    }

    /// Refuses credentials that are deleted.
    pub(super) fn check_credentials(&self, id: Option<CredentialsId>) -> Result<(), Error> {
        match id {
            Some(id) if !self.credentials.contains_key(&id) => Err(not_found(id)),
            _ => Ok(()),
        }
    }

    pub(super) fn touch_credentials(&mut self, id: CredentialsId, now: i64) {
        if let Some(credentials) = self.credentials.get_mut(&id) {
            credentials.touched = now;
        }
    }

    pub(super) fn unused_credentials(&self, older_than: Duration, limit: usize, now: i64) -> Vec<UnusedCredentials> {
        let referring = |deleted: bool| -> BTreeSet<CredentialsId> {
            let rows = self.stacks.values().filter(|row| row.stack.deleted.is_some() == deleted);
            rows.filter_map(|row| row.stack.credentials).collect()
        };
        let (mut live, gone) = (referring(false), referring(true));
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
                UnusedCredentials { id, plan, credentials, user_projects: self.user_projects(id) }
            })
            .collect()
    }

    /// The projects of the users of deleted stacks with these credentials, and of their nested stacks.
    fn user_projects(&self, id: CredentialsId) -> Vec<String> {
        let stacks = || self.stacks.values().map(|row| &row.stack);
        let roots: BTreeSet<_> = stacks()
            .filter(|stack| stack.credentials == Some(id) && stack.deleted.is_some())
            .map(|stack| stack.id)
            .collect();
        let projects: BTreeSet<String> = stacks()
            .filter(|stack| roots.contains(&stack.root))
            .filter_map(|stack| stack.user_project.clone())
            .collect();
        projects.into_iter().collect()
    }
}

fn not_found(id: CredentialsId) -> Error {
    Error::NotFound(format!("credentials {id}"))
}
