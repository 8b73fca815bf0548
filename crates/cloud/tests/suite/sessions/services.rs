//! Services with their own options.

use std::collections::HashMap;
use std::sync::Arc;

use kiln_cloud::{Connector, Interface, Options, Transport};
use kiln_resource::Cloud as _;

use crate::sessions::wire::{answer, credentials, get, wire};

#[tokio::test(start_paused = true)]
async fn a_service_may_have_its_own_transport_and_interface() {
    let (common, _) = wire(|_, _| Ok(answer(200, "{}")));
    let (own, _) = wire(|_, _| Ok(answer(200, "{}")));
    let mut options = Options::new("http://k:5000/v3".parse().expect("it works"));
    options.interfaces.insert("network".to_owned(), Interface::Internal);
    let of_services: HashMap<String, Arc<dyn Transport>> = [("network".to_owned(), own.clone() as _)].into();
    let connector = Connector::with_transports(common.clone(), of_services, options);
    connector.cloud(&credentials()).await.call(get()).await.expect("it works");
    assert_eq!((common.asked(), common.called()), (1, 0), "the token");
    assert_eq!((own.asked(), own.called()), (0, 1), "the call");
    assert!(own.calls.lock().expect("it works")[0].starts_with("GET http://inside:9696/"));
}
