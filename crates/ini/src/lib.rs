//! INI files as oslo.config reads them.
//!
//! They differ from other INI dialects: an indented line continues the value above it, a key may be repeated, `:`
//! assigns like `=`, quotes around a whole value are removed, comments must be on their own lines, and `%` has no
//! special meaning. `$name` and `${group.name}` are replaced with the values of other options; `$$` and `\$` are a
//! dollar sign.

use std::collections::HashMap;
use std::fmt::Write as _;

/// The group of options above the first section.
pub const DEFAULT: &str = "DEFAULT";

/// Maximum number of references that are replaced in one value, because options may refer to each other.
const MOST_REPLACEMENTS: u32 = 1000;

/// A syntax error. The line is not shown because it may contain a password.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct IniError {
    /// Line number, from 1.
    pub line: usize,
    /// The problem.
    pub problem: &'static str,
}

/// The options of one or more files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ini {
    groups: HashMap<String, HashMap<String, Vec<Given>>>,
}

/// A value, without replacements, and where it is from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Given {
    /// The value.
    pub value: String,
    /// The number of the file, from 0, and the line, from 1; `None`: not from a file.
    pub place: Option<(usize, usize)>,
}

/// A value under construction.
struct Assignment {
    key: String,
    lines: Vec<String>,
    start: usize,
}

impl Ini {
    /// Reads the text of file number `file`; its values take precedence over earlier ones.
    pub fn read(&mut self, text: &str, file: usize) -> Result<(), IniError> {
        let mut group: Option<String> = None;
        let mut open: Option<Assignment> = None;
        for (i, raw) in text.lines().enumerate() {
            let line = raw.trim_end();
            let error = |problem| IniError { line: i + 1, problem };
            if line.is_empty() {
                self.close(group.as_deref(), &mut open, file);
            } else if line.starts_with([' ', '\t']) {
                let assignment = open.as_mut().ok_or_else(|| error("unexpected continuation line"))?;
                assignment.lines.push(line.trim_start().to_owned());
            } else {
                self.close(group.as_deref(), &mut open, file);
                if let Some(section) = line.strip_prefix('[') {
                    let name = section.strip_suffix(']').ok_or_else(|| error("invalid section (must end with ])"))?;
                    if name.is_empty() {
                        return Err(error("empty section name"));
                    }
                    group = Some(name.to_owned());
                } else if !line.starts_with(['#', ';']) {
                    let (key, value) =
                        line.split_once(['=', ':']).ok_or_else(|| error("no ':' or '=' found in assignment"))?;
                    if key.trim().is_empty() {
                        return Err(error("key cannot be empty"));
                    }
                    if group.is_none() {
                        return Err(error("section must be started before assignment"));
                    }
                    let lines = vec![unquoted(value.trim()).to_owned()];
                    open = Some(Assignment { key: key.trim().to_owned(), lines, start: i + 1 });
                }
            }
        }
        self.close(group.as_deref(), &mut open, file);
        Ok(())
    }

    fn close(&mut self, group: Option<&str>, open: &mut Option<Assignment>, file: usize) {
        if let (Some(group), Some(Assignment { key, lines, start })) = (group, open.take()) {
            self.push(group, &key, Given { value: lines.join("\n"), place: Some((file, start)) });
        }
    }

    /// Adds a value that takes precedence over earlier ones.
    pub fn add(&mut self, group: &str, key: &str, value: String) {
        self.push(group, key, Given { value, place: None });
    }

    /// Replaces all values of an option by one, or none.
    pub fn set(&mut self, group: &str, key: &str, given: Option<Given>) {
        self.groups.entry(group.to_owned()).or_default().insert(key.to_owned(), given.into_iter().collect());
    }

    fn push(&mut self, group: &str, key: &str, given: Given) {
        // `auth-url` and `auth_url` are the same option.
        let key = key.replace('-', "_");
        self.groups.entry(group.to_owned()).or_default().entry(key).or_default().push(given);
    }

    /// The last value of an option, with references to other options replaced.
    #[cfg(test)]
    pub fn get(&self, group: &str, key: &str) -> Option<String> {
        Some(self.replaced(group, self.all(group, key).last()?))
    }

    /// A value of a group with references to other options replaced.
    pub fn replaced(&self, group: &str, given: &Given) -> String {
        let mut left = MOST_REPLACEMENTS;
        self.substitute(&given.value, group, 0, &mut left)
    }

    /// All values of a repeated option, without replacements.
    pub fn all(&self, group: &str, key: &str) -> &[Given] {
        self.groups.get(group).and_then(|options| options.get(key)).map_or(&[], Vec::as_slice)
    }

    /// All options, as `(group, key, values)`, in no order.
    pub fn options(&self) -> impl Iterator<Item = (&str, &str, &[Given])> {
        let options = |(group, options): (_, _)| {
            let options: &HashMap<String, Vec<Given>> = options;
            let group: &String = group;
            options.iter().map(move |(key, given)| (group.as_str(), key.as_str(), given.as_slice()))
        };
        self.groups.iter().flat_map(options)
    }

    /// Replaces `$name`. Names of unknown options, and references beyond the limit `left`, are kept.
    fn substitute(&self, text: &str, group: &str, depth: u8, left: &mut u32) -> String {
        const DEEPEST: u8 = 16;
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find('$') {
            let (before, from) = rest.split_at(at);
            let after = from.get(1..).unwrap_or_default();
            if let Some(before) = before.strip_suffix('\\') {
                out.push_str(before);
                out.push('$');
                rest = after;
                continue;
            }
            out.push_str(before);
            if let Some(after) = after.strip_prefix('$') {
                out.push('$');
                rest = after;
                continue;
            }
            let Some((name, after)) = reference(after) else {
                out.push('$');
                rest = after;
                continue;
            };
            let (from_group, key) = name.split_once('.').unwrap_or((group, name));
            let found = [from_group, DEFAULT].into_iter().find_map(|g| Some((g, self.all(g, key).last()?)));
            match found {
                Some((g, value)) if depth < DEEPEST && *left > 0 => {
                    *left -= 1;
                    out.push_str(&self.substitute(&value.value, g, depth + 1, left));
                }
                _ => _ = write!(out, "${name}"),
            }
            rest = after;
        }
        out.push_str(rest);
        out
    }
}

/// The name after a `$` and the rest of the text.
fn reference(text: &str) -> Option<(&str, &str)> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if let Some(inner) = text.strip_prefix('{') {
        let (name, rest) = inner.split_once('}')?;
        return name.chars().all(|c| is_name(c) || c == '.').then_some((name, rest));
    }
    let end = text.find(|c| !is_name(c)).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    name.starts_with(|c: char| !c.is_ascii_digit()).then_some((name, rest))
}

fn unquoted(value: &str) -> &str {
    for quote in ['"', '\''] {
        if let Some(inner) = value.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote)) {
            return inner;
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Ini {
        let mut ini = Ini::default();
        ini.read(text, 0).unwrap();
        ini
    }

    // Expectations of the group DEFAULT computed by oslo.config 10.7.
    #[test]
    fn values_are_read_as_oslo_config_does() {
        let ini = read(concat!(
            "# a comment\n; another\n[DEFAULT]\n",
            "percent = 100%(x)s\nhash = a # b ; c\ncolon: with = sign\nurl = mysql://u:p@h/d?x=1\n",
            "quoted = \" spaced \"\nhalf = \"open\nempty =\nmany = 1\nmany = 2\n",
            "list = one,\n  two,\n\tthree\n\n[other]\nauth-url = http://k\n",
        ));
        let get = |key| ini.get(DEFAULT, key).unwrap();
        assert_eq!(get("percent"), "100%(x)s");
        assert_eq!(get("hash"), "a # b ; c");
        assert_eq!(get("colon"), "with = sign");
        assert_eq!(get("url"), "mysql://u:p@h/d?x=1");
        assert_eq!(get("quoted"), " spaced ");
        assert_eq!(get("half"), "\"open");
        assert_eq!(get("empty"), "");
        let many: Vec<_> = ini.all(DEFAULT, "many").iter().map(|given| (given.value.as_str(), given.place)).collect();
        assert_eq!(many, [("1", Some((0, 11))), ("2", Some((0, 12)))]);
        assert_eq!(get("many"), "2");
        assert_eq!(get("list"), "one,\ntwo,\nthree");
        assert_eq!(ini.get("other", "auth_url").unwrap(), "http://k");
        assert_eq!(ini.get("other", "none"), None);
    }

    #[test]
    fn options_refer_to_options() {
        let ini = read(
            "[DEFAULT]\nstate = /var/lib\npw = a$$b\\$c\n[database]\ndir = $state/db\nconnection = sqlite:///${database.dir}/k.db\nloop = $loop\nunknown = $nothing and 5$\n",
        );
        assert_eq!(ini.get("database", "connection").unwrap(), "sqlite:////var/lib/db/k.db");
        assert_eq!(ini.get(DEFAULT, "pw").unwrap(), "a$b$c");
        assert_eq!(ini.get("database", "unknown").unwrap(), "$nothing and 5$");
        assert_eq!(ini.get("database", "loop").unwrap(), "$loop");
    }

    #[test]
    fn references_to_references_end() {
        let options: Vec<String> = (0..20).map(|i| format!("o{i} = {}", format!("$o{}", i + 1).repeat(50))).collect();
        let options = options.join("\n") + "\n";
        let value = read(&format!("[DEFAULT]\n{options}o20 = x\n")).get(DEFAULT, "o0").unwrap();
        assert!(value.len() < 1_000_000, "{}", value.len());
    }

    #[test]
    fn later_files_count_more() {
        let mut ini = read("[a]\nx = 1\ny = 1\n");
        ini.read("[a]\nx = 2\n", 1).unwrap();
        assert_eq!((ini.get("a", "x").unwrap(), ini.get("a", "y").unwrap()), ("2".into(), "1".into()));
    }

    #[test]
    fn wrong_lines_are_named() {
        for (text, line, problem) in [
            ("[a]\n  x\n", 2, "unexpected continuation line"),
            ("[a\n", 1, "invalid section (must end with ])"),
            ("[]\n", 1, "empty section name"),
            ("[a]\nword\n", 2, "no ':' or '=' found in assignment"),
            ("[a]\n= 1\n", 2, "key cannot be empty"),
            ("x = 1\n", 1, "section must be started before assignment"),
        ] {
            let error = Ini::default().read(text, 0).unwrap_err();
            assert_eq!((error.line, error.problem), (line, problem));
        }
    }
}
