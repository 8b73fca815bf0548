//! Failures of commands: message, hints and exit code.

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use annotate_snippets::Level;
use anstyle::{AnsiColor, Style};
use kiln_client::{Error, ErrorLocation, InputError};
use kiln_config::Config;
use kiln_console::mistakes::{error_word, shown};
use kiln_console::output::{OutputError, visible};
use kiln_console::picture::Source;
use kiln_server::local_database::Unusable;
use kiln_server::shutdown::INTERRUPTED;
pub(crate) use kiln_template::hint::nearest;
use kiln_value::{Chain, Class, Span};

use crate::exit_code::{BROKEN_PIPE, FAILED, STACK_FAILED, UNREACHABLE};
use crate::mistakes::Sent;

/// A failed command.
#[derive(Debug)]
pub(crate) struct Failure {
    message: String,
    places: Vec<ErrorLocation>,
    /// Errors with excerpts of the user's files.
    pictures: Vec<String>,
    /// Whether the message is in one of the pictures.
    is_pictured: bool,
    hints: Vec<String>,
    code: u8,
    /// What is printed before the message instead of `error`.
    word: Option<&'static str>,
}

/// Result of a command.
pub(crate) type Outcome<T = ()> = Result<T, Failure>;

impl Failure {
    /// A failure with a message.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            places: Vec::new(),
            pictures: Vec::new(),
            is_pictured: false,
            hints: Vec::new(),
            code: FAILED,
            word: None,
        }
    }

    /// A file cannot be written.
    pub(crate) fn unwritable(file: &Path, error: &std::io::Error) -> Self {
        Self::new(format!("cannot write {}: {error}", file.display()))
    }

    /// The operation on the stack failed.
    pub(crate) fn of_stack(message: impl Into<String>) -> Self {
        Self { code: STACK_FAILED, ..Self::new(message) }
    }

    /// The service or the cloud is not reachable.
    pub(crate) fn unreachable(message: impl Into<String>) -> Self {
        Self { code: UNREACHABLE, ..Self::new(message) }
    }

    /// The user interrupted the command.
    pub(crate) fn interrupted() -> Self {
        Self { code: INTERRUPTED, ..Self::new("interrupted") }
    }

    /// A failure of a command with a name of Heat, printed as its console commands do.
    pub(crate) fn printed_as_heat(self) -> Self {
        Self { word: Some("ERROR"), hints: Vec::new(), ..self }
    }

    /// The command has printed its result, which is not good: only the exit code follows.
    pub(crate) fn told(code: u8) -> Self {
        Self { code, ..Self::new("") }
    }

    /// An error of the configuration, with the names of its files.
    pub(crate) fn of_config(config: &Config, error: anyhow::Error) -> Self {
        let failure = Self::from(error);
        match config.files() {
            [] => failure.hint("no configuration file was found: use --config-file to specify one"),
            files => {
                let names: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
                failure.hint(format!("configuration files: {}", names.join(", ")))
            }
        }
    }

    /// Adds a hint.
    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Adds a hint: the known word that is nearly this one, or else the other hint.
    #[must_use]
    pub(crate) fn suggesting<'a>(
        self,
        word: &str,
        known: impl IntoIterator<Item = &'a str>,
        otherwise: impl Into<String>,
    ) -> Self {
        match nearest(word, known) {
            Some(near) => self.hint(format!("did you mean {near}?")),
            None => self.hint(otherwise),
        }
    }

    /// A failure at a place of a document, with the first line of each sentence of a parser.
    pub(crate) fn at(source: &Source<'_>, span: Span, message: &str, hints: &[String]) -> Self {
        let message = in_one_line(message);
        let picture = source.picture(Level::ERROR, None, &visible(&message), span, hints);
        Self { pictures: vec![picture], is_pictured: true, ..Self::new(message) }
    }

    /// Adds errors with places in a template.
    #[must_use]
    pub(crate) fn and(mut self, places: Vec<ErrorLocation>) -> Self {
        self.places.extend(places);
        self
    }

    /// The errors with places in a template.
    pub(crate) fn places(&self) -> &[ErrorLocation] {
        &self.places
    }

    /// Shows the errors in the files that were sent.
    #[must_use]
    pub(crate) fn in_files(mut self, sent: Sent<'_>) -> Self {
        let places = std::mem::take(&mut self.places);
        self.pictures = sent.pictures(&places);
        // The message of an error is in its picture.
        if places.iter().any(|place| says(&self.message, &place.message)) {
            self.is_pictured = true;
        }
        self
    }

    /// Adds the options of the command, such as `--local`, to the commands in the hints.
    #[must_use]
    pub(crate) fn repeating(mut self, options: &str) -> Self {
        if !options.is_empty() {
            for hint in &mut self.hints {
                for command in ["stack", "plan", "guard", "webhook", "import", "resource-type"] {
                    *hint = hint.replace(&format!("'kiln {command} "), &format!("'kiln {options} {command} "));
                }
            }
        }
        self
    }

    /// Prints the failure and returns the exit code.
    pub(crate) fn report(&self) -> ExitCode {
        if self.message.is_empty() {
            return ExitCode::from(self.code);
        }
        let blue = Style::new().bold().fg_color(Some(AnsiColor::Cyan.into()));
        let mut err = anstream::stderr().lock();
        // Errors are ignored: standard error may be closed.
        for picture in &self.pictures {
            _ = writeln!(err, "{picture}\n");
        }
        let word = self.word.map_or_else(error_word, str::to_owned);
        match self.pictures.len() {
            1 if self.is_pictured => {}
            count if self.is_pictured => _ = writeln!(err, "{word}: found {count} errors"),
            _ => _ = writeln!(err, "{word}: {}", visible(&self.message)),
        }
        for place in &self.places {
            let (line, column) = (place.line.unwrap_or_default(), place.column.unwrap_or_default());
            if line > 0 {
                _ = writeln!(err, "  {blue}-->{blue:#} line {line}, column {column}: {}", place.path);
            } else if !place.path.is_empty() {
                _ = writeln!(err, "  {blue}-->{blue:#} {}", place.path);
            }
            // The message of a single error stands above.
            if !says(&self.message, &place.message) {
                _ = writeln!(err, "      {}", visible(&place.message));
            }
            for hint in &place.hints {
                _ = writeln!(err, "  {blue}hint{blue:#}: {hint}");
            }
        }
        for hint in &self.hints {
            _ = writeln!(err, "{blue}hint{blue:#}: {hint}");
        }
        ExitCode::from(self.code)
    }
}

/// Whether two messages say the same: the API doubles colons.
fn says(told: &str, message: &str) -> bool {
    told == message || told.replace(": : ", ": ") == message
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let message = error.to_string();
        match error {
            Error::Refused(refusal) => {
                let wants_password = refusal.class == Some(Class::MissingCredentialError);
                let failure = Self::new(message).and(refusal.places);
                match refusal.status {
                    _ if wants_password => {
                        failure.hint("use --include-password: the service keeps it, encrypted, to act for you later")
                    }
                    // The service, or Keystone behind it, is not available.
                    502..=504 => Self { code: UNREACHABLE, ..failure },
                    401 => failure.hint("the credentials were not accepted: check --os-cloud or the OS_* variables"),
                    403 => failure.hint("your roles in this project do not allow this operation"),
                    _ => failure,
                }
            }
            Error::Unreachable { .. } => Self::unreachable(message)
                .hint("check that the orchestration service is running, or use --local to run without a service"),
            Error::NoKeystone { .. } => {
                Self::unreachable(message).hint("check --os-auth-url, OS_AUTH_URL or auth_url in clouds.yaml")
            }
            Error::Access(_) | Error::Answer(_) => Self::new(message),
            Error::Input(input) => input.into(),
        }
    }
}

impl From<InputError> for Failure {
    fn from(error: InputError) -> Self {
        let message = error.to_string();
        match error {
            InputError::Reference { named_in, reason, place: Some(place), .. } => {
                Self::at(&Source::new(&shown(&named_in), &place.text), place.span, &message, &[reason])
            }
            InputError::Reference { named_in, reason, .. } => {
                Self::new(message).hint(format!("{reason} (referenced in {named_in})"))
            }
            InputError::Template { url, reason, place: Some(place), hint }
            | InputError::Environment { url, reason, place: Some(place), hint } => {
                Self::at(&Source::new(&shown(&url), &place.text), place.span, &reason, hint.as_slice())
            }
            InputError::Template { url, reason, hint, .. } | InputError::Environment { url, reason, hint, .. } => {
                let failure = Self::new(format!("{}: {reason}", shown(&url)));
                hint.into_iter().fold(failure, Self::hint)
            }
            InputError::EmptyTemplate(url) => Self::new(format!("{} is empty", shown(&url)))
                .hint("a template needs a version, such as heat_template_version: 2018-08-31, and resources"),
            InputError::Parameter(_) => Self::new(message).hint("for example --parameter flavor=m1.small"),
            _ => Self::new(message),
        }
    }
}

/// The message of PyYAML without its excerpt of the text.
fn in_one_line(reason: &str) -> String {
    reason.lines().filter(|line| !line.starts_with(' ')).collect::<Vec<_>>().join(", ")
}

impl From<OutputError> for Failure {
    fn from(error: OutputError) -> Self {
        match error {
            // The reader, such as `head`, closed the pipe on purpose.
            OutputError::Io(error) if error.kind() == std::io::ErrorKind::BrokenPipe => {
                Self { code: BROKEN_PIPE, ..Self::new("") }
            }
            error => Self::new(error.to_string()),
        }
    }
}

impl From<Unusable> for Failure {
    fn from(error: Unusable) -> Self {
        Self::new(error.to_string()).hint(error.hint())
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self::new(Chain(&*error).to_string())
    }
}

#[cfg(test)]
mod tests {
    use kiln_client::Refusal;

    use super::*;

    #[test]
    fn a_service_that_is_not_there_has_its_own_code() {
        let code = |status| Failure::from(Error::Refused(Refusal { status, ..Refusal::default() })).code;
        assert_eq!([404, 500, 503].map(code), [FAILED, FAILED, UNREACHABLE]);
    }

    #[test]
    fn the_class_of_an_error_decides_about_its_hint() {
        let class = Some(Class::MissingCredentialError);
        let refusal = Refusal { status: 400, class, message: "Passwort fehlt".to_owned(), ..Refusal::default() };
        let hints = Failure::from(Error::Refused(refusal)).hints;
        assert!(hints.iter().any(|hint| hint.contains("--include-password")), "{hints:?}");
    }

    #[test]
    fn hints_repeat_the_options_of_the_command() {
        let failure = Failure::new("").hint("'kiln stack list' shows them").repeating("--local");
        assert_eq!(failure.hints, ["'kiln --local stack list' shows them"]);
    }
}
