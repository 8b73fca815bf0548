//! Creates, finds and deletes the trusts of stacks.

use kiln_cloud::{
    CloudError, Connector, Credentials, Scope, Session, TrustDeletion, TrustMark, TrustParty, create_trust,
    delete_trust, find_trust, has_trust,
};
use kiln_resource::Failure;
use kiln_value::{Secret, Value, text};

use crate::{DelegateError, DelegationPlan};

/// Additional key in stored credentials: the ID of the trustor.
const TRUSTOR: &str = "trustor";

/// Access to Keystone's trusts.
pub(crate) struct Trusts<'a> {
    pub(crate) connector: &'a Connector,
    pub(crate) service: &'a Session,
    pub(crate) trustee: &'a Session,
}

impl Trusts<'_> {
    /// Creates the trust of a plan with the session of the trustor; returns its ID.
    pub(crate) async fn create(&self, user: &Session, plan: &DelegationPlan) -> Result<String, DelegateError> {
        let trustee = self.trustee.token().await.map_err(unavailable)?;
        let error = match create_trust(user, &trustee.info.user.id, &plan.roles, Some(plan.mark)).await {
            Ok(trust) => return Ok(trust),
            Err(error) => error,
        };
        // The trust may have been created although there was no response.
        if is_passing(&error) {
            return match find_trust(user, TrustParty::Trustor, mark(plan)).await {
                Ok(Some(trust)) => Ok(trust),
                _ => Err(unavailable(error)),
            };
        }
        Err(match error.status() {
            Some(404) => DelegateError::Missing(format!("roles {}", text::repr(&plan.roles.iter().collect::<Value>()))),
            // A request that may have been received is not sent again, so the existing trust is another one.
            Some(409) => DelegateError::Taken,
            _ => refused(error),
        })
    }

    /// Deletes the trust of a plan or of credentials.
    pub(crate) async fn delete(
        &self,
        plan: Option<&DelegationPlan>,
        credentials: Option<&Secret<String>>,
    ) -> Result<(), DelegateError> {
        let stored = credentials.map(read).transpose()?;
        let trust = match (&stored, plan) {
            (Some(Credentials::Password { scope: Scope::Trust(trust), .. }), _) => trust.clone(),
            // These are credentials of the user; no trust was created for them.
            (Some(_), _) | (None, None) => return Ok(()),
            (None, Some(plan)) => {
                let trustee = self.trustee.token().await.map_err(unavailable)?;
                let party = TrustParty::Trustee(&trustee.info.user.id);
                match find_trust(self.trustee, party, mark(plan)).await.map_err(failed)? {
                    Some(trust) => trust,
                    None => return Ok(()),
                }
            }
        };
        self.end(&trust, stored).await
    }

    /// Deletes a trust. This is allowed only for the trustor, whose name the tokens of the trust have, and for
    /// administrators.
    async fn end(&self, trust: &str, stored: Option<Credentials>) -> Result<(), DelegateError> {
        let own = self.trustee.credentials().with_trust(trust);
        // The password of the trustee, or even the trustee, may have changed since the credentials were stored.
        let other = stored.filter(|stored| *stored != own);
        // If its stack has used the trust lately, there is a token.
        let session = match self.connector.cloud_in_use(&own).await {
            Some(cloud) => cloud.patient().session().clone(),
            None => self.connector.session(own),
        };
        let mut error = match delete_trust(&session, trust).await {
            Ok(deletion) => return self.check_end(trust, deletion).await,
            Err(error) if is_passing(&error) => return Err(unavailable(error)),
            Err(error) => error,
        };
        // No token is issued for a deleted trust, nor for one whose trustor has lost the delegated roles.
        if !has_trust(self.trustee, trust).await.map_err(failed)? {
            return Ok(());
        }
        let sessions = other.map(|other| self.connector.session(other)).into_iter().chain([self.service.clone()]);
        for session in sessions {
            match delete_trust(&session, trust).await {
                Ok(deletion) => return self.check_end(trust, deletion).await,
                Err(refusal) => error = refusal,
            }
        }
        Err(failed(error))
    }

    /// If nothing was deleted, only the absence of the trust proves its deletion: a 404 may also concern a token.
    async fn check_end(&self, trust: &str, deletion: TrustDeletion) -> Result<(), DelegateError> {
        if deletion == TrustDeletion::NotFound && has_trust(self.trustee, trust).await.map_err(failed)? {
            return Err(DelegateError::Unavailable(format!("trust {trust} still exists")));
        }
        Ok(())
    }
}

fn mark(plan: &DelegationPlan) -> TrustMark<'_> {
    TrustMark { trustor: &plan.trustor, project: &plan.project, end: plan.mark }
}

/// Credentials in stored form, with the trustor.
pub(crate) fn stored(credentials: &Credentials, plan: &DelegationPlan) -> Secret<String> {
    let mut exposed = credentials.expose();
    if let Some(entries) = exposed.as_map_mut() {
        entries.insert(TRUSTOR.to_owned(), plan.trustor.as_str().into());
    }
    Secret::new(text::json(&exposed))
}

/// The ID of the trustor of stored credentials; `None`: stored before it was recorded.
pub(crate) fn trustor(credentials: &Secret<String>) -> Option<String> {
    let exposed: Value = serde_json::from_str(credentials.expose()).ok()?;
    exposed.str_at(TRUSTOR).map(str::to_owned)
}

pub(crate) fn read(credentials: &Secret<String>) -> Result<Credentials, DelegateError> {
    let exposed: Option<Value> = serde_json::from_str(credentials.expose()).ok();
    let read = exposed.as_ref().and_then(Credentials::from_exposed);
    read.ok_or_else(|| DelegateError::Refused("The stored credentials cannot be read.".to_owned()))
}

/// Whether the operation may have been executed, or may succeed later.
fn is_passing(error: &CloudError) -> bool {
    match error {
        CloudError::NoToken { cause, .. } => is_passing(cause),
        CloudError::Invalid { .. } => false,
        _ => error.status().is_none_or(|status| status >= 500 || status == 429),
    }
}

pub(crate) fn failed(error: CloudError) -> DelegateError {
    if is_passing(&error) { unavailable(error) } else { refused(error) }
}

#[expect(clippy::needless_pass_by_value, reason = "it is mapped over errors")]
fn unavailable(error: CloudError) -> DelegateError {
    DelegateError::Unavailable(error.to_string())
}

/// With what Keystone says.
fn refused(error: CloudError) -> DelegateError {
    DelegateError::Refused(Failure::from(error).message)
}
