//! Options of Keystone users and of the clients of cloud services.

use super::options;
use crate::option::Kind::{Choice, Flag, List, Path, Text, Url, Whole};
use crate::option::Place::{Account, Clients, Section};
use crate::option::{ConfigOption, Kind};

const fn account(name: &'static str, kind: Kind, help: &'static str) -> ConfigOption {
    ConfigOption::new(Account, name, kind, help)
}

const fn client(name: &'static str, kind: Kind, help: &'static str) -> ConfigOption {
    ConfigOption::new(Clients, name, kind, help)
}

options! {
    AUTH_SECTION = account("auth_section", Text, "Section with the options of this user.");
    AUTH_TYPE = account(
        "auth_type", Choice(&["password", "v3password"]), "How the user logs in; only by password.",
    ).default("password").older(&["auth_plugin"]);
    AUTH_URL = account(
        "auth_url", Url, "URL of Keystone, with or without /v3. Required in [keystone_authtoken].",
    ).older(&["identity_uri"]);
    USERNAME = account("username", Text, "Name of the user. Without one in [trustee], the service user is the trustee.")
        .older(&["user_name"]);
    USER_ID = account("user_id", Text, "ID of the user, instead of name and domain.");
    PASSWORD = account("password", Text, "Password of the user.").secret();
    USER_DOMAIN_ID = account("user_domain_id", Text, "ID of the user's domain.");
    USER_DOMAIN_NAME = account("user_domain_name", Text, "Name of the user's domain, unless its ID is set.")
        .computed("Default");
    PROJECT_NAME = account("project_name", Text, "Project of the user.").older(&["tenant_name"]);
    PROJECT_ID = account("project_id", Text, "ID of the project, instead of name and domain.").older(&["tenant_id"]);
    PROJECT_DOMAIN_ID = account("project_domain_id", Text, "ID of the project's domain.");
    PROJECT_DOMAIN_NAME = account("project_domain_name", Text, "Name of the project's domain, unless its ID is set.")
        .computed("Default");
    REGION_NAME = account("region_name", Text, "Region of Keystone in the catalog.");
    ACCOUNT_CAFILE = account("cafile", Path, "File with certificates of authorities for the connection to Keystone.")
        .older(&["ca_file"])
        .computed("the certificates of the system");
    ACCOUNT_CERTFILE = account("certfile", Path, "File with the client certificate, and the key unless keyfile is set.")
        .older(&["cert_file"]);
    ACCOUNT_KEYFILE = account("keyfile", Path, "File with the key of the client certificate.").older(&["key_file"]);
    ACCOUNT_INSECURE = account("insecure", Flag, "Do not verify certificates.").default("false");
    WWW_AUTHENTICATE_URI = ConfigOption::new(
        Section("keystone_authtoken"), "www_authenticate_uri", Url, "Public URL of Keystone, for users and servers.",
    ).older(&["auth_uri"]).computed("auth_url");
    TOKEN_CACHE_TIME = ConfigOption::new(
        Section("keystone_authtoken"), "token_cache_time", Whole(-1, u32::MAX as i64),
        "How long the answer of Keystone about a token is kept; -1: not at all.",
    ).default("300").unit("seconds");
    SERVICE_TOKEN_ROLES = ConfigOption::new(
        Section("keystone_authtoken"), "service_token_roles", List,
        "Roles of which a service token needs one.",
    ).default("service");
    SERVICE_TOKEN_ROLES_REQUIRED = ConfigOption::new(
        Section("keystone_authtoken"), "service_token_roles_required", Flag,
        "Reject service tokens without such a role; otherwise they are only logged.",
    ).default("false");
    EC2_MULTI_CLOUD = ConfigOption::new(
        Section("ec2authtoken"), "multi_cloud", Flag,
        "Verify signatures of EC2 keys with several Keystones: the users are in [ec2authtoken.CLOUD].",
    ).default("false");
    EC2_CLOUDS = ConfigOption::new(Section("ec2authtoken"), "clouds", List, "The clouds, in the order of the requests.");
    EC2_AUTH_URI = ConfigOption::new(Section("ec2authtoken"), "auth_uri", Url, "Older form of auth_url.");
    ENDPOINT_TYPE = client(
        "endpoint_type", Choice(&["public", "internal", "admin", "publicURL", "internalURL", "adminURL"]),
        "Endpoint of the catalog that is used.",
    ).computed("the value in [clients]; there: public");
    CA_FILE = client("ca_file", Path, "File with certificates of authorities.").computed("the value in [clients]");
    CERT_FILE = client("cert_file", Path, "File with the client certificate.").computed("the value in [clients]");
    KEY_FILE = client("key_file", Path, "File with the key of the client certificate.").computed("the value in [clients]");
    INSECURE = client("insecure", Flag, "Do not verify certificates.").computed("the value in [clients]; there: false");
    HEAT_URL = ConfigOption::new(
        Section("clients_heat"), "url", Text,
        "Public URL of the REST API, if it differs from the catalog: http://HOST:8004/v1/%(tenant_id)s.",
    );
}
