//! Type files of blueprints and TOSCA, checked by `kiln template validate`.

use kiln_authoring::type_files::unknown_resources;
use kiln_client::address;
use kiln_console::output::One;
use kiln_topology::type_file::{TypeFile, is_type_file};
use kiln_topology::{Refusal, UserFile};
use kiln_value::{Value, value};

use super::super::stack::entries;
use crate::cli::Global;
use crate::connect::Connection;
use crate::failure::Outcome;
use crate::topology::failure;

/// The description of a type file that is valid; `None` if it is not a type file.
pub(super) async fn validated(global: &Global, name: &str) -> Outcome<Option<One>> {
    let url = address::url_of(name);
    let source = Connection::source(global)?;
    // Problems of reading are reported with those of templates.
    let Ok(bytes) = source.read(&url).await else { return Ok(None) };
    let Ok(text) = String::from_utf8(bytes) else { return Ok(None) };
    let Ok(document) = kiln_yaml::parse(&text) else { return Ok(None) };
    if !is_type_file(&document.value) {
        return Ok(None);
    }
    let file = address::file_of(&url).map_or(url.clone(), |path| path.display().to_string());
    let others = global.local.topology_types()?;
    let original = UserFile::of_document(text.clone(), document, "");
    let own = |mut refusal: Refusal| {
        // Its position is found by its path, as that of all errors of this file.
        if refusal.file.as_deref() == Some(file.as_str()) {
            refusal.file = None;
            refusal.span = None;
        }
        refusal
    };
    let types = others.with_changed(&file, &text).map_err(|refusals| {
        let refusals: Vec<Refusal> = refusals.into_iter().map(own).collect();
        failure(&url, &original, &refusals)
    })?;
    let Some(this) = types.all().rev().find(|this| this.file == file) else { return Ok(None) };
    let wrong = unknown_resources(this, &global.local.catalog().await?);
    if !wrong.is_empty() {
        return Err(failure(&url, &original, &wrong));
    }
    Ok(Some(entries(described(this))))
}

fn described(this: &TypeFile) -> Value {
    let properties: Value = this.properties().map(|(name, schema)| (name.clone(), schema.clone())).collect();
    let resources = this.resources().filter_map(|(suffix, resource)| Some((suffix, resource.str_at("type")?)));
    let resources: Value = resources.map(|(suffix, kind)| (format!("NODE{suffix}"), Value::from(kind))).collect();
    let operations: Vec<Value> = this.operations().map(Value::from).collect();
    value!({
        "Type": (&this.name),
        "Description": (this.description.clone().unwrap_or_default()),
        "Derived from": (this.parent()),
        "Properties": properties,
        "Resources": resources,
        "Operations": (Value::List(operations))
    })
}
