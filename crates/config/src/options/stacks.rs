//! Options of stacks: `[DEFAULT]`, `[yaql]`, `[volumes]`, `[revision]`.

use super::options;
use crate::option::Kind::{Choice, Flag, Limit, List, Path, Seconds, Text, Url, Whole};
use crate::option::{ConfigOption, Kind, Place};

const fn main(name: &'static str, kind: Kind, help: &'static str) -> ConfigOption {
    ConfigOption::new(Place::Section("DEFAULT"), name, kind, help)
}

const MOST: i64 = u32::MAX as i64;

options! {
    AUTH_ENCRYPTION_KEY = main(
        "auth_encryption_key", Text,
        "Key that encrypts the credentials in the database: 32 characters, the same on all hosts. Required; generate one \
         with 'openssl rand -hex 16'.",
    ).secret();
    ENCRYPT_PARAMETERS_AND_PROPERTIES = main(
        "encrypt_parameters_and_properties", Flag,
        "Encrypt parameters, properties, attributes, metadata, templates and files in the database too.",
    ).default("false");
    DEFERRED_AUTH_METHOD = main(
        "deferred_auth_method", Choice(&["trusts", "password"]),
        "How a stack acts for its user after the request: with a trust, or with the password that the user must give \
         in the headers X-Auth-User and X-Auth-Key (heat --include-password).",
    ).default("trusts");
    TRUSTS_DELEGATED_ROLES = main(
        "trusts_delegated_roles", List,
        "Roles that a user delegates to the trustee; empty: all roles of the user.",
    );
    STACK_USER_DOMAIN_ID = main("stack_user_domain_id", Text, "ID of the Keystone domain for the users of stacks.")
        .older(&["stack_user_domain"]);
    STACK_USER_DOMAIN_NAME = main(
        "stack_user_domain_name", Text,
        "Name of the Keystone domain for the users of stacks, unless stack_user_domain_id is set.",
    );
    STACK_DOMAIN_ADMIN = main("stack_domain_admin", Text, "Name of the administrator of that domain.");
    STACK_DOMAIN_ADMIN_PASSWORD = main(
        "stack_domain_admin_password", Text, "Password of the administrator of that domain.",
    ).secret();
    HEAT_STACK_USER_ROLE = main(
        "heat_stack_user_role", Text, "Keystone role of the users of stacks. They may use only a few calls of the API.",
    ).default("heat_stack_user");
    HEAT_WAITCONDITION_SERVER_URL = main(
        "heat_waitcondition_server_url", Url,
        "URL of the CloudFormation API for servers that report to wait conditions, with or without /waitcondition.",
    ).computed("endpoint cloudformation of the catalog");
    HEAT_METADATA_SERVER_URL = main(
        "heat_metadata_server_url", Url,
        "URL of the CloudFormation API for servers that read their metadata, with or without /v1.",
    ).computed("endpoint cloudformation of the catalog");
    REGION_NAME_FOR_SERVICES = main("region_name_for_services", Text, "Region of the services in the catalog.")
        .computed("[keystone_authtoken] region_name");
    DEFAULT_SOFTWARE_CONFIG_TRANSPORT = main(
        "default_software_config_transport",
        Choice(&["POLL_SERVER_CFN", "POLL_SERVER_HEAT", "POLL_TEMP_URL", "ZAQAR_MESSAGE"]),
        "How the agent of a server receives its software deployments, unless the template sets it.",
    ).default("POLL_SERVER_CFN");
    DEFAULT_DEPLOYMENT_SIGNAL_TRANSPORT = main(
        "default_deployment_signal_transport",
        Choice(&["CFN_SIGNAL", "TEMP_URL_SIGNAL", "HEAT_SIGNAL", "ZAQAR_SIGNAL"]),
        "How a server reports the result of a software deployment, unless the template sets it.",
    ).default("CFN_SIGNAL");
    DEFAULT_USER_DATA_FORMAT = main(
        "default_user_data_format", Choice(&["HEAT_CFNTOOLS", "RAW", "SOFTWARE_CONFIG"]),
        "Format of the user data of a server, unless the template sets it.",
    ).default("HEAT_CFNTOOLS");
    ENVIRONMENT_DIR = main(
        "environment_dir", Path, "Folder with environment files that apply to all stacks.",
    ).computed("environment.d beside the configuration file, such as /etc/heat/environment.d for /etc/heat/heat.conf");
    HIDDEN_STACK_TAGS = main(
        "hidden_stack_tags", List, "Stacks with one of these tags are not in lists.",
    ).default("data-processing-cluster");
    STACK_SCHEDULER_HINTS = main(
        "stack_scheduler_hints", Flag,
        "Servers and volumes get hints that tell the schedulers of Nova and Cinder their stack and resource.",
    ).default("false");
    MAX_TEMPLATE_SIZE = main("max_template_size", Whole(1, MOST), "Maximum size of a template.")
        .default("524288").unit("bytes");
    MAX_JSON_BODY_SIZE = main(
        "max_json_body_size", Whole(1, MOST), "Maximum size of the body of a request.",
    ).default("1048576").unit("bytes");
    MAX_STACKS_PER_TENANT = main(
        "max_stacks_per_tenant", Limit, "Maximum number of stacks in a project, without nested ones.",
    ).default("512");
    MAX_RESOURCES_PER_STACK = main(
        "max_resources_per_stack", Limit, "Maximum number of resources in a stack and its nested stacks.",
    ).default("1000");
    MAX_NESTED_STACK_DEPTH = main(
        "max_nested_stack_depth", Whole(0, MOST), "Maximum depth of nested stacks.",
    ).default("5");
    MAX_SNAPSHOTS_PER_STACK = main("max_snapshots_per_stack", Limit, "Maximum number of snapshots of a stack.")
        .default("32");
    MAX_SOFTWARE_CONFIGS_PER_TENANT = main(
        "max_software_configs_per_tenant", Limit, "Maximum number of software configs in a project.",
    ).default("4096");
    MAX_SOFTWARE_DEPLOYMENTS_PER_TENANT = main(
        "max_software_deployments_per_tenant", Limit, "Maximum number of software deployments in a project.",
    ).default("4096");
    MAX_EVENTS_PER_STACK = main(
        "max_events_per_stack", Whole(0, MOST),
        "Maximum number of events that are kept for a stack; engines delete older ones. 0: all are kept.",
    ).default("1000");
    STACK_ACTION_TIMEOUT = main(
        "stack_action_timeout", Whole(0, MOST), "Maximum time of an operation on a stack, unless the request sets one.",
    ).default("3600").unit("seconds");
    ACTION_RETRY_LIMIT = main(
        "action_retry_limit", Whole(0, MOST),
        "How often a resource is created again, under a new name, after the cloud reported a failure of it.",
    ).default("5");
    CLIENT_RETRY_LIMIT = main(
        "client_retry_limit", Whole(0, MOST), "How often a call to a cloud service is repeated after a failure.",
    ).default("6");
    TEMPLATE_FETCH_TIMEOUT = main(
        "template_fetch_timeout", Seconds, "Maximum time to read a template from a URL.",
    ).default("60");
    OBSERVE_ON_UPDATE = main(
        "observe_on_update", Flag, "Compare with the objects in the cloud at every update, not only with the stored state.",
    ).default("false");
    ENABLE_STACK_ADOPT = main("enable_stack_adopt", Flag, "Allow users to adopt stacks.").default("false");
    ENABLE_STACK_ABANDON = main("enable_stack_abandon", Flag, "Allow users to abandon stacks.").default("false");
    HOST = main("host", Text, "Name of this host in the list of engines and in notifications.")
        .computed("host name of the machine");
    LIMIT_ITERATORS = ConfigOption::new(
        Place::Section("yaql"), "limit_iterators", Limit, "Maximum number of elements that a YAQL expression may produce.",
    ).default("200");
    MEMORY_QUOTA = ConfigOption::new(
        Place::Section("yaql"), "memory_quota", Limit, "Maximum memory of a YAQL expression; 0: no limit.",
    ).default("10000").unit("bytes");
    BACKUPS_ENABLED = ConfigOption::new(
        Place::Section("volumes"), "backups_enabled", Flag,
        "Whether the cloud has a service for backups of volumes. Without it, volumes with the deletion policy Snapshot \
        are rejected.",
    ).default("true");
    HEAT_REVISION = ConfigOption::new(
        Place::Section("revision"), "heat_revision", Text, "Revision that the API reports in build_info.",
    ).default("unknown");
}
