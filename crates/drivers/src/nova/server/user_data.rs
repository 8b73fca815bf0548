//! The user data of a server for cloud-init: docs/heat-behaviour.md §17.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kiln_value::{Value, value};

use crate::mime::{Part, join, split};

/// Kiln's own parts, for the guest.
const CLOUD_CONFIG: &str = include_str!("../guest/cloud-config");
const BOOTHOOK: &str = include_str!("../guest/boothook.sh");
const PART_HANDLER: &str = include_str!("../guest/part-handler.py");
const LOG_USER_DATA: &str = include_str!("../guest/loguserdata.py");

/// The format of the user data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// Unchanged.
    Raw,
    /// For heat-cfntools.
    CfnTools,
    /// For os-collect-config.
    SoftwareConfig,
}

impl Format {
    pub(super) fn parse(text: Option<&str>) -> Self {
        match text {
            Some("RAW") => Self::Raw,
            Some("SOFTWARE_CONFIG") => Self::SoftwareConfig,
            _ => Self::CfnTools,
        }
    }
}

/// The user data for Nova, not yet in base64.
///
/// `metadata` is the metadata section of the resource, `cfn_url` the endpoint of the CloudFormation API (without it,
/// parts that contain it are omitted), `boundary` a string that occurs in no part.
pub(super) fn build(
    format: Format,
    user_data: &str,
    metadata: &Value,
    cfn_url: Option<&str>,
    boundary: &str,
) -> String {
    match format {
        Format::Raw => return user_data.to_owned(),
        Format::SoftwareConfig => {
            if let Some(ignition) = ignition(user_data, metadata) {
                return ignition;
            }
        }
        Format::CfnTools => {}
    }
    let mut parts = vec![
        Part::new(CLOUD_CONFIG, Some("cloud-config"), "cloud-config"),
        Part::new(BOOTHOOK, Some("boothook.sh"), "cloud-boothook"),
        Part::new(PART_HANDLER, Some("part-handler.py"), "part-handler"),
    ];
    if format == Format::CfnTools {
        parts.push(Part::new(user_data, Some("cfn-userdata"), "x-cfninitdata"));
        parts.push(Part::new(LOG_USER_DATA, Some("loguserdata.py"), "x-shellscript"));
    } else {
        match split(user_data) {
            Some(own) => parts.extend(own.into_iter().map(Part::named)),
            None => parts.push(Part::new(user_data, Some(""), "plain")),
        }
    }
    if metadata.is_truthy() {
        parts.push(Part::new(kiln_value::text::json(metadata), Some("cfn-init-data"), "x-cfninitdata"));
    }
    if let (Format::CfnTools, Some(url)) = (format, cfn_url) {
        let url = metadata_url(url);
        let host = host(&url).to_owned();
        parts.push(Part::new(url, Some("cfn-metadata-server"), "x-cfninitdata"));
        parts.push(Part::new(boto_config(&host), Some("cfn-boto-cfg"), "x-cfninitdata"));
    }
    join(&parts, boundary)
}

/// User data as encoded in Nova's requests.
pub(super) fn encode(user_data: &str) -> String {
    STANDARD.encode(user_data)
}

/// Ignition's JSON with the metadata added as files; `None` if the user data is not Ignition.
fn ignition(user_data: &str, metadata: &Value) -> Option<String> {
    let mut config = kiln_yaml::json::parse(user_data).ok()?;
    config.get("ignition")?.get("version").filter(|v| v.is_truthy())?;
    if !metadata.is_truthy() {
        return Some(user_data.to_owned());
    }
    let source = format!("data:,{}", quote(&kiln_value::text::json(metadata)));
    let file = |path: &str| {
        value!({
            "filesystem": "root",
            "group": {"name": "root"},
            "path": path,
            "user": {"name": "root"},
            "contents": {"source": source.as_str(), "verification": {}},
            "mode": 0o640,
        })
    };
    let storage = config.as_map_mut()?.entry("storage".into()).or_insert_with(|| value!({}));
    let files = storage.as_map_mut()?.entry("files".into()).or_insert_with(|| value!([]));
    let Value::List(files) = files else { return None };
    files.push(file("/var/lib/heat-cfntools/cfn-init-data"));
    files.push(file("/var/lib/cloud/data/cfn-init-data"));
    Some(kiln_value::text::json(&config))
}

/// Python's `urllib.parse.quote`: slashes are kept.
fn quote(text: &str) -> String {
    text.split('/').map(crate::path::segment).collect::<Vec<_>>().join("/")
}

/// The CloudFormation endpoint for guests: with its version and a trailing slash.
pub(crate) fn metadata_url(url: &str) -> String {
    let url = if url.contains("/v1") { url.to_owned() } else { format!("{url}/v1") };
    if url.ends_with('/') { url } else { url + "/" }
}

fn host(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split('/').next().unwrap_or(rest);
    match authority.strip_prefix('[') {
        Some(v6) => v6.split(']').next().unwrap_or(v6),
        None => authority.split(':').next().unwrap_or(authority),
    }
}

fn boto_config(host: &str) -> String {
    [
        "[Boto]",
        "debug = 0",
        "is_secure = 0",
        "https_validate_certificates = 1",
        "cfn_region_name = heat",
        &format!("cfn_region_endpoint = {host}"),
    ]
    .join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<(String, String)> {
        split(text).unwrap().into_iter().map(|part| (part.file_name.unwrap_or_default(), part.subtype)).collect()
    }

    fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
        expected.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect()
    }

    #[test]
    fn raw_user_data_is_unchanged() {
        assert_eq!(build(Format::Raw, "#!/bin/sh\n", &value!({"a": 1}), None, "b"), "#!/bin/sh\n");
    }

    #[test]
    fn cfntools_gets_its_parts_in_order() {
        let made =
            build(Format::CfnTools, "#!/bin/sh\nécho\n", &value!({"a": 1}), Some("http://10.0.0.1:8000/v1"), "b");
        let expected = [
            ("cloud-config", "cloud-config"),
            ("boothook.sh", "cloud-boothook"),
            ("part-handler.py", "part-handler"),
            ("cfn-userdata", "x-cfninitdata"),
            ("loguserdata.py", "x-shellscript"),
            ("cfn-init-data", "x-cfninitdata"),
            ("cfn-metadata-server", "x-cfninitdata"),
            ("cfn-boto-cfg", "x-cfninitdata"),
        ];
        assert_eq!(names(&made), pairs(&expected));
        let parts = split(&made).unwrap();
        assert_eq!(parts[3].content, "#!/bin/sh\nécho\n");
        assert_eq!(parts[5].content, "{\"a\": 1}");
        assert_eq!(parts[6].content, "http://10.0.0.1:8000/v1/");
        assert!(parts[7].content.ends_with("cfn_region_endpoint = 10.0.0.1"));
    }

    #[test]
    fn software_config_splits_a_multipart_message() {
        let own = join(
            &[Part::new("one", Some("a.sh"), "x-shellscript"), Part::new("two", Some("b"), "cloud-config")],
            "own",
        );
        let made = build(Format::SoftwareConfig, &own, &Value::Null, None, "b");
        let expected =
            [("cloud-config", "cloud-config"), ("boothook.sh", "cloud-boothook"), ("part-handler.py", "part-handler")];
        let expected = [pairs(&expected), pairs(&[("a.sh", "x-shellscript"), ("b", "cloud-config")])].concat();
        assert_eq!(names(&made), expected);
    }

    #[test]
    fn ignition_is_merged() {
        let made =
            build(Format::SoftwareConfig, r#"{"ignition": {"version": "2.2.0"}}"#, &value!({"a": "b/c"}), None, "b");
        let made = kiln_yaml::json::parse(&made).unwrap();
        let files = made.get("storage").and_then(|s| s.get("files")).and_then(Value::as_list).unwrap();
        assert_eq!(files.len(), 2);
        let source = files[0].get("contents").and_then(|c| c.str_at("source")).unwrap();
        assert_eq!(source, "data:,%7B%22a%22%3A%20%22b/c%22%7D");
    }
}
