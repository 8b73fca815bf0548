//! OS::Neutron::Trunk

use async_trait::async_trait;
use kiln_resource::{Context, Failure};
use kiln_value::{Map, Value, value};

use crate::call::NEUTRON;
use crate::path;
use crate::rest::{Edit, Shape};

/// A trunk: a port with subports.
pub(super) struct Trunk;

#[async_trait]
impl Shape for Trunk {
    /// First the subports that are not wanted any more are removed: a port can be a subport only once.
    async fn before_update(&self, cx: &Context<'_>, id: &str, edit: &Edit<'_>) -> Result<(), Failure> {
        let Some(wanted) = edit.body.get("sub_ports") else { return Ok(()) };
        let wanted = wanted.as_list().unwrap_or_default();
        let base = format!("/v2.0/trunks/{}", path::segment(id));
        let trunk = NEUTRON.show(cx, base.clone(), "trunk").await?;
        let current: Vec<Value> = trunk.get("sub_ports").and_then(Value::as_list).unwrap_or_default().to_vec();
        let is_same = |one: &Value, other: &Value| {
            ["port_id", "segmentation_type", "segmentation_id"].iter().all(|key| one.get(key) == other.get(key))
        };
        let gone = current.iter().filter(|own| !wanted.iter().any(|wanted| is_same(own, wanted)));
        let gone: Vec<Value> = gone.map(|own| value!({"port_id": (own.get("port_id").cloned())})).collect();
        if !gone.is_empty() {
            NEUTRON.put(cx, format!("{base}/remove_subports"), value!({"sub_ports": gone})).await?;
        }
        let new: Vec<Value> =
            wanted.iter().filter(|wanted| !current.iter().any(|own| is_same(own, wanted))).cloned().collect();
        if !new.is_empty() {
            NEUTRON.put(cx, format!("{base}/add_subports"), value!({"sub_ports": new})).await?;
        }
        Ok(())
    }

    async fn update_body(&self, _cx: &Context<'_>, _edit: &Edit<'_>, body: &mut Map) -> Result<(), Failure> {
        body.shift_remove("sub_ports");
        Ok(())
    }
}
