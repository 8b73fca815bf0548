//! The template functions.
//!
//! The table [`table::FUNCTIONS`] says everything about them: versions, arguments, text and examples. The other files
//! implement them. `docs/heat-behaviour.md` §25 and the vectors describe their behavior.

pub(crate) mod condition;
mod digest;
mod facade;
pub(crate) mod fault;
mod file;
mod list;
mod map;
mod mapping;
mod member;
pub(crate) mod parameter;
mod removed;
mod repeat;
mod replace;
pub(crate) mod resource;
pub(crate) mod seen;
mod select;
mod split;
mod table;
mod url;
mod yaql;
mod zone;

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::LazyLock;

use kiln_value::{Diagnostic, Map, Value};

use crate::Bound;
use crate::expr::{AttributeUse, Call, Context, Mode, Node};
use crate::version::Release;

use self::table::FUNCTIONS;

/// The implementation of a function. It has no state: arguments and name are in the [`Call`].
pub(crate) trait Function: Debug + Sync {
    /// Refuses arguments of the wrong shape when the template is parsed.
    ///
    /// `TypeError`, `ValueError` and `KeyError` become validation errors with the call's path.
    fn check(&self, _name: &str, _args: &Node) -> Result<(), Diagnostic> {
        Ok(())
    }

    /// Refuses a call when the template is parsed, by the values of its arguments.
    fn check_values(&self, _name: &str, _args: &Node, _bound: &Bound) -> Result<(), Diagnostic> {
        Ok(())
    }

    /// Refuses a call that is wrong without resolving it; the calls in its arguments first.
    fn validate(&self, call: &Call, context: &Context) -> Result<(), Diagnostic> {
        crate::expr::validate_args(call, context)
    }

    /// The result; `None` if absent.
    fn resolve(&self, call: &Call, context: &Context) -> Result<Option<Value>, Diagnostic>;

    /// The result, borrowed if it exists elsewhere already.
    fn view<'a>(&self, call: &'a Call, context: &Context<'a>) -> Result<Option<Cow<'a, Value>>, Diagnostic> {
        Ok(self.resolve(call, context)?.map(Cow::Owned))
    }

    /// The resource that the call itself, apart from its arguments, refers to.
    ///
    /// Fails with `InvalidTemplateReference`, which contains `path`, if the resource does not exist.
    fn reference(&self, _call: &Call, _context: &Context, _path: &str) -> Result<Option<String>, Diagnostic> {
        Ok(None)
    }

    /// The attribute that the call itself reads; `None` also if it cannot be determined yet.
    fn attribute_use(&self, _call: &Call, _context: &Context) -> Option<AttributeUse> {
        None
    }

    /// Whether the result is a value of the stack as it is, and not made of the arguments.
    fn reads_stack(&self) -> bool {
        false
    }

    /// Whether earlier versions had this function and this one refuses it.
    fn is_removed(&self) -> bool {
        false
    }

    /// Whether the parser has replaced the arguments by the result of the call.
    fn is_macro(&self) -> bool {
        false
    }
}

/// How the parser treats a call.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Callable {
    Function(&'static dyn Function),
    /// The parser decides the condition; with `nullable` the else branch may be missing.
    If {
        nullable: bool,
    },
    /// CFN's `Ref`: the parser determines whether it refers to a resource or a parameter.
    Ref,
    /// A function that is not allowed here.
    Invalid,
}

/// Where a function may be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AllowedIn {
    /// Anywhere except in conditions.
    Value,
    /// In conditions only.
    Condition,
    /// In both.
    Both,
}

/// The arguments of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arguments {
    /// One value.
    One(&'static str),
    /// A list; a last argument with an ellipsis may be repeated.
    List(&'static [&'static str]),
    /// A map.
    Map(&'static [&'static str]),
}

/// A call and its result, as YAML in one line.
///
/// The names in it are those of the example's template in `docs/functions.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Example {
    /// The call.
    pub call: &'static str,
    /// The result.
    pub result: &'static str,
}

/// A function, for the parser and for people.
#[derive(Debug)]
pub struct FunctionInfo {
    /// Its name in templates.
    pub name: &'static str,
    /// Its result, in one line.
    pub summary: &'static str,
    /// Its arguments.
    pub arguments: Arguments,
    /// Details, in sentences; may be empty.
    pub text: &'static str,
    /// Examples that run; none only if the call needs a parent stack.
    pub examples: &'static [Example],
    /// Whether a map with only this key and fitting arguments is certainly meant as a call, also in versions without the
    /// function. The names of the others, such as `filter`, may be keys of data.
    pub data_never_looks_like_it: bool,
    /// Later ones override earlier ones for the same place from their release on.
    meanings: &'static [Meaning],
}

impl FunctionInfo {
    /// The call with its arguments: `get_attr: [resource, attribute, path…]`.
    pub fn label(&self) -> String {
        let name = self.name;
        match self.arguments {
            Arguments::One(argument) => format!("{name}: {argument}"),
            Arguments::List(arguments) => format!("{name}: [{}]", arguments.join(", ")),
            Arguments::Map(keys) => format!("{name}: {{{}}}", keys.join(", ")),
        }
    }

    /// The meaning in a release and at a place.
    fn meaning(&self, release: Release, wanted: AllowedIn) -> Option<Callable> {
        let applies = |meaning: &&Meaning| {
            meaning.since.dialect() == release.dialect()
                && meaning.since <= release
                && (meaning.place == wanted || meaning.place == AllowedIn::Both)
        };
        self.meanings.iter().rev().find(applies).map(|meaning| meaning.call)
    }
}

/// The meaning of a name from a release on, within its dialect.
#[derive(Debug)]
struct Meaning {
    since: Release,
    place: AllowedIn,
    call: Callable,
}

/// The function with this name in a release and a mode; `None` if the name is not a function there.
///
/// In conditions, a function for values is [`Callable::Invalid`]; a removed function is invalid only in versions
/// without conditions.
pub(crate) fn lookup(release: Release, mode: Mode, name: &str) -> Option<(&'static str, Callable)> {
    let function = NAMES.get(name)?;
    let find = |place| function.meaning(release, place);
    let in_condition = || find(AllowedIn::Condition).filter(|_| release.has_conditions());
    let call = match mode {
        Mode::Value => find(AllowedIn::Value),
        Mode::Condition => in_condition().or_else(|| find(AllowedIn::Value).map(|_| Callable::Invalid)),
    };
    call.map(|call| (function.name, call))
}

/// The functions by name: every map with one key is looked up.
static NAMES: LazyLock<HashMap<&'static str, &'static FunctionInfo>> =
    LazyLock::new(|| FUNCTIONS.iter().map(|function| (function.name, function)).collect());

/// The functions of all versions, in the order of the manual.
pub fn all_functions() -> &'static [FunctionInfo] {
    FUNCTIONS
}

/// Whether a map is, or looks like, the call of a function.
pub fn is_call(map: &Map) -> bool {
    map.len() == 1 && map.keys().all(|name| FUNCTIONS.iter().any(|function| function.name == name))
}

/// Whether a call is, or seems to be, in a value.
pub fn has_call(value: &Value) -> bool {
    match value {
        Value::Map(map) => is_call(map) || map.values().any(has_call),
        Value::List(items) => items.iter().any(has_call),
        _ => false,
    }
}

/// The functions of a release, in the order of the manual, without removed ones.
///
/// With `conditions` also those that may be called in conditions only.
pub fn functions(release: Release, conditions: bool) -> Vec<&'static FunctionInfo> {
    let modes: &[Mode] = if conditions { &[Mode::Value, Mode::Condition] } else { &[Mode::Value] };
    let is_in = |mode: &Mode, name| match lookup(release, *mode, name) {
        Some((_, Callable::Function(function))) => !function.is_removed(),
        Some((_, Callable::If { .. } | Callable::Ref)) => true,
        Some((_, Callable::Invalid)) | None => false,
    };
    FUNCTIONS.iter().filter(|function| modes.iter().any(|mode| is_in(mode, function.name))).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use Release::{Hot20141016, Hot20161014, Hot20170901, Hot20210416};

    /// Lines of `<version> <names>`, two for each version: without and with the functions of conditions.
    const LISTED: &str = include_str!("../../tests/data/functions.txt");

    #[test]
    fn every_version_has_its_functions() {
        let of_heat: BTreeSet<_> = LISTED.split_whitespace().collect();
        let mut lines = LISTED.lines();
        for release in Release::ALL {
            for conditions in [false, true] {
                let mut words = lines.next().unwrap().split_whitespace();
                assert_eq!(words.next(), Some(release.name()));
                let found = functions(release, conditions);
                let found = found.iter().map(|function| function.name);
                let found: BTreeSet<_> = found.filter(|name| of_heat.contains(name)).collect();
                assert_eq!(found, words.collect(), "{} {conditions}", release.name());
            }
        }
        assert_eq!(lines.next(), None);
    }

    #[test]
    fn conditions_refuse_functions_for_values() {
        let lookup = |release, name| lookup(release, Mode::Condition, name).map(|(_, entry)| entry);
        assert!(matches!(lookup(Hot20210416, "list_join"), Some(Callable::Invalid)));
        assert!(matches!(lookup(Hot20161014, "yaql"), Some(Callable::Invalid)));
        assert!(matches!(lookup(Hot20170901, "yaql"), Some(Callable::Function(_))));
        assert!(matches!(lookup(Hot20210416, "Ref"), Some(Callable::Function(function)) if function.is_removed()));
        assert!(matches!(lookup(Hot20141016, "Ref"), Some(Callable::Invalid)));
        assert!(lookup(Hot20210416, "get_everything").is_none());
    }
}
