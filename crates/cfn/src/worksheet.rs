//! What is kept between requests: refactorings of stacks, scans and generated templates.

use kiln_store::{Error as StoreError, Worksheet, WorksheetKind, WorksheetStore};
use serde::Serialize;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use crate::call::Call;
use crate::fault::Fault;

/// Worksheets of a kind that a project can have.
const MOST: usize = 100;

impl Call {
    fn worksheets(&self) -> Result<&dyn WorksheetStore, Fault> {
        let store = self.options().worksheets.as_deref();
        store.ok_or_else(|| Fault::invalid_action(Some("this service has no database for it")))
    }

    /// Keeps something new; returns its ID. If there is no room, a name is refused; what has no name takes the place of the
    /// oldest.
    pub(crate) async fn keep(
        &self,
        kind: WorksheetKind,
        name: Option<String>,
        (head, body): (&impl Serialize, &impl Serialize),
    ) -> Result<Uuid, Fault> {
        let others = self.all_kept(kind).await?;
        if name.is_some() && others.len() >= MOST {
            return Err(Fault::too_much(format!("A project can have {MOST} of them.")));
        }
        for oldest in others.iter().skip(MOST - 1) {
            self.worksheets()?.delete_worksheet(&oldest.project, kind, oldest.id).await?;
        }
        let sheet = Worksheet {
            id: self.backends().chance.uuid(),
            project: self.caller.project_id.clone(),
            kind,
            name,
            head: written(head)?,
            body: written(body)?,
            version: 0,
            created: self.backends().clock.now(),
        };
        self.worksheets()?.save_worksheet(&sheet).await.map_err(taken)?;
        Ok(sheet.id)
    }

    /// What the project keeps with an ID.
    pub(crate) async fn kept(&self, kind: WorksheetKind, id: Uuid) -> Result<Option<Worksheet>, Fault> {
        Ok(self.worksheets()?.worksheet(&self.caller.project_id, kind, id).await?)
    }

    /// What the project keeps, newest first, without the bodies.
    pub(crate) async fn all_kept(&self, kind: WorksheetKind) -> Result<Vec<Worksheet>, Fault> {
        Ok(self.worksheets()?.worksheets(&self.caller.project_id, kind).await?)
    }

    /// Keeps what has changed; returns whether nobody else has changed it meanwhile.
    pub(crate) async fn keep_changed(
        &self,
        sheet: &Worksheet,
        (head, body): (&impl Serialize, &impl Serialize),
    ) -> Result<bool, Fault> {
        let changed = Worksheet { head: written(head)?, body: written(body)?, ..sheet.clone() };
        self.worksheets()?.change_worksheet(&changed).await.map_err(taken)
    }

    /// Deletes something that is kept.
    pub(crate) async fn discard(&self, sheet: &Worksheet) -> Result<(), Fault> {
        self.worksheets()?.delete_worksheet(&sheet.project, sheet.kind, sheet.id).await?;
        Ok(())
    }

    /// The ARN of something that is kept: `word` is what AWS calls it.
    pub(crate) fn kept_arn(&self, word: &str, id: Uuid) -> String {
        format!("arn:openstack:heat::{}:{word}/{id}", self.caller.project_id)
    }

    /// The ID in such an ARN of the project of the caller.
    pub(crate) fn id_in_arn(&self, word: &str, arn: &str) -> Option<Uuid> {
        let id = arn.rsplit('/').next()?.parse().ok()?;
        (self.kept_arn(word, id) == arn).then_some(id)
    }
}

/// The head or the body of a worksheet.
pub(crate) fn read<T: DeserializeOwned>(text: &str) -> Result<T, Fault> {
    serde_json::from_str(text).map_err(Fault::internal)
}

fn written(value: &impl Serialize) -> Result<String, Fault> {
    serde_json::to_string(value).map_err(Fault::internal)
}

fn taken(error: StoreError) -> Fault {
    match error {
        StoreError::NameTaken(name) => Fault::name_exists(&name),
        error => error.into(),
    }
}
