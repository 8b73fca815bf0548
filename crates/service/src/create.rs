//! Creates a stack.

use kiln_identity::Caller;
use kiln_plan::Blueprint;
use kiln_resource::{Action, SnapshotId, StackId, State, Status};
use kiln_stack::load;
use kiln_store::quota::Quota;
use kiln_store::{DesiredText, Details, NewStack, Planned, Snapshot, Stack};
use kiln_template::StackIdentity;
use kiln_value::{Map, Value, value};

use crate::request::begun;
use crate::{Error, Service, Settings, StackContent, TemplateText};

/// A stack to create.
#[derive(Clone, Debug)]
pub struct CreateStack {
    /// Its name: letters, digits and `_-.`, starting with a letter, at most 255 characters.
    pub name: String,
    /// Its template.
    pub template: TemplateText,
    /// Environment and files.
    pub content: StackContent,
    /// Its settings.
    pub settings: Settings,
    /// The data of existing resources, as [`Service::export_stack`] returns it: they are adopted, not created.
    pub adopt: Option<Map>,
}

/// A checked stack to create.
pub(crate) struct CheckedCreate {
    /// Its name.
    pub(crate) name: String,
    /// The desired state.
    pub(crate) desired: DesiredText,
    /// Its settings.
    pub(crate) settings: Settings,
    /// The data of the resources to adopt, if it adopts any.
    pub(crate) adopt: Option<Value>,
    /// Whether a guard of the project requires a plan.
    pub(crate) needs_plan: bool,
}

impl Service {
    /// Creates a stack. Nothing is stored before all checks. The credentials are created last: if the name was taken
    /// meanwhile, nothing refers to them.
    pub async fn create_stack(&self, caller: &Caller, new: CreateStack) -> Result<Stack, Error> {
        self.create_stack_as(caller, new, StackId(self.backends.chance.uuid())).await
    }

    /// Creates a stack with an ID that was chosen before.
    pub(crate) async fn create_stack_as(&self, caller: &Caller, new: CreateStack, id: StackId) -> Result<Stack, Error> {
        let checked = self.check_create(caller, new, id).await?;
        self.request_create(caller, id, checked, None).await
    }

    /// Checks a stack to create.
    pub(crate) async fn check_create(
        &self,
        caller: &Caller,
        new: CreateStack,
        id: StackId,
    ) -> Result<CheckedCreate, Error> {
        let needs_plan = self.check_new(caller, &new).await?;
        let blueprint = self.blueprint_of_new(caller, &new, id).await?;
        let CreateStack { name, settings, adopt, .. } = new;
        let desired = load::accepted(&self.backends, &blueprint);
        let adopt = adopt.map(|mut data| data.swap_remove("resources").unwrap_or_default());
        Ok(CheckedCreate { name, desired, settings, adopt, needs_plan })
    }

    /// The blueprint of a stack to create that [`Service::check_new`] has checked, fully validated.
    pub(crate) async fn blueprint_of_new(
        &self,
        caller: &Caller,
        new: &CreateStack,
        id: StackId,
    ) -> Result<Blueprint, Error> {
        let content = match &new.adopt {
            Some(data) => new.content.clone().over_adopted(data),
            None => new.content.clone(),
        };
        let identity = StackIdentity::new(caller.project_id.clone(), new.name.clone(), id.to_string())?;
        self.new_blueprint(caller, identity, &new.template, content).await
    }

    /// Stores a new stack, and uses up its plan.
    pub(crate) async fn request_create(
        &self,
        caller: &Caller,
        id: StackId,
        new: CheckedCreate,
        planned: Option<Planned>,
    ) -> Result<Stack, Error> {
        let CheckedCreate { name, desired, settings, adopt, needs_plan } = new;
        self.demand_plan(caller, &Details { planned: planned.clone(), ..Details::default() }, needs_plan)?;
        let project = caller.project_id.clone();
        self.check_operations(caller, &project).await?;
        let shared = self.shared.get(caller, self.backends.clock.monotonic());
        let credentials = match shared {
            Some(shared) => shared,
            None => self.new_credentials(caller).await?,
        };
        let new = NewStack {
            id,
            name,
            project,
            parent: None,
            root: id,
            depth: 0,
            action: if adopt.is_some() { Action::Adopt } else { Action::Create },
            desired,
            disable_rollback: settings.disable_rollback.unwrap_or(true),
            timeout_mins: settings.timeout_mins,
            tags: settings.tags.unwrap_or_default(),
            username: caller.username.clone(),
            user_id: caller.user_id.clone(),
            credentials: Some(credentials),
            user_project: None,
            adopt: adopt.map(|resources| self.data_to_adopt(id, resources)),
            operation: None,
            preflight: settings.preflight && planned.is_none(),
            planned,
            now: self.backends.clock.now(),
        };
        let again = shared.is_some().then(|| new.clone());
        let stack = match (self.backends.store.create_stack(new).await, again) {
            // The shared credentials were revoked with their last stack.
            (Err(kiln_store::Error::NotFound(_)), Some(again)) => {
                let credentials = Some(self.new_credentials(caller).await?);
                self.backends.store.create_stack(NewStack { credentials, ..again }).await?
            }
            (created, _) => created?,
        };
        begun(&stack);
        Ok(stack)
    }

    /// The data that the engine needs, from the entries of the resources by name.
    pub(crate) fn data_to_adopt(&self, stack: StackId, resources: Value) -> Snapshot {
        Snapshot {
            id: SnapshotId(self.backends.chance.uuid()),
            stack,
            name: None,
            state: State::new(Action::Adopt, Status::InProgress),
            reason: String::new(),
            data: value!({ "resources": resources }),
            created: self.backends.clock.now(),
        }
    }

    /// Early checks that the store would also make: the name must be valid and free, and the project must be below its
    /// limit of stacks. Returns whether a guard of the project requires a plan.
    pub(crate) async fn check_new(&self, caller: &Caller, new: &CreateStack) -> Result<bool, Error> {
        if new.adopt.is_some() && !self.options.adopt {
            return Err(Error::NotSupported("Stack Adopt".to_owned()));
        }
        new.settings.check_preflight(new.adopt.is_some())?;
        check_name(&new.name)?;
        new.settings.check()?;
        self.check_room(caller, &new.name).await
    }

    /// Refuses a name that is taken, a project that has its maximum of stacks, and one that is frozen. Administrators have no
    /// limit of stacks. Returns whether a guard of the project requires a plan.
    pub(crate) async fn check_room(&self, caller: &Caller, name: &str) -> Result<bool, Error> {
        let limit = self.limit_of(&caller.project_id, Quota::Stacks).await?.filter(|_| !caller.is_admin);
        let room = self.backends.store.room(&caller.project_id, name, limit.is_some()).await?;
        if room.is_taken {
            return Err(Error::StackExists(name.to_owned()));
        }
        if let Some(limit) = limit.filter(|limit| room.stacks >= *limit) {
            let text = format!("You have reached the maximum stacks per tenant, {limit}. Please delete some stacks.");
            return Err(Error::Limit(text));
        }
        self.heed_guards_of_project(caller, room.guards).await
    }
}

fn check_name(name: &str) -> Result<(), Error> {
    let mut bytes = name.bytes();
    let first = bytes.next().is_some_and(|byte| byte.is_ascii_alphabetic());
    if first && name.len() <= 255 && bytes.all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte)) {
        return Ok(());
    }
    Err(Error::StackName(name.to_owned()))
}
