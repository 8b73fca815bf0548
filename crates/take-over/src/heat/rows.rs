//! The rows of Heat's tables.

use std::fmt;

use indexmap::IndexMap;
use jiff::Timestamp;
use kiln_store::ForeignRow;
use kiln_value::{Map, Value};

use super::decoding::{Damaged, Values};

/// A table with the columns that are read.
pub(super) struct Table {
    pub(super) name: &'static str,
    pub(super) columns: &'static [&'static str],
}

impl Table {
    fn values<'r>(&self, row: &'r ForeignRow) -> Values<'r> {
        Values::new(self.name, self.columns, row)
    }

    /// The position of a column.
    pub(super) fn position(&self, column: &str) -> Option<usize> {
        self.columns.iter().position(|name| *name == column)
    }
}

macro_rules! table {
    ($const:ident = $name:literal: $($column:literal)*) => {
        pub(super) static $const: Table = Table { name: $name, columns: &[$($column),*] };
    };
}

table!(STACKS = "stack":
    "id" "name" "tenant" "username" "owner_id" "parent_resource_name" "action" "status" "status_reason" "timeout"
    "disable_rollback" "stack_user_project_id" "raw_template_id" "prev_raw_template_id" "user_creds_id" "backup"
    "convergence" "created_at" "updated_at");
table!(RESOURCES = "resource":
    "id" "uuid" "name" "nova_instance" "action" "status" "status_reason" "stack_id" "rsrc_metadata" "requires" "replaces"
    "replaced_by" "current_template_id" "rsrc_prop_data_id" "attr_data_id" "created_at" "updated_at");
table!(RESOURCE_DATA = "resource_data": "id" "resource_id" "key" "value" "redact" "decrypt_method");
table!(PROPERTIES = "resource_properties_data": "id" "data" "encrypted");
table!(TEMPLATES = "raw_template": "id" "template" "environment" "files_id" "files");
table!(FILES = "raw_template_files": "id" "files");
table!(CREDENTIALS = "user_creds":
    "id" "username" "password" "decrypt_method" "tenant" "trust_id"
    "trustor_user_id");
table!(EVENTS = "event":
    "id" "uuid" "stack_id" "resource_action" "resource_status" "resource_name" "physical_resource_id"
    "resource_status_reason" "resource_type" "rsrc_prop_data_id" "created_at");
table!(TAGS = "stack_tag": "id" "stack_id" "tag");
table!(SNAPSHOTS = "snapshot": "id" "stack_id" "name" "status" "status_reason" "data" "created_at");
table!(CONFIGS = "software_config": "id" "name" "group" "config" "tenant" "created_at");
table!(DEPLOYMENTS = "software_deployment":
    "id" "config_id" "server_id" "input_values" "output_values" "action" "status" "status_reason" "tenant"
    "stack_user_project_id" "created_at" "updated_at");

/// A stack.
#[derive(Clone, Debug, PartialEq)]
pub struct HeatStack {
    /// ID.
    pub id: String,
    /// Name.
    pub name: String,
    /// ID of its project.
    pub project: String,
    /// Name of its owner.
    pub username: String,
    /// The stack that it is nested in, or whose backup it is.
    pub owner: Option<String>,
    /// The resource that it belongs to.
    pub parent_resource: Option<String>,
    /// Action.
    pub action: String,
    /// Status.
    pub status: String,
    /// Reason of the status.
    pub reason: String,
    /// Timeout in minutes.
    pub timeout: Option<i64>,
    /// Whether failures are not rolled back.
    pub disable_rollback: bool,
    /// Project of its users.
    pub user_project: Option<String>,
    /// Its template.
    pub template: Option<i64>,
    /// The template before the last update.
    pub previous_template: Option<i64>,
    /// Its credentials.
    pub credentials: Option<i64>,
    /// Whether it is the backup of its owner.
    pub backup: bool,
    /// Whether it was made by the convergence engine.
    pub convergence: bool,
    /// Time of its creation.
    pub created: Timestamp,
    /// Time of its last update.
    pub updated: Option<Timestamp>,
}

impl HeatStack {
    pub(super) fn read(row: &ForeignRow) -> Result<Self, Damaged> {
        let mut values = STACKS.values(row);
        Ok(Self {
            id: values.text(),
            name: values.text(),
            project: values.text(),
            username: values.text(),
            owner: values.optional_text(),
            parent_resource: values.optional_text(),
            action: values.text(),
            status: values.text(),
            reason: values.text(),
            timeout: values.optional_number()?,
            disable_rollback: values.flag(),
            user_project: values.optional_text(),
            template: values.optional_number()?,
            previous_template: values.optional_number()?,
            credentials: values.optional_number()?,
            backup: values.flag(),
            convergence: values.flag(),
            created: values.time()?,
            updated: values.optional_time()?,
        })
    }
}

/// A resource.
#[derive(Clone, Debug, PartialEq)]
pub struct HeatResource {
    /// Number of the row.
    pub number: i64,
    /// ID: names of objects are made of it.
    pub uuid: String,
    /// Logical name.
    pub name: String,
    /// ID of its object.
    pub physical_id: Option<String>,
    /// Action.
    pub action: String,
    /// Status.
    pub status: String,
    /// Reason of the status.
    pub reason: String,
    /// Its stack.
    pub stack: String,
    /// Metadata.
    pub metadata: Map,
    /// The numbers of the rows that it requires.
    pub requires: Vec<Value>,
    /// The number of the row that it replaces.
    pub replaces: Option<i64>,
    /// The number of the row that replaces it.
    pub replaced_by: Option<i64>,
    /// The template of its last operation; `None` in legacy stacks.
    pub template: Option<i64>,
    /// Its properties.
    pub properties: Option<i64>,
    /// The attributes that others have read; a row as of properties.
    pub attributes: Option<i64>,
    /// Time of its creation.
    pub created: Timestamp,
    /// Time of its last change.
    pub updated: Option<Timestamp>,
}

impl HeatResource {
    pub(super) fn read(row: &ForeignRow) -> Result<Self, Damaged> {
        let mut values = RESOURCES.values(row);
        Ok(Self {
            number: values.number()?,
            uuid: values.text(),
            name: values.text(),
            physical_id: values.optional_text(),
            action: values.text(),
            status: values.text(),
            reason: values.text(),
            stack: values.text(),
            metadata: values.map()?,
            requires: values.list()?,
            replaces: values.optional_number()?,
            replaced_by: values.optional_number()?,
            template: values.optional_number()?,
            properties: values.optional_number()?,
            attributes: values.optional_number()?,
            created: values.time()?,
            updated: values.optional_time()?,
        })
    }
}

/// A value that a resource type has stored.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredData {
    /// The number of the resource.
    pub resource: i64,
    /// Its key.
    pub key: String,
    /// The value, which may be encrypted.
    pub value: String,
    /// How it is encrypted; `None`: it is not.
    pub method: Option<String>,
}

impl StoredData {
    pub(super) fn read(row: &ForeignRow) -> Result<Self, Damaged> {
        let mut values = RESOURCE_DATA.values(row);
        values.number()?;
        let (resource, key, value) = (values.number()?, values.text(), values.text());
        let (redacted, method) = (values.flag(), values.optional_text());
        Ok(Self { resource, key, value, method: method.filter(|_| redacted) })
    }
}

/// The properties of a resource, as the template gave them: without defaults, and with names.
#[derive(Clone, Debug, PartialEq)]
pub struct HeatProperties {
    /// Number of the row.
    pub number: i64,
    /// The properties. If they are encrypted, each is a list of a method and a text.
    pub data: Map,
    /// Whether they are encrypted.
    pub encrypted: bool,
}

impl HeatProperties {
    pub(super) fn read(row: &ForeignRow) -> Result<Self, Damaged> {
        let mut values = PROPERTIES.values(row);
        Ok(Self { number: values.number()?, data: values.map()?, encrypted: values.flag() })
    }
}

/// A template with its environment.
#[derive(Clone, Debug, PartialEq)]
pub struct HeatTemplate {
    /// Number of the row.
    pub number: i64,
    /// The template.
    pub template: Value,
    /// The environment with the parameters. Hidden ones may be encrypted, each as a list of a method and a text.
    pub environment: Map,
    /// The row with its files.
    pub(crate) files_row: Option<i64>,
    /// The files.
    pub files: Map,
}

impl HeatTemplate {
    pub(super) fn read(row: &ForeignRow) -> Result<Self, Damaged> {
        let mut values = TEMPLATES.values(row);
        Ok(Self {
            number: values.number()?,
            template: values.json()?,
            environment: values.map()?,
            files_row: values.optional_number()?,
            files: values.map()?,
        })
    }
}

/// The files of a template.
pub(super) fn read_files(row: &ForeignRow) -> Result<(i64, Map), Damaged> {
    let mut values = FILES.values(row);
    Ok((values.number()?, values.map()?))
}

/// The credentials of a stack.
#[derive(Clone, Default, PartialEq)]
pub struct HeatCredentials {
    /// Number of the row.
    pub number: i64,
    /// Name of the user.
    pub username: Option<String>,
    /// The password, which may be encrypted.
    pub password: Option<String>,
    /// How trust and password are encrypted.
    pub method: Option<String>,
    /// Name of the project.
    pub project_name: Option<String>,
    /// ID of the trust, which may be encrypted.
    pub trust: Option<String>,
    /// The user who has delegated his roles.
    pub trustor: Option<String>,
}

impl HeatCredentials {
    pub(super) fn read(row: &ForeignRow) -> Result<Self, Damaged> {
        let mut values = CREDENTIALS.values(row);
        let (number, username, password) = (values.number()?, values.optional_text(), values.optional_text());
        let (method, project_name) = (values.optional_text(), values.optional_text());
        let (trust, trustor) = (values.optional_text(), values.optional_text());
        Ok(Self { number, username, password, method, project_name, trust, trustor })
    }
}

/// An event.
#[derive(Clone, Debug, PartialEq)]
pub struct HeatEvent {
    /// Number of the row: the order of the events.
    pub number: i64,
    /// ID; events of before Juno have none.
    pub uuid: Option<String>,
    /// The stack.
    pub stack: String,
    /// Action.
    pub action: String,
    /// Status.
    pub status: String,
    /// Name of the resource, or of the stack.
    pub resource_name: String,
    /// ID of the object.
    pub physical_id: Option<String>,
    /// Reason.
    pub reason: String,
    /// Type of the resource.
    pub resource_type: String,
    /// The properties of the resource.
    pub properties: Option<i64>,
    /// Time.
    pub created: Timestamp,
}

impl HeatEvent {
    pub(super) fn read(row: &ForeignRow) -> Result<Self, Damaged> {
        let mut values = EVENTS.values(row);
        Ok(Self {
            number: values.number()?,
            uuid: values.optional_text(),
            stack: values.text(),
            action: values.text(),
            status: values.text(),
            resource_name: values.text(),
            physical_id: values.optional_text(),
            reason: values.text(),
            resource_type: values.text(),
            properties: values.optional_number()?,
            created: values.time()?,
        })
    }
}

/// Stack and tag.
pub(super) fn read_tag(row: &ForeignRow) -> Result<(String, String), Damaged> {
    let mut values = TAGS.values(row);
    values.number()?;
    Ok((values.text(), values.text()))
}

/// A snapshot of a stack.
#[derive(Clone, Debug, PartialEq)]
pub struct HeatSnapshot {
    /// ID.
    pub id: String,
    /// The stack.
    pub stack: String,
    /// Name.
    pub name: Option<String>,
    /// Status.
    pub status: String,
    /// Reason of the status.
    pub reason: String,
    /// The data, as of an export.
    pub data: Value,
    /// Time of its creation.
    pub created: Timestamp,
}

impl HeatSnapshot {
    pub(super) fn read(row: &ForeignRow) -> Result<Self, Damaged> {
        let mut values = SNAPSHOTS.values(row);
        Ok(Self {
            id: values.text(),
            stack: values.text(),
            name: values.optional_text(),
            status: values.text(),
            reason: values.text(),
            data: values.json()?,
            created: values.time()?,
        })
    }
}

/// A software config.
#[derive(Clone, Debug, PartialEq)]
pub struct HeatConfig {
    /// ID.
    pub id: String,
    /// Name.
    pub name: Option<String>,
    /// Group.
    pub group: Option<String>,
    /// Config, inputs, outputs and options.
    pub config: Map,
    /// Project.
    pub project: String,
    /// Time of its creation.
    pub created: Timestamp,
}

impl HeatConfig {
    pub(super) fn read(row: &ForeignRow) -> Result<Self, Damaged> {
        let mut values = CONFIGS.values(row);
        Ok(Self {
            id: values.text(),
            name: values.optional_text(),
            group: values.optional_text(),
            config: values.map()?,
            project: values.text(),
            created: values.time()?,
        })
    }
}

/// A software deployment.
#[derive(Clone, Debug, PartialEq)]
pub struct HeatDeployment {
    /// ID.
    pub id: String,
    /// Its config.
    pub config: String,
    /// Its server.
    pub server: String,
    /// Values of the inputs.
    pub inputs: Value,
    /// Values of the outputs.
    pub outputs: Value,
    /// Action.
    pub action: Option<String>,
    /// Status.
    pub status: Option<String>,
    /// Reason of the status.
    pub reason: String,
    /// Project.
    pub project: String,
    /// Project of the users of its stack.
    pub user_project: Option<String>,
    /// Time of its creation.
    pub created: Timestamp,
    /// Time of its last update.
    pub updated: Option<Timestamp>,
}

impl HeatDeployment {
    pub(super) fn read(row: &ForeignRow) -> Result<Self, Damaged> {
        let mut values = DEPLOYMENTS.values(row);
        Ok(Self {
            id: values.text(),
            config: values.text(),
            server: values.text(),
            inputs: values.json()?,
            outputs: values.json()?,
            action: values.optional_text(),
            status: values.optional_text(),
            reason: values.text(),
            project: values.text(),
            user_project: values.optional_text(),
            created: values.time()?,
            updated: values.optional_time()?,
        })
    }
}

/// The configs and deployments of a project.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HeatSoftware {
    /// The configs.
    pub configs: Vec<HeatConfig>,
    /// The deployments.
    pub deployments: Vec<HeatDeployment>,
}

/// A stack with everything that belongs to it and its nested stacks. Rows that are not in the tables yet have negative numbers.
#[derive(Clone, Default, PartialEq)]
pub struct HeatTree {
    /// The stacks, parents first.
    pub stacks: Vec<HeatStack>,
    /// The stacks with the replaced resources of legacy stacks.
    pub backups: Vec<HeatStack>,
    /// Their resources, in the order of their numbers.
    pub resources: Vec<HeatResource>,
    /// What their types have stored.
    pub data: Vec<StoredData>,
    /// Properties by their numbers.
    pub properties: IndexMap<i64, HeatProperties>,
    /// Templates by their numbers.
    pub templates: IndexMap<i64, HeatTemplate>,
    /// The credentials of the root stack.
    pub credentials: Option<HeatCredentials>,
    /// Events in their order.
    pub events: Vec<HeatEvent>,
    /// Tags: stack and tag, in their order.
    pub tags: Vec<(String, String)>,
    /// Snapshots.
    pub snapshots: Vec<HeatSnapshot>,
    /// A digest of all these rows.
    pub digest: String,
}

impl fmt::Debug for HeatTree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stacks = self.stacks.iter().map(|stack| &stack.id);
        f.debug_struct("HeatTree").field("stacks", &stacks.collect::<Vec<_>>()).finish_non_exhaustive()
    }
}
