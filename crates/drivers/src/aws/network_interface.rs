//! AWS::EC2::NetworkInterface

use async_trait::async_trait;
use kiln_resource::{Context, Failure};
use kiln_value::{Map, Value, text, value};

use crate::call::{NEUTRON, security_group_ids};
use crate::path::segment;
use crate::rest::{Edit, Shape};

/// A port on a subnet.
pub(super) struct NetworkInterface;

#[async_trait]
impl Shape for NetworkInterface {
    async fn create_body(&self, cx: &Context<'_>, body: &mut Map) -> Result<(), Failure> {
        let facts = cx.facts;
        let id = text::str(facts.property("SubnetId"));
        let subnet = NEUTRON.show(cx, format!("/v2.0/subnets/{}", segment(&id)), "subnet").await?;
        let mut address = Map::from([("subnet_id".to_owned(), id.into())]);
        if facts.property("PrivateIpAddress").is_truthy() {
            address.insert("ip_address".to_owned(), facts.property("PrivateIpAddress").clone());
        }
        body.extend([
            ("name".to_owned(), facts.physical_name.as_str().into()),
            ("admin_state_up".to_owned(), true.into()),
            ("network_id".to_owned(), subnet.get("network_id").cloned().unwrap_or_default()),
            ("fixed_ips".to_owned(), Value::List(vec![address.into()])),
        ]);
        // Without the property, Neutron chooses the default group; an empty list means none.
        if let Some(groups) = facts.property("GroupSet").as_list() {
            body.insert("security_groups".to_owned(), security_group_ids(cx, groups).await?.into());
        }
        Ok(())
    }

    async fn update_body(&self, cx: &Context<'_>, edit: &Edit<'_>, body: &mut Map) -> Result<(), Failure> {
        if let Some(groups) = edit.changed.get("GroupSet") {
            let default = value!(["default"]);
            let groups = groups.as_list().or(default.as_list()).unwrap_or_default();
            body.insert("security_groups".to_owned(), security_group_ids(cx, groups).await?.into());
        }
        Ok(())
    }

    async fn attribute(&self, _: &Context<'_>, object: &Value, name: &str) -> Result<Option<Value>, Failure> {
        if name != "PrivateIpAddress" {
            return Ok(None);
        }
        let first = object.get("fixed_ips").and_then(Value::as_list).and_then(<[Value]>::first);
        Ok(Some(first.and_then(|first| first.get("ip_address")).cloned().unwrap_or_default()))
    }

    async fn live(&self, cx: &Context<'_>, object: &Value, live: &mut Map) -> Result<(), Failure> {
        let addresses = object.get("fixed_ips").and_then(Value::as_list).unwrap_or_default();
        for (property, key) in [("SubnetId", "subnet_id"), ("PrivateIpAddress", "ip_address")] {
            let given = cx.facts.property(property);
            let is_given = addresses.iter().any(|address| address.get(key) == Some(given));
            let first = addresses.first().and_then(|address| address.get(key));
            let shown = if is_given { given.clone() } else { first.cloned().unwrap_or_default() };
            live.insert(property.to_owned(), shown);
        }
        let Some(given) = cx.facts.property("GroupSet").as_list() else { return Ok(()) };
        let sorted = |groups: &Value| {
            let mut ids: Vec<String> = groups.as_list().unwrap_or_default().iter().map(text::str).collect();
            ids.sort_unstable();
            ids
        };
        let present = object.get("security_groups").cloned().unwrap_or_default();
        // The template may name them.
        let is_same = sorted(&security_group_ids(cx, given).await?.into()) == sorted(&present);
        live.insert("GroupSet".to_owned(), if is_same { given.to_vec().into() } else { present });
        Ok(())
    }
}
