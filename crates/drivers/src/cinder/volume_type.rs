//! OS::Cinder::VolumeType

use async_trait::async_trait;
use kiln_resource::{CloudRequest, Context, Facts, Failure, FailureKind, Method};
use kiln_value::{Diagnostic, Map, Value, value};

use crate::call::{CINDER, absent_is_fine};
use crate::path;
use crate::rest::{Edit, Shape};
use crate::validation::failed;

/// A volume type, with its extra specs and, if it is private, the projects that may use it.
pub(super) struct VolumeType;

fn path_of(id: &str, part: &str) -> String {
    format!("/v3/types/{}/{part}", path::segment(id))
}

async fn set_specs(cx: &Context<'_>, id: &str, specs: &Value) -> Result<(), Failure> {
    if !specs.is_truthy() {
        return Ok(());
    }
    let body = value!({"extra_specs": (specs.clone())});
    CINDER.post(cx, path_of(id, "extra_specs"), body).await.map(|_| ())
}

/// The IDs of the projects in a list, which may contain names.
async fn projects(cx: &Context<'_>, list: &Value) -> Result<Vec<String>, Failure> {
    let mut ids = Vec::new();
    for project in list.as_list().unwrap_or_default().iter().filter_map(Value::as_str) {
        ids.push(cx.cloud.find("keystone.project", project).await?);
    }
    Ok(ids)
}

/// The projects that may use a private type.
async fn allowed(cx: &Context<'_>, id: &str) -> Result<Vec<String>, Failure> {
    let access = CINDER.list(cx, path_of(id, "os-volume-type-access"), &[], "volume_type_access").await?;
    Ok(access.iter().filter_map(|access| Some(access.str_at("project_id")?.to_owned())).collect())
}

async fn access(cx: &Context<'_>, id: &str, action: &str, project: &str) -> Result<(), Failure> {
    let change = Value::from_iter([("project".to_owned(), Value::from(project))]);
    let body = Value::from_iter([(action.to_owned(), change)]);
    match CINDER.post(cx, path_of(id, "action"), body).await {
        // The project has access already.
        Err(failure) if failure.kind == FailureKind::Conflict => Ok(()),
        outcome => absent_is_fine(outcome),
    }
}

#[async_trait]
impl Shape for VolumeType {
    /// By default, Cinder lists only public types.
    fn list_query(&self) -> Vec<(&'static str, &'static str)> {
        vec![("is_public", "None")]
    }

    fn has_more(&self, facts: &Facts) -> bool {
        facts.property("metadata").is_truthy() || facts.property("projects").is_truthy()
    }

    async fn after_create(&self, cx: &Context<'_>, id: &str, _: &Value) -> Result<(), Failure> {
        set_specs(cx, id, cx.facts.property("metadata")).await?;
        for project in projects(cx, cx.facts.property("projects")).await? {
            access(cx, id, "addProjectAccess", &project).await?;
        }
        Ok(())
    }

    async fn live(&self, cx: &Context<'_>, object: &Value, live: &mut Map) -> Result<(), Failure> {
        live.extend(object.get("extra_specs").map(|specs| ("metadata".to_owned(), specs.clone())));
        let given = cx.facts.property("projects");
        if given.is_truthy() && !cx.facts.property("is_public").is_truthy() {
            let held = allowed(cx, object.str_at("id").unwrap_or_default()).await?;
            let ids = projects(cx, given).await?;
            // The list may have names.
            let as_given = |id: String| match ids.iter().position(|given| *given == id) {
                Some(at) => given.at(at).cloned().unwrap_or_default(),
                None => id.into(),
            };
            live.insert("projects".to_owned(), held.into_iter().map(as_given).collect());
        }
        Ok(())
    }

    async fn before_update(&self, cx: &Context<'_>, id: &str, edit: &Edit<'_>) -> Result<(), Failure> {
        if let Some(specs) = edit.changed.get("metadata") {
            let current = CINDER.show(cx, path_of(id, "extra_specs"), "extra_specs").await?;
            for key in current.as_map().into_iter().flat_map(Map::keys).filter(|key| specs.get(key).is_none()) {
                let path = path_of(id, &format!("extra_specs/{}", path::segment(key)));
                absent_is_fine(CINDER.delete(cx, path).await)?;
            }
            set_specs(cx, id, specs).await?;
        }
        if let Some(list) = edit.changed.get("projects")
            && !cx.facts.property("is_public").is_truthy()
        {
            let wanted = projects(cx, list).await?;
            let current = allowed(cx, id).await?;
            for project in current.iter().filter(|project| !wanted.contains(project)) {
                access(cx, id, "removeProjectAccess", project).await?;
            }
            for project in wanted.iter().filter(|project| !current.contains(project)) {
                access(cx, id, "addProjectAccess", project).await?;
            }
        }
        Ok(())
    }

    async fn update_body(&self, _cx: &Context<'_>, _edit: &Edit<'_>, body: &mut Map) -> Result<(), Failure> {
        if let Some(is_public) = body.shift_remove("os-volume-type-access:is_public") {
            body.insert("is_public".to_owned(), is_public);
        }
        Ok(())
    }

    fn validate(&self, facts: &Facts) -> Result<(), Diagnostic> {
        if facts.property("projects").is_truthy() && facts.property("is_public").is_truthy() {
            return Err(failed("Can not specify property \"projects\" if the volume type is public."));
        }
        Ok(())
    }
}

/// The request that reads the encryption of a type.
pub(super) fn encryption(id: &str) -> CloudRequest {
    CloudRequest::new(CINDER.0, Method::Get, path_of(id, "encryption"))
}
