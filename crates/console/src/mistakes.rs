//! Errors in the files of a stack, each shown where the user has to change it: in the template, in a nested template or in
//! an environment.

use annotate_snippets::Level as Shade;
use anstyle::{AnsiColor, Style};
use kiln_authoring::Page;
use kiln_authoring::duplicates::{Duplicate, duplicates};
use kiln_authoring::language::{Level, Surroundings, Trouble, suggest};
use kiln_client::{Bundle, ErrorLocation, Origin, address};
use kiln_plan::ResourceTypes;
use kiln_template::Files;
use kiln_template::environment::Environment;
use kiln_value::{Map, Path, Span, Value, text};

use crate::output::visible;
use crate::picture::Source;

/// What was sent, to show errors in it.
#[derive(Clone, Copy)]
pub struct Sent<'a> {
    /// The template, its files and environments.
    pub bundle: &'a Bundle,
    /// The parameters of the command.
    pub given: &'a Map,
    /// The resource types, to suggest names; without them none are suggested.
    pub catalog: Option<&'a ResourceTypes>,
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
    pub fn pictures(&self, places: &[ErrorLocation]) -> Vec<String> {
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
    pub fn warnings(&self) -> Vec<String> {
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
    let mut lines = vec![format!("{}: {message}", error_word())];
    if !mistake.path.is_empty() {
        lines.push(format!("  --> {}", mistake.path));
    }
    lines.extend(mistake.hints.iter().map(|hint| format!("  = help: {hint}")));
    lines.join("\n")
}

/// What is printed before the message of an error.
pub fn error_word() -> String {
    let red = Style::new().bold().fg_color(Some(AnsiColor::Red.into()));
    format!("{red}error{red:#}")
}

/// A URL for display: a file below the working directory is shown as a relative path.
pub fn shown(url: &str) -> String {
    let Some(path) = address::file_of(url) else { return url.to_owned() };
    let here = std::env::current_dir().and_then(|here| here.canonicalize()).unwrap_or_default();
    path.strip_prefix(&here).unwrap_or(&path).display().to_string()
}

/// The texts of the files of a bundle.
pub fn files(bundle: &Bundle) -> Files {
    let content = |value: &Value| value.as_str().map_or_else(|| text::str(value), str::to_owned);
    Files(bundle.files.iter().map(|(name, value)| (name.clone(), content(value))).collect())
}
