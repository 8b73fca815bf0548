//! Errors in the files of a stack, each shown where the user has to change it: in the template, in a nested template or in
//! an environment.

use std::sync::Arc;

use annotate_snippets::Level as Shade;
use kiln_authoring::Page;
use kiln_authoring::duplicates::{Duplicate, duplicates};
use kiln_authoring::language::{Level, Surroundings, Trouble, suggest};
use kiln_authoring::offline::{MAX_DEPTH, examine};
use kiln_client::{Bundle, Client, Error, ErrorLocation, NestedLocation, Origin};
use kiln_console::output::visible;
use kiln_console::picture::Source;
use kiln_plan::{ResourceTypes, Sources};
use kiln_template::Files;
use kiln_template::environment::{self, Environment};
use kiln_value::{Diagnostic, Map, Path, Span, Subject, Value, text};

use crate::connect::Connection;
use crate::failure::{Failure, Outcome, shown};

/// What was sent, to show errors in it.
#[derive(Clone, Copy)]
pub(crate) struct Sent<'a> {
    /// The template, its files and environments.
    pub(crate) bundle: &'a Bundle,
    /// The parameters of the command.
    pub(crate) given: &'a Map,
    /// The resource types, to suggest names; without them none are suggested.
    pub(crate) catalog: Option<&'a ResourceTypes>,
}

/// An error, with its place if it is in one of the files.
struct Mistake {
    message: String,
    /// The message without its path.
    text: String,
    /// The name that nothing has, if it is about one.
    name: Option<String>,
    hints: Vec<String>,
    place: Option<Place>,
    /// The path, as shown if there is no place.
    path: String,
}

/// The value of a parameter, with its place: in an environment, or as shown.
struct Given {
    value: String,
    place: Option<Place>,
    path: String,
}

/// A place in one of the files.
struct Place {
    /// The position of the file in [`Sent::origins`].
    file: usize,
    path: Path,
    span: Span,
}

impl<'a> Sent<'a> {
    /// The errors of `places`, in the order of the files and without those that others repeat.
    pub(crate) fn pictures(&self, places: &[ErrorLocation]) -> Vec<String> {
        let mut found: Vec<Mistake> = places.iter().map(|place| self.found(place)).collect();
        let origins: Vec<&Origin> = self.origins().collect();
        if let Some(catalog) = self.catalog {
            self.suggest(&mut found, &origins, catalog);
        }
        let at = |mistake: &Mistake| mistake.place.as_ref().map(|place| (place.file, place.span.start));
        // What has no place comes last.
        found.sort_by_key(|mistake| (at(mistake).is_none(), at(mistake)));
        // One wrong value may be read in several places.
        found.dedup_by(|again, first| {
            let is_same = at(again) == at(first) && again.text == first.text && again.path == first.path;
            if is_same {
                first
                    .hints
                    .extend(again.hints.iter().filter(|hint| !first.hints.contains(hint)).cloned().collect::<Vec<_>>());
            }
            is_same
        });
        let names: Vec<String> = origins.iter().map(|origin| shown(&origin.url)).collect();
        let sources: Vec<Source<'_>> =
            origins.iter().zip(&names).map(|(origin, name)| Source::new(name, &origin.text)).collect();
        let picture = |mistake: &Mistake| {
            let place = mistake.place.as_ref().and_then(|place| Some((sources.get(place.file)?, place.span)));
            let message = visible(&mistake.message);
            match place {
                Some((source, span)) => source.picture(Shade::ERROR, None, &message, span, &mistake.hints),
                None => without_place(mistake, &message),
            }
        };
        found.iter().map(picture).collect()
    }

    /// The duplicate keys in the files, which are no errors.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let pictures = self.origins().flat_map(|origin| {
            let name = shown(&origin.url);
            let source = Source::new(&name, &origin.text);
            let found = duplicates(&origin.text).into_iter();
            let picture = |one: Duplicate| {
                source.picture(Shade::WARNING, None, &visible(&one.message()), one.span, &[one.hint()])
            };
            found.map(picture).collect::<Vec<_>>()
        });
        pictures.collect()
    }

    fn origins(&self) -> impl Iterator<Item = &'a Origin> + use<'a> {
        std::iter::once(&self.bundle.origin).chain(&self.bundle.others)
    }

    fn found(&self, place: &ErrorLocation) -> Mistake {
        let (name, hints) = (place.name.clone(), place.hints.clone());
        if let Some(nested) = &place.nested
            && let Some((file, origin)) = self.origins().enumerate().find(|(_, origin)| origin.url == nested.file)
        {
            let path = origin.path(&nested.path);
            let place = origin.span(&path).map(|span| Place { file, path, span });
            let text = nested.message.replace(&nested.path, "");
            return Mistake { message: nested.message.clone(), text, name, hints, place, path: String::new() };
        }
        let (message, text) = (place.message.clone(), place.message.replace(&place.path, ""));
        let mut mistake = Mistake { message, text, name, hints, place: None, path: String::new() };
        let origin = &self.bundle.origin;
        let path = origin.path(&place.path);
        let read = origin.value(&path).and_then(parameter_read);
        if let Some(given) = place.parameter.as_deref().or(read).and_then(|name| self.given(name)) {
            // An error of a property may be about something else than the value.
            if place.parameter.is_some() {
                (mistake.place, mistake.path) = (given.place, given.path);
                return mistake;
            }
            if !given.value.is_empty() && place.message.contains(&given.value) {
                (mistake.place, mistake.path) = (given.place, given.path);
                mistake.hints.push(format!("it is the value of {}", place.path));
                return mistake;
            }
        }
        mistake.place = origin.span(&path).map(|span| Place { file: 0, path, span });
        mistake.path.clone_from(&place.path);
        mistake
    }

    /// The command line or the environment that gives the value of a parameter.
    fn given(&self, name: &str) -> Option<Given> {
        if let Some(value) = self.given.get(name) {
            return Some(Given { value: text::str(value), place: None, path: format!("--parameter {name}") });
        }
        let environments = self.origins().enumerate().filter(|(_, origin)| self.is_environment(origin));
        let entry = |(file, origin): (usize, &Origin), section: &str| {
            let path = Path::root().key(section).key(name);
            let value = text::str(origin.value(&path)?);
            let place = origin.span(&path).map(|span| Place { file, path, span });
            Some(Given { value, place, path: String::new() })
        };
        // The last environment takes precedence.
        let environments: Vec<(usize, &Origin)> = environments.collect();
        let mut found = ["parameters", "parameter_defaults"]
            .into_iter()
            .flat_map(|section| environments.iter().rev().filter_map(move |one| entry(*one, section)));
        found.next()
    }

    fn is_environment(&self, origin: &Origin) -> bool {
        self.bundle.environment_files.contains(&origin.url)
    }

    /// Adds the suggestions of the language server, and points at the misspelt word.
    fn suggest(&self, found: &mut [Mistake], origins: &[&Origin], catalog: &ResourceTypes) {
        let around = Surroundings {
            files: files(self.bundle),
            environment: Environment::from_sections(&self.bundle.environment).unwrap_or_default(),
        };
        for (number, origin) in origins.iter().enumerate() {
            let is_here = |mistake: &&mut Mistake| mistake.place.as_ref().is_some_and(|place| place.file == number);
            let mut here: Vec<&mut Mistake> = found.iter_mut().filter(is_here).collect();
            if here.is_empty() || self.is_environment(origin) {
                continue;
            }
            let Ok(page) = Page::read(origin.text.as_str()) else { continue };
            let mut troubles: Vec<Trouble> = here.iter().filter_map(|mistake| mistake.trouble()).collect();
            suggest(&page, &mut troubles, catalog, &around);
            for (mistake, trouble) in here.iter_mut().zip(troubles) {
                mistake.hints = trouble.hints;
                mistake.place = Some(Place { file: number, path: trouble.path, span: trouble.span });
            }
        }
    }
}

impl Mistake {
    fn trouble(&self) -> Option<Trouble> {
        let Place { path, span, .. } = self.place.as_ref()?;
        Some(Trouble {
            level: Level::Error,
            code: String::new(),
            message: self.message.clone(),
            path: path.clone(),
            span: *span,
            name: self.name.clone(),
            hints: self.hints.clone(),
        })
    }
}

/// The name of the parameter that a value is read from as a whole.
fn parameter_read(value: &Value) -> Option<&str> {
    let (function, name) = value.as_map().filter(|map| map.len() == 1)?.first()?;
    ["get_param", "Ref"].contains(&function.as_str()).then(|| name.as_str()).flatten()
}

fn without_place(mistake: &Mistake, message: &str) -> String {
    let mut lines = vec![format!("{}: {message}", Failure::word())];
    if !mistake.path.is_empty() {
        lines.push(format!("  --> {}", mistake.path));
    }
    lines.extend(mistake.hints.iter().map(|hint| format!("  = help: {hint}")));
    lines.join("\n")
}

/// The failure of a request: the errors of the service, and those that it did not come to, each in its file.
pub(crate) async fn refused(connection: &Connection, bundle: &Bundle, given: &Map, error: Error) -> Failure {
    let wrong = matches!(&error, Error::Refused(refusal) if refusal.status == 400 && !refusal.places.is_empty());
    let failure = Failure::from(error);
    if !wrong {
        return failure;
    }
    let Ok(catalog) = connection.settings.catalog().await else { return failure };
    let sent = Sent { bundle, given, catalog: Some(&catalog) };
    let others = others(&connection.client, sent, &catalog, failure.places()).await;
    failure.and(others).in_files(sent)
}

/// The errors that a check without the cloud finds and the service did not report, because it stops at the first one.
async fn others(
    client: &Client,
    sent: Sent<'_>,
    catalog: &ResourceTypes,
    told: &[ErrorLocation],
) -> Vec<ErrorLocation> {
    let bundle = sent.bundle;
    // Files in a container are not known here.
    if bundle.template.is_none() || bundle.container.is_some() {
        return Vec::new();
    }
    let Ok(sources) = sources(bundle, sent.given) else { return Vec::new() };
    let mut found = examine(&sources, catalog, MAX_DEPTH).1;
    // The service may have other types than this command.
    if found.iter().any(|error| matches!(error.subject, Some(Subject::ResourceType(_)))) {
        let Ok(types) = client.resource_types(&vec![], false).await else { return Vec::new() };
        found.retain(|error| match &error.subject {
            Some(Subject::ResourceType(name)) => types.iter().all(|this| this.as_str() != Some(name)),
            _ => true,
        });
    }
    let found = found.iter().map(location);
    found.filter(|error| !told.iter().any(|told| told.message == error.message && told.path == error.path)).collect()
}

/// The failure for one or more errors that were found without a service.
pub(crate) fn wrong(errors: &[Diagnostic], sent: Sent<'_>) -> Failure {
    let message = errors.first().map(Diagnostic::to_string).unwrap_or_default();
    Failure::new(message).and(errors.iter().map(location).collect()).in_files(sent)
}

/// Template, environment and files of a bundle.
pub(crate) fn sources(bundle: &Bundle, given: &Map) -> Outcome<Sources> {
    let sent = Sent { bundle, given, catalog: None };
    let environment = environment::from_request(Some(&bundle.environment.clone().into()), given)
        .and_then(|sections| Environment::from_sections(&sections))
        .map_err(|error| wrong(&[error], sent))?;
    Ok(Sources {
        template: Arc::new(bundle.template.clone().unwrap_or_default()),
        environment: Arc::new(environment),
        files: Arc::new(files(bundle)),
    })
}

fn files(bundle: &Bundle) -> Files {
    let content = |value: &Value| value.as_str().map_or_else(|| text::str(value), str::to_owned);
    Files(bundle.files.iter().map(|(name, value)| (name.clone(), content(value))).collect())
}

/// An error as the service returns it.
fn location(error: &Diagnostic) -> ErrorLocation {
    let nested = error.nested.as_ref().map(|nested| NestedLocation {
        file: nested.file.clone(),
        path: nested.path.to_string(),
        message: nested.message.clone(),
    });
    ErrorLocation {
        message: error.to_string(),
        path: error.path.to_string(),
        line: error.span.map(|span| span.start.line.into()),
        column: error.span.map(|span| span.start.column.into()),
        hints: error.hints.clone(),
        parameter: error.parameter().map(str::to_owned),
        name: error.unknown_name().map(str::to_owned),
        nested,
    }
}
