//! Errors in the files of a stack, each shown where the user has to change it: in the template, in a nested template or in
//! an environment.

use std::sync::Arc;

use annotate_snippets::Level as Shade;
use kiln_authoring::Page;
use kiln_authoring::language::{Level, Surroundings, Trouble, suggest};
use kiln_authoring::offline::{MAX_DEPTH, examine};
use kiln_client::{Bundle, Client, Error, ErrorLocation, NestedLocation, Origin};
use kiln_plan::{ResourceTypes, Sources};
use kiln_template::Files;
use kiln_template::environment::{self, Environment};
use kiln_value::{Diagnostic, Map, Path, Span, Value, text};

use crate::connect::Connection;
use crate::failure::{Failure, Outcome, shown};
use crate::output::visible;
use crate::picture::Source;

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
    hints: Vec<String>,
    place: Option<Place>,
    /// The path, as shown if there is no place.
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
        found.dedup_by(|a, b| at(a) == at(b) && a.message == b.message && a.path == b.path);
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

    fn origins(&self) -> impl Iterator<Item = &'a Origin> + use<'a> {
        std::iter::once(&self.bundle.origin).chain(&self.bundle.others)
    }

    fn found(&self, place: &ErrorLocation) -> Mistake {
        let hints = place.hints.clone();
        if let Some(nested) = &place.nested
            && let Some((file, origin)) = self.origins().enumerate().find(|(_, origin)| origin.url == nested.file)
        {
            let path = origin.path(&nested.path);
            let place = origin.span(&path).map(|span| Place { file, path, span });
            return Mistake { message: nested.message.clone(), hints, place, path: String::new() };
        }
        let mut mistake = Mistake { message: place.message.clone(), hints, place: None, path: String::new() };
        if let Some(name) = value_of_parameter(place) {
            if self.given.contains_key(name) {
                mistake.path = format!("--parameter {name}");
                return mistake;
            }
            let sections = ["parameters", "parameter_defaults"];
            let entry = |(file, origin): (usize, &Origin)| {
                let (section, span) =
                    sections.iter().find_map(|section| Some((*section, origin.entry([section, name])?)))?;
                Some(Place { file, path: Path::root().key(section).key(name), span })
            };
            // The last environment takes precedence.
            let environments = self.origins().enumerate().skip(1).filter(|(_, origin)| self.is_environment(origin));
            mistake.place = environments.filter_map(entry).last();
            if mistake.place.is_some() {
                return mistake;
            }
        }
        let origin = &self.bundle.origin;
        let path = origin.path(&place.path);
        mistake.place = origin.span(&path).map(|span| Place { file: 0, path, span });
        mistake.path.clone_from(&place.path);
        mistake
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
        let (message, hints) = (self.message.clone(), self.hints.clone());
        Some(Trouble { level: Level::Error, code: String::new(), message, path: path.clone(), span: *span, hints })
    }
}

fn without_place(mistake: &Mistake, message: &str) -> String {
    let mut lines = vec![format!("{}: {message}", Failure::word())];
    if !mistake.path.is_empty() {
        lines.push(format!("  --> {}", mistake.path));
    }
    lines.extend(mistake.hints.iter().map(|hint| format!("  = help: {hint}")));
    lines.join("\n")
}

/// The name of the parameter whose value an error is about.
fn value_of_parameter(place: &ErrorLocation) -> Option<&str> {
    let name = place.path.strip_prefix("parameters.").or_else(|| place.path.strip_prefix("Parameters."))?;
    let is_of_value =
        place.message.starts_with("Parameter '") || place.message.ends_with(") was not defined in template.");
    is_of_value.then_some(name)
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
    let mut found: Vec<ErrorLocation> = examine(&sources, catalog, MAX_DEPTH).1.iter().map(location).collect();
    found.retain(|error| !told.iter().any(|told| told.message == error.message && told.path == error.path));
    // The service may have other types than this command.
    if found.iter().any(|error| unknown_type(&error.message).is_some()) {
        let Ok(types) = client.resource_types(&vec![], false).await else { return Vec::new() };
        found.retain(|error| {
            !unknown_type(&error.message).is_some_and(|name| types.iter().any(|this| this.as_str() == Some(name)))
        });
    }
    found
}

fn unknown_type(message: &str) -> Option<&str> {
    let (_, rest) = message.split_once("The Resource Type (")?;
    Some(rest.split_once(") could not be found")?.0)
}

/// The failure for one or more errors that were found without a service.
pub(crate) fn wrong(errors: &[Diagnostic], sent: Sent<'_>) -> Failure {
    let message = errors.first().map(|error| error.message.clone()).unwrap_or_default();
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
        message: error.message.clone(),
        path: error.path.to_string(),
        line: error.span.map(|span| span.start.line.into()),
        column: error.span.map(|span| span.start.column.into()),
        hints: error.hints.clone(),
        nested,
    }
}
