//! OS::Keystone::Project

use async_trait::async_trait;
use kiln_resource::{Context, Failure};
use kiln_value::Map;

use crate::call::NEUTRON;
use crate::path;
use crate::rest::{Edit, Shape};

/// A project. Neutron creates a security group `default` for each project, which the delete must remove.
pub(super) struct Project;

#[async_trait]
impl Shape for Project {
    async fn update_body(&self, _cx: &Context<'_>, _edit: &Edit<'_>, body: &mut Map) -> Result<(), Failure> {
        // Properties that are removed from the template do not change.
        body.retain(|_, value| !value.is_null());
        Ok(())
    }

    async fn before_delete(&self, cx: &Context<'_>, id: &str) -> Result<(), Failure> {
        if !cx.cloud.has_service(NEUTRON.0).await? {
            return Ok(());
        }
        let query = [("project_id", id), ("name", "default")];
        for group in NEUTRON.list(cx, "/v2.0/security-groups", &query, "security_groups").await? {
            if let Some(group) = group.str_at("id") {
                NEUTRON.delete(cx, format!("/v2.0/security-groups/{}", path::segment(group))).await?;
            }
        }
        Ok(())
    }
}
