//! Roles of users and groups: a list of `{ role, project }` or `{ role, domain }`.

use kiln_resource::{Context, Facts, Failure, FailureKind};
use kiln_value::{Diagnostic, Value};

use crate::call::{KEYSTONE, absent_is_fine};
use crate::path;
use crate::validation::{conflict, failed};

/// Who has the roles: the part of paths.
#[derive(Clone, Copy)]
pub(super) enum Holder {
    User,
    Group,
}

impl Holder {
    fn collection(self) -> &'static str {
        match self {
            Holder::User => "users",
            Holder::Group => "groups",
        }
    }
}

/// Grants the roles. Idempotent.
pub(super) async fn grant(cx: &Context<'_>, holder: Holder, id: &str, roles: &Value) -> Result<(), Failure> {
    for role in roles.as_list().unwrap_or_default() {
        let path = assignment(cx, holder, id, role).await?;
        let request = kiln_resource::CloudRequest::new(KEYSTONE.0, kiln_resource::Method::Put, path);
        cx.cloud.call(request).await?;
    }
    Ok(())
}

/// Revokes the roles that are still granted. What a role names may be gone, and its assignments with it.
pub(super) async fn revoke(cx: &Context<'_>, holder: Holder, id: &str, roles: &[Value]) -> Result<(), Failure> {
    for role in roles {
        match assignment(cx, holder, id, role).await {
            Ok(path) => absent_is_fine(KEYSTONE.delete(cx, path).await)?,
            Err(failure) if failure.kind == FailureKind::NotFound => {}
            Err(failure) => return Err(failure),
        }
    }
    Ok(())
}

/// Changes the roles from one list to another. Idempotent.
pub(super) async fn change(
    cx: &Context<'_>,
    holder: Holder,
    id: &str,
    before: &Value,
    after: &Value,
) -> Result<(), Failure> {
    grant(cx, holder, id, after).await?;
    let kept = after.as_list().unwrap_or_default();
    let gone = before.as_list().unwrap_or_default().iter().filter(|role| !kept.contains(role));
    revoke(cx, holder, id, &gone.cloned().collect::<Vec<_>>()).await
}

/// The roles of a list that are granted. Others may grant further ones.
pub(super) async fn granted(cx: &Context<'_>, holder: Holder, id: &str, roles: &Value) -> Result<Value, Failure> {
    let mut granted = Vec::new();
    for role in roles.as_list().unwrap_or_default() {
        let path = assignment(cx, holder, id, role).await?;
        if exists(cx, path).await? {
            granted.push(role.clone());
        }
    }
    Ok(granted.into())
}

/// Whether an assignment or a membership exists.
pub(super) async fn exists(cx: &Context<'_>, path: String) -> Result<bool, Failure> {
    match KEYSTONE.get(cx, path).await {
        Ok(_) => Ok(true),
        Err(failure) if failure.is_not_found() => Ok(false),
        Err(failure) => Err(failure),
    }
}

async fn assignment(cx: &Context<'_>, holder: Holder, id: &str, entry: &Value) -> Result<String, Failure> {
    let role = cx.cloud.find("keystone.role", entry.str_at("role").unwrap_or_default()).await?;
    let target = match (entry.str_at("project"), entry.str_at("domain")) {
        (Some(project), _) => {
            format!("projects/{}", path::segment(&cx.cloud.find("keystone.project", project).await?))
        }
        (None, domain) => {
            let domain = cx.cloud.find("keystone.domain", domain.unwrap_or_default()).await?;
            format!("domains/{}", path::segment(&domain))
        }
    };
    let (holders, id, role) = (holder.collection(), path::segment(id), path::segment(&role));
    Ok(format!("/v3/{target}/{holders}/{id}/roles/{role}"))
}

/// Each role has either a project or a domain.
pub(super) fn validate(facts: &Facts) -> Result<(), Diagnostic> {
    for entry in facts.property("roles").as_list().unwrap_or_default() {
        let has = |name: &str| entry.get(name).is_some_and(|value| !value.is_null());
        if has("project") && has("domain") {
            return Err(conflict(&["project", "domain"]));
        }
        if !has("project") && !has("domain") {
            let role = entry.get("role").map(kiln_value::text::str).unwrap_or_default();
            return Err(failed(format!("Either project or domain must be specified for role {role}")));
        }
    }
    Ok(())
}
