//! Results and errors of a plug-in. Everything that docs/plugins.md does not describe is refused.

use std::time::Duration;

use kiln_resource::{Failure, FailureKind, Found, Progress, Received, ReceivedEvent, Step};
use kiln_value::{Class, Map, Value, text};

use crate::call::{CLASS, CallError, quoted};

/// The delay before a poll if a result has none.
const POLL: Duration = Duration::from_secs(1);
/// Longest delay that a plug-in can request, in seconds.
const LONGEST_DELAY: f64 = 3600.0;
/// Longest ID of an object, as in the store.
const ID: usize = 255;

/// The kinds of errors that a plug-in reports, with the kind for the engine and the class that users see.
const KINDS: [(&str, FailureKind, Class); 9] = [
    ("not_found", FailureKind::NotFound, Class::NotFound),
    ("conflict", FailureKind::Conflict, Class::Conflict),
    ("busy", FailureKind::Busy, Class::Conflict),
    ("over_limit", FailureKind::OverLimit, Class::OverLimit),
    ("refused", FailureKind::Refused, Class::BadRequest),
    (UNAUTHORIZED, FailureKind::Refused, Class::Unauthorized),
    ("in_error", FailureKind::InError, Class::ResourceInError),
    ("unavailable", FailureKind::Unavailable, Class::ServiceUnavailable),
    ("failed", FailureKind::Other, CLASS),
];

/// The kind of an error that says that a service rejected the token.
const UNAUTHORIZED: &str = "unauthorized";

/// Whether the error says that a service rejected the token.
pub(crate) fn is_unauthorized(error: &Value) -> bool {
    error.get("data").and_then(|data| data.str_at("kind")) == Some(UNAUTHORIZED)
}

/// The failure for an error object of JSON-RPC. Without a kind, the method broke off.
pub(crate) fn failure(plugin: &str, method: &str, error: &Value) -> Failure {
    let message = quoted_long(error.str_at("message").unwrap_or_default());
    let data = error.get("data");
    let word = data.and_then(|data| data.str_at("kind"));
    let Some((_, kind, class)) = KINDS.iter().find(|(name, ..)| Some(*name) == word) else {
        let unknown = word.map(|word| format!(" (unknown kind of error {})", quoted(word, &[]))).unwrap_or_default();
        return CallError::Broken(format!("{message}{unknown}")).failure(plugin, method);
    };
    let own = data.and_then(|data| data.str_at("class")).filter(|class| !class.is_empty());
    let class = own.map_or_else(|| class.clone(), |own| Class::of(quoted(own, &[])));
    let mut failure = Failure::new(*kind, class, message);
    let retry_after = data.and_then(|data| data.get("retry_after")).and_then(seconds);
    failure.retry_after = retry_after.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    failure
}

/// A message of a plug-in: as it is, but not endless.
fn quoted_long(message: &str) -> String {
    const LONGEST: usize = 4_000;
    if message.trim().is_empty() {
        return "the plug-in reported an error without a message".to_owned();
    }
    match message.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", message.get(..end).unwrap_or_default()),
        None => message.to_owned(),
    }
}

/// The step of a result: null, or `{"id", "data", "wait": {"state", "after"}, "replace"}`.
pub(crate) fn step(result: &Value) -> Result<Step, String> {
    match result {
        Value::Null => Ok(Step::done()),
        Value::Map(entries) => step_of(entries),
        other => Err(expected("null or an object", other)),
    }
}

fn step_of(entries: &Map) -> Result<Step, String> {
    only(entries, &["id", "data", "wait", "replace"])?;
    let mut step = match (entries.get("replace"), entries.get("wait")) {
        (Some(Value::Bool(true)), None) => Step::replace(),
        (Some(Value::Bool(true)), Some(_)) => return Err("the result has both wait and replace".to_owned()),
        (None | Some(Value::Bool(false)), wait) => match wait.filter(|wait| !wait.is_null()) {
            Some(wait) => waiting(wait)?,
            None => Step::done(),
        },
        (Some(other), _) => return Err(format!("replace: {}", expected("true or false", other))),
    };
    step.physical_id = match entries.get("id") {
        None | Some(Value::Null) => None,
        Some(Value::Str(id)) if !id.is_empty() && id.len() <= ID => Some(id.clone()),
        Some(other) => return Err(format!("id: {}", expected("a string of 1 to 255 bytes", other))),
    };
    step.data = match entries.get("data") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Map(data)) => data.clone(),
        Some(other) => return Err(format!("data: {}", expected("an object", other))),
    };
    match step.data.keys().find(|key| is_reserved(key)) {
        Some(key) => Err(format!("data: the name {key} is reserved")),
        None => Ok(step),
    }
}

/// Names of data that Kiln uses itself begin with this.
const RESERVED: &str = "kiln_";

/// Entry of the data with the properties that restore the object of a snapshot. It is in the record of the snapshot,
/// which has no entries of the engine.
pub(crate) const RESTORED: &str = "restored_properties";

/// Whether a plug-in neither sees nor sets this entry of the data.
pub(crate) fn is_reserved(key: &str) -> bool {
    key.starts_with(RESERVED) || key == RESTORED
}

fn waiting(wait: &Value) -> Result<Step, String> {
    let entries = wait.as_map().ok_or_else(|| format!("wait: {}", expected("an object", wait)))?;
    only(entries, &["state", "after"])?;
    let after = match entries.get("after") {
        None | Some(Value::Null) => POLL,
        Some(given) => match seconds(given) {
            Some(seconds) if (0.0..=LONGEST_DELAY).contains(&seconds) => Duration::from_secs_f64(seconds),
            _ => return Err(format!("wait: after: {}", expected("seconds from 0 to 3600", given))),
        },
    };
    // The engine treats null as no state.
    let state: Map = [("state".to_owned(), entries.get("state").cloned().unwrap_or_default())].into_iter().collect();
    Ok(Step::wait(state, after))
}

/// The plug-in's own state in that of the engine.
pub(crate) fn state_of(state: &Value) -> Value {
    state.get("state").cloned().unwrap_or_default()
}

/// `{"found": true, "id", …}` with the other keys of a step, `{"found": false}`, or `{"found": null, "why"}`.
pub(crate) fn found(result: &Value) -> Result<Found, String> {
    let Value::Map(entries) = result else { return Err(expected("an object", result)) };
    match entries.get("found") {
        Some(Value::Bool(true)) => {
            let mut step_entries = entries.clone();
            step_entries.shift_remove("found");
            let step = step_of(&step_entries)?;
            if step.physical_id.is_none() { Err("found without an id".to_owned()) } else { Ok(Found::Made(step)) }
        }
        Some(Value::Bool(false)) => only(entries, &["found"]).map(|()| Found::NotMade),
        Some(Value::Null) => {
            only(entries, &["found", "why"])?;
            let why = entries.get("why").and_then(Value::as_str).unwrap_or("the plug-in cannot tell");
            Ok(Found::CannotTell(quoted(why, &[])))
        }
        _ => Err("found must be true, false or null".to_owned()),
    }
}

/// Removes `restored` from the result of a snapshot: the properties that restore the object.
pub(crate) fn take_restored(result: &mut Value) -> Result<Option<Map>, String> {
    match result.as_map_mut().and_then(|entries| entries.shift_remove("restored")) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Map(properties)) => Ok(Some(properties)),
        Some(other) => Err(format!("restored: {}", expected("an object", &other))),
    }
}

/// The result of a signal: null, or `{"id", "data", "metadata", "event"}`.
pub(crate) fn received(result: Value) -> Result<Received, String> {
    let mut entries = map(result)?;
    only(&entries, &["id", "data", "metadata", "event"])?;
    let metadata = match entries.shift_remove("metadata") {
        None | Some(Value::Null) => None,
        Some(Value::Map(metadata)) => Some(metadata),
        Some(other) => return Err(format!("metadata: {}", expected("an object", &other))),
    };
    let event = match entries.shift_remove("event") {
        None | Some(Value::Null) => ReceivedEvent::Described,
        Some(Value::Str(text)) => ReceivedEvent::Result(quoted(&text, &[])),
        Some(Value::Bool(false)) => ReceivedEvent::None,
        Some(other) => return Err(format!("event: {}", expected("a string or false", &other))),
    };
    let step = step_of(&entries)?;
    Ok(Received { physical_id: step.physical_id, data: step.data, metadata, event, ..Received::default() })
}

/// The delay before a call is repeated: null, or `{"after": seconds}`.
pub(crate) fn after(result: &Value) -> Result<Option<Duration>, String> {
    match result {
        Value::Null => Ok(None),
        Value::Map(entries) => {
            only(entries, &["after"])?;
            if entries.get("after").is_none_or(Value::is_null) {
                return Ok(None);
            }
            let Step { progress: Progress::Wait { after, .. }, .. } = waiting(result)? else { return Ok(None) };
            Ok(Some(after))
        }
        other => Err(expected("null or an object", other)),
    }
}

/// An object, or null for an empty one.
/// The hints in the result of `scheduler_hints`.
pub(crate) fn hints(result: Value) -> Result<Map, String> {
    match map(result)?.shift_remove("hints") {
        Some(Value::Map(hints)) => Ok(hints),
        _ => Err("expected an object with the key hints, an object".to_owned()),
    }
}

pub(crate) fn map(result: Value) -> Result<Map, String> {
    match result {
        Value::Null => Ok(Map::new()),
        Value::Map(entries) => Ok(entries),
        other => Err(expected("an object", &other)),
    }
}

/// `{"valid": true}`, or `{"valid": false, "why": text}`: why a value is refused.
pub(crate) fn verdict(result: &Value) -> Result<Option<String>, String> {
    let Value::Map(entries) = result else { return Err(expected("an object", result)) };
    only(entries, &["valid", "why"])?;
    match entries.get("valid") {
        Some(Value::Bool(true)) => Ok(None),
        Some(Value::Bool(false)) => Ok(Some(entries.get("why").map(text::str).unwrap_or_default())),
        _ => Err("valid must be true or false".to_owned()),
    }
}

/// A number.
fn seconds(value: &Value) -> Option<f64> {
    match value {
        #[expect(clippy::cast_precision_loss, reason = "seconds")]
        Value::Int(seconds) => Some(*seconds as f64),
        Value::Float(seconds) if seconds.is_finite() => Some(*seconds),
        _ => None,
    }
}

fn only(entries: &Map, known: &[&str]) -> Result<(), String> {
    match entries.keys().find(|key| !known.contains(&key.as_str())) {
        Some(key) => Err(format!("the result has an unknown key {}", quoted(key, &[]))),
        None => Ok(()),
    }
}

fn expected(what: &str, found: &Value) -> String {
    format!("expected {what}, found {}", quoted(&text::json(found), &[]))
}

#[cfg(test)]
mod tests {
    use kiln_value::value;

    use super::*;

    #[test]
    fn steps_are_read() {
        let read = step(&value!({"id": "a", "data": {"x": 1}, "wait": {"state": [1], "after": 0.5}})).unwrap();
        assert_eq!((read.physical_id.as_deref(), read.data.get("x")), (Some("a"), Some(&1.into())));
        let Progress::Wait { state, after } = read.progress else { panic!("{read:?}") };
        assert_eq!((state_of(&state), after), (value!([1]), Duration::from_millis(500)));
        let Progress::Wait { state, after } = step(&value!({"wait": {}})).unwrap().progress else { panic!() };
        assert!(!state.is_null() && state_of(&state).is_null() && after == POLL);
        assert_eq!(step(&Value::Null).unwrap(), Step::done());
        assert_eq!(step(&value!({"replace": true})).unwrap(), Step::replace());
    }

    #[test]
    fn wrong_results_are_refused_with_a_reason() {
        for (result, why) in [
            (value!("done"), "expected null or an object, found \"done\""),
            (value!({"ID": "a"}), "the result has an unknown key ID"),
            (value!({"id": 5}), "id: expected a string of 1 to 255 bytes, found 5"),
            (value!({"id": ""}), "id: expected a string of 1 to 255 bytes, found \"\""),
            (value!({"data": [1]}), "data: expected an object, found [1]"),
            (value!({"data": {"kiln_x": 1}}), "data: the name kiln_x is reserved"),
            (value!({"wait": 5}), "wait: expected an object, found 5"),
            (value!({"wait": {"after": (-1)}}), "wait: after: expected seconds from 0 to 3600, found -1"),
            (value!({"wait": {}, "replace": true}), "the result has both wait and replace"),
        ] {
            assert_eq!(step(&result).unwrap_err(), why);
        }
        assert_eq!(found(&value!({"found": true})).unwrap_err(), "found without an id");
        assert_eq!(found(&value!({"found": "yes"})).unwrap_err(), "found must be true, false or null");
        assert_eq!(verdict(&value!({"valid": 1})).unwrap_err(), "valid must be true or false");
    }

    #[test]
    fn results_of_signals_and_snapshots_are_read() {
        assert_eq!(received(Value::Null).unwrap(), Received::default());
        let told = value!({"data": {"n": 1}, "metadata": {"m": 2}, "event": "done"});
        let metadata = value!({"m": 2}).as_map().cloned().unwrap();
        assert_eq!(received(told).unwrap(), Received::default().data("n", 1).metadata(metadata).result("done"));
        assert_eq!(received(value!({"event": false})).unwrap(), Received::nothing());
        assert_eq!(received(value!({"event": 5})).unwrap_err(), "event: expected a string or false, found 5");
        assert_eq!(received(value!({"wait": {}})).unwrap_err(), "the result has an unknown key wait");
        assert_eq!(received(value!({"metadata": []})).unwrap_err(), "metadata: expected an object, found []");
        assert_eq!(after(&value!({"after": 2})).unwrap(), Some(Duration::from_secs(2)));
        assert_eq!((after(&Value::Null).unwrap(), after(&value!({})).unwrap()), (None, None));
        assert_eq!(after(&value!({"state": 2})).unwrap_err(), "the result has an unknown key state");
        let mut result = value!({"data": {"x": 1}, "restored": {"size": 5}});
        assert_eq!(take_restored(&mut result).unwrap(), value!({"size": 5}).as_map().cloned());
        assert_eq!(result, value!({"data": {"x": 1}}));
        assert_eq!(take_restored(&mut value!({"restored": 5})).unwrap_err(), "restored: expected an object, found 5");
    }

    #[test]
    fn searches_and_verdicts_are_read() {
        assert_eq!(found(&value!({"found": true, "id": "a"})).unwrap(), Found::Made(Step::done().id("a")));
        assert_eq!(found(&value!({"found": false})).unwrap(), Found::NotMade);
        let why = Found::CannotTell("no list".to_owned());
        assert_eq!(found(&value!({"found": null, "why": "no list"})).unwrap(), why);
        assert_eq!(verdict(&value!({"valid": false, "why": "too long"})).unwrap().as_deref(), Some("too long"));
        assert_eq!(verdict(&value!({"valid": true})).unwrap(), None);
    }

    #[test]
    fn errors_with_a_kind_are_those_of_the_plugin_and_others_break_the_call_off() {
        let told = failure("acme", "create", &value!({"code": 1, "message": "no", "data": {"kind": "conflict"}}));
        assert_eq!((told.kind, told.to_string().as_str()), (FailureKind::Conflict, "Conflict: no"));
        let data = value!({"kind": "over_limit", "class": "QuotaExceeded", "retry_after": 2});
        let told = failure("acme", "create", &value!({"code": 1, "message": "full", "data": data}));
        assert_eq!(told.to_string(), "QuotaExceeded: full");
        assert_eq!(told.retry_after, Some(Duration::from_secs(2)));
        let told = failure("acme", "create", &value!({"code": (-32603), "message": "KeyError: 'x'"}));
        assert_eq!(told.kind, FailureKind::BrokenOff);
        assert_eq!(told.to_string(), "PluginError: Plug-in acme, method create: KeyError: 'x'");
        let told = failure("acme", "poll", &value!({"message": "", "data": {"kind": "odd"}}));
        let text = "PluginError: Plug-in acme, method poll: the plug-in reported an error without a message (unknown \
                    kind of error odd)";
        assert_eq!(told.to_string(), text);
    }
}
