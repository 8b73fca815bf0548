//! Finds stacks for a caller.

use kiln_identity::Caller;
use kiln_resource::Resource;
use kiln_store::{Stack, StackId, StackQuery};
use kiln_value::Value;

use crate::{Error, Service, request};

impl Service {
    /// The live stack with this ID and name.
    pub async fn stack(&self, caller: &Caller, id: StackId, name: &str) -> Result<Stack, Error> {
        let stack = self.stack_or_deleted(caller, id, name).await?;
        if stack.deleted.is_some() { Err(Error::NoStack(name.to_owned())) } else { Ok(stack) }
    }

    /// The stack with this ID and name, including deleted ones.
    pub async fn stack_or_deleted(&self, caller: &Caller, id: StackId, name: &str) -> Result<Stack, Error> {
        let stack = self.backends.store.stack(id).await?;
        let stack = stack.filter(|stack| sees(caller, stack) && stack.name == name);
        stack.inspect(request::of_stack).ok_or_else(|| Error::NoStack(name.to_owned()))
    }

    /// Finds a stack by ID, including deleted ones, then by name: a root stack, else the newest nested stack. Stack users
    /// find the stack that they belong to.
    pub async fn identify(&self, caller: &Caller, name: &str) -> Result<Stack, Error> {
        let store = &self.backends.store;
        let mut stack = match name.parse::<StackId>() {
            Ok(id) => store.stack(id).await?.filter(|stack| sees(caller, stack)),
            Err(_) => None,
        };
        if stack.is_none() {
            stack = store.stack_by_name(&caller.project_id, name).await?;
        }
        if stack.is_none() {
            // Stack users have a project of their own.
            let is_stack_user = caller.has_role(&self.options.stack_user_role);
            let project = Some(caller.project_id.clone());
            let (project, user_project) = if is_stack_user { (None, project) } else { (project, None) };
            let names = vec![name.to_owned()];
            let query =
                StackQuery { project, user_project, names, nested: true, limit: Some(1), ..StackQuery::default() };
            stack = store.stacks(&query).await?.pop();
        }
        stack.inspect(request::of_stack).ok_or_else(|| Error::NoStack(name.to_owned()))
    }

    /// Rejects a stack user who asks for another resource than their own, or for one that does not exist. The user of
    /// an `AWS::IAM::User` can read the resources that all its policies name; without policies, all of the stack.
    pub fn refuse_other_stack_user(&self, caller: &Caller, name: &str, rows: &[Resource]) -> Result<(), Error> {
        let is_own = |row: &&Resource| row.data.get("user_id").and_then(Value::as_str) == Some(&caller.user_id);
        let may_read = |user: &Resource| {
            let policies = user.properties().get("Policies").and_then(Value::as_list).unwrap_or_default();
            policies.iter().filter_map(Value::as_str).all(|policy| {
                rows.iter().find(|row| row.name == policy).is_some_and(|row| {
                    let names = row.properties().get("AllowedResources").and_then(Value::as_list);
                    names.unwrap_or_default().iter().any(|allowed| allowed.as_str() == Some(name))
                })
            })
        };
        let is_allowed = |row: &Resource| row.name == name || (row.implementation == IAM_USER && may_read(row));
        if rows.iter().filter(is_own).any(is_allowed) { Ok(()) } else { self.refuse_stack_user(caller) }
    }

    /// Rejects stack users: they can access only their own resource.
    pub fn refuse_stack_user(&self, caller: &Caller) -> Result<(), Error> {
        if caller.has_role(&self.options.stack_user_role) {
            return Err(Error::Forbidden("this resource".to_owned()));
        }
        Ok(())
    }
}

/// The type of users with access policies.
const IAM_USER: &str = "AWS::IAM::User";

/// Whether the caller can see the stack: it belongs to the project or is that of the stack users, or the caller is an
/// administrator.
fn sees(caller: &Caller, stack: &Stack) -> bool {
    let own = &caller.project_id;
    caller.is_admin || stack.project == *own || stack.user_project.as_ref() == Some(own)
}
