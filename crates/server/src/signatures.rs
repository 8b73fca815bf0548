//! The Keystone users that check the signatures of EC2 keys: section `[ec2authtoken]`, with Heat's names.

use anyhow::{Result, bail};
use kiln_cloud::Session;
use kiln_config::Config;
use kiln_config::options::clouds;

use crate::clients;
use crate::service_cloud::credentials;

/// The section.
const SECTION: &str = "ec2authtoken";

/// The sessions, in the order in which they are asked. Without a user of its own, a section uses that of the service
/// (`service`).
pub fn sessions(config: &Config, service: Session) -> Result<Vec<Session>> {
    if !config.flag(&clouds::EC2_MULTI_CLOUD)? {
        return Ok(vec![session(config, SECTION)?.unwrap_or(service)]);
    }
    let names = config.list(&clouds::EC2_CLOUDS);
    if names.is_empty() {
        bail!("[{SECTION}] clouds is not set: with multi_cloud, it lists the clouds");
    }
    let mut sessions = Vec::new();
    for cloud in names {
        let section = format!("{SECTION}.{cloud}");
        match session(config, &section)? {
            Some(session) => sessions.push(session),
            None => bail!("[{section}] auth_url is not set: the cloud is in [{SECTION}] clouds"),
        }
    }
    Ok(sessions)
}

/// The session of the user in a section. A section with a URL only, as older releases of Heat have it, uses the
/// service's user there. `None` if the section is empty.
fn session(config: &Config, section: &str) -> Result<Option<Session>> {
    let mut account = config.account(section)?;
    // An older name.
    let url = account.auth_url.take().or_else(|| config.text(clouds::EC2_AUTH_URI.of(section)));
    if !account.has_user() {
        if url.is_none() {
            return Ok(None);
        }
        account = config.account("keystone_authtoken")?;
    }
    account.auth_url = url.or(account.auth_url);
    let credentials = credentials(&account, section, true)?;
    Ok(Some(clients::connector(config, &account)?.session(credentials)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(options: &[(&str, &str, String)]) -> String {
        let config = Config::of_options(options);
        let service = [
            ("k", "auth_url", "http://k/v3".to_owned()),
            ("k", "username", "u".to_owned()),
            ("k", "password", "p".to_owned()),
            ("k", "project_name", "s".to_owned()),
        ];
        let service = session(&Config::of_options(&service), "k").unwrap().unwrap();
        sessions(&config, service)
            .map(|sessions| sessions.len())
            .map_or_else(|error| error.to_string(), |n| n.to_string())
    }

    #[test]
    fn the_section_is_optional_and_may_list_clouds() {
        assert_eq!(refused(&[]), "1");
        let on = ("ec2authtoken", "multi_cloud", "true".to_owned());
        assert!(refused(std::slice::from_ref(&on)).contains("clouds"));
        let clouds = ("ec2authtoken", "clouds", "a, b".to_owned());
        assert!(refused(&[on.clone(), clouds.clone()]).contains("[ec2authtoken.a] auth_url"));
        let of = |cloud: &'static str| {
            [
                (cloud, "auth_url", "http://k/v3".to_owned()),
                (cloud, "username", "u".to_owned()),
                (cloud, "password", "p".to_owned()),
                (cloud, "project_name", "s".to_owned()),
            ]
        };
        let all: Vec<_> = [on, clouds].into_iter().chain(of("ec2authtoken.a")).chain(of("ec2authtoken.b")).collect();
        assert_eq!(refused(&all), "2");
        let url = ("ec2authtoken", "auth_uri", "http://k".to_owned());
        assert!(refused(std::slice::from_ref(&url)).contains("username is not set"), "no user at all");
        let user = of("keystone_authtoken");
        assert_eq!(refused(&[url].into_iter().chain(user).collect::<Vec<_>>()), "1");
    }
}
