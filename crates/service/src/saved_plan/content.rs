//! What is stored of a plan besides its texts and its resources.

use std::collections::{BTreeMap, BTreeSet};

use kiln_plan_document::PlanDocument;
use kiln_resource::{Converge, PlanId, StackId};
use kiln_stack::load;
use kiln_store::{Digest, Stack, version_of};
use kiln_value::{Map, Value};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::change_set::ResourceChange;
use crate::{Error, Settings};

/// The number of the format. Change sets of the release before have 1, or 2 if they import.
const FORMAT: u32 = 3;

/// The content of a plan.
#[derive(Clone, Debug, Default)]
pub(crate) struct Content {
    /// The description.
    pub(crate) description: String,
    /// The settings of the request.
    pub(crate) settings: Settings,
    /// The data of the objects that it adopts, by the names of their resources.
    pub(crate) adopt: Option<Value>,
    /// The parameters after the change, as a stack shows them.
    pub(crate) parameters: Map,
    /// Whether template, environment, files and tags stay the same.
    pub(crate) same_sources: bool,
    /// The paths of the resources that are replaced because the user asks for it.
    pub(crate) replaced: BTreeSet<String>,
    /// Why it cannot be executed.
    pub(crate) refused: Option<String>,
    /// Whether the plan is made again, and its objects are read again, before it is executed.
    pub(crate) fenced: bool,
    /// The IDs of the users who made the plans that it renews: they cannot approve it.
    pub(crate) earlier_authors: Vec<String>,
    /// What it was computed from.
    pub(crate) seen: Option<Seen>,
    /// The document without the resources.
    pub(crate) document: Option<PlanDocument>,
    /// A change set of the release before.
    pub(crate) former: Option<Former>,
}

/// The tree that a plan was computed from.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Seen {
    /// Its version ([`version_of`]).
    pub(crate) version: String,
    /// Its stacks.
    pub(crate) stacks: Vec<StackSeen>,
}

/// A stack of the tree.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct StackSeen {
    /// Its ID.
    pub(crate) id: StackId,
    /// The path of the resource that owns it; empty for the root.
    pub(crate) path: String,
    /// The number of its last request.
    pub(crate) generation: i64,
}

#[derive(Serialize, Deserialize)]
struct Stored {
    format: u32,
    description: String,
    timeout_mins: Option<i64>,
    disable_rollback: Option<bool>,
    tags: Option<Vec<String>>,
    #[serde(flatten)]
    converge: Option<Converge>,
    adopt: Option<Value>,
    parameters: Map,
    same_sources: bool,
    #[serde(default)]
    replaced: BTreeSet<String>,
    refused: Option<String>,
    fenced: bool,
    #[serde(default)]
    earlier_authors: Vec<String>,
    seen: Option<Seen>,
    document: Option<PlanDocument>,
}

/// What a change set of the release before requests: it is merged when it is executed.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Former {
    /// The template; null keeps the current one.
    pub(crate) template: Value,
    pub(crate) sections: Map,
    pub(crate) existing: bool,
    pub(crate) clear_parameters: Vec<String>,
    pub(crate) changes: Vec<ResourceChange>,
    pub(crate) failure: Option<crate::change_set::Failure>,
}

#[derive(Deserialize)]
struct FormerStored {
    description: String,
    timeout_mins: Option<i64>,
    disable_rollback: Option<bool>,
    tags: Option<Vec<String>>,
    #[serde(default)]
    import: Map,
    parameters: Map,
    #[serde(flatten)]
    former: Former,
}

#[derive(Deserialize)]
struct Numbered {
    format: u32,
}

impl Content {
    /// The content of a plan for a stack with this tree.
    pub(crate) fn of_tree(tree: Vec<Stack>) -> Self {
        let stacks = seen(&tree);
        Self { seen: Some(Seen { version: version_of(tree), stacks }), ..Self::default() }
    }

    /// The version of the tree.
    pub(crate) fn version(&self) -> Option<String> {
        self.seen.as_ref().map(|seen| seen.version.clone())
    }

    /// The numbers of the last requests by the paths and the IDs of the stacks.
    pub(crate) fn generations(&self) -> BTreeMap<String, BTreeMap<String, i64>> {
        let mut by_path: BTreeMap<String, BTreeMap<String, i64>> = BTreeMap::new();
        for stack in self.seen.iter().flat_map(|seen| &seen.stacks) {
            by_path.entry(stack.path.clone()).or_default().insert(stack.id.to_string(), stack.generation);
        }
        by_path
    }

    pub(crate) fn to_body(&self) -> Result<Value, Error> {
        let settings = self.settings.clone();
        stored(&Stored {
            format: FORMAT,
            description: self.description.clone(),
            timeout_mins: settings.timeout_mins,
            disable_rollback: settings.disable_rollback,
            tags: settings.tags,
            converge: settings.converge,
            adopt: self.adopt.clone(),
            parameters: self.parameters.clone(),
            same_sources: self.same_sources,
            replaced: self.replaced.clone(),
            refused: self.refused.clone(),
            fenced: self.fenced,
            earlier_authors: self.earlier_authors.clone(),
            seen: self.seen.clone(),
            document: self.document.clone(),
        })
    }

    pub(crate) fn of_body(body: &Value) -> Result<Self, Error> {
        let Numbered { format } = read(body)?;
        if format > FORMAT {
            return Err(Error::Internal("a plan of a newer version of Kiln".to_owned()));
        }
        if format < FORMAT {
            let stored: FormerStored = read(body)?;
            let FormerStored { description, timeout_mins, disable_rollback, tags, import, parameters, former } = stored;
            return Ok(Self {
                description,
                settings: Settings { timeout_mins, disable_rollback, tags, ..Settings::default() },
                adopt: (!import.is_empty()).then(|| import.into()),
                parameters,
                former: Some(former),
                ..Self::default()
            });
        }
        let stored: Stored = read(body)?;
        let Stored { timeout_mins, disable_rollback, tags, converge, .. } = stored;
        Ok(Self {
            description: stored.description,
            settings: Settings { timeout_mins, disable_rollback, tags, converge, ..Settings::default() },
            adopt: stored.adopt,
            parameters: stored.parameters,
            same_sources: stored.same_sources,
            replaced: stored.replaced,
            refused: stored.refused,
            fenced: stored.fenced,
            earlier_authors: stored.earlier_authors,
            seen: stored.seen,
            document: stored.document,
            former: None,
        })
    }
}

/// The stacks of a tree with their paths.
fn seen(tree: &[Stack]) -> Vec<StackSeen> {
    let mut places = load::places(tree);
    let seen = |stack: &Stack| {
        let path = places.remove(&stack.id).unwrap_or_default();
        StackSeen { id: stack.id, path, generation: stack.generation }
    };
    tree.iter().map(seen).collect()
}

/// The digest of what is shown of a plan. It has the ID in it, so no two plans have the same.
pub(crate) fn digest(id: PlanId, shown: &PlanDocument) -> Result<String, Error> {
    Ok(Digest::of_json(&format!("{id} "), shown).map_err(damaged)?.0)
}

/// A value for the store.
pub(crate) fn stored(value: &impl Serialize) -> Result<Value, Error> {
    serde_json::from_str(&serde_json::to_string(value).map_err(damaged)?).map_err(damaged)
}

/// The reverse of [`stored`].
pub(crate) fn read<T: DeserializeOwned>(value: &Value) -> Result<T, Error> {
    serde_json::from_str(&serde_json::to_string(value).map_err(damaged)?).map_err(damaged)
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
pub(crate) fn damaged(error: serde_json::Error) -> Error {
    Error::Internal(format!("a damaged plan: {error}"))
}
