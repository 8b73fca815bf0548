//! Temporary URLs: anybody who has one can read or write an object. They are signed with a key of the account.

use std::fmt::Write as _;
use std::time::Duration;

use hmac::{Hmac, Mac as _};
use kiln_resource::{Context, Failure, Method};
use kiln_value::Class;
use rand::SeedableRng as _;
use sha2::Sha256;

use super::object;
use crate::call::SWIFT;

/// The header of the account with the key.
const KEY: &str = "x-account-meta-temp-url-key";

/// When a URL expires that should not: a minute before the end of 32-bit times.
const END: i64 = 2_147_483_647 - 60;

/// After this time, all keys that others have set at the same time are stored.
pub(crate) const OTHERS: Duration = Duration::from_secs(1);

/// The URL of an object for one method. `None`: the account had no key and has got one; ask again after [`OTHERS`].
pub(crate) async fn ready(
    cx: &Context<'_>,
    method: &str,
    container: &str,
    name: &str,
) -> Result<Option<String>, Failure> {
    match key(cx).await? {
        Some(key) => url(cx, method, container, name, &key).await.map(Some),
        None => set_key(cx).await.map(|()| None),
    }
}

/// The key of the account; `None` if it has none.
async fn key(cx: &Context<'_>) -> Result<Option<String>, Failure> {
    let response = cx.cloud.call(object::request(Method::Head, String::new(), &[])).await?;
    let key = response.headers.get(KEY).and_then(|key| key.as_str());
    Ok(key.filter(|key| !key.is_empty()).map(str::to_owned))
}

/// Sets a key of the account. Others may do so at the same time, and the last key counts: read it again after a moment.
async fn set_key(cx: &Context<'_>) -> Result<(), Failure> {
    let mut rng = rand::rngs::StdRng::from_seed(cx.seed);
    let key = format!("{:032x}", rand::Rng::random::<u128>(&mut rng));
    cx.cloud.call(object::request(Method::Post, String::new(), &[(KEY, &key)])).await.map(drop)
}

async fn url(cx: &Context<'_>, method: &str, container: &str, name: &str, key: &str) -> Result<String, Failure> {
    let base = cx.cloud.endpoint(SWIFT.0).await?;
    let base = base.ok_or_else(|| Failure::other(Class::EndpointNotFound, "The catalog has no endpoint of Swift"))?;
    Ok(signed(base.trim_end_matches('/'), method, (container, name), key, END))
}

/// The URL of an object (container and name) for one method until a time, in seconds since 1970. `base`: the URL of the
/// account. Swift signs the path from its version on, without what a proxy may add before it.
pub fn signed(base: &str, method: &str, (container, name): (&str, &str), key: &str, end: i64) -> String {
    let account: Vec<&str> = base.rsplitn(3, '/').take(2).collect();
    let [account, version] = account.as_slice() else { return String::new() };
    let text = format!("{method}\n{end}\n/{version}/{account}/{container}/{name}");
    // HMAC accepts keys of every length.
    let mac = Hmac::<Sha256>::new_from_slice(key.as_bytes()).map(|mac| mac.chain_update(text).finalize());
    let bytes = mac.map(|mac| mac.into_bytes().to_vec()).unwrap_or_default();
    let signature = bytes.iter().fold(String::new(), |mut out, byte| {
        _ = write!(out, "{byte:02x}");
        out
    });
    format!("{base}{}?temp_url_sig={signature}&temp_url_expires={end}", object::path(container, name))
}

#[cfg(test)]
mod tests {
    /// Computed with the function of python-swiftclient.
    #[test]
    fn signatures_are_those_of_swift() {
        let path = "/v1/AUTH_p1/c1/o1?temp_url_sig=09150b8ce1d83226c619d25a3322661c01c69f2499d0ad46659aeaa2e8eac8fd&temp_url_expires=2147483587";
        for base in ["http://swift:8080/v1/AUTH_p1", "http://cloud/object-store/v1/AUTH_p1"] {
            let url = super::signed(base, "PUT", ("c1", "o1"), "k", super::END);
            assert!(url.ends_with(path), "{url}");
        }
    }
}
