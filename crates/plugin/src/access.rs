//! The credentials that a plug-in gets with a call.

use kiln_resource::{Access, Cloud, Failure};
use kiln_value::{Map, Secret, Value, value};

use crate::answer;
use crate::call::CallError;
use crate::plugin::Plugin;

/// Calls a method for a project with these parameters and the credentials; once more with a new token if a service rejects the first.
pub(crate) async fn call_with_access(
    plugin: &Plugin,
    project: &str,
    cloud: &dyn Cloud,
    method: &str,
    params: &Map,
) -> Result<Value, Failure> {
    let failed = |error: CallError| error.failure(&plugin.name, method);
    let mut refused = None;
    loop {
        let line = plugin.line(project).await.map_err(failed)?;
        // Last, because the fence of the lease is passed here.
        let access = cloud.access(refused.as_ref()).await?;
        let mut params = params.clone();
        params.insert("access".to_owned(), access_value(&access));
        match line.call(method, params.into(), Some(access.token.clone())).await {
            // Once more, if there is another token.
            Err(CallError::Reported(error))
                if answer::is_unauthorized(&error) && refused.as_ref() != Some(&access.token) =>
            {
                if refused.replace(access.token).is_some() {
                    return Err(failed(CallError::Reported(error)));
                }
            }
            result => return result.map_err(failed),
        }
    }
}

/// The credentials of a user, if the cloud has some: a constraint may need none.
pub(crate) async fn optional_access(cloud: &dyn Cloud) -> (Value, Option<Secret<String>>) {
    match cloud.access(None).await {
        Ok(access) => (access_value(&access), Some(access.token)),
        Err(_) => (Value::Null, None),
    }
}

/// The credentials as a plug-in gets them.
fn access_value(access: &Access) -> Value {
    let optional = |text: &Option<String>| text.as_deref().map_or(Value::Null, Value::from);
    value!({
        "auth_url": (access.auth_url.as_str()),
        "token": (access.token.expose().as_str()),
        "project_id": (optional(&access.project_id)),
        "user_id": (access.user_id.as_str()),
        "region": (optional(&access.region)),
        "catalog": (&access.catalog),
    })
}
