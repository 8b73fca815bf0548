//! Custom constraints that a plug-in checks.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use kiln_resource::Cloud;
use kiln_resource::constraint::ConstraintCheck;
use kiln_value::{Value, text, value};
use moka::future::Cache;

use crate::access::optional_access;
use crate::answer;
use crate::call::CallError;
use crate::plugin::Plugin;

/// How long an accepted value is not asked about again, as for the finders of the cloud.
const REMEMBERED: Duration = Duration::from_mins(1);
/// How many accepted values are remembered.
const VALUES: u64 = 10_000;

/// The method that checks a value.
const METHOD: &str = "validate_constraint";

/// Checks values with a plug-in. As in Heat, only accepted values are remembered, by project and user.
pub(crate) struct PluginConstraints {
    plugin: Arc<Plugin>,
    accepted: Cache<(String, String, String), ()>,
}

impl PluginConstraints {
    pub(crate) fn new(plugin: Arc<Plugin>) -> Self {
        Self { plugin, accepted: Cache::builder().max_capacity(VALUES).time_to_live(REMEMBERED).build() }
    }
}

#[async_trait]
impl ConstraintCheck for PluginConstraints {
    async fn check(&self, cloud: &dyn Cloud, name: &str, value: &Value) -> Result<(), String> {
        let failed = |error: CallError| error.failure(&self.plugin.name, METHOD).message;
        let (access, token) = optional_access(cloud).await;
        let part = |key: &str| access.str_at(key).unwrap_or_default().to_owned();
        let key = (format!("{}/{}", part("project_id"), part("user_id")), name.to_owned(), text::json(value));
        if self.accepted.get(&key).await.is_some() {
            return Ok(());
        }
        let line = self.plugin.line(&part("project_id")).await.map_err(failed)?;
        let params = value!({"constraint": name, "value": value, "access": access});
        let result = line.call(METHOD, params, token).await.map_err(failed)?;
        if let Some(why) = answer::verdict(&result).map_err(|why| failed(CallError::Broken(why)))? {
            return Err(why);
        }
        self.accepted.insert(key, ()).await;
        Ok(())
    }
}
