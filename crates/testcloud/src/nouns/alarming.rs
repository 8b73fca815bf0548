//! Aodh. An update replaces the whole alarm.

use super::{Id, NOUN, Noun};
use crate::request::Service;

/// The fields of a request.
const FIELDS: &[&str] = &[
    "description",
    "enabled",
    "alarm_actions",
    "ok_actions",
    "insufficient_data_actions",
    "repeat_actions",
    "severity",
    "time_constraints",
    "state",
    "state_reason",
    "threshold_rule",
    "event_rule",
    "composite_rule",
    "prometheus_rule",
    "gnocchi_resources_threshold_rule",
    "gnocchi_aggregation_by_metrics_threshold_rule",
    "gnocchi_aggregation_by_resources_threshold_rule",
    "loadbalancer_member_health_rule",
];

pub(super) const NOUNS: &[Noun] = &[Noun {
    service: Service::Alarming,
    path: &["alarms"],
    id: Id::Uuid("alarm_id"),
    required: &["name", "type"],
    optional: FIELDS,
    update: "PUT",
    changes: &[
        "alarm_id",
        "id",
        "name",
        "type",
        "user_id",
        "project_id",
        "timestamp",
        "state_timestamp",
        "description",
        "enabled",
        "alarm_actions",
        "ok_actions",
        "insufficient_data_actions",
        "repeat_actions",
        "severity",
        "time_constraints",
        "state",
        "state_reason",
        "threshold_rule",
        "event_rule",
        "composite_rule",
        "prometheus_rule",
        "gnocchi_resources_threshold_rule",
        "gnocchi_aggregation_by_metrics_threshold_rule",
        "gnocchi_aggregation_by_resources_threshold_rule",
        "loadbalancer_member_health_rule",
    ],
    key: &["name"],
    defaults: r#"{"state": "insufficient data", "state_reason": "Not evaluated yet", "enabled": true}"#,
    ..NOUN
}];
