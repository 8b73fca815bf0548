//! The template functions.
//!
//! The table [`ROWS`] contains the functions of each version and their variants; its source is
//! `reference/functions.json`. `docs/heat-behaviour.md` §25 and the vectors describe their behavior.

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
mod url;
mod yaql;
mod zone;

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::LazyLock;

use indexmap::IndexMap;
use kiln_value::{Diagnostic, Value};

use crate::Bound;
use crate::expr::{AttributeUse, Call, Context, Mode, Node};
use crate::version::Release;

/// The implementation of a function. It has no state: arguments and name are in the [`Call`].
pub(crate) trait Function: Debug + Sync {
    /// Its result, in one line.
    fn summary(&self) -> &'static str;

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

/// The meaning of a name from a release on, within its dialect.
struct Row {
    name: &'static str,
    since: Release,
    place: AllowedIn,
    entry: Callable,
}

const fn row(name: &'static str, since: Release, function: &'static dyn Function) -> Row {
    Row { name, since, place: AllowedIn::Value, entry: Callable::Function(function) }
}

const fn test(name: &'static str, since: Release, function: &'static dyn Function) -> Row {
    Row { name, since, place: AllowedIn::Condition, entry: Callable::Function(function) }
}

const fn both(name: &'static str, since: Release, function: &'static dyn Function) -> Row {
    Row { name, since, place: AllowedIn::Both, entry: Callable::Function(function) }
}

const fn special(name: &'static str, since: Release, entry: Callable) -> Row {
    Row { name, since, place: AllowedIn::Value, entry }
}

use Release::{
    Cfn20100909, HeatCfn20121212, Hot20130523, Hot20141016, Hot20150430, Hot20151015, Hot20160408, Hot20161014,
    Hot20170224, Hot20170901, Hot20210416,
};

/// Later rows with the same name and place override earlier ones from their release on.
static ROWS: &[Row] = &[
    // CFN
    both("Fn::FindInMap", Cfn20100909, &mapping::FindInMap),
    row("Fn::GetAZs", Cfn20100909, &zone::GetAzs),
    special("Ref", Cfn20100909, Callable::Ref),
    row("Fn::GetAtt", Cfn20100909, &resource::GetAttribute::CFN),
    row("Fn::Select", Cfn20100909, &select::Select),
    row("Fn::Join", Cfn20100909, &list::Join),
    row("Fn::Split", Cfn20100909, &split::Split),
    row("Fn::Replace", Cfn20100909, &replace::Replace::CFN),
    row("Fn::Base64", Cfn20100909, &split::Base64),
    row("Fn::MemberListToMap", Cfn20100909, &member::MemberListToMap),
    row("Fn::ResourceFacade", Cfn20100909, &facade::ResourceFacade::CFN),
    special("Fn::If", Cfn20100909, Callable::If { nullable: false }),
    test("Fn::Equals", Cfn20100909, &condition::Equals),
    test("Ref", Cfn20100909, &parameter::ParamRef),
    test("Fn::Not", Cfn20100909, &condition::Not { listed: true }),
    test("Fn::And", Cfn20100909, &condition::All),
    test("Fn::Or", Cfn20100909, &condition::Any),
    // CFN with Heat's version key
    row("Fn::FindInMap", HeatCfn20121212, &mapping::FindInMap),
    row("Fn::GetAZs", HeatCfn20121212, &zone::GetAzs),
    special("Ref", HeatCfn20121212, Callable::Ref),
    row("Fn::GetAtt", HeatCfn20121212, &resource::GetAttribute::CFN),
    row("Fn::Select", HeatCfn20121212, &select::Select),
    row("Fn::Join", HeatCfn20121212, &list::Join),
    row("Fn::Split", HeatCfn20121212, &split::Split),
    row("Fn::Replace", HeatCfn20121212, &replace::Replace::CFN),
    row("Fn::Base64", HeatCfn20121212, &split::Base64),
    row("Fn::MemberListToMap", HeatCfn20121212, &member::MemberListToMap),
    row("Fn::ResourceFacade", HeatCfn20121212, &facade::ResourceFacade::CFN),
    // HOT
    row("Fn::GetAZs", Hot20130523, &zone::GetAzs),
    row("get_param", Hot20130523, &parameter::GetParam),
    row("get_resource", Hot20130523, &resource::GetResource),
    special("Ref", Hot20130523, Callable::Ref),
    row("get_attr", Hot20130523, &resource::GetAttribute::WHOLE),
    row("Fn::Select", Hot20130523, &select::Select),
    row("Fn::Join", Hot20130523, &list::Join),
    row("list_join", Hot20130523, &list::Join),
    row("Fn::Split", Hot20130523, &split::Split),
    row("str_replace", Hot20130523, &replace::Replace::SCALARS),
    row("Fn::Replace", Hot20130523, &replace::Replace::CFN),
    row("Fn::Base64", Hot20130523, &split::Base64),
    row("Fn::MemberListToMap", Hot20130523, &member::MemberListToMap),
    row("resource_facade", Hot20130523, &facade::ResourceFacade::HOT),
    row("Fn::ResourceFacade", Hot20130523, &facade::ResourceFacade::CFN),
    row("get_file", Hot20130523, &file::GetFile),
    row("get_attr", Hot20141016, &resource::GetAttribute::PATH),
    both("Fn::GetAZs", Hot20141016, &removed::Removed),
    both("Fn::Join", Hot20141016, &removed::Removed),
    both("Fn::Split", Hot20141016, &removed::Removed),
    both("Fn::Replace", Hot20141016, &removed::Removed),
    both("Fn::Base64", Hot20141016, &removed::Removed),
    both("Fn::MemberListToMap", Hot20141016, &removed::Removed),
    both("Fn::ResourceFacade", Hot20141016, &removed::Removed),
    both("Ref", Hot20141016, &removed::Removed),
    row("repeat", Hot20150430, &repeat::Repeat::LISTS),
    row("digest", Hot20150430, &digest::Digest),
    row("get_attr", Hot20151015, &resource::GetAttribute::ALL),
    row("list_join", Hot20151015, &list::JoinLists),
    row("str_replace", Hot20151015, &replace::Replace::JSON),
    row("str_split", Hot20151015, &split::StrSplit),
    both("Fn::Select", Hot20151015, &removed::Removed),
    row("map_merge", Hot20160408, &map::Merge),
    row("yaql", Hot20161014, &yaql::Yaql),
    row("map_replace", Hot20161014, &map::Replace),
    row("repeat", Hot20161014, &repeat::Repeat::MAPS),
    special("if", Hot20161014, Callable::If { nullable: false }),
    test("get_param", Hot20161014, &parameter::GetParam),
    test("equals", Hot20161014, &condition::Equals),
    test("not", Hot20161014, &condition::Not { listed: false }),
    test("and", Hot20161014, &condition::All),
    test("or", Hot20161014, &condition::Any),
    row("filter", Hot20170224, &list::Filter),
    row("str_replace_strict", Hot20170224, &replace::Replace::STRICT),
    row("make_url", Hot20170901, &url::MakeUrl),
    row("list_concat", Hot20170901, &list::Concat { unique: false }),
    row("list_concat_unique", Hot20170901, &list::Concat { unique: true }),
    row("str_replace_vstrict", Hot20170901, &replace::Replace::VERY_STRICT),
    row("repeat", Hot20170901, &repeat::Repeat::LOOPS),
    both("contains", Hot20170901, &list::Contains),
    both("yaql", Hot20170901, &yaql::Yaql),
    special("if", Hot20210416, Callable::If { nullable: true }),
];

/// The function with this name in a release and a mode; `None` if the name is not a function there.
///
/// In conditions, a function for values is [`Callable::Invalid`]; a removed function is invalid only in versions
/// without conditions.
pub(crate) fn lookup(release: Release, mode: Mode, name: &str) -> Option<(&'static str, Callable)> {
    let rows = NAMES.get(name)?;
    let find = |wanted: AllowedIn| {
        let applies = |row: &&&'static Row| {
            row.since.dialect() == release.dialect()
                && row.since <= release
                && (row.place == wanted || row.place == AllowedIn::Both)
        };
        rows.iter().rev().find(applies).map(|row| (row.name, row.entry))
    };
    match mode {
        Mode::Value => find(AllowedIn::Value),
        Mode::Condition if release.has_conditions() => {
            find(AllowedIn::Condition).or_else(|| find(AllowedIn::Value).map(|(name, _)| (name, Callable::Invalid)))
        }
        Mode::Condition => find(AllowedIn::Value).map(|(name, _)| (name, Callable::Invalid)),
    }
}

/// The rows by name: every map with one key is looked up.
static NAMES: LazyLock<HashMap<&'static str, Vec<&'static Row>>> = LazyLock::new(|| {
    let mut names = HashMap::<_, Vec<_>>::new();
    for row in ROWS {
        names.entry(row.name).or_default().push(row);
    }
    names
});

/// A function, as in the list of functions of a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FunctionInfo {
    /// Its name in templates.
    pub name: &'static str,
    /// Its result, in one line.
    pub summary: &'static str,
}

/// The functions of a release, in the order of the table, without removed ones.
///
/// With `conditions` also those that may be called in conditions only.
pub fn functions(release: Release, conditions: bool) -> Vec<FunctionInfo> {
    let modes: &[Mode] = if conditions { &[Mode::Value, Mode::Condition] } else { &[Mode::Value] };
    let mut found = IndexMap::new();
    for mode in modes {
        for row in ROWS.iter().filter(|row| row.since.dialect() == release.dialect()) {
            let summary = match lookup(release, *mode, row.name) {
                Some((_, Callable::Function(function))) if !function.is_removed() => function.summary(),
                Some((_, Callable::If { .. })) => condition::If.summary(),
                Some((_, Callable::Ref)) => "The ID of a resource or the value of a parameter.",
                _ => continue,
            };
            found.entry(row.name).or_insert(FunctionInfo { name: row.name, summary });
        }
    }
    found.into_values().collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Lines of `<version> <names>`, two for each version: without and with the functions of conditions.
    const LISTED: &str = include_str!("../../tests/data/functions.txt");

    #[test]
    fn every_version_has_its_functions() {
        let mut lines = LISTED.lines();
        for release in Release::ALL {
            for conditions in [false, true] {
                let mut words = lines.next().unwrap().split_whitespace();
                assert_eq!(words.next(), Some(release.name()));
                let found: BTreeSet<_> = functions(release, conditions).iter().map(|function| function.name).collect();
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
