//! What resource types have stored, from the keys of Heat to those of Kiln.

use kiln_resource::shared_software::{COLLECT, METADATA_OBJECT, METADATA_QUEUE};
use kiln_resource::{Facts, Resource};
use kiln_value::{Map, Value, text, value};

use crate::Finding;
use crate::heat::{FERNET, StoredData};

/// The key of the metadata of a server with what its agent has to know.
const COLLECT_METADATA: &str = "os-collect-config";
/// The key of the metadata of a group while it scales.
const SCALING: &str = "scaling_in_progress";
/// The marks of breakpoints: no stack that waits at one is taken over.
const BREAKPOINTS: [&str; 5] = ["pre-create", "pre-update", "pre-delete", "post-create", "post-update"];
/// What only Heat needs.
const UNUSED: [&str; 7] = [
    "is_placeholder",
    "external_ports",
    "metadata_put_url",
    "port_security_enabled",
    "binding:vnic_type",
    "port_fip",
    "post-delete",
];

/// The data of a row in Kiln. `facts`: those of the row, with the metadata of Heat; `values`: the decrypted values of Heat.
/// What belongs to the data in Kiln is taken from `metadata`.
pub(crate) fn data_of(
    facts: &Facts,
    values: Vec<(String, String)>,
    metadata: &mut Map,
    findings: &mut Vec<Finding>,
    place: &str,
) -> Map {
    let mut data = Map::new();
    for (key, value) in values {
        let (key, value) = match (facts.resource_type.as_str(), key.as_str()) {
            (_, key) if UNUSED.contains(&key) || BREAKPOINTS.contains(&key) => continue,
            (_, "metadata_object_name") => {
                let place = value!({ "container": (&facts.physical_name), "object": value });
                (METADATA_OBJECT.to_owned(), place)
            }
            (_, "metadata_queue_id") => {
                findings.push(Finding::notice(
                    place,
                    "the agent of the server reads a queue of Zaqar, to which Kiln cannot write with what Heat has stored",
                    "changes of its deployments reach the server only after it is replaced",
                ));
                (METADATA_QUEUE.to_owned(), value!({ "queue": value }))
            }
            (_, "zaqar_queue_signed_url_data") => {
                let signature = serde_json::from_str(&value).unwrap_or(Value::Null);
                (key, signature)
            }
            ("OS::Heat::WaitConditionHandle", "heat_signal_url") => ("endpoint".to_owned(), value.into()),
            ("AWS::EC2::Instance", "port_id") => {
                let ports = text::json(&value!([{ "id": value }]));
                ("internal_ports".to_owned(), ports.into())
            }
            _ => (key, value.into()),
        };
        data.insert(key, value);
    }
    if let Some(collect) = metadata.shift_remove(COLLECT_METADATA) {
        data.insert(COLLECT.to_owned(), collect);
    }
    // It stays set if an engine is killed while it scales.
    metadata.shift_remove(SCALING);
    data
}

/// The keys of Heat that are the same in Kiln; the others are Kiln's own.
const SHARED: [&str; 28] = [
    "user_id",
    "password",
    "access_key",
    "secret_key",
    "credential_id",
    "ec2_signed_url",
    "token",
    "endpoint",
    "heat_signal_url",
    "swift_signal_url",
    "swift_signal_object_name",
    "zaqar_signal_queue_id",
    "zaqar_queue_signed_url_data",
    "internal_ports",
    "snapshot_image_id",
    "private_key",
    "name_blacklist",
    "value",
    "backup_id",
    "snapshot_id",
    "executions",
    "name",
    "outputs",
    "signature",
    "expires",
    "paths",
    "methods",
    "project",
];
/// What Heat encrypts.
const SECRETS: [&str; 6] = ["password", "access_key", "secret_key", "credential_id", "token", "private_key"];

/// What Heat stores of a row of Kiln: the reverse of [`data_of`]. `kept`: what it has stored before; what only Heat needs stays.
/// Secrets have a method and are not encrypted yet. What belongs to the metadata in Heat is added to `metadata`.
pub(crate) fn heat_data(row: &Resource, kept: &[StoredData], metadata: &mut Map) -> Vec<StoredData> {
    let own = row.implementation.as_str();
    let mut stored: Vec<StoredData> = kept.iter().filter(|one| UNUSED.contains(&one.key.as_str())).cloned().collect();
    for (key, value) in &row.data {
        let text = || text::str(value);
        let part = |name: &str| value.get(name).map(text::str).unwrap_or_default();
        let (key, text) = match key.as_str() {
            COLLECT => {
                metadata.insert(COLLECT_METADATA.to_owned(), value.clone());
                continue;
            }
            METADATA_OBJECT => ("metadata_object_name", part("object")),
            METADATA_QUEUE => ("metadata_queue_id", part("queue")),
            "endpoint" if own == "OS::Heat::WaitConditionHandle" && !row.data.contains_key("token") => {
                ("heat_signal_url", text())
            }
            "internal_ports" if own == "AWS::EC2::Instance" => {
                let ports: Value = serde_json::from_str(&text()).unwrap_or_default();
                let Some(id) = ports.at(0).and_then(|port| port.str_at("id")) else { continue };
                ("port_id", id.to_owned())
            }
            key if SHARED.contains(&key) && matches!(value, Value::List(_) | Value::Map(_)) => (key, text::json(value)),
            key if SHARED.contains(&key) => (key, text()),
            _ => continue,
        };
        let is_secret = SECRETS.contains(&key) || (key == "value" && own == "OS::Heat::RandomString");
        let method = is_secret.then(|| FERNET.to_owned());
        stored.push(StoredData { resource: 0, key: key.to_owned(), value: text, method });
    }
    metadata.shift_remove(SCALING);
    stored
}

#[cfg(test)]
mod tests {
    use super::*;

    fn converted(resource_type: &str, values: &[(&str, &str)], metadata: &Value) -> (Value, Value, usize) {
        let facts =
            Facts { resource_type: resource_type.to_owned(), physical_name: "s-r-abc".to_owned(), ..Facts::default() };
        let values = values.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let mut metadata = metadata.as_map().cloned().unwrap_or_default();
        let mut findings = Vec::new();
        let data = data_of(&facts, values, &mut metadata, &mut findings, "r");
        (data.into(), metadata.into(), findings.len())
    }

    fn row(resource_type: &str) -> Resource {
        let (stack, id) = (kiln_resource::StackId(uuid::Uuid::nil()), kiln_resource::ResourceId(uuid::Uuid::nil()));
        Resource::new(stack, id, "r", resource_type, jiff::Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn keys_that_differ_are_converted() {
        let empty = value!({});
        let table = [
            ("OS::Heat::WaitConditionHandle", "heat_signal_url", "http://h", value!({"endpoint": "http://h"})),
            ("OS::Heat::SoftwareDeployment", "heat_signal_url", "http://h", value!({"heat_signal_url": "http://h"})),
            ("OS::Heat::WaitConditionHandle", "token", "t", value!({"token": "t"})),
            ("AWS::EC2::Instance", "port_id", "p1", value!({"internal_ports": "[{\"id\": \"p1\"}]"})),
            ("OS::Nova::Server", "internal_ports", "[]", value!({"internal_ports": "[]"})),
            ("OS::Nova::Server", "external_ports", "[]", value!({})),
            (
                "OS::Nova::Server",
                "metadata_object_name",
                "o1",
                value!({"metadata_object": {"container": "s-r-abc", "object": "o1"}}),
            ),
            (
                "OS::Heat::SoftwareDeployment",
                "zaqar_queue_signed_url_data",
                "{\"paths\": [\"/v2\"]}",
                value!({"zaqar_queue_signed_url_data": {"paths": ["/v2"]}}),
            ),
            ("OS::Heat::ResourceGroup", "name_blacklist", "0,1", value!({"name_blacklist": "0,1"})),
            ("OS::Heat::None", "is_placeholder", "True", value!({})),
        ];
        for (resource_type, key, value, expected) in table {
            assert_eq!(converted(resource_type, &[(key, value)], &empty), (expected, empty.clone(), 0), "{key}");
        }
        let (data, _, findings) = converted("OS::Nova::Server", &[("metadata_queue_id", "q")], &empty);
        assert_eq!((data, findings), (value!({"metadata_queue": {"queue": "q"}}), 1));
    }

    #[test]
    fn what_heat_has_stored_is_what_it_gets_back() {
        for (resource_type, key, text) in [
            ("OS::Heat::WaitConditionHandle", "heat_signal_url", "http://h"),
            ("OS::Heat::SoftwareDeployment", "heat_signal_url", "http://h"),
            ("OS::Heat::WaitConditionHandle", "ec2_signed_url", "http://h"),
            ("AWS::EC2::Instance", "port_id", "p1"),
            ("OS::Nova::Server", "internal_ports", "[{\"id\": \"p1\"}]"),
            ("OS::Nova::Server", "metadata_object_name", "o1"),
            ("OS::Nova::Server", "metadata_queue_id", "q"),
            ("OS::Heat::SoftwareDeployment", "zaqar_queue_signed_url_data", "{\"paths\": [\"/v2\"]}"),
            ("OS::Heat::ResourceGroup", "name_blacklist", "0,1"),
        ] {
            let (data, _, _) = converted(resource_type, &[(key, text)], &value!({}));
            let mut row = row(resource_type);
            row.data = data.as_map().cloned().unwrap();
            // Kiln's own entries stay behind, and what only Heat needs is kept.
            row.data.insert("recorded".to_owned(), 1.into());
            let of_heat = |key: &str, value: &str| {
                let (key, value) = (key.to_owned(), value.to_owned());
                StoredData { resource: 0, key, value, method: None }
            };
            let kept = [of_heat("external_ports", "[]"), of_heat(key, "old")];
            let stored = heat_data(&row, &kept, &mut Map::new());
            assert_eq!(stored, [of_heat("external_ports", "[]"), of_heat(key, text)], "{resource_type} {key}");
        }
        let mut row = row("OS::Heat::RandomString");
        row.data.insert("value".to_owned(), "s".into());
        row.data.insert(COLLECT.to_owned(), 1.into());
        let mut metadata = Map::new();
        let stored = heat_data(&row, &[], &mut metadata);
        assert_eq!(stored.first().and_then(|one| one.method.as_deref()), Some(FERNET), "a secret is encrypted");
        assert_eq!(Value::from(metadata), value!({"os-collect-config": 1}));
    }

    #[test]
    fn what_agents_know_moves_from_the_metadata_to_the_data() {
        let metadata = value!({"os-collect-config": {"collectors": ["cfn"]}, "x": 1});
        let (data, metadata, _) = converted("OS::Nova::Server", &[], &metadata);
        assert_eq!(data, value!({"os_collect_config": {"collectors": ["cfn"]}}));
        assert_eq!(metadata, value!({"x": 1}));
        let group = value!({"cooldown_end": {"2026-01-01T00:00:00": "x"}, "scaling_in_progress": true});
        let (_, metadata, _) = converted("OS::Heat::AutoScalingGroup", &[], &group);
        assert_eq!(metadata, value!({"cooldown_end": {"2026-01-01T00:00:00": "x"}}));
    }
}
