//! Options of webhooks: `[webhooks]`.

use super::options;
use crate::option::Kind::{Choice, Flag, List, Path, Span, Text, Whole};
use crate::option::{ConfigOption, Kind, Place};

const fn own(name: &'static str, kind: Kind, help: &'static str) -> ConfigOption {
    ConfigOption::new(Place::Section("webhooks"), name, kind, help)
}

options! {
    ENABLED = own(
        "enabled", Flag,
        "Projects can have webhooks, and engines send events to their URLs. The same in all processes. See docs/webhooks.md.",
    ).default("false");
    NETWORKS = own(
        "networks", List,
        "Networks besides the Internet whose addresses engines may call, for example 10.1.0.0/16. URLs without TLS (http) are for \
        these only.",
    );
    CA_FILE = own(
        "ca_file", Path, "File with certificates of authorities of receivers, besides those of the system.",
    );
    HANDSHAKE = own(
        "handshake", Choice(&["required", "optional"]),
        "required: each receiver must allow Kiln to send, as CloudEvents defines it, so that users cannot direct events to others; \
        optional: users decide.",
    ).default("required");
    ORIGIN = own(
        "origin", Text, "Name of this service for receivers (WebHook-Request-Origin).",
    ).computed("the name of the engine's host");
    TIMEOUT = own("timeout", Span, "Maximum time of a request to a receiver.").default("10");
    MAX_PER_PROJECT = own("max_per_project", Whole(0, 1000), "Maximum number of webhooks of a project.").default("10");
}
