//! IDs that are known without a request.

use kiln_cloud::Credentials;
use kiln_resource::Cloud;

use crate::sessions::wire::{answer, credentials, post, wire};

/// An object that Kiln has just created is not looked for by its ID; its name is, because another object may have it too.
#[tokio::test(start_paused = true)]
async fn created_objects_are_known_by_their_ids() {
    const ID: &str = "aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee";
    let (wire, connector) = wire(|request, _| {
        let is_post = request.method == http::Method::POST;
        let one = format!(r#"{{"id": "{ID}", "name": "web"}}"#);
        Ok(answer(
            if is_post { 201 } else { 200 },
            &if is_post { format!(r#"{{"network": {one}}}"#) } else { format!(r#"{{"networks": [{one}]}}"#) },
        ))
    });
    let cloud = connector.cloud(&credentials()).await;
    assert_eq!(cloud.find("neutron.network", ID).await.as_deref(), Ok(ID));
    assert_eq!(wire.called(), 1, "it is not known before");
    let (made, other) =
        (connector.cloud(&Credentials::token("one")).await, connector.cloud(&Credentials::token("two")).await);
    made.call(post()).await.expect("created");
    assert_eq!(made.find("neutron.network", ID).await.as_deref(), Ok(ID));
    assert_eq!(wire.called(), 2);
    // A name, another kind of object, and another user, who may not see it.
    for (number, (cloud, finder, given)) in
        [(&made, "neutron.network", "web"), (&made, "neutron.subnet", ID), (&other, "neutron.network", ID)]
            .into_iter()
            .enumerate()
    {
        assert_eq!(cloud.find(finder, given).await.as_deref(), Ok(ID));
        assert_eq!(wire.called(), number + 3, "it is looked for");
    }
}
