//! OS::Keystone::User and OS::Keystone::Group, with their roles and groups.

use async_trait::async_trait;
use kiln_resource::{CloudRequest, Context, Facts, Failure, Method};
use kiln_value::{Diagnostic, Map, Value};

use super::roles::{self, Holder};
use crate::call::KEYSTONE;
use crate::path;
use crate::rest::{Edit, Shape};

/// A user or group.
pub(super) struct Principal(pub(super) Holder);

fn membership(group: &Value, user: &str) -> String {
    format!("/v3/groups/{}/users/{}", path::segment(group.as_str().unwrap_or_default()), path::segment(user))
}

async fn join(cx: &Context<'_>, user: &str, groups: &Value) -> Result<(), Failure> {
    for group in groups.as_list().unwrap_or_default() {
        cx.cloud.call(CloudRequest::new(KEYSTONE.0, Method::Put, membership(group, user))).await?;
    }
    Ok(())
}

async fn leave(cx: &Context<'_>, user: &str, groups: &Value, kept: &Value) -> Result<(), Failure> {
    let kept = kept.as_list().unwrap_or_default();
    for group in groups.as_list().unwrap_or_default().iter().filter(|group| !kept.contains(group)) {
        KEYSTONE.delete(cx, membership(group, user)).await?;
    }
    Ok(())
}

#[async_trait]
impl Shape for Principal {
    fn has_more(&self, facts: &Facts) -> bool {
        facts.property("roles").is_truthy() || facts.property("groups").is_truthy()
    }

    async fn after_create(&self, cx: &Context<'_>, id: &str, _: &Value) -> Result<(), Failure> {
        join(cx, id, cx.facts.property("groups")).await?;
        roles::grant(cx, self.0, id, cx.facts.property("roles")).await
    }

    async fn live(&self, cx: &Context<'_>, object: &Value, live: &mut Map) -> Result<(), Failure> {
        let id = object.str_at("id").unwrap_or_default();
        let (groups, roles) = (cx.facts.property("groups"), cx.facts.property("roles"));
        if groups.is_truthy() {
            let mut joined = Vec::new();
            for group in groups.as_list().unwrap_or_default() {
                if roles::exists(cx, membership(group, id)).await? {
                    joined.push(group.clone());
                }
            }
            live.insert("groups".to_owned(), joined.into());
        }
        if roles.is_truthy() {
            live.insert("roles".to_owned(), roles::granted(cx, self.0, id, roles).await?);
        }
        Ok(())
    }

    async fn before_update(&self, cx: &Context<'_>, id: &str, edit: &Edit<'_>) -> Result<(), Failure> {
        let before = |name: &str| edit.before.get(name).cloned().unwrap_or_default();
        if let Some(groups) = edit.changed.get("groups") {
            join(cx, id, groups).await?;
            leave(cx, id, &before("groups"), groups).await?;
        }
        if let Some(roles) = edit.changed.get("roles") {
            roles::change(cx, self.0, id, &before("roles"), roles).await?;
        }
        Ok(())
    }

    async fn update_body(&self, _cx: &Context<'_>, _edit: &Edit<'_>, body: &mut Map) -> Result<(), Failure> {
        // Properties that are removed from the template do not change.
        body.retain(|_, value| !value.is_null());
        Ok(())
    }

    async fn before_delete(&self, cx: &Context<'_>, id: &str) -> Result<(), Failure> {
        leave(cx, id, cx.facts.property("groups"), &Value::Null).await
    }

    fn validate(&self, facts: &Facts) -> Result<(), Diagnostic> {
        roles::validate(facts)
    }
}
