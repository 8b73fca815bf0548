//! Requests and errors of finders.

use std::sync::Mutex;

use async_trait::async_trait;
use kiln_resource::constraint::CLOUD;
use kiln_resource::{Cloud, CloudRequest, CloudResponse, Failure, FailureKind, Finders, definition};
use kiln_value::{Value, value};

use super::find;

/// Shelves by ID and in a list; everything else is missing.
#[derive(Default)]
struct Shelves(Mutex<Vec<String>>);

#[async_trait]
impl Cloud for Shelves {
    async fn call(&self, request: CloudRequest) -> Result<CloudResponse, Failure> {
        let query: Vec<String> = request.query.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let asked = format!("{}?{}", request.path, query.join("&"));
        self.0.lock().unwrap().push(asked.trim_end_matches('?').to_owned());
        let named = |id: &str, name: &str| value!({"uuid": id, "id": id, "name": name});
        let body = match request.path.as_str() {
            "/v1/shelves/s1" => value!({"shelf": (named("s1", "one"))}),
            "/v1/shelves" => value!({"shelves": [(named("s1", "one")), (named("s2", "two")), (named("s3", "two"))]}),
            path if path.matches('/').count() > 2 => {
                return Err(Failure::new(FailureKind::NotFound, "NotFound", "no such object"));
            }
            _ => Value::Null,
        };
        Ok(CloudResponse { status: 200, body, ..CloudResponse::default() })
    }

    async fn find(&self, _: &str, _: &str) -> Result<String, Failure> {
        Err(Failure::other("Unexpected", "a search"))
    }

    async fn has_service(&self, _: &str) -> Result<bool, Failure> {
        Ok(true)
    }

    async fn has_extension(&self, _: &str, alias: &str) -> Result<bool, Failure> {
        Ok(alias == "shelves")
    }

    async fn project_id(&self) -> Result<String, Failure> {
        Ok("p1".to_owned())
    }
}

fn finders(finder: &str) -> Finders {
    let text = format!(
        "type: Acme::Shelf\nsummary: A shelf.\nservice: acme\nrest: {{ collection: /v1/shelves, member: shelf, id: uuid }}\n\
         finder: {finder}\n"
    );
    Finders::of(&[definition::parse("shelf.yaml", &text).unwrap()])
}

/// The ID, or the error, and the requests.
async fn found(finder: &str, name: &str) -> (String, Vec<String>) {
    let cloud = Shelves::default();
    let found = find(&cloud, &finders(finder), "acme.shelf", name).await;
    (found.unwrap_or_else(|failure| failure.to_string()), cloud.0.into_inner().unwrap())
}

#[tokio::test]
async fn objects_are_found_by_id_and_by_name() {
    let by_id = ("s1".to_owned(), vec!["/v1/shelves/s1".to_owned()]);
    assert_eq!(found("acme.shelf", "s1").await, by_id);
    let requests = ["/v1/shelves/one", "/v1/shelves?name=one"].map(str::to_owned).to_vec();
    assert_eq!(found("acme.shelf", "one").await, ("s1".to_owned(), requests));
    let (text, requests) = found("{ name: acme.shelf, by: false }", "one").await;
    assert_eq!((text.as_str(), requests.len()), ("EntityNotFound: The Shelf (one) could not be found.", 1));
    let (id, requests) = found("{ name: acme.shelf, client: neutron, extension: shelves }", "one").await;
    assert_eq!((id.as_str(), requests), ("s1", vec!["/v1/shelves?fields=id&fields=name&name=one".to_owned()]));
}

#[tokio::test]
async fn errors_are_those_of_the_client() {
    for (client, missing, ambiguous) in [
        (
            "heat, word: board",
            "EntityNotFound: The board (x) could not be found.",
            "NoUniqueMatch: Ambiguous board name 'two'. Found more than one board for this name.",
        ),
        ("osc", "NotFound: x not found (HTTP 404)", "NotFound: two not found (HTTP 404)"),
        (
            "sdk",
            "NotFoundException: No Shelf found for x",
            "DuplicateResource: More than one Shelf exists with the name 'two'.",
        ),
        (
            "neutron",
            "NotFound: Unable to find shelf with name or id 'x'",
            "NeutronClientNoUniqueMatch: Multiple shelf matches found for name 'two', use an ID to be more specific.",
        ),
        (
            "neutron_extension",
            "NotFound: Unable to find shelf with name or id 'x'",
            "NeutronClientNoUniqueMatch: Multiple shelf matches found for name 'two', use an ID to be more specific.",
        ),
        (
            "neutron, extension: boards",
            "EntityNotFound: The neutron extension (boards) could not be found.",
            "EntityNotFound: The neutron extension (boards) could not be found.",
        ),
    ] {
        let finder = format!("{{ name: acme.shelf, client: {client} }}");
        assert_eq!(found(&finder, "x").await.0, missing, "{client}");
        assert_eq!(found(&finder, "two").await.0, ambiguous, "{client}");
    }
}

#[tokio::test]
async fn every_constraint_in_code_has_a_finder() {
    for name in CLOUD {
        let failure = find(&Shelves::default(), &Finders::default(), name, "x").await.err();
        assert!(failure.as_ref().is_none_or(|failure| failure.class != "ClientNotFound"), "{name}: {failure:?}");
    }
}
