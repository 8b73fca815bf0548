//! OS::Nova::KeyPair

use async_trait::async_trait;
use kiln_resource::{CloudRequest, Context, Facts, Failure, FailureKind, Method};
use kiln_value::{Diagnostic, Map, Value, value};

use crate::call::{NOVA, absent_is_fine};
use crate::path;
use crate::rest::{Edit, Shape};
use crate::validation::failed;

/// Supports keys of other users, as in the definition.
const MICROVERSION: &str = "2.10";

/// The first microversion that does not generate keys.
const KEY_REQUIRED: (u32, u32) = (2, 92);

/// A key pair. If Nova generates the private key, only the response contains it: it is stored with the resource if the
/// template requests it.
pub(super) struct KeyPair;

const PRIVATE_KEY: &str = "private_key";

/// The public key is stored too, so that a key pair that was released for its replacement can be created again.
const PUBLIC_KEY: &str = "public_key";

#[async_trait]
impl Shape for KeyPair {
    fn keep(&self, facts: &Facts, object: &Value) -> Map {
        let mut data = Map::new();
        if let Some(key) = object.get(PUBLIC_KEY) {
            data.insert(PUBLIC_KEY.into(), key.clone());
        }
        if let (true, Some(key)) = (facts.property("save_private_key").is_truthy(), object.str_at(PRIVATE_KEY)) {
            data.insert(PRIVATE_KEY.into(), key.into());
        }
        data
    }

    /// Key pairs of a user are identified by their names.
    fn collisions(&self, held: &Map, wanted: &Map) -> Vec<&'static str> {
        let same = |name: &str| held.get(name) == wanted.get(name);
        if same("name") && same("user") { vec!["name"] } else { Vec::new() }
    }

    async fn release(&self, cx: &Context<'_>, id: &str, _: &Map) -> Result<(), Failure> {
        let path = format!("/os-keypairs/{}", path::segment(id));
        let request = CloudRequest::new(NOVA.0, Method::Delete, path).microversion(MICROVERSION);
        let query = self.item_query(cx.facts).into_iter();
        let request = query.fold(request, |request, (key, value)| request.query(key, value));
        absent_is_fine(cx.cloud.call(request).await)
    }

    /// A key pair that was released but is kept after all is created again from its public key.
    async fn before_update(&self, cx: &Context<'_>, id: &str, change: &Edit<'_>) -> Result<(), Failure> {
        let key = cx.facts.property(PUBLIC_KEY);
        let key = if key.is_null() { cx.facts.data.get(PUBLIC_KEY).unwrap_or(key) } else { key };
        if !change.changed.contains_key("name") || key.is_null() {
            return Ok(());
        }
        let mut body = value!({"name": id, "public_key": key});
        for (property, wire) in [("type", "type"), ("user", "user_id")] {
            let given = cx.facts.property(property);
            if let (Some(body), false) = (body.as_map_mut(), given.is_null()) {
                body.insert(wire.to_owned(), given.clone());
            }
        }
        let request = CloudRequest::new(NOVA.0, Method::Post, "/os-keypairs").microversion(MICROVERSION);
        match cx.cloud.call(request.body(value!({"keypair": body}))).await {
            Err(failure) if failure.kind != FailureKind::Conflict => Err(failure),
            // An earlier call whose response was lost has created it.
            _ => Ok(()),
        }
    }

    fn is_ours(&self, facts: &Facts, object: &Value) -> bool {
        let given = facts.property(PUBLIC_KEY).as_str().map(str::trim);
        given.is_none_or(|given| object.str_at("public_key").map(str::trim) == Some(given))
    }

    fn needs_response(&self, facts: &Facts) -> bool {
        facts.property("save_private_key").is_truthy() && !facts.property("public_key").is_truthy()
    }

    fn validates_in_cloud(&self, facts: &Facts) -> bool {
        facts.given.iter().all(|name| name != PUBLIC_KEY)
    }

    /// Nova generates keys only in old microversions, and Heat requires a public key if a newer one is available.
    async fn validate_in_cloud(&self, cx: &Context<'_>) -> Result<(), Diagnostic> {
        // If the version is unknown, nothing is refused.
        let Ok(root) = NOVA.show(cx, "/", "version").await else { return Ok(()) };
        let newest = root.str_at("version").and_then(|version| version.split_once('.'));
        let newest: Option<(u32, u32)> =
            newest.and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
        if newest.is_none_or(|newest| newest < KEY_REQUIRED) {
            return Ok(());
        }
        Err(failed("The public_key property is required by the nova API version currently used."))
    }

    /// Selects the key pair of another user.
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
                _ => Some(object.get(PUBLIC_KEY).cloned().unwrap_or_default()),
            },
            _ => None,
        })
    }
}
