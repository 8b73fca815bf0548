//! OS::Glance::*

use kiln_value::value;

use crate::openstack::ground::Ground;
use crate::resource::Outcome;
use crate::scenarios;

scenarios!(an_image_that_cannot_be_fetched);

/// Glance refuses or fails to download from this machine, but the attributes of the image can be read.
async fn an_image_that_cannot_be_fetched(ground: &Ground) {
    let given = |distribution: &str| {
        value!({
            "name": "kilntest-image", "disk_format": "raw", "container_format": "bare",
            "location": "http://192.0.2.1/nothing", "os_distro": distribution, "tags": ["t"],
            "extra_properties": {"x": "1"},
        })
    };
    let mut image = ground.resource("OS::Glance::WebImage", "image");
    // Glance tries to download for minutes: the wait is given up and taken up again until the image is there.
    let mut tries = 20;
    let shown = loop {
        let outcome = tokio::time::timeout(std::time::Duration::from_secs(3), image.create(given("a"))).await;
        let shown = image.attribute("show").await;
        tries -= 1;
        if !shown.is_null() || tries == 0 {
            assert_eq!(shown.str_at("name"), Some("kilntest-image"), "{outcome:?}");
            break shown;
        }
    };
    assert_eq!(shown.str_at("x"), Some("1"));
    assert_eq!(image.id(), image.facts.attempt.token);
    assert_eq!(image.update(given("b")).await.unwrap(), Outcome::Updated);
    assert_eq!(image.attribute("show").await.str_at("os_distro"), Some("b"));
    image.delete().await;
    image.delete().await;
}
