//! Whether an image fits the flavor of a server, and the size of a volume.

use kiln_value::{Map, Value};

use super::planned::{Does, Planned};
use super::{Finding, Findings, Flight};

const GIB: i64 = 1 << 30;

pub(super) async fn check(flight: &Flight<'_>) -> Option<Findings> {
    let mut found = Vec::new();
    let mut any = false;
    for planned in flight.work.resources.iter().filter(|one| one.makes() || one.does == Does::Update) {
        let Some(properties) = planned.after else { continue };
        match planned.kind {
            "OS::Nova::Server" => {
                let before = planned.before().filter(|_| !planned.makes());
                let is_new = |name: &str| before.as_ref().is_none_or(|before| before.get(name) != properties.get(name));
                if !is_new("image") && !is_new("flavor") {
                    continue;
                }
                any = true;
                server(flight, planned, properties, &mut found).await;
            }
            "OS::Cinder::Volume" if planned.makes() => {
                let image = properties.get("image").and_then(Value::as_str);
                if let (Some(image), Some(size)) = (image, properties.get("size").and_then(Value::as_i64)) {
                    any = true;
                    volume(flight, planned, image, size, &mut found).await;
                }
            }
            _ => {}
        }
    }
    any.then_some(found)
}

async fn server(flight: &Flight<'_>, planned: &Planned<'_>, properties: &Map, found: &mut Findings) {
    let path = &planned.path;
    let disks = properties.get("block_device_mapping_v2").and_then(Value::as_list).unwrap_or_default();
    if planned.makes() {
        for disk in disks {
            let image = disk.get("image").and_then(Value::as_str);
            if let (Some(image), Some(size)) = (image, disk.get("volume_size").and_then(Value::as_i64)) {
                volume(flight, planned, image, size, found).await;
            }
        }
    }
    let text = |name: &str| properties.get(name).and_then(Value::as_str);
    let (Some(image), Some(flavor)) = (text("image"), text("flavor")) else { return };
    let boots_from_volume = !disks.is_empty()
        || properties.get("block_device_mapping").and_then(Value::as_list).is_some_and(|list| !list.is_empty());
    let (image, flavor) = match (flight.cloud.image(image).await, flight.cloud.flavor(flavor).await) {
        (Ok(image), Ok(flavor)) => (image, flavor),
        (Err(unread), _) => {
            let message = format!("the image of {path}: {}", unread.why());
            return found.push(Finding::skipped(message, vec![path.clone()]));
        }
        (_, Err(unread)) => {
            let message = format!("the flavor of {path}: {}", unread.why());
            return found.push(Finding::skipped(message, vec![path.clone()]));
        }
    };
    let image_has = |key: &str| image.get(key).and_then(Value::as_i64).unwrap_or_default();
    let flavor_has = |key: &str| flavor.get(key).and_then(Value::as_i64).unwrap_or_default();
    let mut fail = |message: String| found.push(Finding::fail(format!("{path}: {message}"), vec![path.clone()]));
    if let Some(status) = image.str_at("status").filter(|status| *status != "active")
        && planned.makes()
    {
        fail(format!("the image is {status}, not active"));
    }
    if image_has("min_ram") > flavor_has("ram") {
        let (needs, has) = (image_has("min_ram"), flavor_has("ram"));
        fail(format!("the image needs {needs} MiB of memory, and the flavor has {has}"));
    }
    // A flavor without a disk takes the size of the image.
    let disk = flavor_has("disk");
    if disk > 0 && !boots_from_volume {
        if image_has("min_disk") > disk {
            fail(format!("the image needs {} GiB of disk, and the flavor has {disk}", image_has("min_disk")));
        } else if image_has("size") > disk * GIB {
            fail(format!("the image has {} bytes, and the disk of the flavor {disk} GiB", image_has("size")));
        }
    }
}

async fn volume(flight: &Flight<'_>, planned: &Planned<'_>, image: &str, size: i64, found: &mut Findings) {
    let path = planned.path.clone();
    match flight.cloud.image(image).await {
        Ok(image) => {
            let has = |key: &str| image.get(key).and_then(Value::as_i64).unwrap_or_default();
            let needs = has("min_disk").max((has("size") + GIB - 1) / GIB);
            if needs > size {
                let message = format!("{path}: the image needs {needs} GiB, and the volume has {size}");
                found.push(Finding::fail(message, vec![path]));
            }
        }
        Err(unread) => found.push(Finding::skipped(format!("the image of {path}: {}", unread.why()), vec![path])),
    }
}
