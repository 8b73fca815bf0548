//! URLs that signals are sent to: signed ones of the CFN API, and those of the REST API, which need a token.
//!
//! Clients and Keystone compute the signature again, so that order and escaping are those of Heat.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac as _};
use kiln_resource::{Facts, Failure, SignalEndpoints};
use kiln_template::StackIdentity;
use kiln_value::Class;
use kiln_value::url::{quote, unquote};
use sha2::Sha256;

use super::stack_user::{ACCESS, SECRET, text};

/// What a signed URL is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignedFor {
    /// `POST /v1/signal/<ARN>`: any signal, of alarms and of guests.
    Signal,
    /// `PUT /v1/waitcondition/<ARN>`: a signal to a wait condition handle of CFN.
    WaitCondition,
}

impl SignedFor {
    fn path(self) -> &'static str {
        match self {
            Self::Signal => "/signal",
            Self::WaitCondition => "/waitcondition",
        }
    }

    fn verb(self) -> &'static str {
        match self {
            Self::Signal => "POST",
            Self::WaitCondition => "PUT",
        }
    }
}

/// The URL of a resource in the CFN API, signed with the EC2 key of its user. `since`: the time of the signature, in
/// seconds since 1970; the API rejects old ones. Without it the URL never expires (for alarms).
pub fn signed(
    facts: &Facts,
    endpoints: &SignalEndpoints,
    purpose: SignedFor,
    since: Option<f64>,
) -> Result<String, Failure> {
    let base = endpoints.cfn.as_deref().ok_or_else(|| missing("cloudformation", "heat_waitcondition_server_url"))?;
    let (Some(access), Some(secret)) = (text(facts, ACCESS), text(facts, SECRET)) else {
        return Err(Failure::other(Class::Error, format!("Error creating ec2 keypair for {}", facts.name)));
    };
    let base = format!("{}{}", base.trim_end_matches('/'), purpose.path());
    let path = identity(facts)?.arn_url_path();
    let (host, prefix) = split(&base);
    let mut params = vec![
        ("SignatureMethod", "HmacSHA256".to_owned()),
        ("SignatureVersion", "2".to_owned()),
        ("AWSAccessKeyId", access.to_owned()),
    ];
    params.extend(since.map(|since| ("Timestamp", timestamp(since))));
    // The API sees the path without escapes.
    let signed = [purpose.verb(), &host.to_lowercase(), &unquote(&format!("{prefix}{path}")), &canonical(&params)];
    params.push(("Signature", sign(secret, &signed.join("\n"))));
    let query: Vec<String> = params.iter().map(|(key, value)| format!("{key}={}", quote(value, ""))).collect();
    Ok(format!("{}{path}?{}", base.to_lowercase(), query.join("&")))
}

/// The URL of a resource in the REST API below a project: that of the stack, or that of its users.
pub fn native(facts: &Facts, endpoints: &SignalEndpoints, project: &str) -> Result<String, Failure> {
    let base = endpoints.heat.as_deref().ok_or_else(|| missing("orchestration", "[clients_heat] url"))?;
    let base = base.trim_end_matches('/');
    // The catalog's URL ends with the project of the stack.
    let base = base.strip_suffix(&format!("/{}", facts.stack.project_id)).unwrap_or(base);
    let identity = StackIdentity { tenant: project.to_owned(), ..identity(facts)? };
    Ok(format!("{base}/{}/signal", identity.url_path()))
}

fn identity(facts: &Facts) -> Result<StackIdentity, Failure> {
    let stack = &facts.stack;
    let stack = StackIdentity::new(&stack.project_id, &stack.name, &stack.id);
    stack
        .and_then(|stack| stack.resource(&facts.name))
        .map_err(|error| Failure::other(error.class.clone(), error.to_string()))
}

fn missing(service: &str, option: &str) -> Failure {
    let text = format!("The catalog has no endpoint of type {service}, and {option} is not set");
    Failure::other(Class::EndpointNotFound, text)
}

/// Host with port, and path.
fn split(url: &str) -> (&str, &str) {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split_at(rest.find('/').unwrap_or(rest.len()))
}

fn timestamp(since: f64) -> String {
    #[expect(clippy::cast_possible_truncation, reason = "seconds of this century")]
    let time = jiff::Timestamp::from_second(since as i64).unwrap_or_default();
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// The parameters in the order that is signed.
fn canonical(params: &[(&str, String)]) -> String {
    let mut pairs: Vec<_> = params.iter().map(|(key, value)| format!("{key}={}", quote(value, ""))).collect();
    pairs.sort_unstable();
    pairs.join("&")
}

fn sign(secret: &str, text: &str) -> String {
    // HMAC accepts keys of every length.
    let mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).map(|mac| mac.chain_update(text).finalize());
    mac.map(|mac| STANDARD.encode(mac.into_bytes())).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> Facts {
        let mut facts = Facts { name: "web policy".to_owned(), ..Facts::default() };
        (facts.stack.project_id, facts.stack.name, facts.stack.id) = ("t1".into(), "app".into(), "i1".into());
        facts.data.insert(ACCESS.to_owned(), "4e6f".into());
        facts.data.insert(SECRET.to_owned(), "s3cr3t".into());
        facts
    }

    fn endpoints() -> SignalEndpoints {
        SignalEndpoints {
            cfn: Some("http://Heat.example:8000/v1".to_owned()),
            heat: Some("http://heat.example:8004/v1/t1".to_owned()),
            ..SignalEndpoints::default()
        }
    }

    /// Computed with keystoneclient's signer and urllib, as Heat does.
    #[test]
    fn signed_urls_are_those_of_heat() {
        let url = |purpose, since| signed(&facts(), &endpoints(), purpose, since).unwrap();
        let arn = "arn%3Aopenstack%3Aheat%3A%3At1%3Astacks/app/i1/resources/web%2520policy";
        let key = "SignatureMethod=HmacSHA256&SignatureVersion=2&AWSAccessKeyId=4e6f";
        assert_eq!(
            url(SignedFor::Signal, None),
            format!(
                "http://heat.example:8000/v1/signal/{arn}?{key}&Signature=vCPHFnJc9VfhEfLUue797%2FwjMdcoDVwyV%2FbhtdRn4W4%3D"
            )
        );
        assert_eq!(
            url(SignedFor::WaitCondition, Some(1_800_000_000.9)),
            format!(
                "http://heat.example:8000/v1/waitcondition/{arn}?{key}&Timestamp=2027-01-15T08%3A00%3A00Z&Signature=N5hRBG0DcPPjsc%2FY5zggAfu6zSRILiLPUv64aBjQ9yM%3D"
            )
        );
    }

    #[test]
    fn native_urls() {
        let url = |project| native(&facts(), &endpoints(), project).unwrap();
        assert_eq!(url("t1"), "http://heat.example:8004/v1/t1/stacks/app/i1/resources/web%20policy/signal");
        assert_eq!(url("u9"), "http://heat.example:8004/v1/u9/stacks/app/i1/resources/web%20policy/signal");
        let error = native(&facts(), &SignalEndpoints::default(), "t1").unwrap_err();
        assert_eq!(
            error.message,
            "The catalog has no endpoint of type orchestration, and [clients_heat] url is not set"
        );
    }
}
