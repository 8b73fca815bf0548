//! Calls for the operations and revisions of a stack. Heat has none of them.

use kiln_value::Value;

use crate::client::{segment, stack_path, unwrap};
use crate::{Client, Error};

/// A page of operations or revisions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OperationPage {
    /// Maximum number.
    pub limit: Option<u64>,
    /// Only operations before the one with this ID.
    pub marker: Option<String>,
}

impl Client {
    /// The operations of a stack and its nested stacks, newest first.
    pub async fn operations(&self, stack: &str, page: &OperationPage) -> Result<Vec<Value>, Error> {
        self.page_of(stack, "operations", page).await
    }

    /// An operation of a stack, with the cause of its failure.
    pub async fn operation(&self, stack: &str, id: &str) -> Result<Value, Error> {
        let stack = self.stack_identity(stack).await?;
        let path = format!("{}/operations/{}", stack_path(&stack), segment(id));
        unwrap(self.get(&path, &vec![]).await?, "operation")
    }

    /// The operations that set the template of a stack, newest first.
    pub async fn revisions(&self, stack: &str, page: &OperationPage) -> Result<Vec<Value>, Error> {
        self.page_of(stack, "revisions", page).await
    }

    /// A revision of a stack, with its template, environment and files.
    pub async fn revision(&self, stack: &str, number: &str) -> Result<Value, Error> {
        let stack = self.stack_identity(stack).await?;
        let path = format!("{}/revisions/{}", stack_path(&stack), segment(number));
        unwrap(self.get(&path, &vec![]).await?, "revision")
    }

    async fn page_of(&self, stack: &str, what: &str, page: &OperationPage) -> Result<Vec<Value>, Error> {
        let stack = self.stack_identity(stack).await?;
        let path = format!("{}/{what}", stack_path(&stack));
        self.pages(&path, what, vec![], page.limit, page.marker.clone()).await
    }
}
