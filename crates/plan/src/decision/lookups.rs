//! The names that a decision needs in the cloud, and the IDs that they keep.

use std::collections::BTreeSet;

use indexmap::{IndexMap, IndexSet};
use kiln_resource::names::{self, KeptNames};
use kiln_resource::translation::{self, Lookup};
use kiln_resource::{Converging, OperationState, StoredDefinition};
use kiln_value::{Path, Segment};

use super::{Gathered, Live, Subject};

/// Names to look up.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lookups {
    /// Those without which there is no decision, with their places below the properties.
    pub wanted: IndexMap<Lookup, Path>,
    /// Those that may mean nothing any more.
    pub may_fail: IndexSet<Lookup>,
}

impl Subject {
    /// All names in the properties, with their places: a new object gets what they mean today.
    pub fn all_lookups(&self) -> IndexMap<Lookup, Path> {
        if self.is_external() {
            return IndexMap::new();
        }
        translation::lookups(&self.kind.resource_type().translation, &self.definition.properties)
    }

    /// The names to look up before the decision: names that are given as before need none.
    pub fn lookups(&self) -> Lookups {
        let mut lookups = Lookups::default();
        if self.is_external() {
            return lookups;
        }
        let (rules, given) = (&self.kind.resource_type().translation, &self.definition.properties);
        let kept = self.kept_names(&Gathered::default());
        for name in names::of(rules, given) {
            if !kept.contains_key(&name.place) {
                lookups.wanted.entry(name.lookup).or_insert(name.place);
            } else if self.is_compared(&kept, &name.place) || self.has_no_id(&kept, &name.place) {
                lookups.may_fail.insert(name.lookup);
            }
        }
        let finders: BTreeSet<&str> = lookups.wanted.keys().map(|lookup| &*lookup.finder).collect();
        let former = self.namesakes().flat_map(|held| names::former(rules, held, given));
        lookups.may_fail.extend(former.filter(|lookup| finders.contains(&*lookup.finder)));
        lookups
    }

    /// The definitions whose names keep their IDs: that of the last success, and that of an update which failed, because
    /// it is unknown which of them the object has. None for a new object.
    fn namesakes(&self) -> impl Iterator<Item = &StoredDefinition> {
        let row = self.made().filter(|row| !self.is_external() && self.reason_to_replace(row).is_none());
        let row = row.filter(|_| !self.kind.resource_type().translation.is_empty());
        let tried = row.and_then(|row| match &row.operation {
            OperationState::HalfMade(tried) => Some(&**tried),
            _ => None,
        });
        row.and_then(|row| row.definition.as_deref()).into_iter().chain(tried)
    }

    /// Whether the ID of a name that is kept is not known, because Heat has made the object, and the property with it is written
    /// again: with what the name means today, as by Heat. Entries of a list that drivers compare one by one, such as the
    /// networks of a server, stay as they are.
    fn has_no_id(&self, kept: &KeptNames, place: &Path) -> bool {
        let Some(Segment::Key(property)) = place.0.first() else { return false };
        if place.0.windows(2).any(|pair| matches!(pair, [Segment::Index(_), Segment::Key(_)])) {
            return false;
        }
        let given = self.definition.properties.get(property);
        let changes = |held: &StoredDefinition| held.given().get(property) != given;
        kept.get(place).is_some_and(names::Kept::is_as_given) && self.namesakes().any(changes)
    }

    /// Whether a name that is kept is compared by what it means today. In a repair, it only tells whether it is an ID.
    fn is_compared(&self, kept: &KeptNames, place: &Path) -> bool {
        let is_wanted = match self.converging {
            Converging::None => false,
            Converging::NamesOfToday => true,
            Converging::KeptNames => kept.get(place).is_some_and(names::Kept::is_as_given),
        };
        is_wanted && self.is_in_place(place)
    }

    /// In a repair, the properties with a name whose object is not known, because Heat has made the resource: it may have meant
    /// another object than today, so no difference is drift.
    pub(super) fn names_of_unknown_objects<'a>(&self, kept: &'a KeptNames, gathered: &Gathered) -> BTreeSet<&'a str> {
        if self.converging != Converging::KeptNames {
            return BTreeSet::new();
        }
        let is_name = |name: &names::Kept| match gathered.answers.get(&name.lookup) {
            Some(id) => *id != name.lookup.value,
            None => !names::is_id(&name.lookup.value),
        };
        let unknown = |(place, name): (&'a Path, &names::Kept)| match place.0.first() {
            Some(Segment::Key(property)) if name.is_as_given() && is_name(name) => Some(property.as_str()),
            _ => None,
        };
        kept.iter().filter_map(unknown).collect()
    }

    /// Whether a name is in a property that an update can change in place.
    fn is_in_place(&self, place: &Path) -> bool {
        let Some(Segment::Key(name)) = place.0.first() else { return false };
        self.kind.resource_type().can_update(name)
    }

    /// The names that keep the IDs of the last change, whatever they mean today. With [`Converging::NamesOfToday`], those in
    /// properties that the object shows are compared with it by what they mean today, as in Heat.
    pub fn kept_names(&self, gathered: &Gathered) -> KeptNames {
        let rules = &self.kind.resource_type().translation;
        let mut kept: Option<KeptNames> = None;
        for held in self.namesakes() {
            let names = names::kept(rules, held, &self.definition.properties, &gathered.answers);
            match &mut kept {
                Some(kept) => kept.retain(|place, name| names.get(place) == Some(name)),
                None => kept = Some(names),
            }
        }
        let mut kept = kept.unwrap_or_default();
        let is_known = |name: &names::Kept| gathered.answers.contains_key(&name.lookup);
        let open = kept.iter().filter(|(place, name)| is_known(name) && self.has_no_id(&kept, place));
        let open: Vec<Path> = open.map(|(place, _)| place.clone()).collect();
        kept.retain(|place, _| !open.contains(place));
        if let (Converging::NamesOfToday, Some(Live::Properties(shown))) = (self.converging, &gathered.live) {
            let is_shown =
                |place: &Path| matches!(place.0.first(), Some(Segment::Key(name)) if shown.live.contains_key(name));
            let has_meaning = |name: &names::Kept| gathered.answers.contains_key(&name.lookup);
            kept.retain(|place, name| !(self.is_in_place(place) && is_shown(place) && has_meaning(name)));
        }
        kept
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::{Arc, LazyLock};

    use kiln_resource::translation::Answers;
    use kiln_resource::{Action, Registry, Resource, ResourceId, StackFacts, StackId, State, Status};
    use kiln_value::{Value, value};

    use super::*;
    use crate::{Decision, Gathered, Kind, ResourceTypes, decide};

    /// Given now, what names mean now, the changes, and what was looked up.
    type Case = (Value, World, &'static [(&'static str, &'static str)], &'static [&'static str]);
    /// What names mean; an ID means itself.
    type World = &'static [(&'static str, &'static str)];

    const BEFORE: World = &[("golden", "img-1"), ("tiny", "fla-1"), ("lan", "net-1"), ("dmz", "net-5")];
    /// Each object was created again under its name.
    const AFTER: World =
        &[("golden", "img-2"), ("other", "img-3"), ("tiny", "fla-2"), ("lan", "net-2"), ("dmz", "net-6")];
    const GONE: World = &[("other", "img-3"), ("renamed", "img-1"), ("tiny", "fla-2"), ("lan", "net-2")];

    fn catalog() -> &'static ResourceTypes {
        static CATALOG: LazyLock<ResourceTypes> = LazyLock::new(|| {
            let types = kiln_resource::shipped::types().expect("sound definitions");
            ResourceTypes::new(Registry::build(types, |_| None))
        });
        &CATALOG
    }

    fn subject(given: &Value, row: Option<Resource>, converging: Converging) -> Subject {
        let catalog = catalog();
        let mut definition = StoredDefinition::of_type("OS::Nova::Server");
        definition.properties = given.as_map().cloned().expect("a map");
        Subject {
            row,
            reached: false,
            definition,
            kind: Kind::Type(Arc::clone(catalog.types.get("OS::Nova::Server").expect("a type"))),
            stack: StackFacts::default(),
            becomes: None,
            converging,
            left: BTreeSet::new(),
            restricted: Vec::new(),
            replacement: None,
        }
    }

    /// Decides as the engine does: returns the decision and what was looked up.
    fn decided(subject: &Subject, world: World) -> (Decision, Vec<String>) {
        decided_with(subject, world, "img-1")
    }

    /// The same for a server that has this image.
    fn decided_with(subject: &Subject, world: World, image: &str) -> (Decision, Vec<String>) {
        let mut asked = Vec::new();
        let mut gathered = Gathered { constraints: catalog().constraints.clone(), ..Gathered::default() };
        let mut ask = |lookup: &Lookup, answers: &mut Answers| {
            if !answers.contains_key(lookup) {
                asked.push(lookup.value.clone());
            }
            let named = world.iter().find(|(name, _)| *name == lookup.value).map(|(_, id)| (*id).to_owned());
            let id = named.or_else(|| lookup.value.contains('-').then(|| lookup.value.clone()));
            answers.extend(id.map(|id| (lookup.clone(), id)));
        };
        let lookups = subject.lookups();
        for lookup in lookups.wanted.keys().chain(&lookups.may_fail) {
            ask(lookup, &mut gathered.answers);
        }
        if subject.converging != Converging::None {
            let live = value!({"image": image, "flavor": "fla-1"}).as_map().cloned().expect("a map");
            gathered.live = Some(Live::Properties(kiln_resource::object_drift::Shown { live, ..Default::default() }));
        }
        let mut decision = decide(subject, &gathered);
        if let Decision::Replace { .. } = decision {
            for lookup in subject.all_lookups().keys() {
                ask(lookup, &mut gathered.answers);
            }
            decision = decide(subject, &gathered);
        }
        asked.sort_unstable();
        (decision, asked)
    }

    /// The row of a server that was created with these properties.
    fn row(given: &Value) -> Resource {
        let (id, stack) = (ResourceId(uuid::Uuid::nil()), StackId(uuid::Uuid::nil()));
        let mut row = Resource::new(stack, id, "server", "OS::Nova::Server", jiff::Timestamp::UNIX_EPOCH);
        let (decision, _) = decided(&subject(given, None, Converging::None), BEFORE);
        let Decision::Create { definition } = decision else { panic!("{decision:?}") };
        row.state = State { action: Action::Create, status: Status::Complete };
        row.physical_id = Some("server-1".to_owned());
        row.definition = Some(definition);
        row
    }

    /// The row of such a server that Heat has made: it stores the names.
    fn made_by_heat(given: &Value) -> Resource {
        let mut row = row(given);
        let definition = Arc::make_mut(row.definition.as_mut().expect("a definition"));
        let rules = &catalog().types.get("OS::Nova::Server").expect("a type").resource_type.translation;
        let names = names::kept(rules, &definition.clone(), definition.given(), &Answers::new()).into_iter();
        let names = names.map(|(place, kept)| (place, names::Kept { id: kept.lookup.value.clone(), ..kept }));
        names::keep(&mut definition.properties, &names.collect());
        assert_eq!(definition.properties["image"], given.as_map().expect("a map")["image"]);
        row
    }

    fn server(image: &str, networks: &Value) -> Value {
        value!({"image": image, "flavor": "tiny", "networks": (networks.clone()), "metadata": {}})
    }

    /// The changed properties that have names, with their values.
    fn changed(decision: &Decision) -> BTreeMap<String, String> {
        let Decision::Update { changed, .. } = decision else { return BTreeMap::new() };
        let shown = |value: &Value| match value {
            Value::List(items) => {
                let nets = items.iter().map(|item| item.str_at("network").unwrap_or_default());
                nets.collect::<Vec<_>>().join(" ")
            }
            other => kiln_value::text::str(other),
        };
        changed.iter().map(|(name, value)| (name.clone(), shown(value))).collect()
    }

    #[test]
    fn a_change_is_what_is_given_otherwise_and_means_something_else_today() {
        let one = value!([{"network": "lan"}]);
        let moved = value!([{"network": "lan", "fixed_ip": "10.0.0.9"}]);
        let none = value!([]);
        let held = server("golden", &one);
        let table: [Case; 13] = [
            (held.clone(), AFTER, &[], &[]),
            (held.clone(), GONE, &[], &[]),
            (server("img-1", &one), AFTER, &[], &["golden", "img-1"]),
            (server("img-2", &one), AFTER, &[], &["golden", "img-2"]),
            (server("img-2", &one), GONE, &[("image", "img-2")], &["golden", "img-2"]),
            (server("renamed", &one), GONE, &[], &["golden", "renamed"]),
            (server("other", &one), AFTER, &[("image", "img-3")], &["golden", "other"]),
            (server("other", &one), GONE, &[("image", "img-3")], &["golden", "other"]),
            // Lists: an element that is given as before keeps its ID at any place.
            (
                server("golden", &value!([{"network": "dmz"}, {"network": "lan"}])),
                AFTER,
                &[("networks", "net-6 net-1")],
                &["dmz"],
            ),
            (
                server("golden", &value!([{"network": "lan"}, {"network": "lan"}])),
                AFTER,
                &[("networks", "net-1 net-2")],
                &["lan"],
            ),
            (server("golden", &moved), AFTER, &[("networks", "net-2")], &["lan"]),
            (server("golden", &value!([{"network": "net-2"}])), AFTER, &[], &["lan", "net-2"]),
            (server("golden", &none), AFTER, &[("networks", "")], &[]),
        ];
        for (given, world, changes, looked_up) in table {
            let shown = kiln_value::text::json(&given);
            let (decision, asked) = decided(&subject(&given, Some(row(&held)), Converging::None), world);
            let changes: BTreeMap<String, String> =
                changes.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            assert_eq!(changed(&decision), changes, "{shown}: {decision:?}");
            assert_eq!(asked, looked_up, "{shown}");
            let stored = match &decision {
                Decision::Keep { definition: None } => "img-1",
                Decision::Keep { definition: Some(definition) } | Decision::Update { definition, .. } => {
                    definition.properties["image"].as_str().expect("an ID")
                }
                other => panic!("{shown}: {other:?}"),
            };
            assert_eq!(stored, changes.get("image").map_or("img-1", String::as_str), "{shown}");
        }
    }

    #[test]
    fn a_new_object_gets_what_the_names_mean_today() {
        let given = server("golden", &value!([{"network": "lan"}]));
        let mut replaced = given.clone();
        replaced.as_map_mut().expect("a map").insert("key_name".to_owned(), "key".into());
        let (decision, mut asked) = decided(&subject(&replaced, Some(row(&given)), Converging::None), AFTER);
        let Decision::Replace { definition, .. } = decision else { panic!("{decision:?}") };
        assert_eq!(definition.properties["image"], "img-2".into());
        assert_eq!(definition.properties["flavor"], "fla-2".into());
        asked.dedup();
        assert_eq!(asked, ["golden", "lan", "tiny"]);
    }

    #[test]
    fn a_comparison_follows_names_that_the_object_shows_if_they_mean_something() {
        let given = server("golden", &value!([{"network": "lan"}]));
        let follow = |world| changed(&decided(&subject(&given, Some(row(&given)), Converging::NamesOfToday), world).0);
        let all = |pairs: &[(&str, &str)]| pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
        let after: BTreeMap<String, String> = all(&[("image", "img-2"), ("flavor", "fla-2")]);
        assert_eq!(follow(AFTER), after);
        assert_eq!(follow(GONE), all(&[("flavor", "fla-2")]));
        assert_eq!(follow(BEFORE), all(&[]));
    }

    #[test]
    fn a_repair_changes_no_object_because_of_its_name() {
        let given = server("golden", &value!([{"network": "lan"}]));
        let repair = |row: Resource, image: &str, world: World| {
            let mut subject = subject(&given, Some(row), Converging::KeptNames);
            subject.definition.properties = given.as_map().cloned().expect("a map");
            changed(&decided_with(&subject, world, image).0)
        };
        for world in [BEFORE, AFTER, GONE] {
            assert_eq!(repair(row(&given), "img-1", world), BTreeMap::new());
            // Somebody has rebuilt the server: it gets the image back that it had.
            let back = BTreeMap::from([("image".to_owned(), "img-1".to_owned())]);
            assert_eq!(repair(row(&given), "img-9", world), back);
            // Heat has made it, so that its image is not known.
            for image in ["img-1", "img-9"] {
                assert_eq!(repair(made_by_heat(&given), image, world), BTreeMap::new());
            }
        }
        // Heat has stored an ID.
        let given = server("img-1", &value!([{"network": "lan"}]));
        let subject = subject(&given, Some(made_by_heat(&given)), Converging::KeptNames);
        let back = BTreeMap::from([("image".to_owned(), "img-1".to_owned())]);
        assert_eq!(changed(&decided_with(&subject, BEFORE, "img-9").0), back);
    }

    #[test]
    fn an_update_that_failed_keeps_only_what_it_did_not_change() {
        let networks = value!([{"network": "lan"}]);
        let mut row = row(&server("golden", &networks));
        let tried = subject(&server("other", &networks), Some(row.clone()), Converging::None);
        let (Decision::Update { definition, .. }, _) = decided(&tried, AFTER) else { panic!("an update") };
        row.operation = OperationState::HalfMade(definition);
        row.state = State { action: Action::Update, status: Status::Failed };
        let (decision, asked) =
            decided(&subject(&server("other", &networks), Some(row.clone()), Converging::None), AFTER);
        assert_eq!(changed(&decision), BTreeMap::from([("image".to_owned(), "img-3".to_owned())]));
        assert_eq!(asked, ["golden", "other"]);
        // Back to the first template: the object may have either image.
        let (decision, asked) = decided(&subject(&server("golden", &networks), Some(row), Converging::None), AFTER);
        assert_eq!(changed(&decision), BTreeMap::from([("image".to_owned(), "img-2".to_owned())]));
        assert_eq!(asked, ["golden", "other"]);
    }

    #[test]
    fn what_could_not_be_updated_in_place_is_replaced_only_while_it_is_wanted() {
        let networks = value!([{"network": "lan"}]);
        let decide = |given: &str, action: Action| {
            let mut row = row(&server("golden", &networks));
            row.operation = OperationState::MustReplace;
            row.state = State { action, status: Status::Complete };
            decided(&subject(&server(given, &networks), Some(row), Converging::None), AFTER).0
        };
        assert!(matches!(decide("other", Action::Update), Decision::Replace { .. }));
        assert_eq!(decide("golden", Action::Update), Decision::Keep { definition: None });
        // After a delete that failed, the object may be damaged.
        assert!(matches!(decide("golden", Action::Suspend), Decision::Replace { .. }));
    }

    #[test]
    fn a_name_whose_id_heat_did_not_store_gets_one_only_where_it_is_written_again() {
        let lan = value!([{"network": "lan"}]);
        let with = |groups: Value, networks: &Value| {
            let mut given = server("golden", networks);
            given.as_map_mut().expect("a map").insert("security_groups".to_owned(), groups);
            given
        };
        let before = with(value!(["web"]), &lan);
        let (decision, asked) = decided(&subject(&before, Some(made_by_heat(&before)), Converging::None), AFTER);
        assert_eq!((changed(&decision), asked.len()), (BTreeMap::new(), 0), "{decision:?}");
        // Only the new network is looked up: the interface in the first one stays.
        let more = with(value!(["web"]), &value!([{"network": "lan"}, {"network": "dmz"}]));
        let (decision, asked) = decided(&subject(&more, Some(made_by_heat(&before)), Converging::None), AFTER);
        assert_eq!(changed(&decision), BTreeMap::from([("networks".to_owned(), "lan net-6".to_owned())]));
        assert_eq!(asked, ["dmz"]);
        // The image stays, whatever its name means.
        let other = value!({"image": "golden", "flavor": "small-1", "networks": (lan.clone()), "metadata": {}});
        let given = value!({"image": "golden", "flavor": "tiny", "networks": (lan), "metadata": {}});
        let (decision, _) = decided(&subject(&other, Some(made_by_heat(&given)), Converging::None), AFTER);
        assert_eq!(changed(&decision), BTreeMap::from([("flavor".to_owned(), "small-1".to_owned())]));
    }

    #[test]
    fn a_row_of_an_earlier_release_keeps_its_ids() {
        let text = r#"{"format":1,"type":"OS::Nova::Server","given":{"image":"golden","flavor":"tiny"},
            "properties":{"image":"img-1","flavor":"fla-1","flavor_update_policy":"RESIZE",
            "image_update_policy":"REBUILD","security_groups":[],"metadata":{},"user_data_format":"HEAT_CFNTOOLS",
            "software_config_transport":"POLL_SERVER_CFN","user_data_update_policy":"REPLACE","user_data":"",
            "personality":{},"deployment_swift_data":{"container":null,"object":null}}}"#;
        let held: StoredDefinition = serde_json::from_str(text).expect("readable");
        let mut row = row(&server("golden", &value!([])));
        row.definition = Some(Arc::new(held));
        let (decision, asked) =
            decided(&subject(&value!({"image": "golden", "flavor": "tiny"}), Some(row), Converging::None), AFTER);
        assert_eq!(decision, Decision::Keep { definition: None });
        assert_eq!(asked, [""; 0]);
    }
}
