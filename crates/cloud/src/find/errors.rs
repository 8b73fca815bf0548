//! The errors of finders: those of the client libraries, or those of the definition file.

use kiln_resource::finder::{Complaint, Missing, Several};
use kiln_resource::{Failure, FailureKind, Finder, FinderClient};
use kiln_value::{Class, Value, text};

/// Heat's `EntityNotFound`.
pub(super) fn entity_not_found(entity: &str, name: &str) -> Failure {
    let message = format!("The {entity} ({name}) could not be found.");
    Failure::new(FailureKind::NotFound, Class::EntityNotFound, message)
}

/// The error if no object has the name or ID; `known`: the names in the list.
pub(super) fn missing(finder: &Finder, name: &str, known: &[String]) -> Failure {
    let word = &finder.word;
    let not_found = |class: Class, message: String| Failure::new(FailureKind::NotFound, class, message);
    if let Missing::Custom(complaint) = &finder.missing {
        return not_found(complaint.class.clone(), told(complaint, name, known));
    }
    match finder.client {
        FinderClient::Heat => entity_not_found(word, name),
        FinderClient::Osc => not_found(Class::NotFound, format!("{name} not found (HTTP 404)")),
        FinderClient::Neutron | FinderClient::NeutronExtension => {
            not_found(Class::NotFound, format!("Unable to find {word} with name or id '{name}'"))
        }
        FinderClient::Sdk => not_found(Class::NotFoundException, format!("No {word} found for {name}")),
    }
}

/// The error if several objects have the name.
pub(super) fn ambiguous(finder: &Finder, name: &str, known: &[String]) -> Failure {
    let word = &finder.word;
    match &finder.several {
        Several::Custom(complaint) => return Failure::other(complaint.class.clone(), told(complaint, name, known)),
        Several::Missing => return missing(finder, name, known),
        Several::Usual | Several::First => {}
    }
    match finder.client {
        FinderClient::Heat => Failure::other(
            Class::NoUniqueMatch,
            format!("Ambiguous {word} name '{name}'. Found more than one {word} for this name."),
        ),
        FinderClient::Osc => Failure::other(Class::NotFound, format!("{name} not found (HTTP 404)")),
        FinderClient::Neutron | FinderClient::NeutronExtension => Failure::other(
            Class::NeutronClientNoUniqueMatch,
            format!("Multiple {word} matches found for name '{name}', use an ID to be more specific."),
        ),
        FinderClient::Sdk => {
            Failure::other(Class::DuplicateResource, format!("More than one {word} exists with the name '{name}'."))
        }
    }
}

/// The text of an error. The value is inserted last, so that nothing in it is replaced.
fn told(complaint: &Complaint, name: &str, known: &[String]) -> String {
    let mut out = String::with_capacity(complaint.text.len() + name.len());
    let mut rest = complaint.text.as_str();
    while let Some(at) = rest.find('{') {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let (shown, length) = if from.starts_with("{value}") {
            (name.to_owned(), "{value}".len())
        } else if from.starts_with("{quoted}") {
            (text::quote(name), "{quoted}".len())
        } else if from.starts_with("{known}") {
            (text::repr(&known.iter().map(String::as_str).collect::<Value>()), "{known}".len())
        } else {
            ("{".to_owned(), 1)
        };
        out.push_str(&shown);
        rest = from.get(length..).unwrap_or_default();
    }
    out + rest
}
