//! Whether the caller's cloud has what resource types need.

use std::collections::{BTreeMap, BTreeSet};
use std::slice;

use kiln_identity::Caller;
use kiln_plan::{Blueprint, Kind};
use kiln_resource::{ResourceType, service};
use kiln_value::Diagnostic;

use crate::Service;

/// What the caller's cloud has, as far as it was asked.
pub struct Availability<'a> {
    caller: &'a Caller,
    /// Extensions that are not there, with their services.
    missing: BTreeSet<(&'a str, &'a str)>,
}

impl Service {
    /// What of these types the caller's cloud has.
    ///
    /// Services are in the caller's catalog; for the extensions that the types need each service is asked once, and
    /// the clouds remember what it said. Of a service that does not answer nothing is known to be missing.
    pub async fn availability<'a>(
        &self,
        caller: &'a Caller,
        types: impl IntoIterator<Item = &'a ResourceType>,
    ) -> Availability<'a> {
        let mut wanted: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for this in types {
            for service in this.service.iter().filter(|service| caller.reaches(slice::from_ref(service))) {
                wanted.entry(service).or_default().extend(this.extension.as_deref());
            }
        }
        wanted.retain(|_, extensions| !extensions.is_empty());
        let mut missing = BTreeSet::new();
        if wanted.is_empty() {
            return Availability { caller, missing };
        }
        if let Some(cloud) = self.identity.cloud(caller).await {
            for (service, extensions) in wanted {
                for extension in extensions {
                    match cloud.has_extension(service, extension).await {
                        Ok(true) => {}
                        Ok(false) => _ = missing.insert((service, extension)),
                        Err(failure) => {
                            tracing::debug!(service, %failure, "extensions could not be read");
                            break;
                        }
                    }
                }
            }
        }
        Availability { caller, missing }
    }

    /// What of a blueprint's types the caller's cloud has.
    pub(crate) async fn availability_of<'a>(&self, caller: &'a Caller, blueprint: &'a Blueprint) -> Availability<'a> {
        let kinds = blueprint.definitions().keys().filter_map(|name| blueprint.kind(name));
        self.availability(caller, kinds.map(Kind::resource_type)).await
    }
}

impl Availability<'_> {
    /// Whether a type can be used.
    pub fn has(&self, this: &ResourceType) -> bool {
        this.service.is_empty() || self.lack(this).is_none()
    }

    /// What refuses a type, called `name` by the template, that cannot be used.
    pub fn refusal(&self, this: &ResourceType, name: &str) -> Option<Diagnostic> {
        let project = service::project(this.service.first()?);
        let reason = self.lack(this)?;
        let text = format!("HEAT-E99001 Service {project} is not available for resource type {name}, reason: {reason}");
        Some(Diagnostic::new("ResourceTypeUnavailable", text))
    }

    /// What is wrong with the last of the services that would do; none if one does.
    fn lack(&self, this: &ResourceType) -> Option<String> {
        let mut reason = None;
        for service in &this.service {
            let project = service::project(service);
            reason = Some(match this.extension.as_deref() {
                _ if !self.caller.reaches(slice::from_ref(service)) => {
                    format!("{project} {service} endpoint is not in service catalog.")
                }
                Some(extension) if self.missing.contains(&(service.as_str(), extension)) => {
                    format!("Required extension {extension} in {project} service is not available.")
                }
                _ => return None,
            });
        }
        reason
    }
}
