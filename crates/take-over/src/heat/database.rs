//! Reads Heat's tables.

use std::collections::{BTreeMap, BTreeSet, HashMap};
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

    /// Whether the database has the list of the projects that have left Heat.
    pub async fn is_fenced(&self) -> Result<bool, Error> {
        self.database.snapshot().await?.has_table("kiln_heat_fence").await
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

    /// The tree of a root stack, as it is at one moment: [`HeatDatabase::trees`] for one.
    pub async fn tree(&self, root: &str, ids: &[String]) -> Result<ReadTree, Error> {
        let mut read = self.trees(&[(root, ids)]).await?;
        read.pop().ok_or_else(|| Error::NotFound(format!("stack {root}")))
    }

    /// Some trees, as they are at one moment: for each the ID of the root stack, and those of all its stacks. They are read
    /// together, because a query costs more than the rows of a usual stack.
    pub async fn trees(&self, wanted: &[(&str, &[String])]) -> Result<Vec<ReadTree>, Error> {
        let snapshot = self.database.snapshot().await?;
        let mut reader = Reader::new(&snapshot, wanted);
        let stacks = reader.of_stacks(&rows::STACKS, "id").await?;
        let resources = reader.of_stacks(&rows::RESOURCES, "stack_id").await?;
        let events = reader.of_stacks(&rows::EVENTS, "stack_id").await?;
        let tags = reader.of_stacks(&rows::TAGS, "stack_id").await?;
        let snapshots = reader.of_stacks(&rows::SNAPSHOTS, "stack_id").await?;
        let data = reader.of_numbers(&rows::RESOURCE_DATA, "resource_id", &[resources.numbers("id")]).await?;
        let numbers = [
            resources.numbers("rsrc_prop_data_id"),
            resources.numbers("attr_data_id"),
            events.numbers("rsrc_prop_data_id"),
        ];
        let properties = reader.of_numbers(&rows::PROPERTIES, "id", &numbers).await?;
        let numbers = [
            stacks.numbers("raw_template_id"),
            stacks.numbers("prev_raw_template_id"),
            resources.numbers("current_template_id"),
        ];
        let templates = reader.of_numbers(&rows::TEMPLATES, "id", &numbers).await?;
        let files = reader.of_numbers(&rows::FILES, "id", &[templates.numbers("files_id")]).await?;
        let roots =
            stacks.only(|tree, row| row.first().and_then(Option::as_deref) == wanted.get(tree).map(|one| one.0));
        let credentials = reader.of_numbers(&rows::CREDENTIALS, "id", &[roots.numbers("user_creds_id")]).await?;
        let digests = reader
            .digests
            .into_iter()
            .map(|digest| digest.finalize().iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}")));
        let trees = digests.zip(wanted).enumerate().map(|(tree, (digest, (root, _)))| {
            let read = || {
                let (backups, stacks) =
                    all(stacks.of(tree), HeatStack::read)?.into_iter().partition(|stack| stack.backup);
                let files: HashMap<i64, _> = all(files.of(tree), read_files)?.into_iter().collect();
                let mut templates = all(templates.of(tree), HeatTemplate::read)?;
                for template in &mut templates {
                    if let Some(found) = template.files_row.and_then(|row| files.get(&row)) {
                        template.files.clone_from(found);
                    }
                }
                let properties = all(properties.of(tree), HeatProperties::read)?;
                Ok(HeatTree {
                    stacks: parents_first(stacks, root),
                    backups,
                    resources: all(resources.of(tree), HeatResource::read)?,
                    data: all(data.of(tree), StoredData::read)?,
                    properties: properties.into_iter().map(|one| (one.number, one)).collect::<IndexMap<_, _>>(),
                    templates: templates.into_iter().map(|one| (one.number, one)).collect(),
                    credentials: all(credentials.of(tree), HeatCredentials::read)?.pop(),
                    events: all(events.of(tree), HeatEvent::read)?,
                    tags: all(tags.of(tree), read_tag)?,
                    snapshots: all(snapshots.of(tree), HeatSnapshot::read)?,
                    digest: digest.clone(),
                })
            };
            let tree = read();
            ReadTree { digest, tree }
        });
        Ok(trees.collect())
    }

    /// The software configs and deployments of a project. The inner error names the first row that cannot be read.
    pub async fn software(&self, project: &str) -> Result<Result<HeatSoftware, Damaged>, Error> {
        let snapshot = self.database.snapshot().await?;
        let own = [project.to_owned()];
        let of =
            |table: &'static Table| snapshot.rows(table.name, table.columns, ForeignKeys::Texts("tenant", &own), "id");
        let (configs, deployments) = (of(&rows::CONFIGS).await?, of(&rows::DEPLOYMENTS).await?);
        let read = || {
            let (configs, deployments) = (all(&configs, HeatConfig::read)?, all(&deployments, HeatDeployment::read)?);
            Ok(HeatSoftware { configs, deployments })
        };
        Ok(read())
    }
}

/// A tree that was read.
#[derive(Debug)]
pub struct ReadTree {
    /// A digest of all its rows.
    pub digest: String,
    /// The tree. The error names the first row that cannot be read.
    pub tree: Result<HeatTree, Damaged>,
}

/// Reads tables and adds the rows of each tree to its digest.
struct Reader<'s> {
    snapshot: &'s ForeignSnapshot,
    stacks: Vec<String>,
    /// The trees of the stacks.
    trees: HashMap<String, usize>,
    digests: Vec<Sha256>,
}

/// The rows of a table by trees.
struct TreeRows {
    table: &'static Table,
    rows: Vec<Vec<ForeignRow>>,
}

impl<'s> Reader<'s> {
    fn new(snapshot: &'s ForeignSnapshot, wanted: &[(&str, &[String])]) -> Self {
        let of_trees =
            wanted.iter().enumerate().flat_map(|(tree, (_, ids))| ids.iter().map(move |id| (id.clone(), tree)));
        let trees: HashMap<String, usize> = of_trees.collect();
        let stacks = wanted.iter().flat_map(|(_, ids)| ids.iter().cloned()).collect();
        Self { snapshot, stacks, trees, digests: vec![Sha256::new(); wanted.len()] }
    }

    /// The rows whose column has the ID of a stack.
    async fn of_stacks(&mut self, table: &'static Table, column: &'static str) -> Result<TreeRows, Error> {
        let keys = ForeignKeys::Texts(column, &self.stacks);
        let read = self.snapshot.rows(table.name, table.columns, keys, "id").await?;
        let at = table.position(column);
        let mut rows = vec![Vec::new(); self.digests.len()];
        for row in read {
            let stack = at.and_then(|at| row.get(at)?.as_deref());
            if let Some(of_tree) = stack.and_then(|stack| rows.get_mut(*self.trees.get(stack)?)) {
                of_tree.push(row);
            }
        }
        Ok(self.digested(TreeRows { table, rows }))
    }

    /// The rows whose column has a number that a tree asks for.
    async fn of_numbers(
        &mut self,
        table: &'static Table,
        column: &'static str,
        numbers: &[Vec<Vec<i64>>],
    ) -> Result<TreeRows, Error> {
        let mut askers: BTreeMap<i64, BTreeSet<usize>> = BTreeMap::new();
        for (tree, number) in numbers
            .iter()
            .flat_map(|of_trees| of_trees.iter().enumerate())
            .flat_map(|(tree, numbers)| numbers.iter().map(move |number| (tree, *number)))
        {
            askers.entry(number).or_default().insert(tree);
        }
        let keys: Vec<i64> = askers.keys().copied().collect();
        let read = self.snapshot.rows(table.name, table.columns, ForeignKeys::Numbers(column, &keys), "id").await?;
        let at = table.position(column);
        let mut rows = vec![Vec::new(); self.digests.len()];
        for row in read {
            let number = at.and_then(|at| row.get(at)?.as_deref()?.parse::<i64>().ok());
            for tree in number.and_then(|number| askers.get(&number)).into_iter().flatten() {
                if let Some(of_tree) = rows.get_mut(*tree) {
                    of_tree.push(row.clone());
                }
            }
        }
        Ok(self.digested(TreeRows { table, rows }))
    }

    fn digested(&mut self, rows: TreeRows) -> TreeRows {
        for (digest, rows) in self.digests.iter_mut().zip(&rows.rows) {
            for value in rows.iter().flatten() {
                match value {
                    // The length tells columns apart.
                    Some(text) => {
                        digest.update(text.len().to_le_bytes());
                        digest.update(text.as_bytes());
                    }
                    None => digest.update([0xff]),
                }
            }
        }
        rows
    }
}

impl TreeRows {
    fn of(&self, tree: usize) -> &[ForeignRow] {
        self.rows.get(tree).map_or(&[], Vec::as_slice)
    }

    /// The numbers in a column, by trees.
    fn numbers(&self, column: &str) -> Vec<Vec<i64>> {
        let at = self.table.position(column);
        let number = |row: &ForeignRow| row.get(at?)?.as_deref()?.parse().ok();
        self.rows.iter().map(|rows| rows.iter().filter_map(number).collect()).collect()
    }

    /// Some of the rows.
    fn only(&self, is_wanted: impl Fn(usize, &ForeignRow) -> bool) -> Self {
        let of =
            |(tree, rows): (usize, &Vec<ForeignRow>)| rows.iter().filter(|row| is_wanted(tree, row)).cloned().collect();
        Self { table: self.table, rows: self.rows.iter().enumerate().map(of).collect() }
    }
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
