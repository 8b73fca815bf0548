//! Requests to the CloudFormation API that are signed like those of AWS, captured, changed and sent again.

use hmac::{Hmac, Mac as _};
use kiln_stack::Clock as _;
use kiln_testcloud::Testcloud;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::run::Folder;
use crate::running::Running;
use crate::wire::send;

pub(crate) const FORM: &str = "application/x-www-form-urlencoded; charset=utf-8";
pub(crate) const DATE_HEADER: &str = "x-amz-date";

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

fn mac(key: &[u8], text: &str) -> Vec<u8> {
    Hmac::<Sha256>::new_from_slice(key).unwrap().chain_update(text).finalize().into_bytes().to_vec()
}

/// The headers `X-Amz-Date` and `Authorization` of a POST with a form. Like some clients, it does not sign its type.
pub(crate) fn signed(address: &str, (access, secret): (&str, &str), body: &str) -> (String, String) {
    let date = kiln_stack::SystemClock.now().strftime("%Y%m%dT%H%M%SZ").to_string();
    let scope = format!("{}/RegionOne/cloudformation/aws4_request", &date[..8]);
    let names = "host;x-amz-date";
    let headers = format!("host:{address}\n{DATE_HEADER}:{date}\n");
    let request = format!("POST\n/v1/\n\n{headers}\n{names}\n{}", hex(&Sha256::digest(body)));
    let text = format!("AWS4-HMAC-SHA256\n{date}\n{scope}\n{}", hex(&Sha256::digest(request)));
    let key = scope.split('/').fold(format!("AWS4{secret}").into_bytes(), |key, part| mac(&key, part));
    let signature = hex(&mac(&key, &text));
    let authorization =
        format!("AWS4-HMAC-SHA256 Credential={access}/{scope}, SignedHeaders={names}, Signature={signature}");
    (date, authorization)
}

/// An access key and its secret key, of the demo user.
pub(crate) fn key(cloud: &Testcloud) -> (String, String) {
    let (url, demo) = (cloud.auth_url(), cloud.users().demo);
    let (address, base) = url.trim_start_matches("http://").trim_end_matches("/v3").split_once('/').unwrap();
    let domain = json!({"name": "Default"});
    let user = json!({"name": demo.user, "password": demo.password, "domain": domain});
    let auth = json!({"auth": {"identity": {"methods": ["password"], "password": {"user": user}},
                               "scope": {"project": {"name": demo.project, "domain": domain}}}});
    let of_json = ("content-type", "application/json");
    let answer = send(address, "POST", &format!("/{base}/v3/auth/tokens"), &[of_json], &auth.to_string());
    let of_token = |line: &str| {
        let (name, token) = line.split_once(": ")?;
        name.eq_ignore_ascii_case("x-subject-token").then(|| token.to_owned())
    };
    let token = answer.lines().find_map(of_token).unwrap_or_else(|| panic!("{answer}"));
    let body = |answer: &str| serde_json::from_str::<Value>(answer.split_once("\r\n\r\n").unwrap().1).unwrap();
    let token_body = body(&answer);
    let id = |of: &str| token_body["token"][of]["id"].as_str().unwrap().to_owned();
    let path = format!("/{base}/v3/users/{}/credentials/OS-EC2", id("user"));
    let asked = json!({"tenant_id": id("project")}).to_string();
    let made = body(&send(address, "POST", &path, &[of_json, ("x-auth-token", &token)], &asked));
    let text = |name: &str| made["credential"][name].as_str().unwrap().to_owned();
    (text("access"), text("secret"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_captured_request_cannot_do_anything_else() {
    let folder = Folder::new("signed");
    let cloud = Testcloud::builder().start().await.unwrap();
    let config = folder.configured(&cloud, "[heat_api_cfn]\nbind_host = 127.0.0.1\nbind_port = 0\n");
    let service = Running::start(folder.kiln(&["serve", "--config-file", &config]));
    let addresses = service.wait_for("serving address=");
    let (rest, cfn) = addresses.split_once(" cfn=").unwrap();
    let cfn = cfn.split(' ').next().unwrap();
    folder.write("t.yaml", "heat_template_version: 2018-08-31\n");
    let kiln =
        |args: &[&str]| crate::run::Ran::from(folder.client(&cloud, &format!("http://{rest}"), args).output().unwrap());
    kiln(&["stack", "create", "-t", "t.yaml", "--wait", "--poll", "0.05", "victim"]).ok();

    let (access, secret) = key(&cloud);
    let body = "Action=ListStacks&Version=2010-05-15";
    let (date, authorization) = signed(cfn, (&access, &secret), body);
    let captured = |target: &str, kind: &str, body: &str| {
        let headers = [("content-type", kind), (DATE_HEADER, &date), ("authorization", &authorization)];
        send(cfn, "POST", target, &headers, body)
    };
    let answer = captured("/v1/", FORM, body);
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("victim"), "{answer}");

    let delete = "/v1/?Action=DeleteStack&StackName=victim";
    for (target, kind) in [(delete, "text/plain"), (delete, FORM), ("/v1/?ContentType=JSON", FORM)] {
        let answer = captured(target, kind, body);
        assert!(answer.starts_with("HTTP/1.1 403") && answer.contains("SignatureDoesNotMatch"), "{answer}");
    }
    // Nothing in a body of another type is a parameter.
    let answer = captured("/v1/", "text/plain", body);
    assert!(
        answer.starts_with("HTTP/1.1 403") && answer.contains("must be application/x-www-form-urlencoded"),
        "{answer}"
    );
    // Another body is not what was signed.
    let answer = captured("/v1/", FORM, "Action=DeleteStack&StackName=victim");
    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
    // Of version 2, only SignatureVersion 2 covers all parameters.
    let older =
        format!("{delete}&AWSAccessKeyId={access}&Signature=x&Timestamp=2026-01-01T00:00:00Z&SignatureVersion=");
    for version in ["0", "1"] {
        let answer = send(cfn, "GET", &format!("{older}{version}"), &[], "");
        assert!(answer.starts_with("HTTP/1.1 403") && answer.contains("SignatureVersion must be 2"), "{answer}");
    }
    let listed = kiln(&["stack", "list", "-f", "value", "-c", "Stack Status"]).ok();
    assert_eq!(listed, "CREATE_COMPLETE\n");
}
