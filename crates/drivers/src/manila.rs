//! OS::Manila::*

mod share;
mod share_network;
mod share_type;

use std::sync::Arc;

use kiln_resource::{CloudRequest, Context, Driver, Failure, Method, ResourceType};
use kiln_value::Value;

use crate::rest::RestDriver;

/// The microversion that the definitions name too.
const VERSION: &str = "2.13";

/// The driver of a Manila type.
pub(crate) fn driver_for(resource_type: &ResourceType) -> Option<Arc<dyn Driver>> {
    Some(Arc::new(match resource_type.name.as_str() {
        "OS::Manila::Share" => RestDriver::shaped(resource_type, share::Share)?,
        "OS::Manila::ShareNetwork" => RestDriver::shaped(resource_type, share_network::ShareNetwork)?,
        "OS::Manila::ShareType" => RestDriver::shaped(resource_type, share_type::ShareType)?,
        _ => return None,
    }))
}

/// Sends a request and returns the body of the response.
async fn call(cx: &Context<'_>, method: Method, path: String, body: Option<Value>) -> Result<Value, Failure> {
    let request = CloudRequest { body, ..CloudRequest::new("sharev2", method, path) };
    Ok(cx.cloud.call(request.microversion(VERSION)).await?.body)
}
