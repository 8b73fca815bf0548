//! What Kiln itself asks of Keystone: the worth of a token, trusts.

use kiln_resource::{CloudRequest, Method};
use kiln_value::{Secret, Value, value};

use crate::error::CloudError;
use crate::session::Session;
use crate::token::TokenInfo;

/// Who a token belongs to and what it is good for, asked with the session's own token (a service user's).
///
/// An unknown, ended or revoked token is a [`CloudError::Status`] of 404. What it costs is one exchange: callers cache.
pub async fn validate_token(session: &Session, subject: &Secret<String>) -> Result<TokenInfo, CloudError> {
    let own = session.token().await?;
    session.validate(&own.secret, subject).await
}

/// A trust: the session's user lets `trustee_user_id` act for them in the session's project.
///
/// `roles` by name; all that the session's token has if empty. The trust does not end, and the trustee acts under
/// the user's name (impersonation), as stacks need it. Gives the trust's id.
pub async fn create_trust(session: &Session, trustee_user_id: &str, roles: &[String]) -> Result<String, CloudError> {
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
        "allow_redelegation": false,
        "roles": roles,
    }});
    let request = CloudRequest::new("identity", Method::Post, "/v3/OS-TRUST/trusts").body(body);
    let response = session.call(&request).await?;
    let id = response.body.get("trust").and_then(|t| t.str_at("id"));
    id.map(str::to_owned)
        .ok_or_else(|| CloudError::Malformed { service: "identity".into(), message: "a trust without id".into() })
}

/// Ends a trust; done if there is none, of which Keystone also tells when it is asked for the trust's token. Only the user that gave it may end it, so the session is a trust session of
/// that user or their own.
pub async fn delete_trust(session: &Session, trust_id: &str) -> Result<(), CloudError> {
    let request = CloudRequest::new("identity", Method::Delete, format!("/v3/OS-TRUST/trusts/{trust_id}"));
    match session.call(&request).await {
        Ok(_) => Ok(()),
        Err(error) if error.status() == Some(404) => Ok(()),
        Err(CloudError::NoToken { cause, .. })
            if cause.status() == Some(404) && session.credentials().trust() == Some(trust_id) =>
        {
            Ok(())
        }
        Err(error) => Err(error),
    }
}
