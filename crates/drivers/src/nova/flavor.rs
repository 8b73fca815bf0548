//! OS::Nova::Flavor

use async_trait::async_trait;
use kiln_resource::{Context, Facts, Failure, FailureKind};
use kiln_value::{Map, Value, value};

use crate::call::NOVA;
use crate::path;
use crate::rest::{Edit, Shape};

/// A flavor with its extra specs and the projects that may use it.
pub(super) struct Flavor;

#[async_trait]
impl Shape for Flavor {
    async fn create_body(&self, _cx: &Context<'_>, body: &mut Map) -> Result<(), Failure> {
        if body.get("id").and_then(Value::as_str).is_none_or(|id| !self.is_own_id(id)) {
            body.shift_remove("id");
        }
        Ok(())
    }

    async fn live(&self, cx: &Context<'_>, object: &Value, live: &mut Map) -> Result<(), Failure> {
        let id = object.str_at("id").unwrap_or_default();
        // Nova shows an empty text for none.
        if let Some(swap) = live.get_mut("swap").filter(|swap| swap.as_str() == Some("")) {
            *swap = 0.into();
        }
        if cx.facts.property("extra_specs").is_truthy() {
            live.insert("extra_specs".to_owned(), NOVA.show(cx, specs_path(id), "extra_specs").await?);
        }
        if cx.facts.property("tenants").is_truthy() && !cx.facts.property("is_public").is_truthy() {
            let projects = allowed(cx, id).await?.into_iter().map(Value::from).collect();
            live.insert("tenants".to_owned(), projects);
        }
        Ok(())
    }

    /// With an empty ID or `auto`, Nova generates the ID.
    fn is_own_id(&self, id: &str) -> bool {
        !id.is_empty() && id != "auto"
    }

    fn has_more(&self, facts: &Facts) -> bool {
        facts.property("extra_specs").is_truthy() || !facts.property("is_public").is_truthy()
    }

    async fn after_create(&self, cx: &Context<'_>, id: &str, _: &Value) -> Result<(), Failure> {
        let specs = cx.facts.property("extra_specs");
        if specs.is_truthy() {
            add_specs(cx, id, specs).await?;
        }
        if cx.facts.property("is_public").is_truthy() {
            return Ok(());
        }
        let own = cx.cloud.project_id().await?;
        let given = projects(cx.facts.property("tenants"));
        let projects = if given.is_empty() { vec![own.as_str()] } else { given };
        for project in projects {
            allow(cx, id, project).await?;
        }
        Ok(())
    }

    async fn before_update(&self, cx: &Context<'_>, id: &str, edit: &Edit<'_>) -> Result<(), Failure> {
        if let Some(specs) = edit.changed.get("extra_specs") {
            let path = specs_path(id);
            let present = NOVA.show(cx, &path, "extra_specs").await?;
            for key in present.as_map().into_iter().flat_map(Map::keys) {
                if specs.get(key).is_none() {
                    NOVA.delete(cx, format!("{path}/{}", path::segment(key))).await?;
                }
            }
            if specs.is_truthy() {
                add_specs(cx, id, specs).await?;
            }
        }
        match edit.changed.get("tenants") {
            Some(wanted) if !cx.facts.property("is_public").is_truthy() => set_projects(cx, id, wanted).await,
            _ => Ok(()),
        }
    }

    async fn attribute(&self, cx: &Context<'_>, object: &Value, name: &str) -> Result<Option<Value>, Failure> {
        if name != "extra_specs" {
            return Ok(None);
        }
        let id = object.str_at("id").unwrap_or_default();
        NOVA.show(cx, specs_path(id), "extra_specs").await.map(Some)
    }
}

fn specs_path(id: &str) -> String {
    format!("/flavors/{}/os-extra_specs", path::segment(id))
}

fn projects(tenants: &Value) -> Vec<&str> {
    tenants.as_list().unwrap_or_default().iter().filter_map(Value::as_str).collect()
}

/// Extra specs are strings in Nova.
async fn add_specs(cx: &Context<'_>, id: &str, specs: &Value) -> Result<(), Failure> {
    let texts: Value =
        specs.as_map().into_iter().flatten().map(|(k, v)| (k.clone(), kiln_value::text::str(v))).collect();
    NOVA.post(cx, specs_path(id), value!({"extra_specs": texts})).await.map(|_| ())
}

async fn allow(cx: &Context<'_>, id: &str, project: &str) -> Result<(), Failure> {
    let action = value!({"addTenantAccess": {"tenant": project}});
    match NOVA.post(cx, format!("/flavors/{}/action", path::segment(id)), action).await {
        // The project may have access already.
        Err(failure) if failure.kind == FailureKind::Conflict => Ok(()),
        outcome => outcome.map(|_| ()),
    }
}

/// The projects that may use a flavor that is not public.
async fn allowed(cx: &Context<'_>, id: &str) -> Result<Vec<String>, Failure> {
    let path = format!("/flavors/{}/os-flavor-access", path::segment(id));
    let access = NOVA.list(cx, path, &[], "flavor_access").await?;
    Ok(access.iter().filter_map(|access| Some(access.str_at("tenant_id")?.to_owned())).collect())
}

async fn set_projects(cx: &Context<'_>, id: &str, wanted: &Value) -> Result<(), Failure> {
    let flavor = path::segment(id);
    let present = allowed(cx, id).await?;
    let wanted = projects(wanted);
    for project in present.iter().filter(|project| !wanted.contains(&project.as_str())) {
        let action = value!({"removeTenantAccess": {"tenant": (project.as_str())}});
        crate::call::absent_is_fine(NOVA.post(cx, format!("/flavors/{flavor}/action"), action).await)?;
    }
    for project in wanted.iter().filter(|project| !present.iter().any(|own| own == *project)) {
        allow(cx, id, project).await?;
    }
    Ok(())
}
