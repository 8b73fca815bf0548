//! Checks whether the caller's cloud supports resource types.

use std::collections::{BTreeMap, BTreeSet};
use std::slice;

use kiln_identity::Caller;
use kiln_plan::{Blueprint, Kind};
use kiln_resource::{ResourceType, service};
use kiln_value::{Class, Diagnostic};

use crate::Service;

/// The services and extensions of the caller's cloud, as far as known.
pub struct Availability<'a> {
    caller: &'a Caller,
    /// Missing extensions with their services.
    missing: BTreeSet<(&'a str, &'a str)>,
}

impl Service {
    /// The services and extensions of the caller's cloud that these types need.
    ///
    /// Services are in the caller's catalog. For extensions, each service is called once, and the clouds cache the
    /// result. If a service does not respond, its extensions are not considered missing.
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
                            tracing::debug!(service, %failure, "failed to read extensions");
                            break;
                        }
                    }
                }
            }
        }
        Availability { caller, missing }
    }

    /// The services and extensions of the caller's cloud that the types of a blueprint need.
    pub(crate) async fn availability_of<'a>(&self, caller: &'a Caller, blueprint: &'a Blueprint) -> Availability<'a> {
        let kinds = blueprint.definitions().keys().filter_map(|name| blueprint.kind(name));
        self.availability(caller, kinds.map(Kind::resource_type)).await
    }
}

impl Availability<'_> {
    /// Whether a type is available.
    pub fn has(&self, this: &ResourceType) -> bool {
        this.service.is_empty() || self.lack(this).is_none()
    }

    /// The error for an unavailable type, which the template calls `name`.
    pub fn refusal(&self, this: &ResourceType, name: &str) -> Option<Diagnostic> {
        let project = service::project(this.service.first()?);
        let reason = self.lack(this)?;
        let text = format!("HEAT-E99001 Service {project} is not available for resource type {name}, reason: {reason}");
        Some(Diagnostic::new(Class::ResourceTypeUnavailable, text))
    }

    /// The problem with the last of the alternative services; `None` if one of them is available.
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
