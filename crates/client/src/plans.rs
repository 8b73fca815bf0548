//! Calls for saved plans. Heat has none of them.

use http::Method;
use kiln_plan_document::PlanDocument;
use kiln_value::{Map, Value, value};

use crate::client::{segment, stack_path, unwrap};
use crate::{Client, Error, SavedPlan, StackRequest, plan};

/// A request whose plan is saved.
#[derive(Clone, Copy, Debug)]
pub enum RequestToPlan<'a> {
    /// Creates a stack with this name.
    Create(&'a str, &'a StackRequest),
    /// Updates a stack, and replaces the resources with these paths even if they are healthy.
    Update(&'a str, &'a StackRequest, &'a [String]),
    /// Deletes a stack.
    Delete(&'a str),
}

impl RequestToPlan<'_> {
    fn body(self) -> Map {
        let (action, stack, content) = match self {
            Self::Create(name, request) => ("create", None, request.body(Some(name))),
            Self::Update(stack, request, _) => ("update", Some(stack), request.body(None)),
            Self::Delete(stack) => ("delete", Some(stack), value!({})),
        };
        let mut body = match content {
            Value::Map(body) => body,
            _ => Map::new(),
        };
        body.insert("action".to_owned(), action.into());
        body.extend(stack.map(|stack| ("stack".to_owned(), stack.into())));
        if let Self::Update(_, request, replaced) = self {
            body.insert("existing".to_owned(), request.existing.into());
            if !replaced.is_empty() {
                body.insert("replace".to_owned(), replaced.iter().collect());
            }
        }
        body
    }
}

/// Filters of a list of plans.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlanFilter {
    /// Only plans for the stack with this name or ID.
    pub stack: Option<String>,
    /// Only plans before this one.
    pub marker: Option<String>,
    /// Maximum number.
    pub limit: Option<u64>,
}

/// What a service did with a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Executed {
    /// The ID of the stack.
    pub stack: String,
    /// The ID of the operation.
    pub operation: String,
}

impl Client {
    /// Saves the plan of a request. `expires_in`: seconds. `refresh`: the objects that it changes or deletes are read, and again
    /// when it is executed.
    pub async fn save_plan(
        &self,
        request: RequestToPlan<'_>,
        description: Option<&str>,
        expires_in: Option<u64>,
        refresh: bool,
    ) -> Result<SavedPlan, Error> {
        let mut body = request.body();
        body.extend(description.map(|text| ("description".to_owned(), text.into())));
        body.extend(expires_in.map(|seconds| ("expires_in".to_owned(), seconds.into())));
        body.insert("refresh".to_owned(), refresh.into());
        let answer = self.call(Method::POST, "/plans", &vec![], Some(&body.into())).await?;
        unwrap(answer, "plan").map(SavedPlan)
    }

    /// Saves a plan that gives the drifted objects among these resources the values of the template again; none: all. With
    /// `replace`, also where that needs a replacement. `None`: nothing has drifted.
    pub async fn plan_repair(
        &self,
        stack: &str,
        resources: &[String],
        replace: bool,
    ) -> Result<Option<SavedPlan>, Error> {
        let body = value!({ "resources": (resources.iter().collect::<Value>()), "replace": replace });
        unwrap(self.post_drift(stack, "repair", &body).await?, "plan").map(some_plan)
    }

    /// Saves a plan that writes the values of drifted objects into the template; also what is written, as a list of maps with
    /// `resource_name`, `property`, `parameter` and `value`. `None`: nothing has drifted.
    pub async fn plan_acceptance(
        &self,
        stack: &str,
        resources: &[String],
    ) -> Result<Option<(SavedPlan, Vec<Value>)>, Error> {
        let body = value!({ "resources": (resources.iter().collect::<Value>()) });
        let mut answer = self.post_drift(stack, "accept", &body).await?;
        let accepted = answer.as_map_mut().and_then(|answer| answer.swap_remove("accepted"));
        let accepted = accepted.and_then(|list| list.as_list().map(<[Value]>::to_vec)).unwrap_or_default();
        Ok(some_plan(unwrap(answer, "plan")?).map(|plan| (plan, accepted)))
    }

    async fn post_drift(&self, stack: &str, verb: &str, body: &Value) -> Result<Value, Error> {
        let stack = self.stack_identity(stack).await?;
        let path = format!("{}/drift/{verb}", stack_path(&stack));
        self.call(Method::POST, &path, &vec![], Some(body)).await
    }

    /// The plans of the project, newest first.
    pub async fn saved_plans(&self, filter: &PlanFilter) -> Result<Vec<Value>, Error> {
        let query = filter.stack.clone().map(|stack| ("stack".to_owned(), stack)).into_iter().collect();
        self.pages("/plans", "plans", query, filter.limit, filter.marker.clone()).await
    }

    /// A plan with its document.
    pub async fn saved_plan(&self, id: &str) -> Result<SavedPlan, Error> {
        unwrap(self.get(&plan_path(id), &vec![]).await?, "plan").map(SavedPlan)
    }

    /// Executes a plan, if it has this digest.
    pub async fn execute_plan(&self, id: &str, digest: &str) -> Result<Executed, Error> {
        let path = format!("{}/execute", plan_path(id));
        let answer = self.call(Method::POST, &path, &vec![], Some(&value!({ "digest": digest }))).await?;
        let operation = answer.str_at("operation_id").unwrap_or_default().to_owned();
        let stack = unwrap(answer, "stack")?;
        Ok(Executed { stack: stack.str_at("id").unwrap_or_default().to_owned(), operation })
    }

    /// Approves a plan that another user has made.
    pub async fn approve_plan(&self, id: &str) -> Result<(), Error> {
        self.call(Method::POST, &format!("{}/approve", plan_path(id)), &vec![], None).await.map(drop)
    }

    /// Makes a plan again, for the present state of its stack.
    pub async fn renew_plan(&self, id: &str) -> Result<SavedPlan, Error> {
        let answer = self.call(Method::POST, &format!("{}/renew", plan_path(id)), &vec![], None).await?;
        unwrap(answer, "plan").map(SavedPlan)
    }

    /// Rejects a plan: nobody can execute it any more.
    pub async fn reject_plan(&self, id: &str) -> Result<(), Error> {
        self.call(Method::POST, &format!("{}/reject", plan_path(id)), &vec![], None).await.map(drop)
    }

    /// Deletes a plan.
    pub async fn delete_plan(&self, id: &str) -> Result<(), Error> {
        self.call(Method::DELETE, &plan_path(id), &vec![], None).await.map(drop)
    }
}

impl SavedPlan {
    /// What it would change; `None` for a change set of an older release.
    pub fn document(&self) -> Result<Option<PlanDocument>, Error> {
        self.value().get("document").filter(|document| !document.is_null()).map(plan::document).transpose()
    }
}

fn plan_path(id: &str) -> String {
    format!("/plans/{}", segment(id))
}

fn some_plan(plan: Value) -> Option<SavedPlan> {
    (!plan.is_null()).then(|| SavedPlan(plan))
}
