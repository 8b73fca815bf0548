//! A request that is processed by an action.

use std::sync::Arc;

use kiln_identity::Caller;
use kiln_service::{Error, PreparedChange, Service};
use kiln_stack::Backends;
use kiln_store::{PlanId, Stack, Store};
use kiln_template::StackIdentity;
use kiln_template::Template;
use kiln_value::Value;

use crate::cfn::Parts;
use crate::fault::Fault;
use crate::options::Options;
use crate::params::Params;

/// A request with the data that an action needs.
pub(crate) struct Call {
    pub(crate) cfn: Arc<Parts>,
    pub(crate) caller: Arc<Caller>,
    pub(crate) params: Params,
}

impl Call {
    pub(crate) fn options(&self) -> &Options {
        &self.cfn.options
    }

    /// The use cases.
    pub(crate) fn service(&self) -> &Service {
        &self.cfn.service
    }

    /// The dependencies of the use cases.
    pub(crate) fn backends(&self) -> &Backends {
        &self.cfn.service.backends
    }

    pub(crate) fn store(&self) -> &dyn Store {
        &*self.cfn.service.backends.store
    }

    /// Rejects callers without permission for a rule of the policy.
    pub(crate) fn allow(&self, rule: &str) -> Result<(), Fault> {
        let caller = &self.caller;
        if self.service().policy.allows(rule, caller, &caller.project_id) {
            return Ok(());
        }
        Err(Fault::denied(&format!("You are not authorized to use {rule}.")))
    }

    /// The description of the template of a stack.
    pub(crate) async fn description_of(&self, stack: &Stack) -> Result<String, Fault> {
        let text = self.store().content(&stack.desired.template).await?;
        let template: Value = serde_json::from_str(&text).map_err(Fault::internal)?;
        Ok(Template::from_value(Arc::new(template))?.description())
    }

    /// The live stack of the request.
    pub(crate) async fn stack(&self) -> Result<Stack, Fault> {
        live(self.stack_or_deleted().await?)
    }

    /// The stack of the request, including deleted ones by ID or ARN.
    pub(crate) async fn stack_or_deleted(&self) -> Result<Stack, Fault> {
        self.find(self.params.required("StackName")?).await
    }

    /// The stack with a name, ID or ARN.
    pub(crate) async fn find(&self, named: &str) -> Result<Stack, Fault> {
        if !is_arn(named) {
            return Ok(self.service().identify(&self.caller, named).await?);
        }
        let identity = StackIdentity::from_arn(named).map_err(|error| Fault::invalid(&error.text))?;
        self.stack_of(&identity).await?.ok_or_else(|| Fault::no_stack(named))
    }

    /// The name of a stack in a name or an ARN.
    pub(crate) fn stack_name(&self, named: &str) -> Result<String, Fault> {
        if !is_arn(named) {
            return Ok(named.to_owned());
        }
        let identity = StackIdentity::from_arn(named).map_err(|error| Fault::invalid(&error.text))?;
        if identity.tenant == self.caller.project_id { Ok(identity.stack_name) } else { Err(Fault::no_stack(named)) }
    }

    /// The change set of the request: by its ARN, or by its name and that of its stack.
    pub(crate) async fn change_set(&self) -> Result<PreparedChange, Fault> {
        let named = self.params.required("ChangeSetName")?;
        let missing = || Fault::no_change_set(named);
        let (stack, id) = if is_arn(named) {
            let identity = StackIdentity::from_arn(named).map_err(|error| Fault::invalid(&error.text))?;
            let id = identity.path.rsplit('/').next().and_then(|id| id.parse::<PlanId>().ok());
            (self.stack_name(named).map_err(|_| missing())?, Some(id.ok_or_else(missing)?))
        } else {
            (self.stack_name(self.params.required("StackName")?)?, None)
        };
        let sets = self.service().change_sets(&self.caller, &stack).await?;
        let found = sets.into_iter().rev().find(|one| match id {
            Some(id) => one.set.id == id,
            None => one.name() == named,
        });
        found.ok_or_else(missing)
    }

    /// The stack with an identity, including deleted ones.
    pub(crate) async fn stack_of(&self, identity: &StackIdentity) -> Result<Option<Stack>, Fault> {
        let Ok(id) = identity.stack_id.parse() else { return Ok(None) };
        match self.service().stack_or_deleted(&self.caller, id, &identity.stack_name).await {
            Ok(stack) => Ok(Some(stack).filter(|stack| stack.project == identity.tenant)),
            Err(Error::NoStack(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

fn is_arn(named: &str) -> bool {
    named.get(..4).is_some_and(|scheme| scheme.eq_ignore_ascii_case("arn:"))
}

/// The stack, unless it is deleted.
pub(crate) fn live(stack: Stack) -> Result<Stack, Fault> {
    if stack.deleted.is_some() { Err(Fault::no_stack(&stack.name)) } else { Ok(stack) }
}
