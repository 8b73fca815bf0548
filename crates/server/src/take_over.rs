//! What a take-over of the stacks of a Heat needs of both configurations.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use kiln_cloud::Credentials;
use kiln_config::Config;
use kiln_config::check::Finding;
use kiln_config::options::{self, server, stacks};
use kiln_plan::ResourceTypes;
use kiln_store::Options;
use kiln_take_over::{CloudCheck, Converter, HeatDatabase, HeatKey};
use kiln_value::Secret;

use crate::database::{self, PUBLIC_KEY};
use crate::heat_settings::settings;
use crate::policy_files::PolicyFiles;
use crate::service_cloud::{ServiceCloud, credentials};
use crate::{client_view, plugins, resource_types};

/// Connections to the database of Heat.
const CONNECTIONS: u32 = 2;

/// A Heat whose stacks are taken over.
pub struct Heat {
    /// Its database.
    pub database: HeatDatabase,
    /// Its key.
    pub key: HeatKey,
    /// The options of its database.
    pub options: Options,
    /// Whether that is the default, which is public.
    pub has_public_key: bool,
    /// Whether it encrypts parameters and properties.
    pub encrypts: bool,
    /// The user to whom its trusts delegate; `None`: its configuration has none.
    pub trustee: Option<Credentials>,
    config: Config,
}

impl Heat {
    /// Opens the database of the Heat with this configuration file.
    pub async fn open(file: &Path) -> Result<Self> {
        let config = Config::of_files(vec![file.to_owned()])?;
        let place = file.display();
        let Some(url) = config.text(&server::CONNECTION) else { bail!("{place}: [database] connection is not set") };
        let given = config.secret(&stacks::AUTH_ENCRYPTION_KEY);
        let secret = given.unwrap_or_else(|| Secret::new(PUBLIC_KEY.to_owned()));
        let has_public_key = database::is_public(&secret);
        let key = HeatKey::new(&secret).with_context(|| format!("{place}: [DEFAULT] auth_encryption_key"))?;
        let options = Options { max_connections: CONNECTIONS, ..Options::new(url, Secret::new(PUBLIC_KEY.to_owned())) };
        let opened = Box::pin(HeatDatabase::open(&options)).await;
        let database =
            opened.map_err(|error| database::refused(&options.url, &error)).with_context(|| place.to_string())?;
        let encrypts = config.flag(&stacks::ENCRYPT_PARAMETERS_AND_PROPERTIES)?;
        Ok(Self { database, key, options, has_public_key, encrypts, trustee: trustee(&config)?, config })
    }

    /// What its configuration, its policy and its environment say that a Kiln does not do, or does otherwise.
    pub fn settings(&self, kiln: &Config) -> Vec<Finding> {
        settings(&self.config, kiln)
    }

    /// Its database, and the conversion of its stacks with the types of a Kiln, without credentials.
    pub async fn for_reading(self, kiln: &Config) -> Result<(HeatDatabase, Converter)> {
        let types = Arc::new(resource_types::of_service(kiln, plugins::of_config(kiln).await?)?);
        Ok((self.database, Converter { types, key: self.key, trustee: None, events: 1 }))
    }

    /// The same to import them. `events`: at most so many of each tree; 0: all.
    ///
    /// # Errors
    /// If the trusts of its stacks delegate to another user than that of Kiln's configuration.
    pub async fn for_importing(self, kiln: &Config, events: usize) -> Result<(HeatDatabase, Converter)> {
        let own = trustee(kiln)?;
        if let (Some(own), Some(heat)) = (&own, &self.trustee)
            && own.describe() != heat.describe()
        {
            bail!(
                "the trusts of Heat's stacks delegate to its user of [trustee] ({}), and Kiln's is another one ({}): set \
                 [trustee] of Kiln as in Heat",
                heat.describe(),
                own.describe()
            );
        }
        let (database, converter) = self.for_reading(kiln).await?;
        Ok((database, Converter { trustee: own, events, ..converter }))
    }
}

/// What asks the cloud of a Kiln about the stacks of a Heat.
pub fn cloud_check(kiln: &Config, types: &Arc<ResourceTypes>) -> Result<CloudCheck> {
    let policy = Arc::new(PolicyFiles::of(kiln)?.read()?);
    let ServiceCloud { connector, identity, signalling, .. } =
        ServiceCloud::of_config(kiln, types, Arc::clone(&policy))?;
    let rate = kiln.number(&options::kiln::DRIFT_RESOURCES_PER_SECOND)?;
    let views = client_view::both(kiln, &identity, &policy)?;
    Ok(CloudCheck::new(Arc::clone(types), connector, identity, signalling, rate).with_views(views))
}

/// The user to whom trusts delegate: that of `[trustee]`, or the service user.
fn trustee(config: &Config) -> Result<Option<Credentials>> {
    for section in ["trustee", "keystone_authtoken"] {
        let account = config.account(section)?;
        if account.has_user() {
            return credentials(&account, section, false).map(Some);
        }
    }
    Ok(None)
}
