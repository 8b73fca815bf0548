//! AWS::IAM::User and AWS::IAM::AccessKey: a user in the domain of stack users, and an EC2 key of that user.

use async_trait::async_trait;
use kiln_resource::{Context, Driver, Facts, Failure, FailureKind, Found, Operation, Step, TypeRules};
use kiln_value::{Class, Map, Value, text};

use crate::heat::stack_user::{self, PASSWORD, SECRET, USER};

const USER_TYPE: &str = "AWS::IAM::User";
const POLICY_TYPE: &str = "OS::Heat::AccessPolicy";

/// A user. Its policies say which resources of the stack it can read: the APIs check them.
pub(super) struct User;

/// Policies are names of access policies; Heat ignores others.
fn check_policies(facts: &Facts) -> Result<(), Failure> {
    let is_policy =
        |name: &str| facts.observed.iter().any(|other| other.name == name && other.resource_type == POLICY_TYPE);
    let mut names = facts.property("Policies").as_list().unwrap_or_default().iter().filter_map(Value::as_str);
    if names.all(is_policy) {
        return Ok(());
    }
    let text = format!("The Referenced Attribute ({} Policies) is incorrect.", facts.name);
    Err(Failure::other(Class::InvalidTemplateAttribute, text))
}

impl TypeRules for User {
    fn observed_types(&self) -> &'static [&'static str] {
        &[POLICY_TYPE]
    }

    /// The name of the user in Keystone.
    fn reference(&self, facts: &Facts) -> Value {
        if facts.physical_name.is_empty() { facts.name.as_str() } else { &facts.physical_name }.into()
    }
}

#[async_trait]
impl Driver for User {
    async fn start(&self, cx: &Context<'_>, operation: &Operation) -> Result<Step, Failure> {
        match operation {
            Operation::Create => {
                check_policies(cx.facts)?;
                let step = stack_user::start(cx).await?;
                let given = cx.facts.property("LoginProfile").get("Password").filter(|password| password.is_truthy());
                Ok(match given {
                    Some(password) => step.data(PASSWORD, text::str(password)),
                    None => step,
                })
            }
            Operation::Delete => stack_user::delete(cx).await.map(|()| Step::done()),
            Operation::Suspend => stack_user::enable(cx, false).await.map(|()| Step::done()),
            Operation::Resume => stack_user::enable(cx, true).await.map(|()| Step::done()),
            _ => Ok(Step::done()),
        }
    }

    async fn poll(&self, cx: &Context<'_>, _: &Operation, state: &Value) -> Result<Step, Failure> {
        Ok(stack_user::poll(cx, state, false).await?.unwrap_or_else(Step::done))
    }

    async fn find(&self, cx: &Context<'_>) -> Result<Found, Failure> {
        stack_user::find(cx).await
    }
}

/// A key. Its ID is the access key.
pub(super) struct AccessKey;

impl TypeRules for AccessKey {
    fn observes(&self, facts: &Facts) -> Vec<Value> {
        vec![facts.property("UserName").clone()]
    }
}

#[async_trait]
impl Driver for AccessKey {
    async fn start(&self, cx: &Context<'_>, operation: &Operation) -> Result<Step, Failure> {
        match operation {
            Operation::Create => {
                let user = cx.facts.observed.iter().find(|other| other.resource_type == USER_TYPE);
                let Some(id) = user.and_then(|user| user.physical_id.as_deref()) else {
                    let text = format!("could not find user {}", text::str(cx.facts.property("UserName")));
                    return Err(Failure::new(FailureKind::NotFound, Class::NotFound, text));
                };
                // The ID and the secret are stored before the first call.
                Ok(stack_user::begun_keys(cx).data(USER, id))
            }
            Operation::Delete => stack_user::delete_keys(cx).await.map(|()| Step::done()),
            _ => Ok(Step::done()),
        }
    }

    async fn poll(&self, cx: &Context<'_>, operation: &Operation, state: &Value) -> Result<Step, Failure> {
        if *operation != Operation::Create {
            return Ok(Step::done());
        }
        Ok(stack_user::poll(cx, state, true).await?.unwrap_or_else(Step::done))
    }

    /// No call is made before the ID is stored.
    async fn find(&self, _: &Context<'_>) -> Result<Found, Failure> {
        Ok(Found::NotMade)
    }

    async fn attributes(&self, cx: &Context<'_>, names: &[&str]) -> Result<Map, Failure> {
        let value = |name: &str| match name {
            "UserName" => cx.facts.property(name).clone(),
            "SecretAccessKey" => {
                let secret = stack_user::text(cx.facts, SECRET).filter(|_| cx.facts.physical_id.is_some());
                secret.unwrap_or("000-000-000").into()
            }
            _ => Value::Null,
        };
        Ok(names.iter().map(|name| ((*name).to_owned(), value(name))).collect())
    }

    /// The service does not show the key.
    async fn live(&self, _: &Context<'_>) -> Result<Map, Failure> {
        Ok(Map::new())
    }
}
