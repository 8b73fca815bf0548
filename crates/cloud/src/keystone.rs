//! Kiln's own requests to Keystone: validation of tokens and signatures, trusts.

use jiff::Timestamp;
use kiln_resource::{CloudRequest, Method};
use kiln_value::{Secret, Value, value};

use crate::error::CloudError;
use crate::session::Session;
use crate::token::{DomainInfo, Principal, Token, TokenInfo};

const TRUSTS: &str = "/v3/OS-TRUST/trusts";

/// Keystone's format of the expiry of a trust. Its database drops fractions of a second (measured with MariaDB).
const END: &str = "%Y-%m-%dT%H:%M:%S.000000Z";

/// The user, project and roles of a token, requested with the token of the session (a service user).
///
/// An unknown, expired or revoked token is a [`CloudError::Status`] of 404. Each call is one request: callers cache the
/// result.
pub async fn validate_token(session: &Session, subject: &Secret<String>) -> Result<TokenInfo, CloudError> {
    session.inspect(subject, false).await
}

/// As [`validate_token`], also of a token that has expired, as long as Keystone knows it (`allow_expired_window`).
pub async fn validate_expired_token(session: &Session, subject: &Secret<String>) -> Result<TokenInfo, CloudError> {
    session.inspect(subject, true).await
}

/// A token of the user whose EC2 key signed a request, requested with the token of the session (a service user).
///
/// `signed` is the object `ec2Credentials`: the signature, and all data that it covers. A wrong signature is a
/// [`CloudError::Status`] of 401.
pub async fn ec2_token(session: &Session, signed: Value) -> Result<Token, CloudError> {
    session.exchange_signature(&value!({ "ec2Credentials": signed })).await
}

/// Creates a trust: the session's user lets `trustee_user_id` act for them in the session's project. Returns its ID.
///
/// `roles` are names; if empty, all roles of the session's token. The trustee acts under the name of the user
/// (impersonation), as stacks need. The trust expires at `end`, of which Keystone stores whole seconds; Keystone
/// refuses (409) a second trust between the same users for the same project with the same expiry.
pub async fn create_trust(
    session: &Session,
    trustee_user_id: &str,
    roles: &[String],
    end: Option<Timestamp>,
) -> Result<String, CloudError> {
    let token = session.token().await?;
    let project = token.info.project.as_ref().map(|p| p.id.as_str());
    let named = |name: &String| value!({"name": name});
    let roles: Vec<Value> = if roles.is_empty() {
        token.info.roles.iter().map(|role| named(&role.name)).collect()
    } else {
        roles.iter().map(named).collect()
    };
    let body = value!({"trust": {
        "trustor_user_id": token.info.user.id.as_str(),
        "trustee_user_id": trustee_user_id,
        "project_id": project,
        "impersonation": true,
        // A stack may contain stacks, whose trusts are created through this one (OS::Heat::Stack).
        "allow_redelegation": true,
        "roles": roles,
        "expires_at": (end.map(|end| end.strftime(END).to_string())),
    }});
    let request = CloudRequest::new("identity", Method::Post, TRUSTS).body(body);
    let response = session.call(&request).await?;
    let id = response.body.get("trust").and_then(|t| t.str_at("id"));
    id.map(str::to_owned).ok_or_else(|| malformed("a trust without an ID"))
}

/// Identifies a trust with an unknown ID.
#[derive(Clone, Copy, Debug)]
pub struct TrustMark<'a> {
    /// ID of the trustor.
    pub trustor: &'a str,
    /// ID of the project.
    pub project: &'a str,
    /// Expiry, in whole seconds.
    pub end: Timestamp,
}

/// Selects the trusts to list: the session's user is the trustor or the trustee.
#[derive(Clone, Copy, Debug)]
pub enum TrustParty<'a> {
    /// The trustor of the mark.
    Trustor,
    /// The trustee, by ID.
    Trustee(&'a str),
}

/// The ID of the trust with a mark, if it exists.
pub async fn find_trust(
    session: &Session,
    party: TrustParty<'_>,
    mark: TrustMark<'_>,
) -> Result<Option<String>, CloudError> {
    let (key, user) = match party {
        TrustParty::Trustor => ("trustor_user_id", mark.trustor),
        TrustParty::Trustee(user) => ("trustee_user_id", user),
    };
    let response = session.call(&CloudRequest::new("identity", Method::Get, TRUSTS).query(key, user)).await?;
    let listed = response.body.get("trusts").and_then(Value::as_list);
    let listed = listed.ok_or_else(|| malformed("no list of trusts"))?;
    let fits = |trust: &&Value| {
        let ends: Option<Timestamp> = trust.str_at("expires_at").and_then(|ends| ends.parse().ok());
        trust.str_at("trustor_user_id") == Some(mark.trustor)
            && trust.str_at("project_id") == Some(mark.project)
            && ends.is_some_and(|ends| ends.as_second() == mark.end.as_second())
    };
    Ok(listed.iter().find(fits).and_then(|trust| trust.str_at("id")).map(str::to_owned))
}

/// The expiry of a trust; `None` if it has none or does not exist. The session is that of [`has_trust`].
pub async fn trust_end(session: &Session, trust_id: &str) -> Result<Option<Timestamp>, CloudError> {
    match session.call(&CloudRequest::new("identity", Method::Get, format!("{TRUSTS}/{trust_id}"))).await {
        Ok(response) => {
            let ends = response.body.get("trust").and_then(|trust| trust.str_at("expires_at"));
            Ok(ends.and_then(|ends| ends.parse().ok()))
        }
        Err(error) if error.status() == Some(404) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether a trust exists. The session is that of the trustor or the trustee.
pub async fn has_trust(session: &Session, trust_id: &str) -> Result<bool, CloudError> {
    match session.call(&CloudRequest::new("identity", Method::Get, format!("{TRUSTS}/{trust_id}"))).await {
        Ok(_) => Ok(true),
        Err(error) if error.status() == Some(404) => Ok(false),
        Err(error) => Err(error),
    }
}

/// The result of [`delete_trust`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrustDeletion {
    /// Keystone has deleted it.
    Deleted,
    /// Keystone has not found it, or not the token that was sent.
    NotFound,
}

/// Deletes a trust. Succeeds if it does not exist, which Keystone also reports in response to the token request of the
/// trust. Only the trustor may delete it, so the session is that of the trustor or of the trust.
pub async fn delete_trust(session: &Session, trust_id: &str) -> Result<TrustDeletion, CloudError> {
    let request = CloudRequest::new("identity", Method::Delete, format!("{TRUSTS}/{trust_id}"));
    match session.call(&request).await {
        Ok(_) => Ok(TrustDeletion::Deleted),
        Err(error) if error.status() == Some(404) => Ok(TrustDeletion::NotFound),
        Err(CloudError::NoToken { cause, .. })
            if cause.status() == Some(404) && session.credentials().trust() == Some(trust_id) =>
        {
            Ok(TrustDeletion::NotFound)
        }
        Err(error) => Err(error),
    }
}

/// The projects in which the user of the session has a role. Those that are disabled are left out.
pub async fn own_projects(session: &Session) -> Result<Vec<Principal>, CloudError> {
    let answered = session.call(&CloudRequest::new("identity", Method::Get, "/v3/auth/projects")).await?;
    let listed = answered.body.get("projects").and_then(Value::as_list).ok_or_else(|| malformed("no projects"))?;
    let usable = listed.iter().filter(|project| project.get("enabled") != Some(&Value::Bool(false)));
    let read = usable.map(|project| {
        let text = |key| project.str_at(key).map(str::to_owned);
        let domain = DomainInfo { id: text("domain_id").unwrap_or_default(), ..DomainInfo::default() };
        Some(Principal { id: text("id")?, name: text("name")?, domain })
    });
    read.collect::<Option<_>>().ok_or_else(|| malformed("a project has no name"))
}

/// Revokes the token of the session.
pub async fn revoke_own_token(session: &Session) -> Result<(), CloudError> {
    session.revoke().await
}

fn malformed(message: &str) -> CloudError {
    CloudError::Malformed { service: "identity".into(), message: message.into() }
}
