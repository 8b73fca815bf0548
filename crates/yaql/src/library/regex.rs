//! Regular expressions.

use std::rc::Rc;

use crate::Error;
use crate::call::Call;
use crate::context::Context;
use crate::dict::{Dict, Entries};
use crate::engine::Engine;
use crate::lambda::{Lambda, position};
use crate::object::{Key, Object};
use crate::parameter::Type::{Any, Bool, Int, Lambda as LambdaType, Regex as RegexType, Text};
use crate::parameter::{Default, Overload, Param, function, method, p};
use crate::regex::{Match, Regex, Replacement, Walk, escape};

const REGEX: Param = p("regexp", RegexType);
const STRING: Param = p("string", Text);
const SELECTOR: Param = p("selector", LambdaType).or(Default::Null);
const COUNT: Param = p("count", Int).or(Default::Int(0));
const MAX_SPLIT: Param = p("maxSplit", Int).or(Default::Int(0));

const fn flag(name: &'static str) -> Param {
    p(name, Bool).nullable().or(Default::Bool(false))
}

pub(super) const FUNCTIONS: &[Overload] = &[
    function("regex", &[p("pattern", Text), flag("ignoreCase"), flag("multiLine"), flag("dotAll")], regex),
    method("matches", &[REGEX, STRING], |call| Ok(call.regex(0)?.is_found(call.engine, &call.text(1)?)?.into())),
    method("matches", &[STRING, p("regexp", Text)], |call| matches_text(call, true)),
    function("#operator_=~", &[STRING, REGEX], |call| Ok(call.regex(1)?.is_found(call.engine, &call.text(0)?)?.into())),
    function("#operator_=~", &[STRING, p("pattern", Text)], |call| matches_text(call, true)),
    function("#operator_!~", &[STRING, REGEX], |call| {
        Ok((!call.regex(1)?.is_found(call.engine, &call.text(0)?)?).into())
    }),
    function("#operator_!~", &[STRING, p("pattern", Text)], |call| matches_text(call, false)),
    method("search", &[REGEX, STRING, SELECTOR], search),
    method("searchAll", &[REGEX, STRING, SELECTOR], search_all),
    method("split", &[REGEX, STRING, MAX_SPLIT], |call| split(call, 0, 1)),
    method("split", &[STRING, REGEX, MAX_SPLIT], |call| split(call, 1, 0)),
    method("replace", &[REGEX, STRING, p("repl", Text), COUNT], |call| replace(call, 0, 1)),
    method("replace", &[STRING, REGEX, p("repl", Text), COUNT], |call| replace(call, 1, 0)),
    method("replaceBy", &[REGEX, STRING, p("repl", LambdaType), COUNT], |call| replace_by(call, 0, 1)),
    method("replaceBy", &[STRING, REGEX, p("repl", LambdaType), COUNT], |call| replace_by(call, 1, 0)),
    function("escapeRegex", &[STRING], |call| Ok(Object::text(escape(&call.text(0)?)))),
    function("isRegex", &[p("value", Any)], |call| Ok(matches!(call.take(0), Object::Regex(_)).into())),
];

fn regex(call: &mut Call<'_>) -> Result<Object, Error> {
    let flags: String = ['i', 'm', 's'].iter().enumerate().filter(|(i, _)| call.truth(i + 1)).map(|(_, c)| c).collect();
    Ok(Object::Regex(Rc::new(Regex::new(&call.text(0)?, &flags)?)))
}

fn matches_text(call: &mut Call<'_>, wanted: bool) -> Result<Object, Error> {
    let found = Regex::new(&call.text(1)?, "")?.is_found(call.engine, &call.text(0)?)?;
    Ok((found == wanted).into())
}

/// Sets `$` and `$1` to the whole match, `$2` to the first group and so on; each has a value, a start and an end.
fn publish(context: &Context, regex: &Regex, text: &str, found: &Match) -> Result<(), Error> {
    let characters = |byte: usize| text.get(..byte).map_or(0, |before| before.chars().count());
    for (index, range) in found.groups.iter().enumerate() {
        let place = |byte: Option<usize>| byte.map_or(Object::Int(-1), |byte| Object::count(characters(byte)));
        let value = found.group(text, index).map_or(Object::Null, Object::text);
        let record = [
            ("value", value),
            ("start", place(range.as_ref().map(|range| range.start))),
            ("end", place(range.as_ref().map(|range| range.end))),
        ];
        let record = record.into_iter().map(|(name, value)| Ok((Key::new(Object::text(name))?, value)));
        let record = Dict::plain(record.collect::<Result<Entries, Error>>()?)?;
        context.set(position(index + 1), Object::Dict(record))?;
    }
    // The reference unpacks the text of a named group as if it were a pair of name and text.
    for (index, name) in regex.names().iter().enumerate() {
        if name.is_some() {
            return Err(named_group(found.group(text, index)));
        }
    }
    Ok(())
}

fn named_group(text: Option<&str>) -> Error {
    match text.map(|text| text.chars().count()) {
        None => Error::type_error("cannot unpack non-iterable NoneType object"),
        Some(len @ 0..=1) => Error::value(format!("not enough values to unpack (expected 2, got {len})")),
        Some(2) => Error::new("IndexError", "no such group"),
        Some(_) => Error::value("too many values to unpack (expected 2)"),
    }
}

/// The text of a match, or the result of the selector for it.
fn select(
    engine: &Engine,
    context: &Context,
    selector: Option<&Lambda>,
    regex: &Regex,
    text: &str,
    found: &Match,
) -> Result<Object, Error> {
    let Some(selector) = selector else {
        return Ok(Object::text(found.group(text, 0).unwrap_or_default()));
    };
    let scope = context.child()?;
    publish(&scope, regex, text, found)?;
    selector.call_in(engine, &scope)
}

fn search(call: &mut Call<'_>) -> Result<Object, Error> {
    let (regex, text, selector) = (call.regex(0)?, call.text(1)?, call.optional_lambda(2));
    match regex.find(call.engine, &text, Walk::default())? {
        Some(found) => select(call.engine, &call.context, selector.as_ref(), &regex, &text, &found),
        None => Ok(Object::Null),
    }
}

fn search_all(call: &mut Call<'_>) -> Result<Object, Error> {
    let (regex, text, selector) = (call.regex(0)?, call.text(1)?, call.optional_lambda(2));
    let context = call.context.clone();
    let mut walk = Walk::default();
    call.iterator(move |engine| match regex.next(engine, &text, &mut walk)? {
        Some(found) => select(engine, &context, selector.as_ref(), &regex, &text, &found).map(Some),
        None => Ok(None),
    })
}

/// The maximum number of matches; `None` for none, 0 for all.
fn count(call: &Call<'_>, index: usize) -> Result<Option<usize>, Error> {
    Ok(usize::try_from(call.int(index)?).ok())
}

/// The texts between matches, and the texts of groups.
fn split(call: &mut Call<'_>, regex: usize, text: usize) -> Result<Object, Error> {
    let (regex, text) = (call.regex(regex)?, call.text(text)?);
    let matches = match count(call, 2)? {
        Some(most) => regex.find_all(call.engine, &text, most)?,
        None => Vec::new(),
    };
    call.engine.step(matches.len())?;
    let mut parts = Vec::new();
    let mut end = 0;
    for found in matches {
        let range = found.whole();
        parts.push(Object::text(text.get(end..range.start).unwrap_or_default()));
        for index in 1..found.groups.len() {
            parts.push(found.group(&text, index).map_or(Object::Null, Object::text));
        }
        end = range.end;
    }
    parts.push(Object::text(text.get(end..).unwrap_or_default()));
    Object::list(parts)
}

/// The text with each match replaced.
fn substitute(
    call: &Call<'_>,
    regex: &Regex,
    text: &str,
    mut write: impl FnMut(&Match, &mut String) -> Result<(), Error>,
) -> Result<Object, Error> {
    let matches = match count(call, 3)? {
        Some(most) => regex.find_all(call.engine, text, most)?,
        None => Vec::new(),
    };
    let mut out = String::new();
    let mut end = 0;
    for found in matches {
        let range = found.whole();
        out.push_str(text.get(end..range.start).unwrap_or_default());
        write(&found, &mut out)?;
        end = range.end;
        call.engine.step(1)?;
        call.engine.charge_bytes(out.len() / 4)?;
    }
    out.push_str(text.get(end..).unwrap_or_default());
    Ok(Object::text(out))
}

fn replace(call: &mut Call<'_>, regex: usize, text: usize) -> Result<Object, Error> {
    let (regex, text) = (call.regex(regex)?, call.text(text)?);
    let replacement = Replacement::new(&call.text(2)?, &regex)?;
    substitute(call, &regex, &text, |found, out| {
        replacement.expand(&text, found, out);
        Ok(())
    })
}

fn replace_by(call: &mut Call<'_>, regex: usize, text: usize) -> Result<Object, Error> {
    let (regex, text, lambda) = (call.regex(regex)?, call.text(text)?, call.lambda(2)?);
    substitute(call, &regex, &text, |found, out| {
        match select(call.engine, &call.context, Some(&lambda), &regex, &text, found)? {
            Object::Str(replacement) => {
                out.push_str(&replacement);
                Ok(())
            }
            Object::Null => Ok(()),
            other => {
                let message = format!("sequence item 0: expected str instance, {} found", other.type_name());
                Err(Error::type_error(message))
            }
        }
    })
}
