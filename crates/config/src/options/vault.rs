//! Options of a Vault or an OpenBao with secrets of the operator: `[vault]`, with the names of Castellan.

use super::options;
use crate::option::Kind::{Path, Text, Url};
use crate::option::{ConfigOption, Kind, Place};

const fn vault(name: &'static str, kind: Kind, help: &'static str) -> ConfigOption {
    ConfigOption::new(Place::Section("vault"), name, kind, help)
}

options! {
    URL = vault("vault_url", Url, "URL of Vault or OpenBao: https, except on this host.").default("http://127.0.0.1:8200");
    TOKEN = vault("root_token_id", Text, "A token that may read the secrets. A root token is not needed.").secret();
    ROLE_ID = vault("approle_role_id", Text, "ID of an AppRole that may read the secrets, instead of a token.");
    SECRET_ID = vault("approle_secret_id", Text, "The secret ID of the AppRole.").secret();
    MOUNT = vault("kv_mountpoint", Text, "Mount point of the KV store, of version 2.").default("secret");
    NAMESPACE = vault("namespace", Text, "Namespace of the secrets.");
    CA_FILE = vault("ssl_ca_crt_file", Path, "File with certificates of authorities of Vault.");
}
