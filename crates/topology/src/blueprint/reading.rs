//! A blueprint as data: the format of `kiln template lower --show reading` and of the tests.

use kiln_value::{Map, Value, value};

use super::model::{Application, Component, Fulfilment, Requirement, TypeFrom};

impl Application {
    /// The reading: `name`, `requires`, `components`; parts that say nothing are left out.
    pub fn reading(&self) -> Value {
        let mut map = Map::new();
        if let Some(name) = &self.name {
            map.insert("name".to_owned(), name.into());
        }
        insert_list(&mut map, "requires", self.requires.iter().map(requirement).collect());
        map.insert("components".to_owned(), self.components.iter().map(component).collect::<Vec<Value>>().into());
        map.into()
    }
}

fn insert_list(map: &mut Map, key: &str, items: Vec<Value>) {
    if !items.is_empty() {
        map.insert(key.to_owned(), Value::List(items));
    }
}

fn component(component: &Component) -> Value {
    let mut map = Map::new();
    if let Some(id) = &component.id {
        map.insert("id".to_owned(), id.into());
    }
    if component.id_made {
        map.insert("id_made".to_owned(), true.into());
    }
    if component.implied {
        map.insert("implied".to_owned(), true.into());
    }
    map.insert("type".to_owned(), (&component.type_name).into());
    let from = match component.type_from {
        TypeFrom::Explicit => "explicit",
        TypeFrom::RequirementOnIt => "requirement on it",
        TypeFrom::ItsRequirements => "its requirements",
        TypeFrom::Tags => "tags",
    };
    map.insert("type_from".to_owned(), from.into());
    map.insert("deploys".to_owned(), (&component.deploys).into());
    if let Some(content) = &component.content {
        map.insert("content".to_owned(), content.into());
    }
    insert_list(&mut map, "tags", component.tags.iter().map(Value::from).collect());
    if !component.attributes.is_empty() {
        map.insert("attributes".to_owned(), component.attributes.clone().into());
    }
    if !component.specs.is_empty() {
        let specs = component.specs.iter().map(|(name, spec)| (name.clone(), self::component(spec)));
        map.insert("specs".to_owned(), specs.collect());
    }
    insert_list(&mut map, "requires", component.requires.iter().map(requirement).collect());
    map.into()
}

fn requirement(requirement: &Requirement) -> Value {
    let mut map = Map::new();
    map.insert("type".to_owned(), (&requirement.type_name).into());
    if !requirement.attributes.is_empty() {
        map.insert("attributes".to_owned(), requirement.attributes.clone().into());
    }
    let fulfilled_by = requirement.fulfilled_by.iter().map(|by| match by {
        Fulfilment::Component(id) => value!({"id": id}),
        Fulfilment::Url(url) => value!({"url": url}),
        Fulfilment::InLine(inline) => value!({"inline": component(inline)}),
        Fulfilment::Platform(kind) => value!({"platform": kind}),
    });
    insert_list(&mut map, "fulfilled_by", fulfilled_by.collect());
    map.into()
}
