//! `str_replace` and its variants.

use std::borrow::Cow;
use std::collections::HashMap;

use kiln_value::{Class, Diagnostic, Value, text};

use super::{Function, fault};
use crate::expr::{Call, Context, Node};

/// Replaces every occurrence of some keys in a string, longer keys first.
#[derive(Debug)]
pub(crate) struct Replace {
    form: Form,
    care: Care,
}

#[derive(Debug, PartialEq, Eq)]
enum Form {
    /// CFN's `[params, template]`; values are scalars.
    Listed,
    /// A map of `params` and `template`; values are scalars.
    Scalars,
    /// The same, where maps and lists become JSON.
    Json,
}

/// Additional errors; each level includes the previous one.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Care {
    Lax,
    /// A key that does not occur.
    Strict,
    /// A value that is null or empty.
    VeryStrict,
}

impl Replace {
    pub(crate) const CFN: Self = Self { form: Form::Listed, care: Care::Lax };
    pub(crate) const SCALARS: Self = Self { form: Form::Scalars, care: Care::Lax };
    pub(crate) const JSON: Self = Self { form: Form::Json, care: Care::Lax };
    pub(crate) const STRICT: Self = Self { form: Form::Json, care: Care::Strict };
    pub(crate) const VERY_STRICT: Self = Self { form: Form::Json, care: Care::VeryStrict };

    /// The keys with their values, and the template.
    fn parts<'a>(&self, name: &str, args: &'a Node) -> Result<[Cow<'a, Node>; 2], Diagnostic> {
        if self.form == Form::Listed {
            let usage = || {
                format!(
                    "Incorrect arguments to \"{name}\" should be: {{\"{name}\": [ {{\"$var1\": \"foo\", \"%var2%\": \
                     \"bar\"}}, \"$var1 is %var2%\"]}}"
                )
            };
            if args.as_str().is_some() || args.as_map().is_some() {
                return Err(fault::type_error(usage()));
            }
            return args.unpack().map_err(|error| match error.class {
                Class::ValueError => fault::value_error(usage()),
                _ => error,
            });
        }
        let Some(map) = args.as_map() else {
            return Err(fault::type_error(format!("Arguments to \"{name}\" must be a map")));
        };
        match (map.get("params"), map.get("template")) {
            (Some(params), Some(template)) => Ok([Cow::Borrowed(params), Cow::Borrowed(template)]),
            _ => Err(fault::key_error(format!(
                "\"{name}\" syntax should be {name}:
              template: This is var1 template var2
              params:
                var1: a
                var2: string"
            ))),
        }
    }

    /// A key and its replacement.
    fn pair<'a>(&self, name: &str, key: &'a Key) -> Result<(&'a str, Cow<'a, str>), Diagnostic> {
        let (Key { value, .. }, key) = (key, key.text);
        let replacement = match &**value {
            Value::Null => Cow::Borrowed(""),
            Value::Str(text) => Cow::Borrowed(text.as_str()),
            Value::List(_) | Value::Map(_) if self.form != Form::Json => {
                return Err(fault::type_error(format!(
                    "\"{name}\" params must be strings or numbers, param {key} is not valid"
                )));
            }
            Value::List(_) | Value::Map(_) => Cow::Owned(text::json_sorted(value)),
            scalar => Cow::Owned(text::str(scalar)),
        };
        let is_collection = matches!(**value, Value::List(_) | Value::Map(_));
        let is_empty = if is_collection { !value.is_truthy() } else { replacement.is_empty() };
        if is_empty && self.care == Care::VeryStrict {
            return Err(undefined(name, key));
        }
        if key.is_empty() { Err(fault::value_error("empty separator")) } else { Ok((key, replacement)) }
    }
}

fn undefined(name: &str, key: &str) -> Diagnostic {
    fault::value_error(format!(
        "{name} has an undefined or empty value for param {key}, must be a defined non-empty value"
    ))
}

impl Function for Replace {
    fn check(&self, name: &str, args: &Node) -> Result<(), Diagnostic> {
        let [params, _] = self.parts(name, args)?;
        match *params {
            Node::Map(_) | Node::Call(_) => Ok(()),
            _ => Err(fault::type_error(format!("\"{name}\" parameters must be a mapping"))),
        }
    }

    fn resolve(&self, call: &Call, context: &Context) -> Result<Option<Value>, Diagnostic> {
        let name = call.name;
        let [params, template] = self.parts(name, &call.args)?;
        let template = template.view(context)?.unwrap_or_default();
        let is_strict = self.care >= Care::Strict;
        let held;
        let mut keys = Vec::new();
        let is_map = if let Some(map) = params.as_map() {
            for (key, node) in map {
                keys.extend(node.view(context)?.map(|value| Key::new(key, value)));
            }
            true
        } else {
            held = params.view(context)?.unwrap_or_default();
            if is_strict && held.is_null() {
                return Err(fault::type_error("'NoneType' object is not iterable"));
            }
            keys.extend(held.as_map().into_iter().flatten().map(|(key, value)| Key::new(key, Cow::Borrowed(value))));
            held.as_map().is_some()
        };
        let Value::Str(template) = &*template else {
            return Err(fault::type_error(format!("\"{name}\" template must be a string")));
        };
        if !is_map {
            return Err(fault::type_error(format!("\"{name}\" params must be a map")));
        }
        keys.sort_unstable_by(|a, b| b.length.cmp(&a.length).then(a.text.cmp(b.text)));
        let pairs = keys.iter().map(|key| self.pair(name, key)).collect::<Result<Vec<_>, _>>()?;
        let (text, missing) = replace(template, &pairs, |size| context.spend(call, size))?;
        if is_strict && !missing.is_empty() {
            return Err(fault::value_error(format!(
                "The following params were not found in the template: {}",
                missing.join(",")
            )));
        }
        Ok(Some(Value::Str(text)))
    }
}

/// A key with its value. Longer keys come first, keys of the same length are in lexical order.
struct Key<'a> {
    text: &'a str,
    /// In characters.
    length: usize,
    value: Cow<'a, Value>,
}

impl<'a> Key<'a> {
    fn new(text: &'a str, value: Cow<'a, Value>) -> Self {
        Self { text, length: text.chars().count(), value }
    }
}

/// A part of a string in which keys are being replaced.
enum Part<'a> {
    /// Not yet searched for keys.
    Text(&'a str),
    /// A replacement.
    Done(&'a str),
}

/// Replaces the first key everywhere, then the next one in the remaining parts, so that replacements are not searched
/// again.
///
/// Also returns the keys that do not occur. `spend` receives the size of each replacement before it is inserted.
fn replace<'a>(
    template: &str,
    pairs: &'a [(&str, Cow<'a, str>)],
    spend: impl Fn(usize) -> Result<(), Diagnostic>,
) -> Result<(String, Vec<&'a str>), Diagnostic> {
    let (mut parts, mut missing) = (vec![Part::Text(template)], Vec::new());
    for equally_long in pairs.chunk_by(|(a, _), (b, _)| a.chars().count() == b.chars().count()) {
        // Many keys are looked up at each place of the text; of few, each is searched.
        let groups = if equally_long.len() < MANY { equally_long.chunks(1) } else { equally_long.chunks(pairs.len()) };
        for group in groups {
            let mut occurs = vec![false; group.len()];
            let mut next = Vec::with_capacity(parts.len());
            for part in parts {
                let Part::Text(text) = part else {
                    next.push(part);
                    continue;
                };
                let mut rest = 0;
                for (at, index) in occurrences(text, group) {
                    let Some(((key, replacement), occurs)) = group.get(index).zip(occurs.get_mut(index)) else {
                        continue;
                    };
                    *occurs = true;
                    spend(replacement.len() + size_of::<Part>())?;
                    next.extend(text.get(rest..at).filter(|between| !between.is_empty()).map(Part::Text));
                    next.push(Part::Done(replacement));
                    rest = at + key.len();
                }
                next.extend(text.get(rest..).filter(|behind| !behind.is_empty()).map(Part::Text));
            }
            parts = next;
            missing.extend(group.iter().zip(occurs).filter(|(_, occurs)| !occurs).map(|((key, _), _)| *key));
        }
    }
    let texts = || parts.iter().map(|(Part::Text(text) | Part::Done(text))| *text);
    let mut replaced = String::with_capacity(texts().map(str::len).sum());
    replaced.extend(texts());
    Ok((replaced, missing))
}

/// The number of equally long keys from which on they are looked up together.
const MANY: usize = 32;

/// Where keys with the same number of characters are replaced in a text, with the index of the key: those of the first key
/// everywhere, then those of the next one between them.
fn occurrences(text: &str, keys: &[(&str, Cow<'_, str>)]) -> Vec<(usize, usize)> {
    if let [(key, _)] = keys {
        return text.match_indices(key).map(|(at, _)| (at, 0)).collect();
    }
    let length = keys.first().map_or(0, |(key, _)| key.chars().count());
    let by_key: HashMap<&str, usize> = keys.iter().enumerate().map(|(index, (key, _))| (*key, index)).collect();
    let starts = text.char_indices().map(|(at, _)| at);
    let ends = starts.clone().chain([text.len()]).skip(length);
    let found = starts.zip(ends).filter_map(|(start, end)| Some((*by_key.get(text.get(start..end)?)?, start, end)));
    let mut found: Vec<(usize, usize, usize)> = found.collect();
    found.sort_unstable();
    let mut taken = vec![false; text.len()];
    let mut chosen = Vec::with_capacity(found.len());
    for (index, start, end) in found {
        if let Some(place) = taken.get_mut(start..end).filter(|place| !place.contains(&true)) {
            place.fill(true);
            chosen.push((start, index));
        }
    }
    chosen.sort_unstable();
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The keys together are replaced as they are one by one.
    #[test]
    fn many_keys_are_replaced_as_few_are() {
        let letters = ['a', 'b', 'é', 'c'];
        let mut random: u32 = 1;
        let mut letter = || {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            letters[(random >> 16) as usize % letters.len()]
        };
        for length in 1..5 {
            let mut keys: Vec<String> = (0..40).map(|_| (0..length).map(|_| letter()).collect()).collect();
            keys.sort();
            keys.dedup();
            let pairs: Vec<(&str, Cow<'_, str>)> = keys.iter().map(|key| (key.as_str(), Cow::Borrowed("-"))).collect();
            for size in [0, 1, 5, 300] {
                let text: String = (0..size).map(|_| letter()).collect();
                let mut one_by_one: Vec<(usize, usize)> = Vec::new();
                let mut pieces = vec![(0, text.as_str())];
                for (index, pair) in pairs.iter().enumerate() {
                    let mut left = Vec::new();
                    for (begin, piece) in pieces {
                        let mut rest = 0;
                        for (at, _) in occurrences(piece, std::slice::from_ref(pair)) {
                            one_by_one.push((begin + at, index));
                            left.push((begin + rest, &piece[rest..at]));
                            rest = at + pair.0.len();
                        }
                        left.push((begin + rest, &piece[rest..]));
                    }
                    pieces = left;
                }
                one_by_one.sort_unstable();
                assert_eq!(occurrences(&text, &pairs), one_by_one, "{keys:?} in {text}");
            }
        }
    }

    /// The seconds that this thread has had of the processor.
    fn processor_seconds() -> f64 {
        let stat = std::fs::read_to_string("/proc/thread-self/stat").expect("Linux");
        let times = stat.rsplit(')').next().expect("a name").split_whitespace().skip(11).take(2);
        times.map(|ticks| ticks.parse::<f64>().expect("a number") / 100.0).sum()
    }

    #[test]
    fn thousands_of_keys_take_linear_time() {
        let keys: Vec<String> = (0..20_000).map(|number| format!("k{number:05}")).collect();
        let pairs: Vec<(&str, Cow<'_, str>)> = keys.iter().map(|key| (key.as_str(), Cow::Borrowed("v"))).collect();
        let start = processor_seconds();
        let (text, missing) = replace(&keys.join(" "), &pairs, |_| Ok(())).unwrap();
        let took = processor_seconds() - start;
        assert!(took < 10.0, "{took} s");
        assert_eq!((text.len(), missing.len()), (2 * 20_000 - 1, 0));
    }
}
