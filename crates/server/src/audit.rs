//! The audit of requests: whether, of which, and where to.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use kiln_audit::{AuditMap, Auditor, Destination, OnFailure, Rules, Spool, Trail};
use kiln_bus::AuditTo;
use kiln_config::options::kiln;
use kiln_config::{Config, paste};
use kiln_stack::Chance;

use crate::shutdown::{self, Stop};

/// The sender of the notifications, as of Heat.
const PUBLISHER: &str = "heat-api";
/// Methods that are not audited without a filter in `api-paste.ini`.
const READING: [&str; 3] = ["GET", "HEAD", "OPTIONS"];
/// How long a stopping service delivers what is left.
const LAST: Duration = Duration::from_secs(5);

/// Writes audit events, and delivers them.
#[derive(Clone)]
pub(crate) struct Audit {
    pub(crate) auditor: Arc<Auditor>,
    destination: Option<Arc<dyn Destination>>,
}

/// What the options say, before anything is opened.
struct Settings {
    rules: Rules,
    map: AuditMap,
    to: AuditTo,
    folder: PathBuf,
    limit: u64,
    on_failure: OnFailure,
}

impl Settings {
    /// `None`: there is no audit.
    fn of(config: &Config) -> Result<Option<Self>> {
        let filter = paste::audit_filter(config);
        if !config.flag_if_set(&kiln::AUDIT)?.unwrap_or(filter.is_some()) {
            return Ok(None);
        }
        let given = |list: Vec<String>, usual: Vec<String>| if list.is_empty() { usual } else { list };
        let methods = match &filter {
            Some(filter) => filter.ignored_methods.clone(),
            None => READING.map(str::to_owned).to_vec(),
        };
        let paths = filter.as_ref().map(|filter| filter.ignored_paths.clone()).unwrap_or_default();
        let file = config.text(&kiln::AUDIT_MAP_FILE).map(PathBuf::from);
        let map = match file.or_else(|| filter.and_then(|filter| filter.map_file)) {
            Some(file) => {
                AuditMap::read(&file).with_context(|| format!("[kiln] audit_map_file: {}", file.display()))?
            }
            None => AuditMap::default(),
        };
        Ok(Some(Self {
            rules: Rules::new(
                &given(config.list(&kiln::AUDIT_IGNORE_METHODS), methods),
                &given(config.list(&kiln::AUDIT_IGNORE_PATHS), paths),
            ),
            map,
            to: kiln_bus::audit_of_config(config, PUBLISHER).context("[audit_middleware_notifications]")?,
            folder: config.text(&kiln::AUDIT_SPOOL).map(PathBuf::from).unwrap_or_default(),
            limit: config.number::<u64>(&kiln::AUDIT_SPOOL_LIMIT)? * 1024 * 1024,
            on_failure: match config.choice(&kiln::AUDIT_ON_FAILURE)?.as_deref() {
                Some("refuse") => OnFailure::Refuse,
                _ => OnFailure::Continue,
            },
        }))
    }
}

/// Reads the options only.
pub(crate) fn check(config: &Config) -> Result<()> {
    Settings::of(config).map(drop)
}

impl Audit {
    /// The configured audit; `None`: there is none.
    pub(crate) fn of_config(config: &Config) -> Result<Option<Self>> {
        let Some(settings) = Settings::of(config)? else { return Ok(None) };
        let Settings { rules, map, to, folder, limit, on_failure } = settings;
        let (trail, destination) = match to {
            AuditTo::Nothing => return Ok(None),
            AuditTo::Log => (Trail::Log, None),
            AuditTo::Bus(destination) => {
                let name = Chance::from_os().uuid().to_string();
                let spool = Spool::open(&folder, &name, limit).context("[kiln] audit_spool")?;
                (Trail::Spool(Arc::new(spool)), Some(destination))
            }
        };
        Ok(Some(Self { auditor: Arc::new(Auditor::new(rules, map, trail, on_failure)), destination }))
    }

    /// Delivers events until a stop is requested, then those that are left.
    pub(crate) async fn deliver(&self, stop: Stop) {
        let (Some(spool), Some(destination)) = (self.auditor.spool(), &self.destination) else { return };
        shutdown::until(stop, spool.deliver(&**destination)).await;
        spool.flush(&**destination, LAST).await;
    }
}
