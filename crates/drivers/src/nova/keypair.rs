//! OS::Nova::KeyPair

use async_trait::async_trait;
use kiln_resource::{Context, Facts, Failure};
use kiln_value::{Map, Value};

use crate::rest::Shape;

/// A key. Its private half, where Nova makes it, is told once: it is kept with the resource if the template wants it.
pub(super) struct KeyPair;

const PRIVATE_KEY: &str = "private_key";

#[async_trait]
impl Shape for KeyPair {
    fn keep(&self, facts: &Facts, object: &Value) -> Map {
        let mut data = Map::new();
        if let (true, Some(key)) = (facts.property("save_private_key").is_truthy(), object.str_at(PRIVATE_KEY)) {
            data.insert(PRIVATE_KEY.into(), key.into());
        }
        data
    }

    fn is_ours(&self, facts: &Facts, object: &Value) -> bool {
        let given = facts.property("public_key").as_str().map(str::trim);
        given.is_none_or(|given| object.str_at("public_key").map(str::trim) == Some(given))
    }

    fn tells_once(&self, facts: &Facts) -> bool {
        facts.property("save_private_key").is_truthy() && !facts.property("public_key").is_truthy()
    }

    /// The key of another user.
    fn item_query<'a>(&self, facts: &'a Facts) -> Vec<(&'static str, &'a str)> {
        let user = facts.properties.get("user").and_then(Value::as_str).filter(|user| !user.is_empty());
        user.map(|user| ("user_id", user)).into_iter().collect()
    }

    async fn attribute(&self, cx: &Context<'_>, object: &Value, name: &str) -> Result<Option<Value>, Failure> {
        Ok(match name {
            "private_key" if cx.facts.property("save_private_key").is_truthy() => {
                Some(cx.facts.data.get(PRIVATE_KEY).cloned().unwrap_or_else(|| "".into()))
            }
            "private_key" => Some("".into()),
            "public_key" => match cx.facts.property("public_key") {
                Value::Str(given) if !given.is_empty() => Some(given.into()),
                _ => Some(object.get("public_key").cloned().unwrap_or_default()),
            },
            _ => None,
        })
    }
}
