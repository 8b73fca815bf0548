//! OS::Manila::*

mod share;
mod share_network;
mod share_type;

use std::sync::Arc;

use kiln_resource::{CloudRequest, Context, Driver, Failure, Method, ResourceType};
use kiln_value::Value;

use crate::rest::shaped;

/// The microversion that the definitions name too.
const VERSION: &str = "2.13";

/// The driver of a Manila type.
pub(crate) fn driver_for(resource_type: &ResourceType) -> Option<Arc<dyn Driver>> {
    match resource_type.name.as_str() {
        "OS::Manila::Share" => shaped(resource_type, share::Share),
        "OS::Manila::ShareNetwork" => shaped(resource_type, share_network::ShareNetwork),
        "OS::Manila::ShareType" => shaped(resource_type, share_type::ShareType),
        _ => None,
    }
}

/// Sends a request and returns the body of the response.
async fn call(cx: &Context<'_>, method: Method, path: String, body: Option<Value>) -> Result<Value, Failure> {
    let request = CloudRequest { body, ..CloudRequest::new("sharev2", method, path) };
    Ok(cx.cloud.call(request.microversion(VERSION)).await?.body)
}
