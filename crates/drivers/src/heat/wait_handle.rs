//! Wait condition handles: `OS::Heat::WaitConditionHandle`, `AWS::CloudFormation::WaitConditionHandle` and
//! `OS::Heat::UpdateWaitConditionHandle`. They record signals in their metadata, by the ID of the signal.

use std::time::Duration;

use async_trait::async_trait;
use kiln_resource::{Context, Driver, Facts, Failure, Found, Operation, Received, Step, TypeRules, size_limit};
use kiln_value::{Class, Map, Value, text, value};

use super::signal_place::{self, Keeps};
use super::signal_url::{SignedFor, native, signed};
use super::stack_user;

/// Entries of a resource's data.
const SIGNED_URL: &str = "ec2_signed_url";
const ENDPOINT: &str = "endpoint";
const TOKEN: &str = "token";

/// The drivers of the types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitHandle {
    /// `OS::Heat::WaitConditionHandle`.
    Heat,
    /// `AWS::CloudFormation::WaitConditionHandle`.
    Cfn,
    /// `OS::Heat::UpdateWaitConditionHandle`: every update of the stack replaces it.
    Update,
}

/// The keys of a signal.
pub(super) struct Keys {
    pub(super) status: &'static str,
    pub(super) reason: &'static str,
    pub(super) data: &'static str,
    pub(super) id: &'static str,
}

const HEAT_KEYS: Keys = Keys { status: "status", reason: "reason", data: "data", id: "id" };
const CFN_KEYS: Keys = Keys { status: "Status", reason: "Reason", data: "Data", id: "UniqueId" };

pub(super) const SUCCESS: &str = "SUCCESS";
pub(super) const FAILURE: &str = "FAILURE";

impl WaitHandle {
    /// The handle with this type.
    pub(super) fn of_type(name: &str) -> Option<Self> {
        match name {
            "OS::Heat::WaitConditionHandle" => Some(Self::Heat),
            "AWS::CloudFormation::WaitConditionHandle" => Some(Self::Cfn),
            "OS::Heat::UpdateWaitConditionHandle" => Some(Self::Update),
            _ => None,
        }
    }

    pub(super) fn keys(self) -> &'static Keys {
        if self == Self::Heat { &HEAT_KEYS } else { &CFN_KEYS }
    }

    /// The metadata after a signal, and the result for the event; `None`: the signal is ignored.
    ///
    /// # Errors
    ///
    /// `ValueError` for a signal with other keys or statuses, `RequestLimitExceeded` if the metadata become too large.
    pub fn record(self, metadata: &Map, signal: &Value) -> Result<Option<(Map, String)>, Failure> {
        let entry = if self == Self::Heat { completed(metadata, signal)? } else { signal.clone() };
        let Keys { status, reason, data, id } = self.keys();
        if self != Self::Heat && entry.is_null() {
            return Ok(None);
        }
        let has_keys =
            |entry: &Map| entry.len() == 4 && [status, reason, data, id].iter().all(|key| entry.contains_key(**key));
        let is_valid = |entry: &Map| {
            has_keys(entry)
                && matches!(entry.get(*status), Some(Value::Str(word)) if word == SUCCESS || word == FAILURE)
        };
        let mut entry = match entry {
            Value::Map(entry) if is_valid(&entry) => entry,
            _ => return Err(Failure::other(Class::ValueError, "Metadata format invalid")),
        };
        let id = text::str(&entry.shift_remove(*id).unwrap_or_default());
        let shown = |key: &str| text::str(entry.get(key).unwrap_or(&Value::Null));
        let result = format!("status:{} reason:{}", shown(status), shown(reason));
        let mut metadata = metadata.clone();
        metadata.insert(id, Value::Map(entry));
        size_limit::check_metadata(metadata.size())
            .map_err(|text| Failure::other(Class::RequestLimitExceeded, format!("Request limit exceeded: {text}")))?;
        Ok(Some((metadata, result)))
    }

    /// How it gets its signals.
    pub(super) fn transport(self, facts: &Facts) -> &str {
        match self {
            Self::Heat => facts.property("signal_transport").as_str().unwrap_or("TOKEN_SIGNAL"),
            Self::Cfn | Self::Update => "CFN_SIGNAL",
        }
    }

    /// The user exists: the place of the signals, then the addresses.
    async fn placed(self, cx: &Context<'_>) -> Result<Step, Failure> {
        match signal_place::prepare(cx, Keeps::All).await? {
            Some(step) => Ok(step),
            None => self.addressed(cx).await,
        }
    }

    /// Deletes the place of the signals, then the user.
    async fn delete(cx: &Context<'_>) -> Result<Step, Failure> {
        if signal_place::delete(cx).await? {
            return stack_user::delete(cx).await.map(|()| Step::done());
        }
        Ok(Step::wait(Value::Null, Duration::ZERO))
    }

    /// The last step of a create. Stores the addresses, which contain secrets.
    async fn addressed(self, cx: &Context<'_>) -> Result<Step, Failure> {
        let transport = self.transport(cx.facts);
        let project = cx.facts.stack.user_project_id.as_deref().unwrap_or_default();
        let endpoints = cx.cloud.signal_endpoints().await?;
        let step = Step::done();
        Ok(match transport {
            "CFN_SIGNAL" => {
                step.data(SIGNED_URL, signed(cx.facts, &endpoints, SignedFor::WaitCondition, Some(cx.now))?)
            }
            "HEAT_SIGNAL" => step.data(ENDPOINT, native(cx.facts, &endpoints, project)?),
            "TOKEN_SIGNAL" => {
                let endpoint = native(cx.facts, &endpoints, project)?;
                step.data(TOKEN, stack_user::token(cx).await?).data(ENDPOINT, endpoint)
            }
            _ => step,
        })
    }

    /// How to send a signal, as the attribute `signal` describes it.
    async fn description(self, cx: &Context<'_>) -> Result<Value, Failure> {
        let stored = |key: &str| cx.facts.data.get(key).cloned().unwrap_or_default();
        Ok(match self.transport(cx.facts) {
            "CFN_SIGNAL" => value!({"alarm_url": stored(SIGNED_URL)}),
            "TEMP_URL_SIGNAL" => value!({"alarm_url": stored(signal_place::URL)}),
            "HEAT_SIGNAL" => Self::of_user(cx, "alarm_url", stored(ENDPOINT)).await?,
            "ZAQAR_SIGNAL" => Self::of_user(cx, "queue_id", stored(signal_place::QUEUE)).await?,
            "NO_SIGNAL" => value!({}),
            _ => Value::Null,
        })
    }

    /// The credentials of the user, and where to send the signals.
    async fn of_user(cx: &Context<'_>, key: &str, place: Value) -> Result<Value, Failure> {
        let stored = |key: &str| cx.facts.data.get(key).cloned().unwrap_or_default();
        let endpoints = cx.cloud.signal_endpoints().await?;
        let user = value!({
            "auth_url": (endpoints.keystone),
            "username": (cx.facts.physical_name.as_str()),
            "user_id": stored(stack_user::USER),
            "password": stored(stack_user::PASSWORD),
            "project_id": (cx.facts.stack.user_project_id.clone()),
            "domain_id": (stack_user::domain_id(cx).await?),
            "region_name": (endpoints.region),
        });
        let place = std::iter::once((key.to_owned(), place));
        Ok(user.as_map().cloned().into_iter().flatten().chain(place).collect())
    }
}

/// The signal of Heat's handle, with defaults. Its number is the default of its ID.
fn completed(metadata: &Map, signal: &Value) -> Result<Value, Failure> {
    let mut entry = match signal {
        Value::Map(entry) => entry.clone(),
        other if !other.is_truthy() => Map::new(),
        _ => return Err(Failure::other(Class::AttributeError, "A signal is a map")),
    };
    let number = i64::try_from(metadata.len()).unwrap_or(i64::MAX).saturating_add(1);
    entry.entry("reason".to_owned()).or_insert_with(|| format!("Signal {number} received").into());
    entry.entry("data".to_owned()).or_insert(Value::Null);
    entry.entry("id".to_owned()).or_insert(Value::Int(number));
    entry.entry("status".to_owned()).or_insert_with(|| SUCCESS.into());
    Ok(entry.into())
}

impl TypeRules for WaitHandle {
    fn replaced_by_updates(&self) -> bool {
        *self == Self::Update
    }

    /// The signed URL for handles of CFN.
    fn reference(&self, facts: &Facts) -> Value {
        let id = match self {
            Self::Heat => facts.physical_id.clone().map(Value::from),
            Self::Cfn | Self::Update => facts.physical_id.as_ref().and_then(|_| facts.data.get(SIGNED_URL)).cloned(),
        };
        id.unwrap_or_else(|| facts.name.as_str().into())
    }
}

#[async_trait]
impl Driver for WaitHandle {
    async fn start(&self, cx: &Context<'_>, operation: &Operation) -> Result<Step, Failure> {
        match operation {
            Operation::Create => stack_user::start(cx).await,
            Operation::Delete => Self::delete(cx).await,
            Operation::Suspend => stack_user::enable(cx, false).await.map(|()| Step::done()),
            Operation::Resume => stack_user::enable(cx, true).await.map(|()| Step::done()),
            _ => Ok(Step::done()),
        }
    }

    async fn poll(&self, cx: &Context<'_>, operation: &Operation, state: &Value) -> Result<Step, Failure> {
        if *operation == Operation::Delete {
            return Self::delete(cx).await;
        }
        if *operation != Operation::Create {
            return Ok(Step::done());
        }
        let keys = self.transport(cx.facts) == "CFN_SIGNAL";
        match stack_user::poll(cx, state, keys).await? {
            Some(step) => Ok(step),
            None => self.placed(cx).await,
        }
    }

    async fn find(&self, cx: &Context<'_>) -> Result<Found, Failure> {
        stack_user::find(cx).await
    }

    async fn receive(&self, cx: &Context<'_>, message: &Value) -> Result<Received, Failure> {
        let none = Map::new();
        let metadata = cx.facts.metadata.as_map().unwrap_or(&none);
        Ok(match self.record(metadata, message)? {
            Some((metadata, result)) => Received::default().metadata(metadata).result(result),
            None => Received::default(),
        })
    }

    fn receives_with_cloud(&self) -> bool {
        false
    }

    async fn attributes(&self, cx: &Context<'_>, names: &[&str]) -> Result<Map, Failure> {
        let mut found = Map::new();
        let stored = |key: &str| cx.facts.data.get(key).cloned().unwrap_or_default();
        for name in names {
            let value = match *name {
                _ if cx.facts.physical_id.is_none() || *self != Self::Heat => continue,
                "signal" => text::json(&self.description(cx).await?).into(),
                "token" => stored(TOKEN),
                "endpoint" if stored(TOKEN).is_null() => Value::Null,
                "endpoint" => stored(ENDPOINT),
                "curl_cli" => match (stored(TOKEN), stored(ENDPOINT)) {
                    (Value::Str(token), Value::Str(endpoint)) => format!(
                        "curl -i -X POST -H 'X-Auth-Token: {token}' -H 'Content-Type: application/json' \
                         -H 'Accept: application/json' {endpoint}"
                    )
                    .into(),
                    _ => Value::Null,
                },
                _ => continue,
            };
            found.insert((*name).to_owned(), value);
        }
        Ok(found)
    }
}
