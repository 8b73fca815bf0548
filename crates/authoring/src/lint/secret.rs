//! Visible passwords and keys.

use kiln_value::{Path, Segment, Value};

use super::{Findings, Subject};
use crate::mention::{Manner, Role};
use crate::walk::visit;

/// The last words in names of secrets.
const SECRETS: [&str; 12] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "admin_pass",
    "private_key",
    "api_key",
    "secret_key",
    "certificate_key",
    "access_token",
    "auth_token",
    "bootstrap_token",
];

/// Whether a name is that of a secret: `db_password`, `AdminPass`, `DBPassword`; not `password_length`.
fn is_secret(name: &str) -> bool {
    let mut snake = String::with_capacity(name.len() + 4);
    let mut before_is_lower = false;
    for c in name.chars() {
        if c.is_uppercase() && before_is_lower {
            snake.push('_');
        }
        before_is_lower = c.is_lowercase() || c.is_numeric();
        snake.extend(c.to_lowercase());
    }
    let snake = snake.replace('-', "_");
    SECRETS.iter().any(|secret| snake.ends_with(secret))
}

/// The parameters with names of secrets that accept strings.
fn secret_parameters<'s>(subject: &'s Subject) -> impl Iterator<Item = (&'s String, &'s Value, Path)> {
    let section = subject.page.template.words().parameters;
    let all = subject.page.section(section).filter(|(name, _)| is_secret(name));
    all.filter(|(_, declared)| {
        declared
            .str_at("type")
            .or_else(|| declared.str_at("Type"))
            .is_none_or(|kind| kind.eq_ignore_ascii_case("string"))
    })
    .map(move |(name, declared)| (name, declared, Path::root().key(section).key(name.as_str())))
}

/// Whether the value of a parameter is hidden.
fn is_hidden(declared: &Value) -> bool {
    let given = declared.get("hidden").or_else(|| declared.get("NoEcho"));
    given.is_some_and(|hidden| match hidden {
        Value::Str(word) => word.eq_ignore_ascii_case("true"),
        other => other.is_truthy(),
    })
}

fn default_of(declared: &Value) -> Option<(&'static str, &Value)> {
    ["default", "Default"].into_iter().find_map(|key| Some((key, declared.get(key)?)))
}

pub(super) fn visible(subject: &Subject, findings: &mut Findings) {
    for (name, declared, path) in secret_parameters(subject).filter(|(_, declared, _)| !is_hidden(declared)) {
        let key = if declared.get("Type").is_some() { "NoEcho" } else { "hidden" };
        let span = subject.page.span(&path);
        let message = format!("the value of \"{name}\" is visible to everyone who can see the stack");
        findings.add(message, path, span, Some(format!("add \"{key}: true\"")));
    }
}

pub(super) fn plain(subject: &Subject, findings: &mut Findings) {
    let page = subject.page;
    for (name, declared, path) in secret_parameters(subject) {
        let Some((key, default)) = default_of(declared).filter(|(_, default)| default.is_truthy()) else { continue };
        let path = path.key(key);
        let message = format!("the default of \"{name}\" is a secret in plain text ({} characters)", length(default));
        let hint = "remove the default, or generate the secret with OS::Heat::RandomString".to_owned();
        let span = page.value_span(&path);
        findings.add(message, path, span, Some(hint));
    }
    let words = page.template.words();
    for (name, resource) in page.section(words.resources) {
        let Some(properties) = resource.get(words.properties) else { continue };
        let path = Path::root().key(words.resources).key(name.as_str()).key(words.properties);
        visit(properties, &path, &mut |value, path| {
            let Some(Segment::Key(key)) = path.0.last() else { return };
            if value.as_str().is_some_and(|text| !text.is_empty()) && is_secret(key) && !is_argument(path) {
                let message = format!("\"{key}\" is a secret in plain text");
                let hint = "use a hidden parameter".to_owned();
                findings.add(message, path.clone(), page.value_span(path), Some(hint));
            }
        });
    }
}

/// Whether a path leads into the arguments of a function, whose keys are placeholders, not names of secrets.
fn is_argument(path: &Path) -> bool {
    path.0.iter().any(|step| {
        matches!(step, Segment::Key(key) if key.starts_with("str_replace") || key == "get_param" || key == "repeat")
    })
}

fn length(default: &Value) -> usize {
    kiln_value::text::str(default).chars().count()
}

pub(super) fn output(subject: &Subject, findings: &mut Findings) {
    let words = subject.page.template.words();
    for mention in &subject.mentions {
        let in_output = matches!(mention.path.0.first(), Some(Segment::Key(section)) if section == words.outputs);
        if !in_output || mention.role != Role::Parameter || mention.manner != Manner::Used {
            continue;
        }
        let declared = subject.page.value().get(words.parameters).and_then(|all| all.get(&mention.name));
        if declared.is_some_and(is_hidden) {
            let message = format!("this output shows the value of the hidden parameter \"{}\"", mention.name);
            findings.add(message, mention.path.clone(), mention.span, None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_by_name() {
        for name in [
            "password",
            "db_password",
            "DBPassword",
            "admin_pass",
            "adminPass",
            "wp-secret",
            "bootstrap-token",
            "certificate-key",
        ] {
            assert!(is_secret(name), "{name}");
        }
        for name in ["password_length", "key_name", "secretary", "bypass", "compass", "token_ttl", "certificate"] {
            assert!(!is_secret(name), "{name}");
        }
    }
}
