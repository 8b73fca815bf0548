//! Calls on stacks.

use http::Method;
use kiln_value::{Map, Value, value};

use crate::client::{Query, segment, stack_path, unwrap, unwrap_list};
use crate::{Bundle, Client, Error, Stack};

/// A stack to make or change: the body of the request besides what [`Bundle`] holds. `None` and empty are left out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StackRequest {
    /// Template, environment and files.
    pub bundle: Bundle,
    /// Parameters.
    pub parameters: Map,
    /// Whether a failure is left as it is.
    pub disable_rollback: Option<bool>,
    /// Minutes the action may take.
    pub timeout_mins: Option<i64>,
    /// Tags, with commas between.
    pub tags: Option<String>,
    /// Keep the existing template, environment and parameters where nothing is given (PATCH). Updates only.
    pub existing: bool,
    /// Parameters to return to their defaults. Updates only.
    pub clear_parameters: Vec<String>,
    /// Compare with what is really there. Updates only.
    pub converge: bool,
}

impl StackRequest {
    /// The body, as python-heatclient sends it.
    fn body(&self, name: Option<&str>) -> Value {
        let mut body = Map::new();
        if let Some(name) = name {
            body.insert("stack_name".into(), name.into());
        }
        if let Some(disable) = self.disable_rollback {
            body.insert("disable_rollback".into(), disable.into());
        }
        body.insert("parameters".into(), self.parameters.clone().into());
        body.insert("template".into(), self.bundle.template.clone().into());
        body.insert("files".into(), self.bundle.files.clone().into());
        body.insert("environment".into(), self.bundle.environment.clone().into());
        if !self.bundle.environment_files.is_empty() {
            body.insert("environment_files".into(), self.bundle.environment_files.clone().into());
        }
        if let Some(tags) = &self.tags {
            body.insert("tags".into(), tags.into());
        }
        if let Some(minutes) = self.timeout_mins {
            body.insert("timeout_mins".into(), minutes.into());
        }
        if !self.clear_parameters.is_empty() {
            body.insert("clear_parameters".into(), self.clear_parameters.clone().into());
        }
        if self.converge {
            body.insert("converge".into(), true.into());
        }
        Value::Map(body)
    }

    fn update_method(&self) -> Method {
        if self.existing { Method::PATCH } else { Method::PUT }
    }
}

/// What may be asked of a stack as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StackAction {
    /// Put its resources to sleep.
    Suspend,
    /// Wake them up.
    Resume,
    /// Look whether they are there and well.
    Check,
    /// Stop an update and roll it back.
    CancelUpdate,
    /// Stop a create or update and leave it as it is.
    CancelWithoutRollback,
}

impl StackAction {
    fn key(self) -> &'static str {
        match self {
            Self::Suspend => "suspend",
            Self::Resume => "resume",
            Self::Check => "check",
            Self::CancelUpdate => "cancel_update",
            Self::CancelWithoutRollback => "cancel_without_rollback",
        }
    }
}

/// Which stacks to list, with the names of Heat's query parameters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a query parameter of its own")]
pub struct StackFilter {
    /// At most so many, over all pages.
    pub limit: Option<u64>,
    /// Behind this stack.
    pub marker: Option<String>,
    /// Properties that must be so: `status`, `name`, `action`, `id` …
    pub properties: Query,
    /// `tags`, `tags_any`, `not_tags` or `not_tags_any`, and the tags with commas between.
    pub tags: Option<(&'static str, String)>,
    /// Of all projects (admin).
    pub all_projects: bool,
    /// Of this project (admin).
    pub project: Option<String>,
    /// Deleted stacks too.
    pub deleted: bool,
    /// Hidden stacks too.
    pub hidden: bool,
    /// Nested stacks too.
    pub nested: bool,
}

impl StackFilter {
    fn query(&self) -> Query {
        let mut query = self.properties.clone();
        let mut add = |key: &str, value: Option<String>| {
            if let Some(value) = value {
                query.push((key.to_owned(), value));
            }
        };
        let flag = |set: bool| set.then(|| "True".to_owned());
        if let Some((mode, tags)) = &self.tags {
            add(mode, Some(tags.clone()));
        }
        add("global_tenant", flag(self.all_projects));
        add("show_deleted", flag(self.deleted));
        add("show_hidden", flag(self.hidden));
        add("show_nested", flag(self.nested));
        add("tenant", self.project.clone());
        query
    }
}

impl Client {
    /// Makes a stack; gives its id.
    pub async fn create_stack(&self, name: &str, request: &StackRequest) -> Result<String, Error> {
        let answer = self.call(Method::POST, "/stacks", &vec![], Some(&request.body(Some(name)))).await?;
        let stack = Stack(unwrap(answer, "stack")?);
        Ok(stack.id().to_owned())
    }

    /// What a stack would be.
    pub async fn preview_stack(&self, name: &str, request: &StackRequest) -> Result<Stack, Error> {
        let answer = self.call(Method::POST, "/stacks/preview", &vec![], Some(&request.body(Some(name)))).await?;
        unwrap(answer, "stack").map(Stack)
    }

    /// Changes a stack.
    pub async fn update_stack(&self, stack: &str, request: &StackRequest) -> Result<(), Error> {
        let body = request.body(None);
        self.call(request.update_method(), &stack_path(stack), &vec![], Some(&body)).await.map(drop)
    }

    /// What an update would do: resource changes by `added`, `deleted`, `replaced`, `unchanged`, `updated`.
    pub async fn preview_update(&self, stack: &str, request: &StackRequest, nested: bool) -> Result<Map, Error> {
        let stack = self.stack_identity(stack).await?;
        let query = if nested { vec![("show_nested".into(), "True".into())] } else { vec![] };
        let path = format!("{}/preview", stack_path(&stack));
        let answer = self.call(request.update_method(), &path, &query, Some(&request.body(None))).await?;
        match unwrap(answer, "resource_changes")? {
            Value::Map(changes) => Ok(changes),
            _ => Ok(Map::new()),
        }
    }

    /// Deletes a stack.
    pub async fn delete_stack(&self, stack: &str) -> Result<(), Error> {
        self.call(Method::DELETE, &stack_path(stack), &vec![], None).await.map(drop)
    }

    /// A stack, with its outputs' values unless `outputs` is false: these may take long.
    pub async fn stack(&self, stack: &str, outputs: bool) -> Result<Stack, Error> {
        let query = if outputs { vec![] } else { vec![("resolve_outputs".into(), "False".into())] };
        unwrap(self.get(&stack_path(stack), &query).await?, "stack").map(Stack)
    }

    /// `name/id` of a stack.
    pub async fn stack_identity(&self, stack: &str) -> Result<String, Error> {
        if stack.contains('/') {
            return Ok(stack.to_owned());
        }
        let stack = self.stack(stack, false).await?;
        Ok(format!("{}/{}", stack.name(), stack.id()))
    }

    /// Stacks, page after page up to the limit.
    pub async fn stacks(&self, filter: &StackFilter) -> Result<Vec<Stack>, Error> {
        let mut stacks: Vec<Stack> = Vec::new();
        let mut marker = filter.marker.clone();
        let mut left = filter.limit;
        loop {
            let mut query = filter.query();
            query.extend(left.map(|limit| ("limit".to_owned(), limit.to_string())));
            query.extend(marker.take().map(|marker| ("marker".to_owned(), marker)));
            let page = unwrap_list(self.get("/stacks", &query).await?, "stacks")?;
            let count = page.len() as u64;
            stacks.extend(page.into_iter().map(Stack));
            left = left.map(|limit| limit.saturating_sub(count));
            match stacks.last() {
                Some(last) if count > 0 && left.is_some_and(|left| left > 0) => marker = Some(last.id().to_owned()),
                _ => return Ok(stacks),
            }
        }
    }

    /// Asks something of a stack as a whole.
    pub async fn stack_action(&self, stack: &str, action: StackAction) -> Result<(), Error> {
        let body = value!({ (action.key()): null });
        self.call(Method::POST, &format!("{}/actions", stack_path(stack)), &vec![], Some(&body)).await.map(drop)
    }

    /// The template of a stack.
    pub async fn stack_template(&self, stack: &str) -> Result<Value, Error> {
        self.get(&format!("{}/template", stack_path(stack)), &vec![]).await
    }

    /// The environment of a stack.
    pub async fn stack_environment(&self, stack: &str) -> Result<Value, Error> {
        self.get(&format!("{}/environment", stack_path(stack)), &vec![]).await
    }

    /// The files of a stack, by name.
    pub async fn stack_files(&self, stack: &str) -> Result<Value, Error> {
        self.get(&format!("{}/files", stack_path(stack)), &vec![]).await
    }

    /// The outputs of a stack, without their values.
    pub async fn outputs(&self, stack: &str) -> Result<Vec<Value>, Error> {
        let stack = self.stack_identity(stack).await?;
        unwrap_list(self.get(&format!("{}/outputs", stack_path(&stack)), &vec![]).await?, "outputs")
    }

    /// An output with its value.
    pub async fn output(&self, stack: &str, key: &str) -> Result<Value, Error> {
        let stack = self.stack_identity(stack).await?;
        let path = format!("{}/outputs/{}", stack_path(&stack), segment(key));
        unwrap(self.get(&path, &vec![]).await?, "output")
    }
}
