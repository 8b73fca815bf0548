//! Type files as types of components: what blueprints can say of them.

use std::collections::HashMap;
use std::sync::Arc;

use kiln_value::{Map, Value, value};

use crate::tosca::{Definitions, Names, TypeChecker, Types};
use crate::type_file::TypeFile;
use crate::{Refusal, TypeFiles};

/// The types of components that types of TOSCA are, the nearest parent first.
const COMPONENTS: [(&str, &str); 3] = [
    ("tosca.nodes.SoftwareComponent", "runnable"),
    ("tosca.nodes.Compute", "server"),
    ("tosca.nodes.LoadBalancer", "loadbalancer"),
];

/// Requirements that the place of a component in a blueprint fulfils.
const BY_PLACE: [&str; 2] = ["host", "dependency"];

/// Adds the types of files to the document of a library.
pub(super) fn add_types(library: &mut Value, types: &Arc<TypeFiles>) -> Result<(), Vec<Refusal>> {
    if types.all().next().is_none() {
        return Ok(());
    }
    let definitions = Definitions::of_all_profiles(types)?;
    let node_types = Types::new(&definitions);
    let checker = TypeChecker::new(&node_types);
    let mut requirements: HashMap<String, Option<String>> = HashMap::new();
    let mut order = Vec::new();
    for this in types.all() {
        // Wrong parents are reported with the file.
        let Some(names) = checker.names(&this.name) else { continue };
        let mut own = Vec::new();
        for (name, definition) in offered(this, types, &checker, &names) {
            own.push(name.clone());
            if definition.is_null() {
                continue;
            }
            let by = definition.str_at("node").and_then(|node| component_of(node, types, &checker));
            let known = requirements.entry(name.clone()).or_insert_with(|| {
                order.push(name.clone());
                by.clone()
            });
            // Where types disagree, only the graph checks who fulfils it.
            if *known != by {
                *known = None;
            }
        }
        let Some(components) = library.as_map_mut().and_then(|map| map.get_mut("components")?.as_map_mut()) else {
            break;
        };
        let before = components.get(&this.name).cloned().unwrap_or_default();
        components.insert(this.name.clone(), component(this, own, types, &names, &before));
    }
    let section = library.as_map_mut().and_then(|map| map.get_mut("requirements")?.as_map_mut());
    let Some(section) = section else { return Ok(()) };
    for name in order {
        let by = requirements.get(&name).cloned().flatten();
        // The requirements of Kiln stay as they are.
        section.entry(name).or_insert_with(|| {
            let mut requirement = Map::new();
            requirement.insert("attributes".to_owned(), value!({"fulfillment": "any"}));
            requirement.insert("default_attribute".to_owned(), "fulfillment".into());
            requirement.extend(by.map(|by| ("fulfilled_by".to_owned(), Value::from(by))));
            requirement.into()
        });
    }
    Ok(())
}

/// The requirements of a type and its parents in files that components may name.
fn offered(this: &TypeFile, types: &TypeFiles, checker: &TypeChecker<'_>, names: &Names) -> Vec<(String, Value)> {
    let of_files: usize = names.line.iter().take_while(|name| types.get(name).is_some()).count();
    let mut found: Vec<(String, Value)> = Vec::new();
    for file in names.line[..of_files].iter().filter_map(|name| types.get(name)) {
        let items = file.definition.get("requirements").and_then(Value::as_list).unwrap_or_default();
        for (name, definition) in items.iter().filter_map(Value::as_map).flatten() {
            let of_server = definition.str_at("node").is_none_or(|node| checker.is_a(node, "tosca.nodes.Compute"));
            let by_place = BY_PLACE.contains(&name.as_str()) && of_server;
            if !by_place && !found.iter().any(|(known, _)| known == name) {
                found.push((name.clone(), definition.clone()));
            }
        }
    }
    let more = this.component.get("requires").and_then(Value::as_list).into_iter().flatten().filter_map(Value::as_str);
    for name in more {
        if !found.iter().any(|(known, _)| known == name) {
            found.push((name.to_owned(), Value::Null));
        }
    }
    found
}

/// The type of components for a type of nodes.
fn component_of(node: &str, types: &TypeFiles, checker: &TypeChecker<'_>) -> Option<String> {
    let names = checker.names(node)?;
    names.line.iter().find_map(|name| {
        if types.get(name).is_some() {
            return Some(name.clone());
        }
        COMPONENTS.iter().find(|(known, _)| known == name).map(|(_, component)| (*component).to_owned())
    })
}

/// The entry of a type in a library; `before` is that of the type that it replaces.
fn component(this: &TypeFile, requires: Vec<String>, types: &TypeFiles, names: &Names, before: &Value) -> Value {
    let mut entry = Map::new();
    for key in ["aliases", "tags", "default_requirement", "abstract"] {
        if let Some(value) = this.component.get(key).or_else(|| before.get(key)) {
            entry.insert(key.to_owned(), value.clone());
        }
    }
    let parent = this.component.get("derived_from").cloned().or_else(|| before.get("derived_from").cloned());
    let parent = parent.or_else(|| {
        names.line.iter().skip(1).find_map(|name| {
            if types.get(name).is_some() {
                return Some(Value::from(name));
            }
            let by_table = COMPONENTS.iter().find(|(known, _)| known == name).map(|(_, component)| *component);
            by_table.map(Value::from)
        })
    });
    entry.extend(parent.map(|parent| ("derived_from".to_owned(), parent)));
    // The content of a component has a key of its own in the language.
    let attributes = names.properties.iter().filter(|name| *name != super::typed::CONTENT);
    entry.insert("attributes".to_owned(), attributes.map(Value::from).collect::<Vec<Value>>().into());
    entry.insert("requires".to_owned(), requires.into_iter().map(Value::from).collect::<Vec<Value>>().into());
    entry.into()
}
