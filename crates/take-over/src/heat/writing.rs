//! Writes what has changed in a tree into Heat's tables.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::hash::Hash;

use jiff::Timestamp;
use kiln_store::{Error, HeatColumns, HeatValue, HeatWriter};
use kiln_value::Value;
use uuid::Uuid;

use super::rows::{
    HeatConfig, HeatCredentials, HeatDeployment, HeatEvent, HeatProperties, HeatResource, HeatSnapshot, HeatSoftware,
    HeatStack, HeatTemplate, HeatTree, StoredData,
};

/// Characters of the columns for texts.
const VARCHAR: usize = 255;

/// Writes the rows of `new` that are not in `old`, which is what the tables have, and deletes the others. Rows with negative
/// numbers are inserted.
pub(crate) async fn write_tree(
    writer: &HeatWriter,
    old: &HeatTree,
    new: &HeatTree,
    now: Timestamp,
) -> Result<(), Error> {
    let mut work = Work { writer, numbers: HashMap::new(), now };
    for template in new.templates.values().filter(|one| one.number < 0) {
        work.template(template).await?;
    }
    for properties in new.properties.values().filter(|one| one.number < 0) {
        work.properties(properties).await?;
    }
    if let Some(credentials) = new.credentials.as_ref().filter(|one| one.number < 0) {
        work.credentials(credentials, new).await?;
    }
    work.stacks(old, new).await?;
    work.resources(old, new).await?;
    work.events(old, new).await?;
    work.snapshots(old, new).await
}

/// Marks the stacks of a tree as deleted, as Heat does after it has deleted their objects.
pub(crate) async fn delete_tree(writer: &HeatWriter, old: &HeatTree, now: Timestamp) -> Result<(), Error> {
    let mut work = Work { writer, numbers: HashMap::new(), now };
    work.resources(old, &HeatTree::default()).await?;
    work.stacks(old, &HeatTree::default()).await?;
    let credentials = old.credentials.iter().map(|one| one.number.into());
    writer.delete("user_creds", "id", credentials).await
}

/// Writes the configs and deployments of a project.
pub(crate) async fn write_software(
    writer: &HeatWriter,
    old: &HeatSoftware,
    new: &HeatSoftware,
    now: Timestamp,
) -> Result<(), Error> {
    let configs = by(&old.configs, |one| one.id.as_str());
    let deployments = by(&old.deployments, |one| one.id.as_str());
    for config in new.configs.iter().filter(|one| configs.get(one.id.as_str()) != Some(one)) {
        let columns = config_columns(config, now);
        save(writer, "software_config", &config.id, configs.contains_key(config.id.as_str()), columns).await?;
    }
    for one in new.deployments.iter().filter(|one| deployments.get(one.id.as_str()) != Some(one)) {
        let columns = deployment_columns(one, now);
        save(writer, "software_deployment", &one.id, deployments.contains_key(one.id.as_str()), columns).await?;
    }
    let left: HashSet<&str> = new.deployments.iter().map(|one| one.id.as_str()).collect();
    let gone = deployments.into_keys().filter(|id| !left.contains(id)).map(HeatValue::from);
    writer.delete("software_deployment", "id", gone).await?;
    let left: HashSet<&str> = new.configs.iter().map(|one| one.id.as_str()).collect();
    let gone = configs.into_keys().filter(|id| !left.contains(id)).map(HeatValue::from);
    writer.delete("software_config", "id", gone).await
}

async fn save(
    writer: &HeatWriter,
    table: &'static str,
    id: &str,
    exists: bool,
    mut columns: HeatColumns,
) -> Result<(), Error> {
    if exists {
        writer.update(table, id.into(), columns).await?;
        return Ok(());
    }
    columns.push(("id", id.into()));
    writer.insert(table, columns).await
}

fn config_columns(config: &HeatConfig, now: Timestamp) -> HeatColumns {
    vec![
        ("name", config.name.clone().into()),
        ("group", config.group.clone().into()),
        ("config", json_of(&config.config.clone().into())),
        ("tenant", config.project.as_str().into()),
        ("created_at", config.created.into()),
        ("updated_at", now.into()),
    ]
}

fn deployment_columns(one: &HeatDeployment, now: Timestamp) -> HeatColumns {
    vec![
        ("config_id", one.config.as_str().into()),
        ("server_id", one.server.as_str().into()),
        ("input_values", json_of(&one.inputs)),
        ("output_values", json_of(&one.outputs)),
        ("action", one.action.clone().into()),
        ("status", one.status.clone().into()),
        ("status_reason", one.reason.as_str().into()),
        ("tenant", one.project.as_str().into()),
        ("stack_user_project_id", one.user_project.clone().into()),
        ("created_at", one.created.into()),
        ("updated_at", one.updated.unwrap_or(now).into()),
    ]
}

/// The rows by a key.
fn by<'r, T, K: Hash + Eq>(rows: &'r [T], key: impl Fn(&'r T) -> K) -> HashMap<K, &'r T> {
    rows.iter().map(|row| (key(row), row)).collect()
}

/// A traversal for a stack that has none. The convergence engine updates a stack only if it still has the traversal that was
/// read, and without one it never does.
fn traversal(stack: &HeatStack) -> (&'static str, HeatValue) {
    ("current_traversal", Uuid::new_v5(&Uuid::NAMESPACE_OID, stack.id.as_bytes()).to_string().into())
}

/// A write of a tree.
struct Work<'w> {
    writer: &'w HeatWriter,
    /// The numbers of the inserted rows by those that they had before.
    numbers: HashMap<i64, i64>,
    now: Timestamp,
}

impl Work<'_> {
    /// The number of a row in the tables.
    fn number(&self, number: i64) -> i64 {
        self.numbers.get(&number).copied().unwrap_or(number)
    }

    fn optional(&self, number: Option<i64>) -> HeatValue {
        number.map(|number| self.number(number)).into()
    }

    async fn insert(&mut self, table: &'static str, number: i64, columns: HeatColumns) -> Result<(), Error> {
        let given = self.writer.insert_numbered(table, columns).await?;
        self.numbers.insert(number, given);
        Ok(())
    }

    async fn template(&mut self, template: &HeatTemplate) -> Result<(), Error> {
        let files = if template.files.is_empty() {
            None
        } else {
            let columns =
                vec![("files", json_of(&template.files.clone().into())), ("created_at", HeatValue::from(self.now))];
            Some(self.writer.insert_numbered("raw_template_files", columns).await?)
        };
        let columns = vec![
            ("template", json_of(&template.template)),
            ("environment", json_of(&template.environment.clone().into())),
            ("files_id", files.into()),
            ("created_at", self.now.into()),
        ];
        self.insert("raw_template", template.number, columns).await
    }

    async fn properties(&mut self, properties: &HeatProperties) -> Result<(), Error> {
        let columns = vec![
            ("data", json_of(&properties.data.clone().into())),
            ("encrypted", properties.encrypted.into()),
            ("created_at", self.now.into()),
        ];
        self.insert("resource_properties_data", properties.number, columns).await
    }

    async fn credentials(&mut self, credentials: &HeatCredentials, tree: &HeatTree) -> Result<(), Error> {
        let project = tree.stacks.first().map(|root| root.project.clone());
        let columns = vec![
            ("username", credentials.username.clone().into()),
            ("password", credentials.password.clone().into()),
            ("decrypt_method", credentials.method.clone().into()),
            ("tenant", credentials.project_name.clone().into()),
            ("tenant_id", project.into()),
            ("trust_id", credentials.trust.clone().into()),
            ("trustor_user_id", credentials.trustor.clone().into()),
            ("created_at", self.now.into()),
        ];
        self.insert("user_creds", credentials.number, columns).await
    }

    /// Parents come first in `new`. Stacks that are gone are marked as deleted.
    async fn stacks(&mut self, old: &HeatTree, new: &HeatTree) -> Result<(), Error> {
        let known = by(&old.stacks, |one| one.id.as_str());
        let (old_tags, new_tags) = (tags(old), tags(new));
        let mut depths: HashMap<&str, i64> = HashMap::new();
        for stack in &new.stacks {
            let depth = stack.owner.as_deref().map_or(0, |owner| depths.get(owner).map_or(0, |depth| depth + 1));
            depths.insert(&stack.id, depth);
            let mut columns = self.stack_columns(stack);
            match known.get(stack.id.as_str()) {
                Some(known) if *known == stack => {}
                Some(known) => {
                    if stack.convergence && !known.convergence {
                        columns.push(traversal(stack));
                    }
                    self.writer.update("stack", stack.id.as_str().into(), columns).await?;
                }
                None => {
                    columns.push(("id", stack.id.as_str().into()));
                    columns.push(("nested_depth", depth.into()));
                    columns.push(traversal(stack));
                    columns.push(("backup", false.into()));
                    self.writer.insert("stack", columns).await?;
                }
            }
            let (was, is) = (old_tags.get(stack.id.as_str()), new_tags.get(stack.id.as_str()));
            if was != is {
                self.writer.delete("stack_tag", "stack_id", [stack.id.as_str().into()]).await?;
                for tag in is.into_iter().flatten() {
                    let columns = vec![
                        ("stack_id", stack.id.as_str().into()),
                        ("tag", (*tag).into()),
                        ("created_at", self.now.into()),
                    ];
                    self.writer.insert_numbered("stack_tag", columns).await?;
                }
            }
        }
        for stack in old.stacks.iter().filter(|one| !depths.contains_key(one.id.as_str())) {
            let columns = vec![
                ("action", "DELETE".into()),
                ("status", "COMPLETE".into()),
                ("status_reason", "Stack DELETE completed successfully".into()),
                ("user_creds_id", HeatValue::Null),
                ("deleted_at", self.now.into()),
            ];
            self.writer.update("stack", stack.id.as_str().into(), columns).await?;
        }
        Ok(())
    }

    fn stack_columns(&self, stack: &HeatStack) -> HeatColumns {
        vec![
            ("name", stack.name.as_str().into()),
            ("tenant", stack.project.as_str().into()),
            ("username", stack.username.as_str().into()),
            ("owner_id", stack.owner.clone().into()),
            ("parent_resource_name", stack.parent_resource.clone().into()),
            ("action", stack.action.as_str().into()),
            ("status", stack.status.as_str().into()),
            ("status_reason", reason(&stack.reason)),
            ("timeout", stack.timeout.into()),
            ("disable_rollback", stack.disable_rollback.into()),
            ("stack_user_project_id", stack.user_project.clone().into()),
            ("raw_template_id", self.optional(stack.template)),
            ("prev_raw_template_id", self.optional(stack.previous_template)),
            ("user_creds_id", self.optional(stack.credentials)),
            ("convergence", stack.convergence.into()),
            ("created_at", stack.created.into()),
            ("updated_at", stack.updated.into()),
        ]
    }

    async fn resources(&mut self, old: &HeatTree, new: &HeatTree) -> Result<(), Error> {
        let known = by(&old.resources, |one| one.number);
        let root = new.stacks.first().map(|root| root.id.clone());
        for row in new.resources.iter().filter(|row| row.number < 0) {
            let mut columns = self.resource_columns(row);
            columns.push(("uuid", row.uuid.as_str().into()));
            columns.push(("stack_id", row.stack.as_str().into()));
            columns.push(("root_stack_id", root.clone().into()));
            columns.push(("needed_by", "[]".into()));
            columns.push(("created_at", row.created.into()));
            self.insert("resource", row.number, columns).await?;
        }
        for row in &new.resources {
            if known.get(&row.number).is_some_and(|known| *known == row) {
                continue;
            }
            let requires = row.requires.iter().filter_map(Value::as_i64);
            let requires: Vec<Value> = requires.map(|number| self.number(number).into()).collect();
            // Only now all rows have their numbers.
            let mut columns = vec![
                ("requires", json_of(&requires.into())),
                ("replaces", self.optional(row.replaces)),
                ("replaced_by", self.optional(row.replaced_by)),
            ];
            if row.number > 0 {
                columns.extend(self.resource_columns(row));
            }
            self.writer.update("resource", self.number(row.number).into(), columns).await?;
        }
        let (had, has) = (data(old), data(new));
        for row in &new.resources {
            let (had, has) = (had.get(&row.number), has.get(&row.number));
            if had == has {
                continue;
            }
            let number = self.number(row.number);
            self.writer.delete("resource_data", "resource_id", [number.into()]).await?;
            for stored in has.into_iter().flatten() {
                let columns = vec![
                    ("resource_id", number.into()),
                    ("key", stored.key.as_str().into()),
                    ("value", stored.value.as_str().into()),
                    ("redact", stored.method.is_some().into()),
                    ("decrypt_method", stored.method.clone().unwrap_or_default().into()),
                    ("created_at", self.now.into()),
                ];
                self.writer.insert_numbered("resource_data", columns).await?;
            }
        }
        let left: HashSet<i64> = new.resources.iter().map(|row| row.number).collect();
        let gone: Vec<HeatValue> = known.into_keys().filter(|number| !left.contains(number)).map(Into::into).collect();
        self.writer.delete("resource_data", "resource_id", gone.clone()).await?;
        self.writer.delete("resource", "id", gone).await
    }

    fn resource_columns(&self, row: &HeatResource) -> HeatColumns {
        vec![
            ("name", row.name.as_str().into()),
            ("nova_instance", row.physical_id.clone().into()),
            ("action", row.action.as_str().into()),
            ("status", row.status.as_str().into()),
            ("status_reason", reason(&row.reason)),
            ("rsrc_metadata", json_of(&row.metadata.clone().into())),
            ("current_template_id", self.optional(row.template)),
            ("rsrc_prop_data_id", self.optional(row.properties)),
            ("attr_data_id", self.optional(row.attributes)),
            ("engine_id", HeatValue::Null),
            ("updated_at", row.updated.into()),
        ]
    }

    async fn events(&mut self, old: &HeatTree, new: &HeatTree) -> Result<(), Error> {
        let known: HashSet<&str> = old.events.iter().filter_map(|one| one.uuid.as_deref()).collect();
        let is_new = |one: &&HeatEvent| one.uuid.as_deref().is_some_and(|id| !known.contains(id));
        for event in new.events.iter().filter(is_new) {
            let columns = vec![
                ("uuid", event.uuid.clone().into()),
                ("stack_id", event.stack.as_str().into()),
                ("resource_action", event.action.as_str().into()),
                ("resource_status", event.status.as_str().into()),
                ("resource_name", cut(&event.resource_name)),
                ("physical_resource_id", event.physical_id.as_deref().map_or(HeatValue::Null, cut)),
                ("resource_status_reason", cut(&event.reason)),
                ("resource_type", cut(&event.resource_type)),
                ("rsrc_prop_data_id", self.optional(event.properties)),
                ("created_at", event.created.into()),
            ];
            self.writer.insert_numbered("event", columns).await?;
        }
        Ok(())
    }

    async fn snapshots(&mut self, old: &HeatTree, new: &HeatTree) -> Result<(), Error> {
        let known = by(&old.snapshots, |one| one.id.as_str());
        let left: HashSet<&str> = new.snapshots.iter().map(|one| one.id.as_str()).collect();
        for snapshot in new.snapshots.iter().filter(|one| !known.contains_key(one.id.as_str())) {
            let columns = self.snapshot_columns(snapshot, new);
            self.writer.insert("snapshot", columns).await?;
        }
        let gone = known.into_keys().filter(|id| !left.contains(id)).map(HeatValue::from);
        self.writer.delete("snapshot", "id", gone).await
    }

    fn snapshot_columns(&self, snapshot: &HeatSnapshot, tree: &HeatTree) -> HeatColumns {
        let project = tree.stacks.first().map(|root| root.project.clone());
        vec![
            ("id", snapshot.id.as_str().into()),
            ("stack_id", snapshot.stack.as_str().into()),
            ("name", snapshot.name.clone().into()),
            ("status", snapshot.status.as_str().into()),
            ("status_reason", cut(&snapshot.reason)),
            ("data", json_of(&snapshot.data)),
            ("tenant", project.into()),
            ("created_at", snapshot.created.into()),
            ("updated_at", self.now.into()),
        ]
    }
}

fn tags(tree: &HeatTree) -> HashMap<&str, Vec<&str>> {
    let mut tags: HashMap<&str, Vec<&str>> = HashMap::new();
    for (stack, tag) in &tree.tags {
        tags.entry(stack).or_default().push(tag);
    }
    tags
}

fn data(tree: &HeatTree) -> HashMap<i64, Vec<&StoredData>> {
    let mut data: HashMap<i64, Vec<&StoredData>> = HashMap::new();
    for stored in &tree.data {
        data.entry(stored.resource).or_default().push(stored);
    }
    data
}

/// A text for a column of 255 characters.
fn cut(text: &str) -> HeatValue {
    let text: String = text.chars().take(VARCHAR).collect();
    reason(&text)
}

/// A text that people read, without the characters that MariaDB does not take in tables that Heat has made long ago.
fn reason(text: &str) -> HeatValue {
    text.replace(|char: char| u32::from(char) > 0xffff, "?").into()
}

/// JSON in ASCII, as Heat writes it.
fn json_of(value: &Value) -> HeatValue {
    let text = kiln_value::text::json(value);
    let mut ascii = String::with_capacity(text.len());
    let mut units = [0; 2];
    for char in text.chars() {
        if char.is_ascii() {
            ascii.push(char);
            continue;
        }
        for unit in char.encode_utf16(&mut units) {
            // Writing to a text does not fail.
            _ = write!(ascii, "\\u{unit:04x}");
        }
    }
    ascii.into()
}

#[cfg(test)]
mod tests {
    use kiln_value::value;

    use super::*;

    #[test]
    fn json_is_ascii_and_long_texts_are_cut() {
        let value = value!({"a": "\u{e4}\u{1f600}"});
        let HeatValue::Text(text) = json_of(&value) else { panic!("a text") };
        assert_eq!(text, "{\"a\": \"\\u00e4\\ud83d\\ude00\"}");
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
        assert_eq!(reason("no \u{1f600}"), HeatValue::from("no ?"));
        assert_eq!(cut(&"x".repeat(300)), HeatValue::from("x".repeat(255)));
    }
}
