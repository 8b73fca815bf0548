//! What the document says about an endpoint, beyond its route.

use kiln_value::{Map, Value, value};

use crate::http::route::Endpoint;

/// An endpoint in the document.
pub(super) struct About {
    pub(super) summary: &'static str,
    /// The status of a success.
    pub(super) status: u16,
    /// Query parameters with their type: `bool`, `integer`, `seconds`, `list`, or text.
    pub(super) query: &'static [(&'static str, &'static str)],
    /// The schema of the body.
    pub(super) body: Option<&'static str>,
    pub(super) tag: &'static str,
}

const EVENTS: &[(&str, &str)] = &[
    ("resource_status", "list"),
    ("resource_action", "list"),
    ("resource_name", "list"),
    ("resource_type", "list"),
    ("limit", "integer"),
    ("marker", "text"),
    ("nested_depth", "integer"),
    ("sort_dir", "text"),
    ("sort_keys", "list"),
    ("wait", "seconds"),
];
const STACKS: &[(&str, &str)] = &[
    ("id", "list"),
    ("name", "list"),
    ("status", "list"),
    ("action", "list"),
    ("tenant", "list"),
    ("username", "list"),
    ("owner_id", "list"),
    ("parent", "list"),
    ("stack_name", "list"),
    ("stack_action", "list"),
    ("stack_status", "list"),
    ("stack_status_reason", "list"),
    ("stack_owner", "list"),
    ("stack_user_project_id", "list"),
    ("disable_rollback", "list"),
    ("timeout_mins", "list"),
    ("tags", "text"),
    ("tags_any", "text"),
    ("not_tags", "text"),
    ("not_tags_any", "text"),
    ("global_tenant", "bool"),
    ("show_deleted", "bool"),
    ("show_nested", "bool"),
    ("show_hidden", "bool"),
    ("with_count", "bool"),
    ("limit", "integer"),
    ("marker", "text"),
    ("sort_keys", "list"),
    ("sort_dir", "text"),
];
const RESOURCES: &[(&str, &str)] = &[
    ("type", "list"),
    ("status", "list"),
    ("name", "list"),
    ("action", "list"),
    ("id", "list"),
    ("physical_resource_id", "list"),
    ("nested_depth", "integer"),
    ("with_detail", "bool"),
];
const TYPES: &[(&str, &str)] =
    &[("name", "text"), ("support_status", "text"), ("version", "text"), ("with_description", "bool")];

/// The description of an endpoint.
pub(super) fn about(endpoint: Endpoint) -> About {
    use Endpoint as E;
    let (tag, summary) = match endpoint {
        E::Lookup => ("stacks", "Find a stack by its name, ID or ARN"),
        E::ValidateTemplate => ("templates", "Validate a template and describe its parameters"),
        E::ListResourceTypes => ("resource types", "List the resource types"),
        E::ShowResourceType => ("resource types", "Show a resource type"),
        E::ListTopologyTypes => ("resource types", "List the type files for blueprints and TOSCA of the operator"),
        E::ResourceTypeTemplate => ("resource types", "Show a template with one resource of a type"),
        E::ListTemplateVersions => ("templates", "List the versions of the template language"),
        E::ListTemplateFunctions => ("templates", "List the functions of a version"),
        E::ListStacks => ("stacks", "List stacks"),
        E::CreateStack => ("stacks", "Create or adopt a stack"),
        E::PreviewStack => ("stacks", "Preview the create of a stack"),
        E::DetailStacks => ("stacks", "List stacks with their details"),
        E::ShowStack => ("stacks", "Show a stack"),
        E::UpdateStack => ("stacks", "Update a stack"),
        E::PatchStack => ("stacks", "Update parts of a stack"),
        E::DeleteStack => ("stacks", "Delete a stack"),
        E::ShowTemplate => ("stacks", "Show the template of a stack"),
        E::ShowOriginal => ("stacks", "Show the document or package that the template was made from"),
        E::ShowEnvironment => ("stacks", "Show the environment of a stack"),
        E::ListFiles => ("stacks", "Show the files of a stack"),
        E::PreviewUpdate => ("stacks", "Preview an update"),
        E::PreviewPatch => ("stacks", "Preview an update of parts"),
        E::CompareStack => ("stacks", "Compare the resources of a stack with their objects"),
        E::AbandonStack => ("stacks", "Delete a stack and keep its objects"),
        E::ExportStack => ("stacks", "Export a stack"),
        E::CreateSnapshot => ("snapshots", "Create a snapshot"),
        E::ListSnapshots => ("snapshots", "List the snapshots of a stack"),
        E::ShowSnapshot => ("snapshots", "Show a snapshot"),
        E::DeleteSnapshot => ("snapshots", "Delete a snapshot"),
        E::RestoreSnapshot => ("snapshots", "Restore a snapshot"),
        E::ListOutputs => ("outputs", "List the outputs of a stack"),
        E::ShowOutput => ("outputs", "Show an output"),
        E::ListResources => ("resources", "List the resources of a stack"),
        E::ShowResource => ("resources", "Show a resource"),
        E::MarkUnhealthy => ("resources", "Mark a resource as healthy or not"),
        E::SignalResource => ("resources", "Send a signal to a resource"),
        E::ForgetResource => ("resources", "Forget a resource that cannot be deleted; its object becomes an orphan"),
        E::ListOrphans => ("orphans", "List the objects whose resources were forgotten"),
        E::DeleteOrphan => ("orphans", "Remove an entry from the list; the object is not deleted"),
        E::ShowMetadata => ("resources", "Show the metadata of a resource"),
        E::ListEvents => ("events", "List or watch the events of a stack"),
        E::ListResourceEvents => ("events", "List the events of a resource"),
        E::ShowEvent => ("events", "Show an event"),
        E::WatchProject => ("events", "List or watch the events of a project"),
        E::Act => ("stacks", "Suspend, resume, check or cancel a stack"),
        E::BuildInfo => ("service", "Show the version of the service"),
        E::ListServices => ("service", "List the engines"),
        E::Report => ("service", "Show what the process that answers does, and what its engines hold"),
        E::ListConfigs => ("software", "List software configs"),
        E::CreateConfig => ("software", "Create a software config"),
        E::ShowConfig => ("software", "Show a software config"),
        E::DeleteConfig => ("software", "Delete a software config"),
        E::ListDeployments => ("software", "List software deployments"),
        E::CreateDeployment => ("software", "Create a software deployment"),
        E::DeploymentMetadata => ("software", "Show the deployments of a server"),
        E::ShowDeployment => ("software", "Show a software deployment"),
        E::UpdateDeployment => ("software", "Update a software deployment"),
        E::DeleteDeployment => ("software", "Delete a software deployment"),
    };
    let status = match endpoint {
        E::Lookup => 302,
        E::CreateStack => 201,
        E::UpdateStack | E::PatchStack | E::RestoreSnapshot | E::ForgetResource => 202,
        E::DeleteStack | E::DeleteSnapshot | E::DeleteConfig | E::DeleteDeployment | E::DeleteOrphan => 204,
        _ => 200,
    };
    let query: &[_] = match endpoint {
        E::ListResourceTypes => TYPES,
        E::ResourceTypeTemplate => &[("template_type", "text")],
        E::ListTemplateFunctions => &[("with_condition_func", "bool")],
        E::ValidateTemplate => &[("ignore_errors", "text"), ("show_nested", "bool")],
        E::ListStacks | E::DetailStacks => STACKS,
        E::ShowStack => &[("resolve_outputs", "bool")],
        E::PreviewStack => &[("resource_changes", "bool")],
        E::PreviewUpdate | E::PreviewPatch => &[("show_nested", "bool")],
        E::CompareStack => &[("resource_name", "list")],
        E::ListResources => RESOURCES,
        E::ShowResource => &[("with_attr", "list")],
        E::ListEvents | E::ListResourceEvents | E::WatchProject => EVENTS,
        E::ListConfigs => &[("global_tenant", "bool"), ("limit", "integer"), ("marker", "text")],
        E::ListOrphans => &[
            ("global_tenant", "bool"),
            ("tenant", "text"),
            ("stack_id", "text"),
            ("limit", "integer"),
            ("marker", "text"),
        ],
        E::ListDeployments => &[("server_id", "text")],
        _ => &[],
    };
    let body = match endpoint {
        E::ValidateTemplate => Some("Validate"),
        E::CreateStack | E::PreviewStack => Some("CreateStack"),
        E::UpdateStack | E::PatchStack | E::PreviewUpdate | E::PreviewPatch => Some("UpdateStack"),
        E::CreateSnapshot => Some("CreateSnapshot"),
        E::MarkUnhealthy => Some("Mark"),
        E::SignalResource => Some("Signal"),
        E::ForgetResource => Some("Forget"),
        E::Act => Some("Act"),
        E::CreateConfig => Some("Config"),
        E::CreateDeployment | E::UpdateDeployment => Some("Deployment"),
        _ => None,
    };
    About { summary, status, query, body, tag }
}

/// The schema of a query parameter.
pub(super) fn query_schema(kind: &str) -> Value {
    match kind {
        "bool" => value!({ "type": "string", "enum": ["true", "false", "True", "False"] }),
        "integer" => value!({ "type": "integer", "minimum": 0 }),
        // Longer waits end after a minute.
        "seconds" => value!({ "type": "integer", "minimum": 0, "maximum": 60 }),
        "list" => value!({ "type": "array", "items": { "type": "string" } }),
        _ => value!({ "type": "string" }),
    }
}

/// The schemas of bodies.
pub(super) fn schemas() -> Value {
    let text = || value!({ "type": "string" });
    let object = || value!({ "type": "object" });
    let content = || {
        let names = value!({ "type": "array", "items": { "type": "string" } });
        Map::from_iter([
            ("template".to_owned(), value!({ "type": ["object", "string"] })),
            ("template_url".to_owned(), text()),
            ("environment".to_owned(), value!({ "type": ["object", "string"] })),
            ("environment_files".to_owned(), names),
            ("files".to_owned(), object()),
            ("files_container".to_owned(), text()),
            ("parameters".to_owned(), object()),
            ("questions".to_owned(), object()),
        ])
    };
    let settings = || {
        [
            ("timeout_mins".to_owned(), value!({ "type": "integer" })),
            ("disable_rollback".to_owned(), value!({ "type": "boolean" })),
            ("tags".to_owned(), text()),
        ]
    };
    let (mut create, mut update) = (content(), content());
    create.extend(settings());
    create.insert("stack_name".to_owned(), value!({ "type": "string", "maxLength": 255 }));
    create.insert("adopt_stack_data".to_owned(), value!({ "type": ["object", "string"] }));
    update.extend(settings());
    update.insert("clear_parameters".to_owned(), value!({ "type": "array", "items": { "type": "string" } }));
    update.insert("existing".to_owned(), value!({ "type": "boolean" }));
    update.insert("converge".to_owned(), value!({ "type": "boolean" }));
    update.insert("if_version".to_owned(), value!({ "type": "string" }));
    let action = value!({ "type": ["object", "null", "string"] });
    let actions = ["suspend", "resume", "check", "cancel_update", "cancel_without_rollback"];
    let actions: Map = actions.iter().map(|name| ((*name).to_owned(), action.clone())).collect();
    let list = || value!({ "type": "array", "items": {} });
    value!({
        "CreateStack": { "type": "object", "required": ["stack_name"], "properties": create },
        "UpdateStack": { "type": "object", "properties": update },
        "Validate": { "type": "object", "properties": (content()) },
        "CreateSnapshot": { "type": "object", "properties": { "name": (text()) } },
        "Mark": {
            "type": "object",
            "required": ["mark_unhealthy"],
            "properties": {
                "mark_unhealthy": { "type": "boolean" },
                "resource_status_reason": (text()),
            },
        },
        "Signal": { "type": "object" },
        "Forget": { "type": "object", "properties": { "reason": (text()) } },
        "Act": { "type": "object", "minProperties": 1, "maxProperties": 1, "properties": actions },
        "Config": {
            "type": "object",
            "properties": {
                "name": (text()), "group": (text()), "config": {}, "inputs": (list()), "outputs": (list()),
                "options": (object()),
            },
        },
        "Deployment": {
            "type": "object",
            "properties": {
                "config_id": (text()), "server_id": (text()), "input_values": (object()), "output_values": (object()),
                "action": (text()), "status": (text()), "status_reason": (text()), "stack_user_project_id": (text()),
            },
        },
        "Error": {
            "type": "object",
            "properties": {
                "code": { "type": "integer" },
                "title": (text()),
                "explanation": (text()),
                "error": {
                    "type": "object",
                    "properties": { "type": (text()), "message": { "type": ["string", "null"] } },
                },
            },
        },
    })
}
