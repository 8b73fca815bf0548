//! Nested stacks and groups whose members move.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use kiln_resource::{Resource, ResourceId, StackId, Status};
use kiln_stack::load;
use kiln_store::{MovedStack, Stack};

use super::{Part, Parts, PlaceOfResource, ResourceMove, obstacle};
use crate::guard::inside;
use crate::{Error, Service};

/// A nested stack whose rows move.
pub(super) struct Below {
    pub(super) stack: Stack,
    pub(super) rows: BTreeMap<ResourceId, Resource>,
    /// `web/servers`
    place: String,
}

impl Below {
    /// Why its rows stay.
    pub(super) fn obstacle(&self) -> Option<String> {
        let stack = &self.stack;
        let is_at_rest = !stack.is_pending() && stack.state.status == Status::Complete;
        (!is_at_rest).then(|| format!("{} is {}, and only complete stacks are changed", self.place, stack.state))
    }

    /// The stack, which stays where it is, so that it is locked.
    pub(super) fn as_it_is(&self) -> Option<MovedStack> {
        let Stack { id, writes, generation, root, parent, .. } = self.stack.clone();
        Some(MovedStack { id, writes, generation, root, parent: parent? })
    }
}

/// Where a resource is.
pub(super) struct Spot {
    pub(super) root: StackId,
    /// The stack that it is in: the root stack, or a nested one.
    pub(super) stack: StackId,
    /// Its name there.
    pub(super) name: String,
    /// `web/servers/0`
    pub(super) place: String,
}

impl Spot {
    pub(super) fn is_in_root(&self) -> bool {
        self.stack == self.root
    }
}

impl Part {
    /// The rows of the root stack, or of a nested stack whose rows move.
    pub(super) fn rows_in(&mut self, stack: StackId) -> &mut BTreeMap<ResourceId, Resource> {
        match self.below.get_mut(&stack) {
            Some(below) => &mut below.rows,
            None => &mut self.rows,
        }
    }

    pub(super) fn stack_in(&self, stack: StackId) -> &Stack {
        self.below.get(&stack).map_or(self.stack(), |below| &below.stack)
    }
}

impl Service {
    /// Where the moves begin and end. The nested stacks on their ways are loaded.
    pub(super) async fn paths(&self, parts: &mut Parts, moves: &[ResourceMove]) -> Result<Vec<(Spot, Spot)>, Error> {
        let mut paths = Vec::with_capacity(moves.len());
        for one in moves {
            paths.push((self.spot(parts, &one.from).await?, self.spot(parts, &one.to).await?));
        }
        Ok(paths)
    }

    async fn spot(&self, parts: &mut Parts, place: &PlaceOfResource) -> Result<Spot, Error> {
        let PlaceOfResource { stack: root, resource: path } = place;
        let part = parts.get_mut(root).ok_or_else(|| Error::NotFound(format!("stack {root}")))?;
        let (mut stack, mut way) = (*root, part.name().to_owned());
        let mut names = path.split('/').peekable();
        while let Some(name) = names.next() {
            let place = inside(&way, name);
            if names.peek().is_none() {
                return Ok(Spot { root: *root, stack, name: name.to_owned(), place });
            }
            let row = part.rows_in(stack).values().find(|row| row.name == name);
            let Some((row, child)) = row.and_then(|row| Some((row, row.child?))) else {
                return Err(Error::Refactor(format!(
                    "Nothing was moved: {place} is no nested stack. A group must exist before something moves into it: \
                     create it with the count 0."
                )));
            };
            if let Some(why) = obstacle(row, true) {
                return Err(Error::Refactor(format!("Nothing was moved: {place} {why}.")));
            }
            if let Entry::Vacant(place_of) = part.below.entry(child) {
                let store = &*self.backends.store;
                let nested = load::stack(store, child).await?;
                let rows = store.resources(child).await?.into_iter().map(|row| (row.id, row)).collect();
                place_of.insert(Below { stack: nested, rows, place: place.clone() });
            }
            (stack, way) = (child, place);
        }
        Err(Error::Value("a move needs the names of resources".to_owned()))
    }
}
