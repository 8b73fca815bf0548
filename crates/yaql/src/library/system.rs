//! Language elements as functions: `.`, `?.`, `->`, variables, definitions, calls by name.

use crate::Error;
use crate::call::Call;
use crate::context::Context;
use crate::cursor::Iter;
use crate::lambda::position;
use crate::lexer;
use crate::library;
use crate::object::Object;
use crate::overload::{Arg, CallRequest};
use crate::parameter::Type::{
    Any, Context as ContextType, Dict, Expression, Iterable, Keyword, Lambda, MethodLambda, Sequence, Text,
};
use crate::parameter::{Default, Overload, function, method, p};

pub(super) const FUNCTIONS: &[Overload] = &[
    function("#operator_.", &[p("receiver", Any), p("expr", MethodLambda)], dot),
    function("#operator_.", &[p("dict", Dict), p("key", Keyword)], key),
    function("#operator_.", &[p("collection", Iterable), p("attribute", Keyword)], attribute_of_each),
    function("#operator_?.", &[p("receiver", Any), p("expr", Expression)], dot_unless_null),
    function("#operator_->", &[p("left", ContextType), p("right", Lambda)], send_context),
    method("unpack", &[p("sequence", Iterable)], unpack).rest(Text).scoped(),
    function("with", &[], with).rest(Any).scoped(),
    function("let", &[], bind).rest(Any).keywords().scoped(),
    function("def", &[p("name", Text), p("func", Lambda)], define).scoped(),
    method(
        "assert",
        &[p("obj", Any), p("condition", Lambda), p("message", Text).or(Default::Text("Assertion failed"))],
        assert,
    ),
    function(
        "call",
        &[p("name", Text), p("args", Sequence), p("kwargs", Dict), p("receiver", Any).or(Default::Missing)],
        call_by_name,
    ),
];

pub(super) const FALLBACKS: &[Overload] = &[function("#operator_.", &[p("obj", Any), p("name", Keyword)], property)];

/// `receiver.method(…)`.
fn dot(call: &mut Call<'_>) -> Result<Object, Error> {
    let receiver = call.take(0);
    call.lambda(1)?.call_on(call.engine, receiver)
}

/// `dict.key`.
fn key(call: &mut Call<'_>) -> Result<Object, Error> {
    let key = Object::Str(call.keyword(1)?);
    call.dict(0)?.get(&key)?.cloned().ok_or_else(|| Error::key(&key))
}

/// `collection.key`: the key of each item.
fn attribute_of_each(call: &mut Call<'_>) -> Result<Object, Error> {
    let mut cursor = call.cursor(0)?;
    let attribute = call.node(1)?;
    let context = call.context.clone();
    call.iterator(move |engine| {
        let Some(item) = cursor.next(engine)? else { return Ok(None) };
        let args = vec![Arg::Value(item), Arg::Node(&attribute)];
        engine.call_by_name("#operator_.", None, args, &context).map(Some)
    })
}

fn dot_unless_null(call: &mut Call<'_>) -> Result<Object, Error> {
    let receiver = call.take(0);
    if matches!(receiver, Object::Null) {
        return Ok(Object::Null);
    }
    let part = call.node(1)?;
    let args = vec![Arg::Value(receiver), Arg::Node(&part)];
    call.engine.call_by_name("#operator_.", None, args, &call.context)
}

/// `object.name` for objects with properties.
fn property(call: &mut Call<'_>) -> Result<Object, Error> {
    let name = format!("#property#{}", call.keyword(1)?);
    let args = vec![Arg::Value(call.take(0))];
    call.engine.call_by_name(&name, None, args, &call.context)
}

fn send_context(call: &mut Call<'_>) -> Result<Object, Error> {
    let Object::Context(context) = call.take(0) else { return Ok(Object::Null) };
    call.lambda(1)?.call_in(call.engine, &context)
}

/// Sets `$1`, `$2` …
fn number_variables(context: &Context, values: Vec<Object>) -> Result<(), Error> {
    for (i, value) in values.into_iter().enumerate() {
        context.set(position(i + 1), value)?;
    }
    Ok(())
}

/// Sets a variable with a computed name.
fn name_variable(context: &Context, name: &str, value: Object) -> Result<(), Error> {
    let name = name.strip_prefix('$').unwrap_or(name);
    context.set(if name.is_empty() { position(1) } else { name.into() }, value)
}

fn with(call: &mut Call<'_>) -> Result<Object, Error> {
    number_variables(&call.context.clone(), call.rest(0))?;
    Ok(Object::Context(call.context.clone()))
}

fn bind(call: &mut Call<'_>) -> Result<Object, Error> {
    number_variables(&call.context.clone(), call.rest(0))?;
    for (name, value) in std::mem::take(&mut call.keywords) {
        name_variable(&call.context, &name, value)?;
    }
    Ok(Object::Context(call.context.clone()))
}

/// Assigns names to the items; without names they are numbered.
fn unpack(call: &mut Call<'_>) -> Result<Object, Error> {
    let collection = call.take(0);
    let names = call.rest(1);
    let Some(mut cursor) = crate::cursor::Cursor::over(&collection) else { return Ok(Object::Null) };
    let mut items = Vec::new();
    while items.len() <= names.len() {
        let Some(item) = cursor.next(call.engine)? else { break };
        items.push(item);
    }
    if names.is_empty() {
        // An iterator has already lost its first item; other collections are iterated from the start.
        let rest = crate::cursor::Cursor::over(&collection).map(|cursor| cursor.collect(call.engine)).transpose()?;
        number_variables(&call.context, rest.unwrap_or_default())?;
    } else if items.len() == names.len() {
        for (name, item) in names.iter().zip(items) {
            if let Object::Str(name) = name {
                name_variable(&call.context, name, item)?;
            }
        }
    } else {
        return Err(Error::value(format!("Cannot unpack {} elements into {}", items.len(), names.len())));
    }
    Ok(Object::Context(call.context.clone()))
}

/// Defines a function with its name in camel case, like all functions.
fn define(call: &mut Call<'_>) -> Result<Object, Error> {
    let name = call.text(0)?;
    let name = name.trim_end_matches('_');
    let mut camel = String::with_capacity(name.len());
    let mut chars = name.chars().peekable();
    while let Some(c) = chars.next() {
        match chars.peek() {
            Some(next) if c == '_' && !camel.is_empty() && lexer::is_word(*next) => {
                camel.extend(next.to_uppercase());
                chars.next();
            }
            _ => camel.push(c),
        }
    }
    let body = call.lambda(1)?;
    call.engine.define(&call.context, camel, body);
    Ok(Object::Context(call.context.clone()))
}

fn assert(call: &mut Call<'_>) -> Result<Object, Error> {
    let object = Iter::memorized(&call.take(0))?;
    if call.lambda(1)?.test(call.engine, std::slice::from_ref(&object))? {
        Ok(object)
    } else {
        Err(Error::new("AssertionError", &*call.text(2)?))
    }
}

fn call_by_name(call: &mut Call<'_>) -> Result<Object, Error> {
    let name = call.text(0)?;
    let args = call.list(1)?.items().iter().cloned().map(Arg::Value).collect();
    let mut keywords = Vec::new();
    for (name, value) in call.dict(2)?.iter() {
        let Object::Str(name) = name else {
            return Err(Error::type_error("expected string or bytes-like object"));
        };
        if !name.starts_with(|c: char| lexer::is_word(c) && !c.is_numeric()) || name.starts_with("__") {
            return Err(Error::new("RuntimeError", "dictionary changed size during iteration"));
        }
        keywords.push((name.to_string(), Arg::Value(value.clone())));
    }
    let receiver = call.given(3);
    let request = CallRequest { name: &name, overloads: library::find(&name), receiver, args, keywords };
    call.engine.run(request, &call.context)
}
