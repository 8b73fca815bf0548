//! The options of a configuration, without secrets.

use kiln_config::Config;
use kiln_config::option::{At, ConfigOption};
use kiln_config::options::server::CONNECTION;

use crate::database;

/// The options that are set, one line each, without secrets.
pub fn set(config: &Config) -> Vec<String> {
    let line = |at: At<'static>| {
        let (value, source) = config.given(at)?;
        Some(format!("{at} = {} ({source})", shown(at.option, value)))
    };
    Config::places().filter_map(line).collect()
}

/// A value without secrets.
pub fn shown(option: &ConfigOption, value: String) -> String {
    if std::ptr::eq(option, &raw const CONNECTION) {
        database::without_password(&value)
    } else if option.is_secret() {
        "***".to_owned()
    } else {
        value
    }
}
