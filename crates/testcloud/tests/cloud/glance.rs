//! Images, and errors of Glance.

use serde_json::{Value, json};

use crate::client::{Client, NOBODY, start, text};

const IMAGES: &str = "/image/v2/images";

#[tokio::test]
async fn errors_are_plain_text() {
    let (cloud, demo) = start().await;
    let cases = [
        (json!("{bad"), 400, "Malformed JSON in request body."),
        (json!({"disk_format": "zzz"}), 400, "'zzz' is not one of [None, 'ami'"),
        (json!({"container_format": "zzz"}), 400, "'zzz' is not one of"),
        (json!({"id": "x"}), 400, "'x' does not match"),
        (json!({"visibility": "public"}), 403, "publicize_image"),
    ];
    for (body, status, part) in cases {
        demo.post(IMAGES, body).await.refused(status, part);
    }
    demo.get(&format!("{IMAGES}/{NOBODY}")).await.refused(404, "No image found with ID");
    let cirros = demo.id(IMAGES, "cirros").await;
    demo.delete(&format!("{IMAGES}/{cirros}")).await.refused(403, "You do not own this image");
    let import = json!({"method": {"name": "web-download", "uri": "http://example.test/i"}});
    demo.post(&format!("{IMAGES}/{cirros}/import"), import).await.refused(409, "cannot be target for import");
    let own = text(&demo.post(IMAGES, json!({"name": "own", "visibility": "private"})).await.expect(201)["id"]);
    let other = Client::new(&cloud, cloud.users().alt_demo).await;
    other.get(&format!("{IMAGES}/{own}")).await.refused(404, "No image found");
}

#[tokio::test]
async fn an_image_is_imported_protected_and_deleted() {
    let (_cloud, demo) = start().await;
    let body = json!({"name": "web", "disk_format": "qcow2", "container_format": "bare", "visibility": "private"});
    let id = text(&demo.post(IMAGES, body).await.expect(201)["id"]);
    let one = format!("{IMAGES}/{id}");
    let import = |method: Value| json!({"method": method});
    let path = format!("{one}/import");
    demo.post(&path, import(json!({"name": "web-download"}))).await.refused(400, "'uri' is required");
    demo.post(&path, import(json!({"name": "nope"}))).await.refused(400, "Unknown import method name");
    demo.post(&path, import(json!({"name": "web-download", "uri": "http://example.test/i"}))).await.expect(202);
    demo.wait(&one, "active").await;
    let protect = |value: bool| json!([{"op": "replace", "path": "/protected", "value": value}]);
    demo.call("PATCH", &one, protect(true)).await.expect(200);
    demo.delete(&one).await.refused(403, "is protected and cannot be deleted");
    demo.call("PATCH", &one, protect(false)).await.expect(200);
    demo.delete(&one).await.expect(204);
    demo.get(&one).await.refused(404, "No image found");
}
