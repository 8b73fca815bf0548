//! Where the properties of a resource are written: in the template of its stack, or in the group that it is a member of.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use kiln_plan::Kind;
use kiln_resource::StackId;
use kiln_stack::LoadedStack;
use kiln_template::PropertyPlace;
use kiln_view::stack_drift::StackDrift;

use super::refused;
use crate::{Error, Service};

/// Groups, and the properties with the definition of their members.
const GROUPS: [(&str, &str); 2] =
    [("OS::Heat::ResourceGroup", "resource_def"), ("OS::Heat::AutoScalingGroup", "resource")];

/// Where the definition of a resource is written.
pub(super) struct Place {
    /// The name of the template in the files; `None`: the template of the stack.
    pub(super) file: Option<String>,
    pub(super) resource: String,
    pub(super) within: Option<&'static str>,
    /// The place that gives values to the parameters of the template; `None`: the parameters of the stack.
    pub(super) from: Option<usize>,
}

impl Place {
    pub(super) fn property(&self, name: &str) -> PropertyPlace {
        PropertyPlace { resource: self.resource.clone(), within: self.within, property: name.to_owned() }
    }
}

/// The places of the resources on a path; the last one is that of its resource.
pub(super) struct Places(pub(super) Vec<Place>);

impl Places {
    pub(super) async fn of(
        service: &Service,
        views: &mut HashMap<StackId, Arc<LoadedStack>>,
        root: &LoadedStack,
        compared: &StackDrift,
        path: &str,
    ) -> Result<Self, Error> {
        let mut names = path.split('/');
        let mut name = names.next().unwrap_or_default();
        let mut places = vec![Place { file: None, resource: name.to_owned(), within: None, from: None }];
        let (mut drift, mut view): (&StackDrift, Option<Arc<LoadedStack>>) = (compared, None);
        for next in names {
            let here = places.len() - 1;
            let kind = view.as_deref().unwrap_or(root).blueprint.kind(name);
            let group = &places[here];
            let place = match kind {
                Some(Kind::Template(provider)) => Place {
                    file: Some(provider.url.clone()),
                    resource: next.to_owned(),
                    within: None,
                    from: Some(here),
                },
                Some(Kind::Type(entry)) => {
                    let name = entry.resource_type.name.as_str();
                    let within = GROUPS.iter().find(|(group, _)| *group == name).map(|(_, within)| *within);
                    let within = within.filter(|_| group.within.is_none());
                    let why =
                        format!("it is in the nested stack of a resource of type {name}, whose template Kiln makes");
                    let within = within.ok_or_else(|| refused(path, &why))?;
                    let (file, resource) = (group.file.clone(), group.resource.clone());
                    Place { file, resource, within: Some(within), from: group.from }
                }
                None => return Err(refused(path, "its nested stack is not in the template")),
            };
            places.push(place);
            let nested = drift.resources.iter().find(|one| one.row.name == name).and_then(|one| one.nested.as_ref());
            drift = nested.ok_or_else(|| refused(path, "its nested stack is not known"))?;
            view = Some(match views.entry(drift.stack.id) {
                Entry::Occupied(known) => Arc::clone(known.get()),
                Entry::Vacant(new) => Arc::clone(new.insert(Arc::new(service.view(drift.stack.clone()).await?))),
            });
            name = next;
        }
        Ok(Self(places))
    }
}
