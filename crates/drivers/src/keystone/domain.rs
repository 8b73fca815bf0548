//! OS::Keystone::Domain

use async_trait::async_trait;
use kiln_resource::{CloudRequest, Context, Failure, Method};
use kiln_value::{Map, value};

use crate::call::{KEYSTONE, absent_is_fine};
use crate::path;
use crate::rest::{Edit, Shape};

/// A domain. Keystone deletes only disabled ones.
pub(super) struct Domain;

#[async_trait]
impl Shape for Domain {
    async fn update_body(&self, _cx: &Context<'_>, _edit: &Edit<'_>, body: &mut Map) -> Result<(), Failure> {
        body.retain(|_, value| !value.is_null());
        Ok(())
    }

    async fn before_delete(&self, cx: &Context<'_>, id: &str) -> Result<(), Failure> {
        let request = CloudRequest::new(KEYSTONE.0, Method::Patch, format!("/v3/domains/{}", path::segment(id)));
        absent_is_fine(cx.cloud.call(request.body(value!({"domain": {"enabled": false}}))).await)
    }
}
