//! Credentials that new stacks share.
//!
//! A trust is a call of Keystone for each stack, and later one more to delete it. Stacks that are created with the same token
//! within a minute get the same trust, and so share the token that the engine requests with it. The trust gives no stack more
//! than its own would: user, project and roles are those of the token. The sweep revokes it after the last of them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kiln_identity::Caller;
use kiln_resource::CredentialsId;
use sha2::{Digest, Sha256};

/// How long new stacks get the same credentials: a trust that was revoked meanwhile must not spread.
const SHARED_FOR: Duration = Duration::from_mins(1);

/// A hash of the token, never the token itself, and the project: an administrator may use that of others.
type Key = ([u8; 32], String);

/// The credentials that were created recently.
#[derive(Clone, Debug, Default)]
pub struct SharedCredentials(Arc<Mutex<HashMap<Key, (CredentialsId, Duration)>>>);

impl SharedCredentials {
    /// Those for a stack that is created now, by the monotonic clock.
    pub(crate) fn get(&self, caller: &Caller, now: Duration) -> Option<CredentialsId> {
        let shared = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        shared.get(&key(caller)?).filter(|(_, created)| is_new(*created, now)).map(|(id, _)| *id)
    }

    /// Offers them to the next stacks.
    pub(crate) fn offer(&self, caller: &Caller, id: CredentialsId, now: Duration) {
        let Some(key) = key(caller) else { return };
        let mut shared = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        shared.retain(|_, (_, created)| is_new(*created, now));
        shared.insert(key, (id, now));
    }
}

/// `None`: the credentials of this caller are not shared. A password is stored as it was given.
fn key(caller: &Caller) -> Option<Key> {
    let token = caller.token.as_ref().filter(|_| caller.login.is_none())?;
    Some((Sha256::digest(token.expose()).into(), caller.project_id.clone()))
}

fn is_new(created: Duration, now: Duration) -> bool {
    now.saturating_sub(created) < SHARED_FOR
}
