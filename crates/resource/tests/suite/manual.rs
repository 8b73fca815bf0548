//! The pages of the manual for the resource types: the catalogue, and a page for each service.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use indexmap::IndexMap;
use kiln_resource::property::type_name;
use kiln_resource::{DriverKind, Inner, PropertySchema, ResourceType, Support, SupportStatus, shipped};
use kiln_template::constraint::{Constraint, Rule};
use kiln_value::{Value, text};

const BEGIN: &str = "\
# Resource types

Every resource type that Kiln contains, by service. The page of a service describes the properties and attributes of its types.
`kiln resource-type show TYPE` shows the same for a cloud, `kiln resource-type list` the types that the cloud has, and
`kiln resource-type show --template-type hot TYPE` a template.

In the pages, required properties are bold, and `networks[].port` is the key `port` of the items of the list `networks`. The column
\"change\" says what an update of the stack does when the property has changed:

| change | meaning |
| --- | --- |
| in place | the object is changed |
| replacement | a new object is created, and the former one is deleted |
| error | the update fails |
";

const HIDDEN: &str = "
## Hidden types

Templates may contain these types, but no list shows them.

";

/// The service of a type, which is the name of its page, without `.md`.
fn service(name: &str) -> String {
    let mut parts = name.split("::");
    let (owner, service) = (parts.next().unwrap(), parts.next().unwrap());
    if owner == "OS" { service } else { owner }.to_lowercase()
}

/// The anchor of the heading of a type.
fn anchor(name: &str) -> String {
    name.replace("::", "").to_lowercase()
}

/// A text in a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('<', "\\<").replace('*', "\\*")
}

/// Code in a cell of a table.
fn code(text: &str) -> String {
    format!("`{}`", text.replace('|', "\\|"))
}

fn code_of(value: &Value) -> String {
    code(&value.as_str().map_or_else(|| text::json(value), str::to_owned))
}

fn bounds(what: &str, min: Option<&Value>, max: Option<&Value>) -> String {
    match (min.map(text::str), max.map(text::str)) {
        (Some(min), Some(max)) if min == max => format!("{what}{min}."),
        (Some(min), Some(max)) => format!("{what}{min} to {max}."),
        (Some(min), None) => format!("{what}at least {min}."),
        (None, Some(max)) => format!("{what}at most {max}."),
        (None, None) => String::new(),
    }
}

fn constraint(constraint: &Constraint) -> String {
    match &constraint.rule {
        Rule::Range { min, max } => bounds("Range: ", min.as_ref(), max.as_ref()),
        Rule::Length { min, max } => bounds("Length: ", min.as_ref(), max.as_ref()),
        Rule::Modulo { step, offset } if text::str(offset) == "0" => format!("A multiple of {}.", text::str(step)),
        Rule::Modulo { step, offset } => format!("{} more than a multiple of {}.", text::str(offset), text::str(step)),
        Rule::AllowedValues(allowed) => {
            format!("One of {}.", allowed.iter().map(code_of).collect::<Vec<_>>().join(", "))
        }
        Rule::AllowedPattern(pattern) => format!("Pattern: {}.", code(pattern.as_str())),
        Rule::Custom(name) => format!("Constraint: {}.", code(name)),
    }
}

/// The sentences about a status that is not simply `supported`.
fn status(support: &SupportStatus) -> Option<String> {
    let word = match support.status {
        Support::Supported => return None,
        Support::Deprecated => "Deprecated",
        Support::Hidden => "Hidden",
        Support::Unsupported => "Not supported",
    };
    let since = support.version.as_deref().map(|version| format!(" since {version}")).unwrap_or_default();
    let message = support.message.as_deref().map(|message| format!(" {}", cell(message))).unwrap_or_default();
    Some(format!("{word}{since}.{message}"))
}

/// The rows of properties, each followed by its members; `change` gives the cell of a property at the top.
fn rows(
    properties: &IndexMap<String, PropertySchema>,
    above: &str,
    change: Option<fn(&PropertySchema) -> &'static str>,
    page: &mut String,
) {
    for (name, property) in properties {
        if !property.implemented || property.support.is_hidden() {
            continue;
        }
        let path = format!("{above}{name}");
        let shown = if property.required { format!("**{}**", code(&path)) } else { code(&path) };
        let mut text: Vec<String> = property.description.as_deref().map(cell).into_iter().collect();
        text.extend(property.constraints.iter().map(constraint));
        if let Some(Inner::Items(items)) = &property.inner {
            text.extend(items.constraints.iter().map(|one| format!("Items: {}", constraint(one))));
        }
        if let Some(default) = &property.default {
            text.push(format!("Default: {}.", code_of(default)).replace("``", "empty"));
        }
        text.extend(status(&property.support));
        let kind = type_name(property.kind);
        let change = change.map_or("", |change| change(property));
        _ = writeln!(page, "| {shown} | {kind} | {change} | {} |", text.join(" "));
        let (members, separator) = match &property.inner {
            Some(Inner::Members(members)) => (Some(members), "."),
            Some(Inner::Items(items)) => (items.members(), "[]."),
            None => (None, ""),
        };
        if let Some(members) = members {
            rows(members, &format!("{path}{separator}"), None, page);
        }
    }
}

fn change(property: &PropertySchema) -> &'static str {
    if property.immutable {
        "error"
    } else if property.update_allowed {
        "in place"
    } else {
        "replacement"
    }
}

/// The section of a type.
fn section(one: &ResourceType) -> String {
    let mut page = format!("\n## {}\n\n{}", one.name, cell(&one.summary));
    let facts = [
        status(&one.support),
        (one.driver == DriverKind::Placeholder).then(|| "It does nothing: any property is accepted.".to_owned()),
        (one.driver == DriverKind::None).then(|| "It is validated and shown, but cannot be created.".to_owned()),
        one.extension.as_deref().map(|extension| format!("It requires the extension {}.", code(extension))),
        one.loses.as_ref().map(|lost| format!("A delete or a replacement loses {}.", lost.what)),
        one.open_attributes.then(|| "Other names of attributes are accepted too.".to_owned()),
    ];
    for fact in facts.into_iter().flatten() {
        _ = write!(page, " {fact}");
    }
    page.push('\n');
    for (head, properties) in [("property", &one.properties), ("update policy", &one.update_policy)] {
        if !properties.is_empty() {
            let change = (head == "property").then_some(change as fn(&PropertySchema) -> &'static str);
            let title = if change.is_some() { "change" } else { "" };
            _ = write!(page, "\n| {head} | type | {title} | |\n| --- | --- | --- | --- |\n");
            rows(properties, "", change, &mut page);
        }
    }
    let attributes: Vec<_> = one.attributes.iter().filter(|(_, attribute)| !attribute.support.is_hidden()).collect();
    if !attributes.is_empty() {
        page.push_str("\n| attribute | type | |\n| --- | --- | --- |\n");
    }
    for (name, attribute) in attributes {
        let kind = attribute.kind.map(type_name).unwrap_or_default();
        let text = attribute.description.as_deref().map(cell).into_iter().chain(status(&attribute.support));
        _ = writeln!(page, "| {} | {kind} | {} |", code(name), text.collect::<Vec<_>>().join(" "));
    }
    page
}

/// The pages by their place in `docs/`.
fn pages() -> BTreeMap<PathBuf, String> {
    let mut types = shipped::types().unwrap();
    types.sort_by(|one, other| one.name.cmp(&other.name));
    let (hidden, types): (Vec<_>, Vec<_>) = types.into_iter().partition(|one| one.support.is_hidden());
    let mut pages = BTreeMap::new();
    let mut catalogue = BEGIN.to_owned();
    let mut group = "";
    for one in &types {
        let service = service(&one.name);
        let place = PathBuf::from(format!("types/{service}.md"));
        let (above, _) = one.name.rsplit_once("::").unwrap();
        let title = if one.name.starts_with("OS::") { above.split("::").nth(1).unwrap() } else { "AWS" };
        if above != group {
            _ = write!(catalogue, "\n## {above}\n\n| type | |\n| --- | --- |\n");
            group = above;
        }
        let target = format!("types/{service}.md#{}", anchor(&one.name));
        _ = writeln!(catalogue, "| [{}]({target}) | {} |", code(&one.name), cell(&one.summary));
        let page = pages.entry(place).or_insert_with(|| {
            format!("# {title}\n\nMade from the definitions. The [first page](../catalogue.md) explains the tables.\n")
        });
        page.push_str(&section(one));
    }
    catalogue.push_str(HIDDEN);
    for one in &hidden {
        _ = writeln!(catalogue, "- {}: {}", code(&one.name), status(&one.support).unwrap());
    }
    pages.insert("catalogue.md".into(), catalogue);
    pages
}

#[test]
fn the_pages_of_the_manual_are_those_of_the_definitions() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let pages = pages();
    if std::env::var_os("KILN_UPDATE_DATA").is_some() {
        std::fs::create_dir_all(docs.join("types")).unwrap();
        for (place, page) in &pages {
            std::fs::write(docs.join(place), page).unwrap();
        }
    }
    for (place, page) in &pages {
        let found = std::fs::read_to_string(docs.join(place)).unwrap_or_default();
        let name = place.display();
        assert!(found == *page, "KILN_UPDATE_DATA=1 .ci/tests kiln-resource:suite manual writes docs/{name}");
    }
    let found: BTreeSet<PathBuf> =
        std::fs::read_dir(docs.join("types")).unwrap().map(|entry| entry.unwrap().file_name().into()).collect();
    let made = pages.keys().filter_map(|place| Some(PathBuf::from(place.strip_prefix("types").ok()?)));
    assert_eq!(found, made.collect());
}
