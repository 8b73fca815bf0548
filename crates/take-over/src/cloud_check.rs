//! Asks the cloud about stacks of a Heat before they are switched: whether their credentials work for Kiln, whether their objects
//! are as stored, and whether servers and alarms can still send signals. Nothing is changed, and no signal is sent.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use kiln_cloud::{Connector, Credentials, Named, Scope};
use kiln_credentials::{Signalling, StoredClouds};
use kiln_identity::{Identity, SignedRequest};
use kiln_plan::ResourceTypes;
use kiln_plan::hidden::Door;
use kiln_resource::{Failure, Resource};
use kiln_stack::Clouds;
use kiln_stack::load::places;
use kiln_store::{Error, SqlStore, StackId, TakeOverState, TakenTree};
use kiln_value::{Secret, Value};
use kiln_view::stack_drift::{Drift, StackDrift, drift};

use crate::Finding;
use crate::client_view::{BothViews, compare_views};
use crate::finding::below;
use crate::tree_in_memory::{Loaded, TreeInMemory};

/// So many of the newest events of each tree are compared in the answers of both APIs.
const EVENTS: usize = 100;

/// Asks the cloud of a Kiln.
pub struct CloudCheck {
    connector: Connector,
    identity: Arc<dyn Identity>,
    signalling: Signalling,
    /// How many objects are read in a second, in the long run.
    rate: u32,
    memory: TreeInMemory,
    /// The APIs whose answers are compared.
    views: Option<BothViews>,
    /// The types of the resources whose answers were compared.
    compared: BTreeSet<String>,
}

/// What the cloud says of a stack with its nested stacks.
#[derive(Debug, Default)]
pub struct CloudFindings {
    /// What is not as it should be.
    pub findings: Vec<Finding>,
    /// The number of objects that were read.
    pub read: usize,
    /// The number of passwords and keys of stack users that work.
    pub users: usize,
    /// The number of answers of both APIs that were compared.
    pub answers: usize,
}

impl CloudCheck {
    /// With the types of a Kiln, its cloud, the Keystone that checks signatures, the domain of stack users, and how many objects are
    /// read in a second.
    pub fn new(
        types: Arc<ResourceTypes>,
        connector: Connector,
        identity: Arc<dyn Identity>,
        signalling: Signalling,
        rate: u32,
    ) -> Self {
        let memory = TreeInMemory::new(types);
        Self { connector, identity, signalling, rate, memory, views: None, compared: BTreeSet::new() }
    }

    /// The same that also compares what a running Heat and a Kiln answer to clients.
    #[must_use]
    pub fn with_views(self, views: Option<BothViews>) -> Self {
        Self { views, ..self }
    }

    /// Asks about a stack with its nested stacks, and waits as the rate demands. `store` has the software of its project.
    ///
    /// # Errors
    /// Errors of the stores.
    pub async fn check(&mut self, mut tree: TakenTree, store: &SqlStore) -> Result<CloudFindings, Error> {
        tree.events.drain(..tree.events.len().saturating_sub(EVENTS));
        let mut found = CloudFindings::default();
        self.check_users(&tree, &mut found).await;
        let (connector, identity) = (self.connector.clone(), Arc::clone(&self.identity));
        let signalling = self.signalling.clone();
        let clouds = |store| -> Arc<dyn Clouds> {
            Arc::new(StoredClouds::new(store, connector, identity).with_signalling(signalling))
        };
        let is_of_heat = tree.record.state == TakeOverState::Imported;
        let seen = (is_of_heat && self.views.is_some()).then(|| tree.clone());
        let Loaded { backends, view, hidden } = self.memory.load(tree, clouds).await?;
        let opened = async {
            let cloud = backends.cloud(view.root(), true).await?;
            let project = cloud.project_id().await?;
            Ok((cloud, project))
        };
        let opened: Result<_, Failure> = opened.await;
        match opened {
            Ok((_, project)) if project != view.stack.project => {
                let what = format!("its credentials are for the project {project}");
                found.findings.push(Finding::blocks("", what, "update the stack in Heat: it makes a new trust"));
            }
            Ok((cloud, _)) => {
                let compared = drift(&view, &[]).await?;
                found.read = compared.extent().resources_checked;
                note(&compared, "", &mut found.findings);
                if let (Some(views), Some(tree)) = (&self.views, &seen)
                    && let Ok(access) = cloud.access(None).await
                {
                    let project = &view.stack.project;
                    self.memory.add_software(project, store.taken_software(project)).await?;
                    let known = &mut self.compared;
                    let (answers, findings) = compare_views(views, &backends, tree, &access.token, known).await;
                    found.answers = answers;
                    found.findings.extend(findings);
                }
            }
            Err(failure) => found.findings.push(Finding::blocks(
                "",
                format!("Kiln gets no token with its credentials: {failure}"),
                "set [trustee] of Kiln as in Heat; if its trust is gone, update the stack in Heat, which makes a new one",
            )),
        }
        let read = u32::try_from(found.read + found.answers).unwrap_or(u32::MAX);
        tokio::time::sleep(Duration::from_secs(1).saturating_mul(read) / self.rate.max(1)).await;
        for finding in &mut found.findings {
            hidden.mask(Door::Drift, &mut finding.what);
        }
        Ok(found)
    }

    /// Whether the users and keys with which servers and alarms send signals and read metadata are known to Keystone.
    async fn check_users(&self, tree: &TakenTree, found: &mut CloudFindings) {
        let places = places(tree.stacks.iter().map(|taken| &taken.stack));
        let project = tree.stacks.iter().find_map(|taken| taken.stack.user_project.clone());
        // Several resources may have the same key.
        let mut seen = BTreeSet::new();
        for row in &tree.resources {
            let text = |key: &str| row.data.get(key).and_then(Value::as_str);
            let secret = |key: &str| text(key).map(|secret| Secret::new(secret.to_owned()));
            if let (Some(user), Some(password), Some(project)) = (text("user_id"), secret("password"), &project)
                && seen.insert(user.to_owned())
            {
                let credentials = Credentials::Password {
                    user: Named::id(user),
                    password,
                    scope: Scope::Project(Named::id(project.clone())),
                };
                match self.connector.session(credentials).token().await {
                    Ok(_) => found.users += 1,
                    Err(error) => found.findings.push(silent(
                        row,
                        &places,
                        &format!("Kiln gets no token as its user {user}"),
                        &error,
                    )),
                }
            }
            if let (Some(access), Some(secret)) = (text("access_key"), secret("secret_key"))
                && seen.insert(access.to_owned())
            {
                match self.identity.authenticate_signed(&SignedRequest::of_key(access, &secret)).await {
                    Ok(_) => found.users += 1,
                    Err(error) => found.findings.push(silent(row, &places, "Keystone refuses its EC2 key", &error)),
                }
            }
        }
    }
}

/// What Keystone refuses to a resource.
fn silent(
    row: &Resource,
    places: &HashMap<StackId, String>,
    what: &str,
    error: &(dyn std::error::Error + 'static),
) -> Finding {
    let place = below(places.get(&row.stack).map_or("", String::as_str), &row.name);
    let what = format!("{what}, so its signals would be refused: {}", kiln_value::Chain(error));
    Finding::blocks(
        place,
        what,
        "set [ec2authtoken] and stack_user_domain_id of Kiln as in Heat; if Keystone has lost the user, replace the resource in Heat",
    )
}

fn note(compared: &StackDrift, place: &str, findings: &mut Vec<Finding>) {
    for one in &compared.resources {
        let place = below(place, &one.row.name);
        if let Some(nested) = &one.nested {
            note(nested, &place, findings);
            continue;
        }
        match &one.drift {
            Drift::Deleted => findings.push(Finding::notice(
                place,
                "its object does not exist in the cloud",
                "update or delete the stack; Heat fails there too",
            )),
            Drift::Modified(properties) => {
                let names: Vec<&str> = properties.iter().map(|property| property.name.as_str()).collect();
                findings.push(Finding::notice(
                    place,
                    format!("others have changed its object: {}", names.join(", ")),
                    "'kiln stack drift' shows the values after the switch",
                ));
            }
            Drift::NotChecked(reason) if one.unreadable => findings.push(Finding::blocks(
                place,
                format!("Kiln cannot read its object: {reason}"),
                "set the [clients_...] sections and region_name_for_services of Kiln as in Heat",
            )),
            Drift::InSync | Drift::NotChecked(_) | Drift::NoObject => {}
        }
    }
}
