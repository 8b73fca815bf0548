//! The resource types that are available to a caller.

use kiln_identity::Caller;
use kiln_resource::ResourceType;
use kiln_store::Stack;
use kiln_value::regex::Pattern;

use crate::{Error, Service};

/// Filters of the list; `None`: any.
#[derive(Clone, Copy, Debug, Default)]
pub struct ResourceTypeFilter<'a> {
    /// A regular expression, matched from the start of the name; an invalid one matches nothing.
    pub name: Option<&'a str>,
    /// Support status: `SUPPORTED`.
    pub status: Option<&'a str>,
    /// The release that introduced the type.
    pub version: Option<&'a str>,
}

impl Service {
    /// The types that the caller may use and that the caller's cloud supports.
    pub async fn resource_types<'a>(
        &'a self,
        caller: &'a Caller,
        filter: ResourceTypeFilter<'_>,
    ) -> Vec<&'a ResourceType> {
        let pattern = filter.name.map(|name| Pattern::new(name).ok());
        let matches = |name: &str| match &pattern {
            None => true,
            Some(Some(pattern)) => pattern.match_end(name).is_ok_and(|end| end.is_some()),
            Some(None) => false,
        };
        let wanted = |this: &&ResourceType| {
            let support = &this.support;
            !support.is_hidden()
                && filter.status.is_none_or(|status| status == support.status.name())
                && filter.version.is_none_or(|version| support.version.as_deref() == Some(version))
                && matches(&this.name)
                && self.policy.allows_type(&this.name, caller)
        };
        let mut types: Vec<_> = self.backends.resource_types.shown().filter(wanted).collect();
        let availability = self.availability(caller, types.iter().copied()).await;
        types.retain(|this| availability.has(this));
        types
    }

    /// A type, if the caller may use it.
    pub fn resource_type(&self, caller: &Caller, name: &str) -> Result<&ResourceType, Error> {
        self.allow_type(caller, name)?;
        let found = self.backends.resource_types.shown_as(name);
        let found = found.ok_or_else(|| Error::NoResourceType(name.to_owned()))?;
        if found.support.is_hidden() {
            return Err(Error::NotSupported(name.to_owned()));
        }
        Ok(found)
    }

    /// A type, if the caller may use it and the caller's cloud supports it.
    pub async fn available_resource_type(&self, caller: &Caller, name: &str) -> Result<&ResourceType, Error> {
        let found = self.resource_type(caller, name)?;
        match self.availability(caller, [found]).await.refusal(found, &found.name) {
            Some(error) => Err(error.into()),
            None => Ok(found),
        }
    }

    /// Rejects a type that the caller may not use.
    pub(crate) fn allow_type(&self, caller: &Caller, name: &str) -> Result<(), Error> {
        if self.policy.allows_type(name, caller) { Ok(()) } else { Err(Error::Forbidden(name.to_owned())) }
    }

    /// Rejects a stack with types that the caller may not use.
    pub(crate) async fn allow_types_of(&self, caller: &Caller, stack: &Stack) -> Result<(), Error> {
        for resource in self.backends.store.resources(stack.id).await? {
            self.allow_type(caller, &resource.resource_type)?;
            self.allow_type(caller, &resource.implementation)?;
        }
        Ok(())
    }
}
