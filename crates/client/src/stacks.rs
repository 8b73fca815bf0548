//! Calls on stacks.

use http::Method;
use kiln_plan_document::{Action, PlanDocument};
use kiln_value::{Map, Value, value};

use crate::client::{Query, segment, stack_path, unwrap, unwrap_list};
use crate::{Bundle, Client, Error, Stack, plan};

/// The parameters of a create or update, in addition to the [`Bundle`]. `None` and empty values are omitted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StackRequest {
    /// Template, environment and files.
    pub bundle: Bundle,
    /// Parameters.
    pub parameters: Map,
    /// Whether failures are not rolled back.
    pub disable_rollback: Option<bool>,
    /// Timeout of the action in minutes.
    pub timeout_mins: Option<i64>,
    /// Tags, separated by commas.
    pub tags: Option<String>,
    /// Keep the current template, environment and parameters where none are given (PATCH). Only for updates.
    pub existing: bool,
    /// The revision that stands for the current template, environment and parameters. Only for updates, with `existing`.
    pub revision: Option<String>,
    /// Parameters to reset to their defaults. Only for updates.
    pub clear_parameters: Vec<String>,
    /// The resources whose drift from their objects is detected and repaired: true, or a list of paths; null: none. Only for
    /// updates.
    pub converge: Value,
    /// The version of the stack whose plan was shown: Kiln refuses to update another one. Only for updates.
    pub if_version: Option<String>,
    /// Check the request in the cloud before it begins.
    pub preflight: bool,
    /// The data of existing resources to adopt, with the template. Only for creates.
    pub adopt: Option<String>,
}

impl StackRequest {
    /// The body, in the format of python-heatclient.
    pub(crate) fn body(&self, name: Option<&str>) -> Value {
        let mut body = Map::new();
        if let Some(name) = name {
            body.insert("stack_name".into(), name.into());
        }
        if let Some(disable) = self.disable_rollback {
            body.insert("disable_rollback".into(), disable.into());
        }
        body.insert("parameters".into(), self.parameters.clone().into());
        match &self.adopt {
            Some(data) => body.insert("adopt_stack_data".into(), data.as_str().into()),
            None => body.insert("template".into(), self.bundle.template.clone().into()),
        };
        body.insert("files".into(), self.bundle.files.clone().into());
        body.insert("environment".into(), self.bundle.environment.clone().into());
        if !self.bundle.environment_files.is_empty() {
            body.insert("environment_files".into(), self.bundle.environment_files.clone().into());
        }
        if let Some(container) = &self.bundle.container {
            body.insert("files_container".into(), container.as_str().into());
        }
        if !self.bundle.questions.is_empty() {
            body.insert("questions".into(), self.bundle.questions.clone().into());
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
        if self.converge.is_truthy() {
            body.insert("converge".into(), self.converge.clone());
        }
        if let Some(revision) = &self.revision {
            body.insert("revision".into(), revision.as_str().into());
        }
        if self.preflight {
            body.insert("preflight".into(), true.into());
        }
        if let Some(version) = &self.if_version {
            body.insert("if_version".into(), version.as_str().into());
        }
        Value::Map(body)
    }

    fn update_method(&self) -> Method {
        if self.existing { Method::PATCH } else { Method::PUT }
    }
}

/// What a create or an update would change.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Changes {
    /// The resources, in the lists `added`, `deleted`, `replaced`, `unchanged` and `updated`.
    pub resources: Map,
    /// The outputs that change, by name: their values `before` and `after`. Heat returns none.
    pub outputs: Map,
    /// What the plan was computed from, if the service is Kiln.
    pub version: Option<String>,
}

impl Changes {
    /// Reads the answer of a preview; `None` if it has no changes of resources, as that of Heat for a create.
    fn of(mut answer: Value) -> Option<Self> {
        let version = answer.str_at("version").map(str::to_owned);
        let mut part = |key: &str| match answer.as_map_mut()?.swap_remove(key)? {
            Value::Map(part) => Some(part),
            _ => None,
        };
        Some(Self {
            resources: part("resource_changes")?,
            outputs: part("output_changes").unwrap_or_default(),
            version,
        })
    }
}

/// What a service says about a create.
#[derive(Clone, Debug)]
pub enum PlannedCreate {
    /// The plan.
    Plan(Box<PlanDocument>),
    /// The stack, of a Heat.
    Preview(Stack),
}

/// Actions on a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StackAction {
    /// Suspend its resources.
    Suspend,
    /// Resume its resources.
    Resume,
    /// Check its resources.
    Check,
    /// Cancel an update and roll it back.
    CancelUpdate,
    /// Cancel a create or update without a rollback.
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

/// Filters of a stack list, with the names of Heat's query parameters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a query parameter of its own")]
pub struct StackFilter {
    /// Maximum number, over all pages.
    pub limit: Option<u64>,
    /// Only stacks after this one.
    pub marker: Option<String>,
    /// Required properties: `status`, `name`, `action`, `id` …
    pub properties: Query,
    /// `tags`, `tags_any`, `not_tags` or `not_tags_any`, and the tags separated by commas.
    pub tags: Option<(&'static str, String)>,
    /// Include stacks of all projects (admin).
    pub all_projects: bool,
    /// Only stacks of this project (admin).
    pub project: Option<String>,
    /// Include deleted stacks.
    pub deleted: bool,
    /// Include hidden stacks.
    pub hidden: bool,
    /// Include nested stacks.
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
    /// Creates a stack; returns its ID.
    pub async fn create_stack(&self, name: &str, request: &StackRequest) -> Result<String, Error> {
        let answer = self.call(Method::POST, "/stacks", &vec![], Some(&request.body(Some(name)))).await?;
        let stack = Stack(unwrap(answer, "stack")?);
        Ok(stack.id().to_owned())
    }

    /// Previews a create; with its changes if the service is Kiln.
    pub async fn preview_stack(&self, name: &str, request: &StackRequest) -> Result<(Stack, Option<Changes>), Error> {
        let query = vec![("resource_changes".into(), "True".into())];
        let answer = self.call(Method::POST, "/stacks/preview", &query, Some(&request.body(Some(name)))).await?;
        let changes = Changes::of(answer.clone());
        Ok((unwrap(answer, "stack").map(Stack)?, changes))
    }

    /// Updates a stack.
    pub async fn update_stack(&self, stack: &str, request: &StackRequest) -> Result<(), Error> {
        let body = request.body(None);
        self.call(request.update_method(), &stack_path(stack), &vec![], Some(&body)).await.map(drop)
    }

    /// Previews a create as [`Client::preview_stack`], and plans it; a Heat has no plan of a create.
    pub async fn preview_planned_stack(
        &self,
        name: &str,
        request: &StackRequest,
    ) -> Result<(Stack, Option<(Changes, PlanDocument)>), Error> {
        let query = vec![("resource_changes".into(), "True".into()), ("plan".into(), "True".into())];
        let answer = self.call(Method::POST, "/stacks/preview", &query, Some(&request.body(Some(name)))).await?;
        let planned = Changes::of(answer.clone()).zip(plan::of_kiln(&answer)?);
        Ok((unwrap(answer, "stack").map(Stack)?, planned))
    }

    /// Previews an update as [`Client::preview_update`], and plans it; the plan of a Heat is made of its lists.
    pub async fn preview_planned_update(
        &self,
        stack: &str,
        request: &StackRequest,
        nested: bool,
    ) -> Result<(Changes, PlanDocument), Error> {
        let identity = self.stack_identity(stack).await?;
        let asked = [("show_nested", nested), ("resource_changes", true), ("plan", true)].into_iter();
        let query = asked.filter(|(_, asked)| *asked).map(|(name, _)| (name.to_owned(), "True".to_owned())).collect();
        let path = format!("{}/preview", stack_path(&identity));
        let answer = self.call(request.update_method(), &path, &query, Some(&request.body(None))).await?;
        let plan = plan::of_kiln(&answer)?.unwrap_or_else(|| plan::of_heat(Action::Update, stack, &answer));
        Ok((Changes::of(answer).unwrap_or_default(), plan))
    }

    /// Previews an update.
    pub async fn preview_update(&self, stack: &str, request: &StackRequest, nested: bool) -> Result<Changes, Error> {
        let stack = self.stack_identity(stack).await?;
        let query = if nested { vec![("show_nested".into(), "True".into())] } else { vec![] };
        let path = format!("{}/preview", stack_path(&stack));
        let answer = self.call(request.update_method(), &path, &query, Some(&request.body(None))).await?;
        Ok(Changes::of(answer).unwrap_or_default())
    }

    /// The plan of a create; of a Heat its preview of the stack.
    pub async fn plan_create(&self, name: &str, request: &StackRequest) -> Result<PlannedCreate, Error> {
        let query = vec![("plan".into(), "True".into())];
        let answer = self.call(Method::POST, "/stacks/preview", &query, Some(&request.body(Some(name)))).await?;
        match plan::of_kiln(&answer)? {
            Some(plan) => Ok(PlannedCreate::Plan(Box::new(plan))),
            None => unwrap(answer, "stack").map(|stack| PlannedCreate::Preview(Stack(stack))),
        }
    }

    /// The plan of an update, in which the resources with these paths are replaced; a Heat knows no paths.
    pub async fn plan_update(
        &self,
        stack: &str,
        request: &StackRequest,
        replaced: &[String],
        refresh: bool,
    ) -> Result<PlanDocument, Error> {
        let identity = self.stack_identity(stack).await?;
        let mut query = vec![("show_nested".to_owned(), "True".to_owned()), ("plan".to_owned(), "True".to_owned())];
        query.extend(replaced.iter().map(|path| ("replace".to_owned(), path.clone())));
        query.extend(refresh.then(|| ("refresh".to_owned(), "True".to_owned())));
        let path = format!("{}/preview", stack_path(&identity));
        let answer = self.call(request.update_method(), &path, &query, Some(&request.body(None))).await?;
        match plan::of_kiln(&answer)? {
            Some(plan) => Ok(plan),
            None if refresh => Err(unread()),
            None if replaced.is_empty() => Ok(plan::of_heat(Action::Update, stack, &answer)),
            None => Err(Error::Answer("The service cannot plan replacements; only Kiln can".to_owned())),
        }
    }

    /// The plan of a delete; of a Heat that of an update to a template without resources.
    pub async fn plan_delete(&self, stack: &str, refresh: bool) -> Result<PlanDocument, Error> {
        let identity = self.stack_identity(stack).await?;
        let query = refresh.then(|| ("refresh".to_owned(), "True".to_owned())).into_iter().collect();
        let answer = self.get(&format!("{}/preview_delete", stack_path(&identity)), &query).await;
        match answer {
            Err(error) if refresh && error.is_not_found() => Err(unread()),
            Ok(answer) => Ok(plan::of_kiln(&answer)?.unwrap_or_else(|| plan::of_heat(Action::Delete, stack, &answer))),
            Err(error) if error.is_not_found() => {
                let bundle =
                    Bundle { template: Some(value!({ "heat_template_version": "2018-08-31" })), ..Bundle::default() };
                let request = StackRequest { bundle, ..StackRequest::default() };
                let query = vec![("show_nested".into(), "True".into())];
                let path = format!("{}/preview", stack_path(&identity));
                let answer = self.call(Method::PUT, &path, &query, Some(&request.body(None))).await?;
                Ok(plan::of_heat(Action::Delete, stack, &answer))
            }
            Err(error) => Err(error),
        }
    }

    /// Compares the resources of a stack and of its nested stacks with their objects; with names only these. Only Kiln
    /// has this call.
    pub async fn drift(&self, stack: &str, resources: &[String]) -> Result<Value, Error> {
        let stack = self.stack_identity(stack).await?;
        let query = resources.iter().map(|name| ("resource_name".to_owned(), name.clone())).collect();
        unwrap(self.get(&format!("{}/drift", stack_path(&stack)), &query).await?, "drift")
    }

    /// Deletes a stack.
    pub async fn delete_stack(&self, stack: &str) -> Result<(), Error> {
        self.delete_planned(stack, None).await
    }

    /// Deletes a stack; Kiln does not, if a plan had another version of the stack.
    pub async fn delete_planned(&self, stack: &str, version: Option<&str>) -> Result<(), Error> {
        let query = version.map(|version| ("if_version".to_owned(), version.to_owned())).into_iter().collect();
        self.call(Method::DELETE, &stack_path(stack), &query, None).await.map(drop)
    }

    /// Deletes a stack and keeps the objects of its resources; returns the data to adopt them.
    pub async fn abandon_stack(&self, stack: &str) -> Result<Value, Error> {
        let stack = self.stack_identity(stack).await?;
        self.call(Method::DELETE, &format!("{}/abandon", stack_path(&stack)), &vec![], None).await
    }

    /// The data of a stack with its resources.
    pub async fn export_stack(&self, stack: &str) -> Result<Value, Error> {
        let stack = self.stack_identity(stack).await?;
        self.get(&format!("{}/export", stack_path(&stack)), &vec![]).await
    }

    /// Requests a snapshot of a stack; returns its record.
    pub async fn create_snapshot(&self, stack: &str, name: Option<&str>) -> Result<Value, Error> {
        let path = self.snapshots_path(stack).await?;
        let body = match name {
            Some(name) => value!({ "name": name }),
            None => value!({}),
        };
        self.call(Method::POST, &path, &vec![], Some(&body)).await
    }

    /// The snapshots of a stack.
    pub async fn snapshots(&self, stack: &str) -> Result<Vec<Value>, Error> {
        let path = self.snapshots_path(stack).await?;
        unwrap_list(self.get(&path, &vec![]).await?, "snapshots")
    }

    /// A snapshot of a stack.
    pub async fn snapshot(&self, stack: &str, snapshot: &str) -> Result<Value, Error> {
        let path = format!("{}/{}", self.snapshots_path(stack).await?, segment(snapshot));
        unwrap(self.get(&path, &vec![]).await?, "snapshot")
    }

    /// Deletes a snapshot of a stack.
    pub async fn delete_snapshot(&self, stack: &str, snapshot: &str) -> Result<(), Error> {
        let path = format!("{}/{}", self.snapshots_path(stack).await?, segment(snapshot));
        self.call(Method::DELETE, &path, &vec![], None).await.map(drop)
    }

    /// Updates a stack to its state at a snapshot.
    pub async fn restore_snapshot(&self, stack: &str, snapshot: &str) -> Result<(), Error> {
        let path = format!("{}/{}/restore", self.snapshots_path(stack).await?, segment(snapshot));
        self.call(Method::POST, &path, &vec![], None).await.map(drop)
    }

    async fn snapshots_path(&self, stack: &str) -> Result<String, Error> {
        let stack = self.stack_identity(stack).await?;
        Ok(format!("{}/snapshots", stack_path(&stack)))
    }

    /// A stack, with the values of its outputs unless `outputs` is false: they can take a long time.
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

    /// Stacks, in pages up to the limit.
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

    /// Requests an action on a stack.
    pub async fn stack_action(&self, stack: &str, action: StackAction) -> Result<(), Error> {
        let body = value!({ (action.key()): null });
        self.call(Method::POST, &format!("{}/actions", stack_path(stack)), &vec![], Some(&body)).await.map(drop)
    }

    /// Continues a failed operation; nothing is done with the resources with the paths `skip`.
    pub async fn continue_stack(&self, stack: &str, skip: &[String]) -> Result<(), Error> {
        let body = value!({ "continue": { "skip": (skip.iter().map(String::as_str).collect::<Value>()) } });
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

/// A Heat compares nothing with the objects.
fn unread() -> Error {
    Error::Answer("The service cannot read the objects for a plan; only Kiln can".to_owned())
}
