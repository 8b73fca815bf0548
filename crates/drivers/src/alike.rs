//! Compares an object of a cloud with what the request of a create has said about it.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use kiln_value::{Map, Value, text};

/// A time of a service in seconds since 1970, rounded down. Without a time zone it is UTC.
pub(crate) fn seconds(time: &str) -> Option<i64> {
    if let Ok(time) = time.parse::<Timestamp>() {
        return Some(time.as_second());
    }
    let time: DateTime = time.parse().ok()?;
    TimeZone::UTC.to_timestamp(time).ok().map(Timestamp::as_second)
}

/// A time with minutes, as some templates have it; services show the seconds too.
pub(crate) fn minute(time: &str) -> String {
    time.replace('T', " ").chars().take("YYYY-MM-DD HH:MM".len()).collect()
}

/// Whether an object shows the value that was sent under a key. `loadbalancer_id` may be shown as
/// `loadbalancers: [{"id": …}]`. What the object does not show cannot be compared, except for an empty text, and the
/// project of an object that belongs to none. Nothing that was sent is null.
pub(crate) fn shows(object: &Value, key: &str, sent: &Value) -> bool {
    let other_name = match key {
        "project_id" => Some("tenant_id"),
        "tenant_id" => Some("project_id"),
        _ => None,
    };
    if let Some(shown) = object.get(key).or_else(|| object.get(other_name?)) {
        return covers(shown, sent);
    }
    if sent.as_str() == Some("") || other_name.is_some() {
        return true;
    }
    owners(object, key).is_some_and(|owners| matches!(owners, [owner] if owner.get("id") == Some(sent)))
}

/// What an object that is created with a `listener_id` shows as `listeners: [{"id": …}]`.
pub(crate) fn owners<'a>(object: &'a Value, key: &str) -> Option<&'a [Value]> {
    object.get(&format!("{}s", key.strip_suffix("_id")?))?.as_list()
}

/// Whether a value that is shown has all that was sent. The service adds entries to maps, and lists have no order.
fn covers(shown: &Value, sent: &Value) -> bool {
    match (shown, sent) {
        (Value::Map(shown), Value::Map(sent)) => has_entries(shown, sent),
        (Value::List(shown), Value::List(sent)) => {
            shown.len() == sent.len() && sent.iter().all(|sent| shown.iter().any(|shown| covers(shown, sent)))
        }
        (Value::Map(_) | Value::List(_), _) | (_, Value::Map(_) | Value::List(_)) => false,
        (Value::Null, sent) => sent.as_str() == Some(""),
        (shown, sent) => text::str(shown) == text::str(sent),
    }
}

fn has_entries(shown: &Map, sent: &Map) -> bool {
    sent.iter().all(|(key, sent)| sent.is_null() || shown.get(key).is_some_and(|shown| covers(shown, sent)))
}

#[cfg(test)]
mod tests {
    use kiln_value::value;

    use super::*;

    #[test]
    fn times_of_all_services_are_read() {
        for time in
            ["1970-01-02T00:00:00Z", "1970-01-02T00:00:00", "1970-01-02T00:00:00.900000", "1970-01-02T00:00:00+00:00"]
        {
            assert_eq!(seconds(time), Some(86_400), "{time}");
        }
        assert_eq!(seconds("yesterday"), None);
    }

    #[test]
    fn everything_that_was_sent_must_be_shown() {
        let object = value!({
            "name": "a", "mtu": 1450, "description": null, "tenant_id": "p", "loadbalancers": [{"id": "l"}],
            "fixed_ips": [{"subnet_id": "s", "ip_address": "10.0.0.3"}],
            "external_gateway_info": {"network_id": "n", "enable_snat": true},
        });
        let is_shown = |key: &str, sent: Value| shows(&object, key, &sent);
        assert!(is_shown("name", "a".into()) && !is_shown("name", "b".into()));
        assert!(is_shown("mtu", "1450".into()) && is_shown("description", "".into()));
        assert!(!is_shown("description", "other".into()));
        assert!(is_shown("project_id", "p".into()) && !is_shown("project_id", "q".into()));
        assert!(is_shown("loadbalancer_id", "l".into()) && !is_shown("loadbalancer_id", "m".into()));
        assert!(is_shown("fixed_ips", value!([{"subnet_id": "s"}])));
        assert!(!is_shown("fixed_ips", value!([{"subnet_id": "t"}])));
        assert!(is_shown("external_gateway_info", value!({"network_id": "n"})));
        assert!(!is_shown("qos_policy_id", "q".into()) && is_shown("status_reason", "".into()));
        assert!(shows(&value!({"name": "role"}), "project_id", &"p".into()));
    }
}
