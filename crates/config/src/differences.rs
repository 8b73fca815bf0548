//! What the users of a Heat would notice of another configuration: `kiln manage take-over inventory`.

use crate::Config;
use crate::check::{Finding, warning};
use crate::option::{At, ConfigOption, Kind, Place, as_flag, client_sections};
use crate::options::stacks::{ENVIRONMENT_DIR, HEAT_REVISION, HOST};
use crate::options::{clouds, server, stacks};

/// Options about where a service runs, and a folder whose content matters.
const OTHERS: [&ConfigOption; 3] = [&HOST, &HEAT_REVISION, &ENVIRONMENT_DIR];

/// Options about stacks and about the clients of services that have one value in the configuration of a Heat and another in that of
/// a Kiln, with the place in the configuration of the Heat. Secrets are not compared.
pub fn differences(heat: &Config, kiln: &Config) -> Vec<Finding> {
    compared().filter_map(|at| difference(at, heat, kiln)).collect()
}

fn compared() -> impl Iterator<Item = At<'static>> {
    let of_stacks = stacks::TABLE.iter().filter(|option| !OTHERS.iter().any(|other| std::ptr::eq(*other, **option)));
    let policy = [&server::ENFORCE_NEW_DEFAULTS];
    let ec2 = clouds::TABLE.iter().filter(|option| option.place() == Place::Section("ec2authtoken"));
    let single = of_stacks.copied().chain(policy).chain(ec2.copied());
    let single = single.filter(|option| option.is_heats() && !option.is_secret()).map(At::from);
    let clients = clouds::TABLE.iter().filter(|option| option.place() == Place::Clients);
    single.chain(clients.flat_map(|option| client_sections().map(|section| option.of(section))))
}

fn difference(at: At<'static>, heat: &Config, kiln: &Config) -> Option<Finding> {
    let (here, there) = (heat.text(at), kiln.text(at));
    if meaning(at, here.as_deref()) == meaning(at, there.as_deref()) {
        return None;
    }
    let shown = |value: Option<String>| value.map_or_else(|| "not set".to_owned(), |value| format!("{value:?}"));
    Some(warning(heat, at, format!("is {} in Heat and {} in Kiln", shown(here), shown(there))))
}

/// A value without the ways to write it.
fn meaning(at: At<'_>, value: Option<&str>) -> Option<String> {
    let value = value?.trim();
    Some(match at.option.kind() {
        Kind::Flag => as_flag(value)?.to_string(),
        Kind::List => value.split(',').map(str::trim).collect::<Vec<_>>().join(","),
        _ => value.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(heat: &str, kiln: &str) -> Vec<String> {
        let (heat, kiln) = (Config::parse(heat).unwrap(), Config::parse(kiln).unwrap());
        differences(&heat, &kiln).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_users_would_notice_is_told() {
        let heat = "[DEFAULT]\nmax_stacks_per_tenant = 7\nhidden_stack_tags = a,b\nenable_stack_adopt = True\n\
                    stack_domain_admin_password = 1\n[clients_nova]\nendpoint_type = internal\n";
        let kiln = "[DEFAULT]\nhidden_stack_tags = a, b\nenable_stack_adopt = true\nenvironment_dir = /etc/kiln/env\n\
                    stack_domain_admin_password = 2\n";
        assert_eq!(
            told(heat, kiln),
            [
                "kiln.conf:2: warning: [DEFAULT] max_stacks_per_tenant is \"7\" in Heat and \"512\" in Kiln",
                "kiln.conf:7: warning: [clients_nova] endpoint_type is \"internal\" in Heat and not set in Kiln",
            ]
        );
        assert_eq!(told(heat, heat), [""; 0]);
    }

    #[test]
    fn where_things_run_is_no_difference() {
        let heat = "[DEFAULT]\nhost = a\n[database]\nconnection = sqlite://\n[heat_api]\nbind_port = 1\n";
        assert_eq!(told(heat, "[DEFAULT]\nhost = b\n"), [""; 0]);
    }
}
