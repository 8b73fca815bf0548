//! Reads Heat's tables.

use std::collections::{BTreeSet, HashMap};
use std::fmt;

use indexmap::IndexMap;
use kiln_store::{Error, ForeignDatabase, ForeignKeys, ForeignRow, ForeignSnapshot, Options};
use sha2::{Digest as _, Sha256};

use super::decoding::Damaged;
use super::rows::{
    self, HeatConfig, HeatCredentials, HeatDeployment, HeatEvent, HeatProperties, HeatResource, HeatSnapshot,
    HeatSoftware, HeatStack, HeatTemplate, HeatTree, StoredData, Table, read_files, read_tag,
};

/// The database of a Heat. It is only read.
#[derive(Clone, Debug)]
pub struct HeatDatabase {
    database: ForeignDatabase,
}

/// The release of Heat that has made the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    /// There are no tables of Heat.
    None,
    /// Of before Queens: it is not supported.
    Older(i64),
    /// Rocky (11) to 2025.2 (25): these have the same tables.
    Rocky,
    /// 2026.1 (26) and later.
    Gazpacho,
    /// A revision that is not known.
    Unknown,
}

impl Release {
    /// Whether its tables can be read.
    pub fn is_supported(self) -> bool {
        matches!(self, Self::Rocky | Self::Gazpacho)
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("no tables of Heat"),
            Self::Older(version) => write!(f, "schema {version}, of before Rocky (11): not supported"),
            Self::Rocky => f.write_str("Rocky (11) to 2025.2 (25)"),
            Self::Gazpacho => f.write_str("2026.1 (26) or later"),
            Self::Unknown => f.write_str("a schema that this version does not know"),
        }
    }
}

/// A live stack in the list of all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// ID.
    pub id: String,
    /// Name.
    pub name: String,
    /// ID of its project.
    pub project: String,
    /// Its owner.
    pub owner: Option<String>,
}

const LISTED: &[&str] = &["id", "name", "tenant", "owner_id"];

impl HeatDatabase {
    /// Connects to the database of these options.
    pub async fn open(options: &Options) -> Result<Self, Error> {
        Ok(Self { database: ForeignDatabase::open(options).await? })
    }

    /// The release that has made the tables.
    pub async fn release(&self) -> Result<Release, Error> {
        let snapshot = self.database.snapshot().await?;
        if !snapshot.has_table("raw_template").await? || !snapshot.has_table("stack").await? {
            return Ok(Release::None);
        }
        if snapshot.has_table("alembic_version").await? {
            let found = snapshot.rows("alembic_version", &["version_num"], ForeignKeys::All, "version_num").await?;
            let revision = found.first().and_then(|row| row.first()?.as_deref());
            return Ok(match revision {
                Some("c6214ca60943") => Release::Rocky,
                Some("d2db381e3324" | "88be64598c0f" | "97b2a986f922") => Release::Gazpacho,
                _ => Release::Unknown,
            });
        }
        if !snapshot.has_table("migrate_version").await? {
            return Ok(Release::Unknown);
        }
        let found = snapshot.rows("migrate_version", &["version"], ForeignKeys::All, "version").await?;
        let version = found.iter().filter_map(|row| row.first()?.as_deref()?.parse::<i64>().ok()).max();
        Ok(match version {
            Some(86) => Release::Rocky,
            Some(older) if older < 86 => Release::Older(older),
            _ => Release::Unknown,
        })
    }

    /// All live stacks, also nested ones and backups.
    pub async fn live_stacks(&self) -> Result<Vec<Listed>, Error> {
        let snapshot = self.database.snapshot().await?;
        let rows = snapshot.rows("stack", LISTED, ForeignKeys::Null("deleted_at"), "id").await?;
        let read = |row: ForeignRow| {
            let text = |at: usize| row.get(at).cloned().flatten().filter(|text| !text.is_empty());
            let [id, name, project] = [0, 1, 2].map(|at| text(at).unwrap_or_default());
            Listed { id, name, project, owner: text(3) }
        };
        Ok(rows.into_iter().map(read).collect())
    }

    /// The tree of a root stack, as it is at one moment. `ids`: all stacks of the tree. The inner error names the first row that
    /// cannot be read; the digest is that of all rows also then.
    pub async fn tree(&self, root: &str, ids: &[String]) -> Result<(String, Result<HeatTree, Damaged>), Error> {
        let snapshot = self.database.snapshot().await?;
        let mut reader = Reader { snapshot: &snapshot, digest: Sha256::new() };
        let stacks = reader.read(&rows::STACKS, ForeignKeys::Texts("id", ids), "id").await?;
        let resources = reader.read(&rows::RESOURCES, ForeignKeys::Texts("stack_id", ids), "id").await?;
        let events = reader.read(&rows::EVENTS, ForeignKeys::Texts("stack_id", ids), "id").await?;
        let tags = reader.read(&rows::TAGS, ForeignKeys::Texts("stack_id", ids), "id").await?;
        let snapshots = reader.read(&rows::SNAPSHOTS, ForeignKeys::Texts("stack_id", ids), "id").await?;
        let data = reader.of(&rows::RESOURCE_DATA, "resource_id", numbers(&rows::RESOURCES, "id", &resources)).await?;
        let properties = [
            numbers(&rows::RESOURCES, "rsrc_prop_data_id", &resources),
            numbers(&rows::RESOURCES, "attr_data_id", &resources),
            numbers(&rows::EVENTS, "rsrc_prop_data_id", &events),
        ];
        let properties = properties.into_iter().flatten().collect();
        let properties = reader.of(&rows::PROPERTIES, "id", properties).await?;
        let templates = [
            numbers(&rows::STACKS, "raw_template_id", &stacks),
            numbers(&rows::STACKS, "prev_raw_template_id", &stacks),
            numbers(&rows::RESOURCES, "current_template_id", &resources),
        ];
        let templates = reader.of(&rows::TEMPLATES, "id", templates.into_iter().flatten().collect()).await?;
        let files = reader.of(&rows::FILES, "id", numbers(&rows::TEMPLATES, "files_id", &templates)).await?;
        let of_root = stacks.iter().filter(|row| row.first().and_then(Option::as_deref) == Some(root));
        let credentials: Vec<ForeignRow> = of_root.cloned().collect();
        let credentials =
            reader.of(&rows::CREDENTIALS, "id", numbers(&rows::STACKS, "user_creds_id", &credentials)).await?;
        let digest = reader.digest.finalize().iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"));
        let read = || {
            let (backups, stacks) = all(&stacks, HeatStack::read)?.into_iter().partition(|stack| stack.backup);
            let files: HashMap<i64, _> = all(&files, read_files)?.into_iter().collect();
            let mut templates = all(&templates, HeatTemplate::read)?;
            for template in &mut templates {
                if let Some(found) = template.files_row.and_then(|row| files.get(&row)) {
                    template.files.clone_from(found);
                }
            }
            let properties = all(&properties, HeatProperties::read)?;
            Ok(HeatTree {
                stacks: parents_first(stacks, root),
                backups,
                resources: all(&resources, HeatResource::read)?,
                data: all(&data, StoredData::read)?,
                properties: properties.into_iter().map(|one| (one.number, one)).collect::<IndexMap<_, _>>(),
                templates: templates.into_iter().map(|one| (one.number, one)).collect(),
                credentials: all(&credentials, HeatCredentials::read)?.pop(),
                events: all(&events, HeatEvent::read)?,
                tags: all(&tags, read_tag)?,
                snapshots: all(&snapshots, HeatSnapshot::read)?,
                digest: digest.clone(),
            })
        };
        let tree = read();
        Ok((digest, tree))
    }

    /// The software configs and deployments of a project. The inner error names the first row that cannot be read.
    pub async fn software(&self, project: &str) -> Result<Result<HeatSoftware, Damaged>, Error> {
        let snapshot = self.database.snapshot().await?;
        let mut reader = Reader { snapshot: &snapshot, digest: Sha256::new() };
        let own = [project.to_owned()];
        let configs = reader.read(&rows::CONFIGS, ForeignKeys::Texts("tenant", &own), "id").await?;
        let deployments = reader.read(&rows::DEPLOYMENTS, ForeignKeys::Texts("tenant", &own), "id").await?;
        let read = || {
            let (configs, deployments) = (all(&configs, HeatConfig::read)?, all(&deployments, HeatDeployment::read)?);
            Ok(HeatSoftware { configs, deployments })
        };
        Ok(read())
    }
}

/// Reads tables and adds their rows to a digest.
struct Reader<'s> {
    snapshot: &'s ForeignSnapshot,
    digest: Sha256,
}

impl Reader<'_> {
    async fn read(
        &mut self,
        table: &Table,
        keys: ForeignKeys<'_>,
        order: &'static str,
    ) -> Result<Vec<ForeignRow>, Error> {
        let rows = self.snapshot.rows(table.name, table.columns, keys, order).await?;
        for value in rows.iter().flatten() {
            match value {
                // The length tells columns apart.
                Some(text) => {
                    self.digest.update(text.len().to_le_bytes());
                    self.digest.update(text.as_bytes());
                }
                None => self.digest.update([0xff]),
            }
        }
        Ok(rows)
    }

    /// The rows with these numbers in a column.
    async fn of(&mut self, table: &Table, column: &'static str, numbers: Vec<i64>) -> Result<Vec<ForeignRow>, Error> {
        let numbers: Vec<i64> = numbers.into_iter().collect::<BTreeSet<_>>().into_iter().collect();
        self.read(table, ForeignKeys::Numbers(column, &numbers), "id").await
    }
}

/// The numbers in a column of these rows of a table.
fn numbers(table: &Table, column: &str, rows: &[ForeignRow]) -> Vec<i64> {
    let at = table.columns.iter().position(|name| *name == column);
    rows.iter().filter_map(|row| row.get(at?)?.as_deref()?.parse().ok()).collect()
}

fn all<T>(rows: &[ForeignRow], read: impl Fn(&ForeignRow) -> Result<T, Damaged>) -> Result<Vec<T>, Damaged> {
    rows.iter().map(read).collect()
}

/// The stacks of a tree, each after its owner. Those without a way to the root are left out.
fn parents_first(stacks: Vec<HeatStack>, root: &str) -> Vec<HeatStack> {
    let mut below: HashMap<Option<String>, Vec<HeatStack>> = HashMap::new();
    let mut open = Vec::new();
    for stack in stacks {
        if stack.id == root {
            open.push(stack);
        } else {
            below.entry(stack.owner.clone()).or_default().push(stack);
        }
    }
    let mut sorted = Vec::new();
    while let Some(stack) = open.pop() {
        open.extend(below.remove(&Some(stack.id.clone())).unwrap_or_default());
        sorted.push(stack);
    }
    sorted
}
