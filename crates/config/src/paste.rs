//! What of Heat's `api-paste.ini` has an effect: the audit filter.

use std::path::PathBuf;

use kiln_ini::{DEFAULT, Ini};

use crate::Config;

/// The factory of the filter.
const FACTORY: &str = "keystonemiddleware.audit:";

/// The audit filter of keystonemiddleware in a pipeline.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditFilter {
    /// `audit_map_file`.
    pub map_file: Option<PathBuf>,
    /// `ignore_req_list`.
    pub ignored_methods: Vec<String>,
    /// `ignore_path_list`.
    pub ignored_paths: Vec<String>,
}

/// The audit filter, if a pipeline of the file has one.
pub fn audit_filter(config: &Config) -> Option<AuditFilter> {
    let named = [("paste_deploy", "api_paste_config"), (DEFAULT, "api_paste_config")];
    let given = named.iter().find_map(|(section, name)| Some((section, config.ini.all(section, name).last()?)));
    let name = given.map_or_else(|| "api-paste.ini".to_owned(), |(section, given)| config.ini.replaced(section, given));
    let file = config.beside(&name);
    let mut ini = Ini::default();
    ini.read(&std::fs::read_to_string(&file).ok()?, 0).ok()?;
    let here = file.parent().map(|folder| folder.display().to_string()).unwrap_or_default();
    let value_of =
        |section: &str, name: &str| ini.all(section, name).last().map(|given| given.value.replace("%(here)s", &here));
    let is_used = |filter: &str| {
        let mut pipelines = ini.options().filter(|(_, name, _)| *name == "pipeline");
        pipelines.any(|(.., given)| given.iter().any(|given| given.value.split_whitespace().any(|word| word == filter)))
    };
    let mut sections: Vec<&str> = ini.options().map(|(section, ..)| section).collect();
    sections.sort_unstable();
    let section = sections.into_iter().find(|section| {
        let is_filter = value_of(section, "paste.filter_factory").is_some_and(|factory| factory.starts_with(FACTORY));
        is_filter && section.strip_prefix("filter:").is_some_and(is_used)
    })?;
    let option =
        |name: &str| value_of(section, name).or_else(|| value_of(DEFAULT, name)).filter(|value| !value.is_empty());
    let list = |name: &str| -> Vec<String> {
        option(name).map(|list| list.split(',').map(|item| item.trim().to_owned()).collect()).unwrap_or_default()
    };
    Some(AuditFilter {
        map_file: option("audit_map_file").map(PathBuf::from),
        ignored_methods: list("ignore_req_list"),
        ignored_paths: list("ignore_path_list"),
    })
}
