//! The names in properties, and the IDs that a resource keeps for them.
//!
//! A name may mean another object later: an image is uploaded again, a flavor is created again. The stored definition has
//! the properties as given and as translated at the last change, so it says which name has which ID. A name that is given
//! as before keeps that ID without a look-up. So does a new value that means today what the former value means today.

use std::collections::{HashMap, HashSet, VecDeque};

use indexmap::IndexMap;
use kiln_value::{Map, Path, Segment, Value, text};

use crate::StoredDefinition;
use crate::translation::{Answers, Lookup, Translation, active, insert_answers, rewrite};

/// A name that keeps its ID.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// The name, as it is given now.
    pub lookup: Lookup,
    /// The ID at the last change.
    pub id: String,
}

impl Kept {
    /// Whether no ID was stored beside what was given: Heat stores the names alone, or an ID was given.
    pub fn is_as_given(&self) -> bool {
        self.id == self.lookup.value
    }
}

/// The names that keep their IDs, by their places below the properties.
pub type KeptNames = IndexMap<Path, Kept>;

/// The names of `held` that are not given any more.
pub fn former(rules: &[Translation], held: &StoredDefinition, given: &Map) -> Vec<Lookup> {
    Beside::new(rules, held, given).pairs().former.into_iter().map(|name| name.lookup).collect()
}

/// The names in `given` that keep the IDs of `held`: those that are given as before, and with answers about the others and
/// about [`former`] ones, those that mean the same today. A former name that means nothing any more is only a text.
pub fn kept(rules: &[Translation], held: &StoredDefinition, given: &Map, answers: &Answers) -> KeptNames {
    let mut beside = Beside::new(rules, held, given);
    let Pairs { mut same, former, new } = beside.pairs();
    if !former.is_empty() && !new.is_empty() {
        // The others that mean the same object today.
        insert_answers(rules, &mut beside.old, answers);
        insert_answers(rules, &mut beside.new, answers);
        let open = |names: &[Name]| names.iter().map(|name| name.place.clone()).collect::<HashSet<Path>>();
        let (was, is) = (open(&former), open(&new));
        let (mut old, mut now) = beside.names();
        old.retain(|name| was.contains(&name.place));
        now.retain(|name| is.contains(&name.place));
        same.extend(pairs(&old, &now));
    }
    let names: HashMap<Path, Lookup> = of(rules, given).into_iter().map(|name| (name.place, name.lookup)).collect();
    let kept = same.into_iter().filter_map(|(place, former)| {
        let (lookup, id) = (names.get(&place)?.clone(), held_id(held, &former)?.to_owned());
        Some((place, Kept { lookup, id }))
    });
    kept.collect()
}

/// Replaces names in translated properties by the IDs that they keep.
pub fn keep(properties: &mut Map, kept: &KeptNames) {
    for (place, kept) in kept {
        if let Some(value) = at_mut(properties, place).filter(|value| matches!(value, Value::Str(_))) {
            *value = kept.id.as_str().into();
        }
    }
}

/// The names in properties, with their places after the rules before look-ups.
pub fn of(rules: &[Translation], data: &Map) -> Vec<Name> {
    if rules.is_empty() {
        return Vec::new();
    }
    let (data, faults) = rewrite(rules, data.clone());
    if faults.is_empty() { Positions::default().names(rules, &data) } else { Vec::new() }
}

/// A name in properties.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// Its place below the properties.
    pub place: Path,
    /// The name.
    pub lookup: Lookup,
    position: Position,
}

/// Old and new properties after the rules before look-ups.
struct Beside<'a> {
    rules: &'a [Translation],
    held: &'a StoredDefinition,
    old: Map,
    new: Map,
    positions: Positions,
}

/// Names that are given as before (new and old place), and the others.
struct Pairs {
    same: IndexMap<Path, Path>,
    former: Vec<Name>,
    new: Vec<Name>,
}

impl<'a> Beside<'a> {
    fn new(rules: &'a [Translation], held: &'a StoredDefinition, given: &Map) -> Self {
        let ((old, _), (new, _)) = (rewrite(rules, held.given().clone()), rewrite(rules, given.clone()));
        Self { rules, held, old, new, positions: Positions::default() }
    }

    /// The old names that have an ID, and the new ones.
    fn names(&mut self) -> (Vec<Name>, Vec<Name>) {
        let mut old = self.positions.names(self.rules, &self.old);
        old.retain(|name| held_id(self.held, &name.place).is_some());
        (old, self.positions.names(self.rules, &self.new))
    }

    fn pairs(&mut self) -> Pairs {
        let (mut former, mut new) = self.names();
        let same = pairs(&former, &new);
        let gone: HashSet<&Path> = same.values().collect();
        former.retain(|name| !gone.contains(&name.place));
        new.retain(|name| !same.contains_key(&name.place));
        Pairs { same, former, new }
    }
}

/// The places of new names, each with that of an equal old one at the same position.
fn pairs(old: &[Name], new: &[Name]) -> IndexMap<Path, Path> {
    let mut open: HashMap<(Position, &Lookup), VecDeque<&Path>> = HashMap::new();
    for name in old {
        open.entry((name.position, &name.lookup)).or_default().push_back(&name.place);
    }
    let mut pairs = IndexMap::new();
    for name in new {
        if let Some(former) = open.get_mut(&(name.position, &name.lookup)).and_then(VecDeque::pop_front) {
            pairs.insert(name.place.clone(), former.clone());
        }
    }
    pairs
}

fn held_id<'a>(held: &'a StoredDefinition, place: &Path) -> Option<&'a str> {
    let (first, rest) = place.0.split_first()?;
    let Segment::Key(first) = first else { return None };
    let found = rest.iter().try_fold(held.properties.get(first)?, |value, segment| match segment {
        Segment::Key(key) => value.get(key),
        Segment::Index(index) => value.at(*index),
    });
    found?.as_str()
}

fn at_mut<'a>(properties: &'a mut Map, place: &Path) -> Option<&'a mut Value> {
    let (first, rest) = place.0.split_first()?;
    let Segment::Key(first) = first else { return None };
    rest.iter().try_fold(properties.get_mut(first)?, |value, segment| match (value, segment) {
        (Value::Map(map), Segment::Key(key)) => map.get_mut(key),
        (Value::List(items), Segment::Index(index)) => items.get_mut(*index),
        _ => None,
    })
}

/// Numbers the positions of names: the keys down to a name, and the whole element of each list on the way, because a
/// list may be in another order. Positions of two definitions can be compared.
#[derive(Default)]
struct Positions(HashMap<(Position, Step), Position>);

type Position = usize;

#[derive(PartialEq, Eq, Hash)]
enum Step {
    Key(String),
    /// An element of a list, as text.
    Element(String),
}

impl Positions {
    fn names(&mut self, rules: &[Translation], data: &Map) -> Vec<Name> {
        let mut found = Vec::new();
        for rule in active(rules, data) {
            let (Some(finder), Some((first, rest))) = (rule.finder(data), rule.path.split_first()) else { continue };
            let Some(value) = data.get(first) else { continue };
            let position = self.below(0, Step::Key(first.clone()));
            self.walk(value, rest, &Path::root().key(first), position, &mut |text, at, position| {
                let lookup = Lookup { finder: finder.clone(), value: text.to_owned() };
                found.push(Name { place: at.clone(), lookup, position });
            });
        }
        found
    }

    fn below(&mut self, position: Position, step: Step) -> Position {
        let next = self.0.len() + 1;
        *self.0.entry((position, step)).or_insert(next)
    }

    /// Calls `with` for every text at the path, through lists.
    fn walk(
        &mut self,
        value: &Value,
        path: &[String],
        at: &Path,
        position: Position,
        with: &mut dyn FnMut(&str, &Path, Position),
    ) {
        match (value, path.split_first()) {
            (Value::List(items), _) => {
                for (i, item) in items.iter().enumerate() {
                    let position = self.below(position, Step::Element(text::repr(item)));
                    self.walk(item, path, &at.index(i), position, with);
                }
            }
            (Value::Str(text), None) if !text.is_empty() => with(text, at, position),
            (Value::Map(map), Some((key, rest))) => {
                if let Some(inner) = map.get(key) {
                    let position = self.below(position, Step::Key(key.clone()));
                    self.walk(inner, rest, &at.key(key), position, with);
                }
            }
            _ => {}
        }
    }
}

/// Whether a text has the form of an ID: a UUID, also without hyphens, or a number.
pub fn is_id(text: &str) -> bool {
    uuid::Uuid::try_parse(text).is_ok() || text.bytes().all(|byte| byte.is_ascii_digit())
}
