//! What a client uploads: a package or a document becomes the parts of a request to create a stack.

use std::sync::Arc;

pub use kiln_package::Limits;
use kiln_package::Package;
use kiln_value::{Diagnostic, Map, Path, Value};

use crate::tosca::Files;
use crate::user_file::UserFile;
use crate::{Refusal, TypeFiles, question};

/// The parts of a request.
#[derive(Clone, Debug, Default)]
pub struct Upload {
    /// A HOT template.
    pub template: Value,
    /// Nested templates and files by the name that the template uses; all are texts.
    pub files: Map,
    /// What only the cloud can answer, as JSON by parameter.
    pub questions: Map,
    /// The document or package that the template was made from; `None` if it was uploaded itself.
    pub original: Option<Vec<u8>>,
}

/// A document without files.
struct Alone<'t> {
    text: &'t str,
}

impl Files for Alone<'_> {
    fn text(&self, name: &str) -> Option<String> {
        (name == ROOT).then(|| self.text.to_owned())
    }
}

const ROOT: &str = "template.yaml";

/// Reads a package or a document: blueprint, plan, service template, or template. `given` are values for inputs.
///
/// Errors: all of the document, with their positions and files.
///
/// With `cloud_init`, software runs as user data instead of by an agent. `types` are those of files; a package may add
/// others.
pub fn read(
    bytes: Vec<u8>,
    given: &Map,
    cloud_init: bool,
    limits: &Limits,
    types: &Arc<TypeFiles>,
) -> Result<Upload, Vec<Diagnostic>> {
    let file = open(bytes, limits)?;
    if let Some(template) = file.template() {
        // All members of a package that are texts are its files.
        let texts = file.package.iter().flat_map(Package::texts);
        let files = texts.map(|(name, text)| (name.to_owned(), text.into())).collect();
        return Ok(Upload { template: template.clone(), files, ..Upload::default() });
    }
    let wrong = |refusals: Vec<Refusal>| placed(&refusals, &file);
    let reading = file.read(&Alone { text: &file.text }, given, types).map_err(wrong)?;
    let mut lowered = file.lower(&reading, cloud_init).map_err(wrong)?;
    let beside = |name: &str| Err(format!("{name} is not part of the upload: send a package with it."));
    let files = file.contents(&mut lowered, &beside).map_err(invalid)?;
    let questions = question::to_map(&lowered.questions);
    Ok(Upload { template: lowered.template, files, questions, original: Some(file.content) })
}

fn open(bytes: Vec<u8>, limits: &Limits) -> Result<UserFile, Vec<Diagnostic>> {
    if Package::is_archive(&bytes) {
        return UserFile::of_package(bytes, limits).map_err(|refusal| {
            let mut error = Diagnostic::invalid(refusal.message);
            error.file = refusal.member;
            vec![error]
        });
    }
    let text = String::from_utf8(bytes).map_err(|_| invalid("The upload is not UTF-8 text.".to_owned()))?;
    let document =
        kiln_yaml::parse(&text).map_err(|error| vec![Diagnostic::invalid(error.message).at(Path::root())])?;
    Ok(UserFile::of_document(text, document, ROOT))
}

fn invalid(message: String) -> Vec<Diagnostic> {
    vec![Diagnostic::invalid(message)]
}

/// The refusals with their positions; those without a file are about the root file of a package.
fn placed(refusals: &[Refusal], file: &UserFile) -> Vec<Diagnostic> {
    let placed = refusals.iter().map(|refusal| {
        let mut error = refusal.diagnostic(file.document.as_ref());
        error.file = error.file.take().or_else(|| file.package.as_ref().map(|package| package.root.clone()));
        error
    });
    placed.collect()
}
