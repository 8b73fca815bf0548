//! Scans: the objects that a project had at a time, and which of them a stack has.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use kiln_service::Inventory;
use kiln_store::{Worksheet, WorksheetKind};
use kiln_value::{Map, Value, value};
use kiln_view::import::{FoundObject, ObjectKey};
use serde::{Deserialize, Serialize};

use crate::call::Call;
use crate::fault::Fault;
use crate::input::IDENTIFIER;
use crate::view::instant;
use crate::worksheet::read;

pub(crate) const KIND: WorksheetKind = WorksheetKind::Scan;
/// The word of its ARN.
pub(crate) const WORD: &str = "resourceScan";

/// The head of a worksheet.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Head {
    pub(crate) began: Timestamp,
    pub(crate) ended: Timestamp,
    /// The types of the request: `OS::Nova::*`; none: all.
    pub(crate) filter: Vec<String>,
    pub(crate) types: BTreeSet<String>,
    pub(crate) number: usize,
    /// The types whose objects could not be listed, or not all of them, each with the reason.
    pub(crate) unlisted: Vec<(String, String)>,
}

/// The body of a worksheet.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Body {
    pub(crate) objects: Vec<ScannedObject>,
}

/// An object.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ScannedObject {
    pub(crate) resource_type: String,
    pub(crate) id: String,
    /// Empty if it has none, or if a stack has the object: then it may be a hidden value.
    name: String,
    /// Also empty if a stack has it.
    tags: Vec<String>,
    is_managed: bool,
    /// The places of the objects to which it refers.
    uses: Vec<usize>,
}

impl ScannedObject {
    pub(crate) fn view(&self) -> Value {
        value!({
            "ResourceType": (&self.resource_type),
            "ResourceIdentifier": (identifier(&self.id)),
            "ManagedByStack": (self.is_managed),
        })
    }

    /// Whether an ID or a name is its own.
    pub(crate) fn is_called(&self, text: &str) -> bool {
        self.id == text || self.name == text
    }

    /// Whether it has a tag with this key, and this value: `key=value`.
    pub(crate) fn has_tag(&self, key: Option<&str>, value: Option<&str>) -> bool {
        self.tags.iter().any(|tag| {
            let (own_key, own_value) = tag.split_once('=').unwrap_or((tag, ""));
            key.is_none_or(|key| key == own_key) && value.is_none_or(|value| value == own_value)
        })
    }
}

/// What identifies an object: a map in XML.
pub(crate) fn identifier(id: &str) -> Value {
    value!({ "entry": { "key": IDENTIFIER, "value": id } })
}

impl Body {
    /// The objects of a scan, of some types.
    pub(crate) fn of(inventory: &Inventory, is_wanted: impl Fn(&str) -> bool) -> Self {
        let wanted = inventory.scan.objects.iter().filter(|one| is_wanted(&one.key.resource_type));
        let wanted: Vec<&FoundObject> = wanted.collect();
        let places: BTreeMap<&ObjectKey, usize> =
            wanted.iter().zip(0..).map(|(one, place)| (&one.key, place)).collect();
        let object = |one: &FoundObject| {
            let is_managed = inventory.owners.contains_key(&one.key);
            let (name, tags) = if is_managed { <_>::default() } else { (one.name.clone(), one.tags.clone()) };
            ScannedObject {
                resource_type: one.key.resource_type.clone(),
                id: one.key.id.clone(),
                name,
                tags,
                is_managed,
                uses: one.uses.iter().filter_map(|used| places.get(used).copied()).collect(),
            }
        };
        Self { objects: wanted.into_iter().map(object).collect() }
    }

    /// The objects that belong together with those at some places, without these. What belongs to an object of a stack is not
    /// looked at.
    pub(crate) fn related(&self, places: &BTreeSet<usize>) -> Vec<&ScannedObject> {
        let mut used_by: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (place, one) in self.objects.iter().enumerate() {
            one.uses.iter().for_each(|used| used_by.entry(*used).or_default().push(place));
        }
        let mut found = places.clone();
        let mut next: Vec<usize> = places.iter().copied().collect();
        while let Some(place) = next.pop() {
            let Some(one) = self.objects.get(place) else { continue };
            for neighbour in one.uses.iter().chain(used_by.get(&place).into_iter().flatten()) {
                let is_free = self.objects.get(*neighbour).is_some_and(|one| !one.is_managed);
                if found.insert(*neighbour) && is_free {
                    next.push(*neighbour);
                }
            }
        }
        found.difference(places).filter_map(|place| self.objects.get(*place)).collect()
    }
}

impl Head {
    /// The common data.
    pub(crate) fn summary(&self, call: &Call, sheet: &Worksheet) -> Map {
        let reasons = self.unlisted.iter().map(|(kind, why)| format!("{kind}: {why}")).collect::<Vec<_>>().join("; ");
        let is_failed = self.number == 0 && !self.unlisted.is_empty();
        let shown = value!({
            "ResourceScanId": (call.kept_arn(WORD, sheet.id)),
            "Status": (if is_failed { "FAILED" } else { "COMPLETE" }),
            "StatusReason": (Some(reasons).filter(|text| !text.is_empty())),
            "StartTime": (instant(self.began)),
            "EndTime": (instant(self.ended)),
            "PercentageCompleted": 100,
        });
        shown.as_map().cloned().unwrap_or_default()
    }

    /// FULL, or PARTIAL with a filter.
    pub(crate) fn scan_type(&self) -> &'static str {
        if self.filter.is_empty() { "FULL" } else { "PARTIAL" }
    }
}

impl Call {
    /// The scan of the request.
    pub(crate) async fn resource_scan(&self) -> Result<(Worksheet, Head, Body), Fault> {
        let arn = self.params.required("ResourceScanId")?;
        let sheet = match self.id_in_arn(WORD, arn) {
            Some(id) => self.kept(KIND, id).await?,
            None => None,
        };
        let sheet = sheet.ok_or_else(|| Fault::no_scan(arn))?;
        let (head, body) = (read(&sheet.head)?, read(&sheet.body)?);
        Ok((sheet, head, body))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(id: &str, uses: &[usize], is_managed: bool) -> ScannedObject {
        ScannedObject {
            resource_type: "OS::Neutron::Net".to_owned(),
            id: id.to_owned(),
            name: String::new(),
            tags: vec!["team=red".to_owned(), "blue".to_owned()],
            is_managed,
            uses: uses.to_vec(),
        }
    }

    #[test]
    fn related_objects_are_found_in_both_directions_but_not_through_a_stack() {
        let server = object("server", &[1, 4], false);
        let of_stack = object("of-stack", &[], true);
        let behind = object("behind", &[4], false);
        let objects = vec![
            server,
            object("port", &[2], false),
            object("net", &[], false),
            object("alone", &[], false),
            of_stack,
            behind,
        ];
        let body = Body { objects };
        let related = |place: usize| {
            let found = body.related(&BTreeSet::from([place]));
            found.into_iter().map(|one| one.id.clone()).collect::<Vec<_>>()
        };
        assert_eq!(related(2), ["server", "port", "of-stack"]);
        assert_eq!(related(3), [""; 0]);
    }

    #[test]
    fn tags_have_keys_and_values() {
        let one = object("a", &[], false);
        for (key, value, has) in [
            (Some("team"), None, true),
            (Some("team"), Some("red"), true),
            (Some("team"), Some("blue"), false),
            (Some("blue"), None, true),
            (None, Some("red"), true),
            (Some("red"), None, false),
        ] {
            assert_eq!(one.has_tag(key, value), has, "{key:?} {value:?}");
        }
    }
}
