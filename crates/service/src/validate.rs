//! Validates the blueprint of a stack.

use futures::future::join_all;
use kiln_identity::Caller;
use kiln_plan::hidden::mask_errors_of;
use kiln_plan::{Blueprint, Draft, Rules};
use kiln_resource::constraint::{Judge, LookupCollector, ask};
use kiln_resource::translation::Answers;
use kiln_resource::{Context, Facts, Operation, RegisteredType, ResourceType};
use kiln_template::Definition;
use kiln_template::constraint::CustomConstraints;
use kiln_value::steps;
use kiln_value::{Class, Diagnostic, Value, text};

use crate::availability::Availability;
use crate::existing_names::hint_at_existing;
use crate::{Error, Invalid, Service, TemplateText};

impl Service {
    /// Rejects a stack that cannot be created: first, unless `availability` is ignored, types without a service in the
    /// caller's cloud or without a driver in Kiln. `strict` also checks the values of parameters and properties.
    pub(crate) async fn validate(
        &self,
        caller: &Caller,
        blueprint: &Blueprint,
        template: &TemplateText,
        strict: bool,
        availability: Option<&Availability<'_>>,
    ) -> Result<(), Error> {
        let types = &self.backends.resource_types.types;
        let unavailable = |this: &ResourceType, name: &str| {
            if self.options.no_cloud && !this.service.is_empty() {
                let text = format!("HEAT-E99001 Resource type {name} needs a cloud, and none is configured.");
                let hint = "set --os-cloud or the OS_* variables; to use a simulated cloud, run 'kiln testcloud'";
                return Some(Diagnostic::new(Class::ResourceTypeUnavailable, text).hint(hint));
            }
            let availability = availability?;
            availability.refusal(this, name).or_else(|| types.refusal(this, name))
        };
        let found = match blueprint.unavailable(&unavailable) {
            Some(error) => vec![error],
            None => self.find_errors(caller, blueprint, strict, &unavailable, availability.is_some()).await,
        };
        let found = if found.is_empty() && strict { self.absent_objects(caller, blueprint).await } else { found };
        let found = if found.is_empty() && strict { self.refused_by_cloud(caller, blueprint).await } else { found };
        let found = within_limit(found);
        let placed = found.into_iter().map(|error| template.place(error)).collect();
        let placed = mask_errors_of(blueprint, placed);
        Invalid::of(placed).map_or(Ok(()), |invalid| Err(invalid.into()))
    }

    /// All errors of a blueprint. Checks that need the cloud use the credentials of the caller.
    async fn find_errors(
        &self,
        caller: &Caller,
        blueprint: &Blueprint,
        strict: bool,
        unavailable: &(dyn Fn(&ResourceType, &str) -> Option<Diagnostic> + Sync),
        unbuilt: bool,
    ) -> Vec<Diagnostic> {
        let answers = Answers::new();
        let check = |custom: &dyn CustomConstraints| {
            let max_depth = self.options.limits.nested_depth;
            let (catalog, answers) = (&*self.backends.resource_types, &answers);
            let values = strict;
            blueprint.validate(&Rules { catalog, custom, answers, unavailable, strict, values, max_depth, unbuilt })
        };
        let now = self.backends.clock.now().as_duration().as_secs_f64();
        let own = &self.backends.resource_types.constraints;
        let judge = Judge::new(now, own);
        let (found, asked) = {
            let collector = LookupCollector::new(judge);
            (check(&collector), collector.into_parts())
        };
        let (mut judge, asked) = asked;
        if asked.is_empty() {
            return found;
        }
        let Some(cloud) = self.identity.cloud(caller).await else { return found };
        let said = join_all(asked.into_iter().map(async |lookup| {
            let verdict = ask(&*cloud, own, &lookup).await;
            (lookup, verdict)
        }));
        judge.answers = said.await.into_iter().collect();
        let mut found = check(&judge);
        let missing = judge.answers.into_iter().filter_map(|(lookup, verdict)| Some((lookup, verdict.err()?)));
        hint_at_existing(&*cloud, &missing.collect::<Vec<_>>(), &mut found).await;
        found
    }

    /// The external objects of the template (`external_id`) that do not exist in the cloud.
    async fn absent_objects(&self, caller: &Caller, blueprint: &Blueprint) -> Vec<Diagnostic> {
        let named = external(blueprint);
        if named.is_empty() {
            return Vec::new();
        }
        let Some(cloud) = self.identity.cloud(caller).await else { return Vec::new() };
        let mut found = Vec::new();
        let software = &self.backends.software(&caller.project_id);
        for (definition, entry, id) in named {
            let facts = Facts { name: definition.name.clone(), physical_id: Some(id.clone()), ..Facts::default() };
            let cx = Context::reading(&*cloud, software, &facts);
            if entry.driver.start(&cx, &Operation::Check).await.is_err_and(|failure| failure.is_not_found()) {
                let kind = &definition.resource_type;
                let text = format!("Invalid external resource: Resource {id} ({kind}) can not be found.");
                let at = blueprint.place_of(&definition.name).key("external_id");
                found.push(Diagnostic::invalid(text).at(at));
            }
        }
        found
    }
}

/// The errors of a request within the limit of its steps. Above it, the error is the one that the limit has caused, with its
/// place: nothing after it was computed.
fn within_limit(mut found: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let Err(exhausted) = steps::check() else { return found };
    let first = found.iter().position(|error| error.class == Class::RequestLimitExceeded);
    let mut error = first.map_or_else(|| exhausted.report(), |first| found.swap_remove(first));
    if !error.path.is_root() {
        error.text = format!("{} ({})", error.text, error.path);
    }
    vec![error]
}

impl Service {
    /// Errors about single resources from the services of the caller's cloud.
    async fn refused_by_cloud(&self, caller: &Caller, blueprint: &Blueprint) -> Vec<Diagnostic> {
        let asking = asking(blueprint);
        if asking.is_empty() {
            return Vec::new();
        }
        let Some(cloud) = self.identity.cloud(caller).await else { return Vec::new() };
        let mut found = Vec::new();
        let software = &self.backends.software(&caller.project_id);
        for (entry, facts) in asking {
            let cx = Context::reading(&*cloud, software, &facts);
            if let Err(error) = entry.driver.validate_in_cloud(&cx).await {
                let at = blueprint.place_of(&facts.name);
                found.push(if error.path.is_root() { error.at(at) } else { error });
            }
        }
        found
    }
}

/// The resources that the cloud checks before they are created.
fn asking(blueprint: &Blueprint) -> Vec<(&RegisteredType, Facts)> {
    let draft = Draft::of(blueprint);
    let asking = blueprint.definitions().values().filter_map(|definition| {
        let entry = blueprint.kind(&definition.name)?.entry()?;
        if definition.external_id.is_some() || !entry.driver.needs_cloud() {
            return None;
        }
        let (data, _) = blueprint.draft_properties(definition, &draft).ok()?;
        let schema = &entry.resource_type.properties;
        let mut facts = Facts {
            name: definition.name.clone(),
            resource_type: entry.resource_type.name.clone(),
            properties: kiln_resource::properties::resolve(schema, &data).ok()?,
            given: data.keys().cloned().collect(),
            ..Facts::default()
        };
        if entry.driver.takes_sources() {
            let parameters = facts.properties.get("parameters").and_then(Value::as_map);
            facts.data = blueprint.travelling_sources(parameters).ok()?;
        }
        entry.driver.validates_in_cloud(&facts).then_some((&**entry, facts))
    });
    asking.collect()
}

/// The external resources with the IDs of their objects.
fn external(blueprint: &Blueprint) -> Vec<(&Definition, &RegisteredType, String)> {
    let draft = Draft::of(blueprint);
    let external = blueprint.definitions().values().filter_map(|definition| {
        let id = definition.external_id.as_ref()?.value(&draft).ok().filter(Value::is_truthy)?;
        let entry = blueprint.kind(&definition.name)?.entry().filter(|entry| entry.driver.needs_cloud())?;
        Some((definition, &**entry, text::str(&id)))
    });
    external.collect()
}
