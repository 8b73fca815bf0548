//! Options that Heat does not have: `[kiln]`.

use super::options;
use crate::option::Kind::{Choice, Flag, Limit, List, Path, Seconds, Span, Text, Url, Whole};
use crate::option::{ConfigOption, Kind, Place};

const fn own(name: &'static str, kind: Kind, help: &'static str) -> ConfigOption {
    ConfigOption::new(Place::Section("kiln"), name, kind, help)
}

options! {
    IGNORE_HEAT_TABLES = own(
        "ignore_heat_tables", Flag,
        "Serve also projects whose stacks belong to a Heat: they look empty. false: their requests get 503 until 'kiln manage \
        take-over switch'.",
    ).default("false");
    HEAT_API_URL = own(
        "heat_api_url", Text,
        "URL of the REST API of a Heat, without a version: http://127.0.0.1:8004. Kiln passes requests for projects that were not \
        switched on to it, as they are. Without it, their requests get 503.",
    );
    HEAT_CFN_URL = own("heat_cfn_url", Text, "The same for the CloudFormation API of Heat, with its signals.");
    DASHBOARD = own(
        "dashboard", Flag,
        "Serve the dashboard on the listener of the REST API, below /dashboard. Users sign in with their Keystone credentials.",
    ).default("false");
    API_SOCKET = own(
        "api_socket", Path, "Unix socket of the REST API, for an HTTP server on the same host. It has no TLS.",
    );
    CFN_SOCKET = own("cfn_socket", Path, "Unix socket of the CloudFormation API.");
    SOCKET_MODE = own("socket_mode", Text, "Permissions of these sockets, in octal.").default("660");
    TCP = own("tcp", Flag, "Listen on bind_host and bind_port too; false: on Unix sockets only.").default("true");
    MAX_CONNECTIONS = own(
        "max_connections", Whole(1, 1_000_000),
        "Maximum number of connections of clients; fewer if the limit of open files is low (256 are reserved for the \
        engine).",
    ).default("2048");
    MAX_CONNECTIONS_PER_ADDRESS = own(
        "max_connections_per_address", Whole(0, 1_000_000),
        "Maximum number of connections of a client's address; 0: no limit. The log has the first one above it, with the \
        project.",
    ).computed("256; no limit behind a proxy");
    TRUSTED_PROXIES = own(
        "trusted_proxies", List,
        "Networks of the proxies whose X-Forwarded-For or Forwarded says the address of a client, for example 10.1.0.0/16. It \
        is used with enable_proxy_headers_parsing, for the log, the audit and the limits of an address.",
    ).default("127.0.0.0/8, ::1");
    MAX_REQUEST_STEPS = own(
        "max_request_steps", Whole(1_000_000, 1_000_000_000_000),
        "Maximum number of steps of the patterns, YAQL expressions and functions in a request; a step takes some 10 ns.",
    ).default("250000000");
    MAX_EVENT_STREAMS = own(
        "max_event_streams", Whole(0, 1_000_000),
        "Maximum number of requests that wait for events (streams, and lists with wait); at most half of the \
        connections. Above it, a stream is rejected with 503 and Retry-After, and a list does not wait.",
    ).computed("half of max_connections");
    MAX_EVENT_STREAMS_PER_PROJECT = own(
        "max_event_streams_per_project", Whole(0, 1_000_000), "The same for a project; a stream is rejected with 429.",
    ).computed("a quarter of max_event_streams");
    HEADER_TIMEOUT = own(
        "header_timeout", Span, "Maximum time to receive the headers of a request, also on an idle connection.",
    ).default("60");
    BODY_TIMEOUT = own("body_timeout", Span, "Maximum time to receive the body of a request.").default("60");
    SEND_TIMEOUT = own("send_timeout", Span, "Maximum time that a client may take to read a response.").default("60");
    CFN_API = own("cfn_api", Flag, "Serve the CloudFormation API too.").default("true");
    CFN_PAGE_SIZE = own(
        "cfn_page_size", Whole(1, 1_000_000), "Maximum number of entries in a list of the CloudFormation API.",
    ).default("1000");
    METRICS_BIND_PORT = own(
        "metrics_bind_port", Whole(0, 65_535), "Serve /metrics for Prometheus on this port. Not set: off.",
    );
    METRICS_BIND_HOST = own("metrics_bind_host", Text, "Address of /metrics; there is no authentication.")
        .default("127.0.0.1");
    OTLP_ENDPOINT = own(
        "otlp_endpoint", Url,
        "Send traces to this collector of OpenTelemetry, by OTLP over HTTP: http://HOST:4318. The path /v1/traces is added.",
    ).computed("variable OTEL_EXPORTER_OTLP_ENDPOINT");
    LOG_FORMAT = own(
        "log_format", Choice(&["text", "json", "oslo"]),
        "Form of the log: readable text, one JSON object a line, or lines as oslo.log writes them. use_json = true means json.",
    ).default("text");
    JOURNAL_SOCKET = own("journal_socket", Path, "Socket of systemd-journald, for use_journal.")
        .default("/run/systemd/journal/socket");
    TEMPLATE_URLS = own("template_urls", Flag, "Read templates from URLs in requests (template_url, TemplateURL).")
        .default("false");
    TEMPLATE_URL_NETWORKS = own(
        "template_url_networks", List,
        "Networks from which templates may be read, in addition to public addresses, for example 10.1.0.0/16.",
    );
    REMOTE_CLOUD_NETWORKS = own(
        "remote_cloud_networks", List,
        "Networks of clouds that stacks may use with their own credentials (credential_secret_id of OS::Heat::Stack), \
         in addition to public addresses, for example 10.1.0.0/16.",
    );
    ENCRYPTION_KEY_FILE = own(
        "encryption_key_file", Path,
        "File with the key if [DEFAULT] auth_encryption_key is not set. A service makes a key there once, if the folder exists: back \
         it up, and copy it to the other hosts.",
    ).default("/var/lib/kiln/auth_encryption_key");
    ENCRYPTION_KEY_FROM = own(
        "encryption_key_from", Text,
        "Where the key is read at each start, instead of [DEFAULT] auth_encryption_key: vault:PATH#FIELD (see [vault]), or \
         barbican:ID for a secret that the user of [keystone_authtoken] may read.",
    );
    MIGRATE = own(
        "migrate", Choice(&["auto", "manual"]),
        "Who upgrades the schema of the database: each process at its start, or the operator, by 'kiln manage db sync', with an \
         account that may define tables. With manual, a process with an older schema does not start.",
    ).default("auto");
    OLDER_ENCRYPTION_KEYS = own(
        "older_encryption_keys", List,
        "Former values of auth_encryption_key, for decryption; see 'kiln manage update-params --help'.",
    ).secret();
    KEEP_DELETED = own(
        "keep_deleted", Whole(0, 36_500),
        "How long deleted stacks are kept, with their events. 'kiln manage purge-deleted' deletes them earlier.",
    ).default("30").unit("days");
    MAX_OPERATIONS_PER_STACK = own(
        "max_operations_per_stack", Whole(0, 1_000_000),
        "Maximum number of operations that are kept of a stack, with the revisions of its template: engines delete the \
         oldest of more; 0: all are kept.",
    ).default("1000");
    PLANS = own(
        "plans", Choice(&["optional", "required"]),
        "Whether a change of a stack needs a saved plan: a create, update, delete, adopt, abandon or restore. With \
         required, a request without one is refused (409), of whatever client, unless the policy rule plans:bypass allows it.",
    ).default("optional");
    PLAN_APPROVALS = own(
        "plan_approvals", Whole(0, 100),
        "Number of users who must approve a saved plan before it is executed, besides those who make and execute it.",
    ).default("0");
    PREFLIGHT = own(
        "preflight", Choice(&["never", "plans", "always"]),
        "Which changes are checked in the cloud before their first call (quotas, names, addresses and so on): none; \
         plans, and requests that ask for it; or each create and update too.",
    ).default("plans");
    DRIFT_INTERVAL = own(
        "drift_interval", Span,
        "How often each stack is compared with its objects in the cloud, unless it or its project has a schedule. See docs/drift.md.",
    ).computed("never");
    DRIFT_MIN_INTERVAL = own(
        "drift_min_interval", Span, "The shortest time between comparisons that users may choose.",
    ).default("900");
    DRIFT_RESOURCES_PER_SECOND = own(
        "drift_resources_per_second", Whole(1, 100_000),
        "How many resources an engine compares for schedules in a second, in the long run.",
    ).default("20");
    PLAN_LIFETIME = own("plan_lifetime", Span, "How long a saved plan can be executed.").default("604800");
    MAX_PLANS_PER_PROJECT = own(
        "max_plans_per_project", Limit, "Maximum number of saved plans and change sets of a project.",
    ).default("1000");
    MAX_OPERATIONS_PER_PROJECT = own(
        "max_operations_per_project", Limit,
        "Maximum number of stacks of a project, without nested ones, that have an operation in progress at once. One more \
         operation gets 429 with Retry-After; signals, agents, and requests to a stack that is in progress have no limit.",
    ).default("-1");
    REQUEST_RATE_PER_PROJECT = own(
        "request_rate_per_project", Whole(0, 1_000_000),
        "Requests of a project per second that a process answers in the long run; 0: no limit. More get 429 with Retry-After. \
         Signals and the agents of servers have no limit.",
    ).default("500");
    REQUEST_BURST_PER_PROJECT = own(
        "request_burst_per_project", Whole(1, 1_000_000), "Requests of a project that may come at once.",
    ).default("5000");
    REQUEST_RATE_PER_ADDRESS = own(
        "request_rate_per_address", Whole(0, 1_000_000),
        "The same for the address of a client, before its token is validated; 0: no limit. Behind a proxy, set \
         enable_proxy_headers_parsing and trusted_proxies: all clients would share the address of the proxy.",
    ).default("0");
    REQUEST_BURST_PER_ADDRESS = own(
        "request_burst_per_address", Whole(1, 1_000_000), "Requests of an address that may come at once.",
    ).default("2000");
    AUDIT = own(
        "audit", Flag,
        "Write audit events of requests in CADF, to the destination of [audit_middleware_notifications]. See docs/audit.md.",
    ).computed("true if a pipeline of api-paste.ini has the audit filter of keystonemiddleware");
    AUDIT_MAP_FILE = own(
        "audit_map_file", Path, "File with the words of paths and the actions for audit events, as of pycadf.",
    ).computed("audit_map_file of the filter; otherwise the map of Kiln");
    AUDIT_IGNORE_METHODS = own("audit_ignore_methods", List, "Methods that are not audited.")
        .computed("ignore_req_list of the filter; without a filter: GET, HEAD, OPTIONS");
    AUDIT_IGNORE_PATHS = own("audit_ignore_paths", List, "Paths that are not audited.")
        .computed("ignore_path_list of the filter");
    AUDIT_SPOOL = own(
        "audit_spool", Path,
        "Folder of audit events that are not delivered yet. Each process has its own file there, which survives a crash.",
    ).default("/var/lib/kiln/audit");
    AUDIT_SPOOL_LIMIT = own(
        "audit_spool_limit", Whole(1, 1_000_000), "Maximum size of the audit events of a process that are not delivered.",
    ).default("1024").unit("MiB");
    AUDIT_ON_FAILURE = own(
        "audit_on_failure", Choice(&["continue", "refuse"]),
        "What happens to a request whose audit event cannot be written, because the disk or the spool is full: it is carried \
         out and the log has an error, or it is refused (503).",
    ).default("continue");
    LEASE = own(
        "lease", Span, "Time without a heartbeat of an engine after which others take over its stacks.",
    ).default("15");
    CALL_TIMEOUT = own("call_timeout", Span, "Maximum time of a call to a cloud service.").default("60");
    CALL_LIMIT = own(
        "call_limit", Seconds,
        "Time until the result of a create call without a response is visible in the cloud. The call is not repeated \
         before.",
    ).computed("call_timeout + 15; with plugins at least 2 plugin_timeout + 15");
    LIST_DELAY = own("list_delay", Seconds, "Time until a service lists an object that it created.").default("10");
    DRAIN = own("drain", Seconds, "Time that a stopping engine waits for calls.")
        .computed("call_timeout + 15; with plugins at least plugin_timeout + 15");
    LIFECYCLE_PLUGINS = own(
        "lifecycle_plugins", List,
        "Programs (absolute paths) that run before and after each operation; see 'kiln engine --help'.",
    );
    LIFECYCLE_TIMEOUT = own("lifecycle_timeout", Span, "Maximum time of such a program.").default("60");
    PLUGINS = own(
        "plugins", List,
        "Programs (absolute paths, with arguments) that implement resource types and custom constraints, and change \
         scheduler hints; see docs/plugins.md.",
    );
    PLUGIN_TIMEOUT = own("plugin_timeout", Span, "Maximum time of a call of such a program.").default("60");
    RESOURCE_TYPES_DIR = own(
        "resource_types_dir", Path, "Folder with definition files of resource types, which take precedence.",
    );
    JURISDICTION = own(
        "jurisdiction", Text,
        "Country of the region (ISO 3166, such as DE), for blueprints that allow only some countries.",
    );
    TOPOLOGY_TYPES_DIR = own(
        "topology_types_dir", Path,
        "Folder with type files for blueprints, CAMP plans and TOSCA; see docs/topology-types.md.",
    );
}
