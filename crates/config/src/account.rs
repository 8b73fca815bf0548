//! The options of a Keystone user.

use anyhow::Result;
use kiln_cloud::Named;
use kiln_value::Secret;

use super::Config;
use super::option::ConfigOption;
use super::options::clouds as options;

/// A Keystone user that is configured in a section: `[keystone_authtoken]`, `[trustee]`.
#[derive(Clone, Debug)]
pub struct Account {
    /// URL of Keystone.
    pub auth_url: Option<String>,
    /// User name.
    pub username: Option<String>,
    /// User ID, instead of the name.
    pub user_id: Option<String>,
    /// Password.
    pub password: Option<Secret<String>>,
    /// Domain of the user.
    pub user_domain: Named,
    /// Project.
    pub project: Option<String>,
    /// ID of the project, instead of the name.
    pub project_id: Option<String>,
    /// Domain of the project.
    pub project_domain: Named,
    /// Region.
    pub region: Option<String>,
    /// File with CA certificates.
    pub cafile: Option<String>,
    /// File with the client certificate.
    pub certfile: Option<String>,
    /// File with the key of the client certificate.
    pub keyfile: Option<String>,
    /// Do not verify certificates.
    pub insecure: bool,
}

impl Account {
    /// Whether a user is given.
    pub fn has_user(&self) -> bool {
        self.username.is_some() || self.user_id.is_some()
    }
}

impl Config {
    /// The user that a section configures; `auth_section` refers to another section.
    pub fn account(&self, group: &str) -> Result<Account> {
        let section = self.text(options::AUTH_SECTION.of(group)).unwrap_or_else(|| group.to_owned());
        let get = |option: &'static ConfigOption| self.text(option.of(&section));
        let domain = |id, name| match get(id) {
            Some(id) => Named::id(id),
            None => Named::Name { name: get(name).unwrap_or_else(|| "Default".to_owned()), domain: None },
        };
        self.choice(options::AUTH_TYPE.of(&section))?;
        Ok(Account {
            auth_url: get(&options::AUTH_URL),
            username: get(&options::USERNAME),
            user_id: get(&options::USER_ID),
            password: self.secret(options::PASSWORD.of(&section)),
            user_domain: domain(&options::USER_DOMAIN_ID, &options::USER_DOMAIN_NAME),
            project: get(&options::PROJECT_NAME),
            project_id: get(&options::PROJECT_ID),
            project_domain: domain(&options::PROJECT_DOMAIN_ID, &options::PROJECT_DOMAIN_NAME),
            region: get(&options::REGION_NAME),
            cafile: get(&options::ACCOUNT_CAFILE),
            certfile: get(&options::ACCOUNT_CERTFILE),
            keyfile: get(&options::ACCOUNT_KEYFILE),
            insecure: self.flag(options::ACCOUNT_INSECURE.of(&section))?,
        })
    }
}
