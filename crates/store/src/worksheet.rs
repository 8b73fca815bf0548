//! Worksheets: what a client of the CloudFormation API prepares in one call and uses in later ones. No engine reads them.

use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use kiln_resource::words;
use uuid::Uuid;

use crate::Error;

/// How long a worksheet is kept after its last change.
pub const WORKSHEET_KEPT: Duration = Duration::from_hours(30 * 24);

words! {
    /// What a worksheet is for.
    WorksheetKind {
        /// Resources that will move between stacks.
        Refactor = "REFACTOR",
        /// The objects that a project had at a time.
        Scan = "SCAN",
        /// A template for some of them.
        Template = "TEMPLATE",
    }
}

/// A worksheet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Worksheet {
    /// Its ID.
    pub id: Uuid,
    /// Project ID.
    pub project: String,
    /// What it is for.
    pub kind: WorksheetKind,
    /// Its name, unique among those of its kind in the project; may be missing.
    pub name: Option<String>,
    /// What lists show, as JSON. Encrypted at rest.
    pub head: String,
    /// The rest, which may be large, as JSON; empty in a list. Encrypted at rest.
    pub body: String,
    /// How often it was changed.
    pub version: i64,
    /// When it was made.
    pub created: Timestamp,
}

/// Worksheets. Those that nobody has changed for [`WORKSHEET_KEPT`], by the clock of the database, are not there any more.
#[async_trait]
pub trait WorksheetStore: Send + Sync {
    /// Saves a new worksheet. [`Error::NameTaken`] if there is another one with its name. Repeating this is harmless.
    async fn save_worksheet(&self, new: &Worksheet) -> Result<(), Error>;
    /// Changes name, head and body of a worksheet that has the given version; returns whether it had, and counts it up.
    /// [`Error::NameTaken`] if there is another one with its name.
    async fn change_worksheet(&self, changed: &Worksheet) -> Result<bool, Error>;
    /// A worksheet with its body.
    async fn worksheet(&self, project: &str, kind: WorksheetKind, id: Uuid) -> Result<Option<Worksheet>, Error>;
    /// The worksheets of a project without their bodies, newest first.
    async fn worksheets(&self, project: &str, kind: WorksheetKind) -> Result<Vec<Worksheet>, Error>;
    /// Deletes a worksheet; returns whether there was one.
    async fn delete_worksheet(&self, project: &str, kind: WorksheetKind, id: Uuid) -> Result<bool, Error>;
}
