//! `OS::Heat::RandomString`: a random string.

use async_trait::async_trait;
use kiln_resource::{Context, Driver, Facts, Failure, Found, Operation, Step, TypeRules};
use kiln_value::{Diagnostic, Map, Value};
use rand::rngs::StdRng;
use rand::seq::{IndexedRandom, SliceRandom};
use rand::{RngCore, SeedableRng};

/// The type's driver.
pub(super) struct RandomString;

const LOWER: &str = "abcdefghijklmnopqrstuvwxyz";
const UPPER: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
const DIGITS: &str = "0123456789";

/// Characters of which at least some must be there.
struct Alphabet {
    characters: Vec<char>,
    min: usize,
}

/// The characters of a class.
fn class(name: &str) -> String {
    match name {
        "letters" => [LOWER, UPPER].concat(),
        "lowercase" => LOWER.to_owned(),
        "uppercase" => UPPER.to_owned(),
        "digits" => DIGITS.to_owned(),
        "hexdigits" => [DIGITS, "ABCDEF"].concat(),
        "octdigits" => "01234567".to_owned(),
        // "lettersdigits", the default; the schema allows no other.
        _ => [LOWER, UPPER, DIGITS].concat(),
    }
}

/// The alphabets that the properties name: sequences, then classes.
fn alphabets(facts: &Facts) -> Vec<Alphabet> {
    let list = |property: &str| facts.property(property).as_list().unwrap_or_default();
    let min = |entry: &Value| entry.get("min").and_then(Value::as_i64).and_then(|n| usize::try_from(n).ok());
    let alphabet = |characters: &str, entry: &Value| Alphabet {
        characters: distinct(characters.chars()),
        min: min(entry).unwrap_or(1),
    };
    let sequences = list("character_sequences").iter().map(|e| alphabet(e.str_at("sequence").unwrap_or_default(), e));
    let classes = list("character_classes").iter().map(|e| alphabet(&class(e.str_at("class").unwrap_or_default()), e));
    sequences.chain(classes).collect()
}

fn distinct(characters: impl Iterator<Item = char>) -> Vec<char> {
    let mut distinct: Vec<char> = characters.collect();
    distinct.sort_unstable();
    distinct.dedup();
    distinct
}

fn length(facts: &Facts) -> usize {
    facts.property("length").as_i64().and_then(|n| usize::try_from(n).ok()).unwrap_or(32)
}

/// Each alphabet's minimum, the rest from all of them, then shuffled.
fn generate(length: usize, alphabets: &[Alphabet], rng: &mut impl RngCore) -> String {
    let mut text: Vec<char> = Vec::with_capacity(length);
    for alphabet in alphabets {
        text.extend((0..alphabet.min).filter_map(|_| alphabet.characters.choose(rng)));
    }
    let all = distinct(alphabets.iter().flat_map(|a| a.characters.iter().copied()));
    while text.len() < length {
        match all.choose(rng) {
            Some(character) => text.push(*character),
            None => break,
        }
    }
    text.shuffle(rng);
    text.truncate(length);
    text.into_iter().collect()
}

impl TypeRules for RandomString {
    /// The text itself.
    fn reference(&self, facts: &Facts) -> Value {
        match (&facts.physical_id, facts.data.get("value")) {
            (Some(_), Some(value)) => value.clone(),
            _ => facts.name.as_str().into(),
        }
    }

    fn validate(&self, facts: &Facts) -> Result<(), Diagnostic> {
        let least: usize = alphabets(facts).iter().map(|a| a.min).sum();
        if least <= length(facts) || facts.property("length").is_null() {
            return Ok(());
        }
        let text = "Length property cannot be smaller than combined character class and character sequence minimums";
        Err(Diagnostic::invalid(text))
    }
}

#[async_trait]
impl Driver for RandomString {
    async fn start(&self, cx: &Context<'_>, operation: &Operation) -> Result<Step, Failure> {
        Ok(match operation {
            Operation::Create => {
                let text = generate(length(cx.facts), &alphabets(cx.facts), &mut StdRng::from_seed(cx.seed));
                Step::done().id(&cx.facts.physical_name).data("value", text)
            }
            _ => Step::done(),
        })
    }

    /// There is no object in the cloud.
    async fn find(&self, _: &Context<'_>) -> Result<Found, Failure> {
        Ok(Found::NotMade)
    }

    fn needs_cloud(&self) -> bool {
        false
    }

    async fn attributes(&self, cx: &Context<'_>, names: &[&str]) -> Result<Map, Failure> {
        let value = cx.facts.data.get("value").cloned().unwrap_or_default();
        Ok(names.iter().filter(|name| **name == "value").map(|name| ((*name).to_owned(), value.clone())).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_every_minimum() {
        let alphabets = [
            Alphabet { characters: "!?".chars().collect(), min: 3 },
            Alphabet { characters: class("octdigits").chars().collect(), min: 2 },
        ];
        for seed in 0..50 {
            let text = generate(12, &alphabets, &mut StdRng::seed_from_u64(seed));
            let count = |set: &str| text.chars().filter(|c| set.contains(*c)).count();
            assert_eq!(text.chars().count(), 12, "{text}");
            assert!(count("!?") >= 3 && count("01234567") >= 2, "{text}");
            assert_eq!(count("!?01234567"), 12, "{text}");
        }
        let one = generate(32, &alphabets, &mut StdRng::seed_from_u64(1));
        assert_ne!(one, generate(32, &alphabets, &mut StdRng::seed_from_u64(2)));
    }
}
