//! The endpoints, one file each.

mod action;
mod build_info;
mod environment_show;
mod event_list;
mod event_show;
mod event_watch;
mod file_list;
mod metadata_show;
mod original_show;
mod orphan;
mod output_list;
mod output_show;
mod report_show;
mod resource_forget;
mod resource_list;
mod resource_mark;
mod resource_show;
mod resource_signal;
mod resource_type_list;
mod resource_type_show;
mod resource_type_template;
mod service_list;
mod snapshot_create;
mod snapshot_delete;
mod snapshot_list;
mod snapshot_restore;
mod snapshot_show;
mod software_config;
mod software_deployment;
mod stack_abandon;
mod stack_create;
mod stack_delete;
mod stack_detail;
mod stack_drift;
mod stack_export;
mod stack_list;
mod stack_lookup;
mod stack_preview;
mod stack_show;
mod stack_update;
mod template_functions;
mod template_show;
mod template_validate;
mod template_versions;
mod topology_type_list;
mod update_preview;

use axum::response::Response;

use crate::call::Call;
use crate::error::ApiError;
use crate::http::route::Endpoint;

/// Runs an endpoint.
pub(crate) async fn run(endpoint: Endpoint, call: &Call) -> Result<Response, ApiError> {
    match endpoint {
        Endpoint::Lookup => stack_lookup::run(call).await,
        Endpoint::ValidateTemplate => template_validate::run(call).await,
        Endpoint::ListTopologyTypes => topology_type_list::run(call),
        Endpoint::ListResourceTypes => resource_type_list::run(call).await,
        Endpoint::ShowResourceType => resource_type_show::run(call).await,
        Endpoint::ResourceTypeTemplate => resource_type_template::run(call),
        Endpoint::ListTemplateVersions => template_versions::run(call),
        Endpoint::ListTemplateFunctions => template_functions::run(call),
        Endpoint::ListStacks => stack_list::run(call).await,
        Endpoint::CreateStack => stack_create::run(call).await,
        Endpoint::PreviewStack => stack_preview::run(call).await,
        Endpoint::DetailStacks => stack_detail::run(call).await,
        Endpoint::ShowStack => stack_show::run(call).await,
        Endpoint::UpdateStack => stack_update::put(call).await,
        Endpoint::PatchStack => stack_update::patch(call).await,
        Endpoint::DeleteStack => stack_delete::run(call).await,
        Endpoint::ShowTemplate => template_show::run(call).await,
        Endpoint::ShowOriginal => original_show::run(call).await,
        Endpoint::ShowEnvironment => environment_show::run(call).await,
        Endpoint::ListFiles => file_list::run(call).await,
        Endpoint::PreviewUpdate => update_preview::put(call).await,
        Endpoint::PreviewPatch => update_preview::patch(call).await,
        Endpoint::CompareStack => stack_drift::run(call).await,
        Endpoint::AbandonStack => stack_abandon::run(call).await,
        Endpoint::ExportStack => stack_export::run(call).await,
        Endpoint::CreateSnapshot => snapshot_create::run(call).await,
        Endpoint::ListSnapshots => snapshot_list::run(call).await,
        Endpoint::ShowSnapshot => snapshot_show::run(call).await,
        Endpoint::DeleteSnapshot => snapshot_delete::run(call).await,
        Endpoint::RestoreSnapshot => snapshot_restore::run(call).await,
        Endpoint::ListOutputs => output_list::run(call).await,
        Endpoint::ShowOutput => output_show::run(call).await,
        Endpoint::ListResources => resource_list::run(call).await,
        Endpoint::ShowResource => resource_show::run(call).await,
        Endpoint::MarkUnhealthy => resource_mark::run(call).await,
        Endpoint::SignalResource => resource_signal::run(call).await,
        Endpoint::ForgetResource => resource_forget::run(call).await,
        Endpoint::ListOrphans => orphan::list(call).await,
        Endpoint::DeleteOrphan => orphan::delete(call).await,
        Endpoint::ShowMetadata => metadata_show::run(call).await,
        Endpoint::ListEvents => event_list::run(call).await,
        Endpoint::WatchProject => event_watch::of_project(call).await,
        Endpoint::ListResourceEvents => event_list::run_of_resource(call).await,
        Endpoint::ShowEvent => event_show::run(call).await,
        Endpoint::Act => action::run(call).await,
        Endpoint::BuildInfo => build_info::run(call),
        Endpoint::ListServices => service_list::run(call).await,
        Endpoint::Report => report_show::run(call).await,
        Endpoint::ListConfigs => software_config::list(call).await,
        Endpoint::CreateConfig => software_config::create(call).await,
        Endpoint::ShowConfig => software_config::show(call).await,
        Endpoint::DeleteConfig => software_config::delete(call).await,
        Endpoint::ListDeployments => software_deployment::list(call).await,
        Endpoint::CreateDeployment => software_deployment::create(call).await,
        Endpoint::DeploymentMetadata => software_deployment::metadata(call).await,
        Endpoint::ShowDeployment => software_deployment::show(call).await,
        Endpoint::UpdateDeployment => software_deployment::update(call).await,
        Endpoint::DeleteDeployment => software_deployment::delete(call).await,
    }
}
