//! A name from the template costs no request: what a create changes is as much as without a name.

use kiln_value::{Map, Value};

use crate::resource::type_of;
use crate::sweep::cases::Case;
use crate::sweep::stage::Stage;

/// The types whose named objects need a second request, with the reason (docs/compatibility.md).
const EXCEPTIONS: [(&str, &str); 3] = [
    ("OS::Keystone::User", "Keystone does not show passwords"),
    ("OS::Trove::Instance", "Trove does not show users and databases with an instance"),
    ("OS::Zun::Container", "Zun does not show mounts and networks of a container"),
];

#[tokio::test(start_paused = true)]
async fn a_name_costs_no_request() {
    let (mut problems, mut count) = (Vec::new(), 0);
    for (test, case) in crate::sweep::all() {
        let Some(schema) = type_of(case.type_name).properties.get("name").cloned() else { continue };
        let furnished = Stage::furnished(&case).await;
        let named = changes(&case, &furnished, Some("given")).await;
        let is_update = |call: &String| call.starts_with("PUT") || call.starts_with("PATCH");
        // A bare program that creates an object does not update it.
        let bare = if schema.required {
            named.iter().filter(|call| !is_update(call)).cloned().collect()
        } else {
            changes(&case, &furnished, None).await
        };
        let is_exception = EXCEPTIONS.iter().any(|(name, _)| *name == case.type_name);
        if is_exception != (named.len() > bare.len()) {
            problems.push(format!("{test}: {named:?}, without a name {bare:?}"));
        }
        count += 1;
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert!(count > 60, "{count} types");
}

/// The requests of a create that change something.
async fn changes(case: &Case, furnished: &Stage, name: Option<&str>) -> Vec<String> {
    let stage = furnished.fork(case).await;
    let Value::Map(mut given) = case.create.clone() else { panic!("properties are a map") };
    given.shift_remove("name");
    given.extend(name.map(|name| ("name".to_owned(), name.into())).into_iter().collect::<Map>());
    let mut resource = stage.resource(case.type_name, "it");
    stage.give(&mut resource, &given.into()).await;
    stage.testcloud.journal().clear();
    let ended = resource.act(kiln_resource::Operation::Create).await;
    assert!(ended.is_ok() || case.is_untold, "{}: {ended:?}", case.type_name);
    let calls =
        stage.testcloud.journal().list().into_iter().filter(|call| !matches!(call.method.as_str(), "GET" | "HEAD"));
    calls.map(|call| call.call()).filter(|call| !call.contains("/auth/")).collect()
}
