//! The settings of instances that are copied from an existing server (`InstanceId`).

use kiln_resource::{Context, Facts, Failure};
use kiln_value::{Class, Map, Value, text, value};

use crate::call::NOVA;

/// The entry of a group's data: what the settings are for, and the settings.
const KEY: &str = "copied_settings";

/// The settings that were copied for a reference (of a launch configuration or a server).
pub(super) fn stored<'a>(facts: &'a Facts, reference: &Value) -> Option<&'a Map> {
    let stored = facts.data.get(KEY).filter(|stored| stored.get("for") == Some(reference))?;
    stored.get("settings").and_then(Value::as_map)
}

/// Reads the settings of a server, for the data of the group: image, flavor, key and security groups, as in Heat
/// (docs/heat-behaviour.md §15.3).
///
/// # Errors
/// If the server does not exist, or was booted from a volume, so that it has no image.
pub(super) async fn read(cx: &Context<'_>, server: &str, reference: &Value) -> Result<Map, Failure> {
    let server = cx.cloud.find("nova.server", server).await?;
    let shown = NOVA.show(cx, format!("/servers/{server}"), "server").await?;
    let id = |key: &str| shown.get(key).and_then(|object| object.str_at("id")).map(str::to_owned);
    let Some(image) = id("image") else {
        let text = format!("The settings of server {server} cannot be copied: it has no image.");
        return Err(Failure::other(Class::Error, text));
    };
    let groups = shown.get("security_groups").and_then(Value::as_list).unwrap_or_default();
    let groups: Value = groups.iter().filter_map(|group| group.get("name")).map(text::str).collect();
    let mut settings = Map::from([("ImageId".to_owned(), image.into()), ("SecurityGroups".to_owned(), groups)]);
    settings.extend(id("flavor").map(|flavor| ("InstanceType".to_owned(), flavor.into())));
    let key = shown.str_at("key_name").filter(|key| !key.is_empty());
    settings.extend(key.map(|key| ("KeyName".to_owned(), key.into())));
    Ok(Map::from([(KEY.to_owned(), value!({ "for": (reference.clone()), "settings": settings }))]))
}
