//! Requests and errors of finders.

use std::sync::Mutex;

use async_trait::async_trait;
use kiln_resource::{Cloud, CloudRequest, CloudResponse, Failure, FailureKind, Finders, definition, shipped};
use kiln_value::{Class, Value, value};

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
                return Err(Failure::new(FailureKind::NotFound, Class::NotFound, "no such object"));
            }
            _ => Value::Null,
        };
        Ok(CloudResponse { status: 200, body, ..CloudResponse::default() })
    }

    async fn find(&self, _: &str, _: &str) -> Result<String, Failure> {
        Err(Failure::other(Class::Unexpected, "a search"))
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

/// A service with these objects of each collection; lists are filtered by name, domain and marker.
struct Objects {
    rows: Vec<Value>,
    asked: Mutex<Vec<String>>,
}

impl Objects {
    fn of(rows: &Value) -> Self {
        Self { rows: rows.as_list().unwrap().to_vec(), asked: Mutex::default() }
    }

    fn listed(&self, request: &CloudRequest) -> Value {
        let param = |name: &str| request.query.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
        let start = param("marker").and_then(|id| self.rows.iter().position(|row| row.str_at("id") == Some(id)));
        let fits = |row: &&Value| {
            ["id", "name", "domain_id"]
                .iter()
                .all(|key| param(key).is_none_or(|wanted| row.str_at(key) == Some(wanted)))
        };
        let page = self.rows.iter().skip(start.map_or(0, |at| at + 1)).filter(fits).take(2);
        value!({"objects": (page.cloned().collect::<Value>())})
    }
}

#[async_trait]
impl Cloud for Objects {
    async fn call(&self, request: CloudRequest) -> Result<CloudResponse, Failure> {
        let query: Vec<String> = request.query.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let asked = format!("{}?{}", request.path, query.join("&"));
        self.asked.lock().unwrap().push(asked.trim_end_matches('?').to_owned());
        let last = request.path.rsplit('/').next().unwrap_or_default();
        let one = self.rows.iter().find(|row| row.str_at("id") == Some(last));
        // Paths of one object end with an ID or with `absent`.
        let body = match one {
            Some(row) => value!({"object": (row.clone())}),
            None if request.path.contains("/search") || last.contains("absent") || last.contains('%') => {
                return Err(Failure::new(FailureKind::NotFound, Class::NotFound, "no such object (HTTP 404)"));
            }
            None => self.listed(&request),
        };
        Ok(CloudResponse { status: 200, body, ..CloudResponse::default() })
    }

    async fn find(&self, _: &str, _: &str) -> Result<String, Failure> {
        Err(Failure::other(Class::Unexpected, "a search"))
    }

    async fn has_service(&self, _: &str) -> Result<bool, Failure> {
        Ok(true)
    }

    async fn has_extension(&self, _: &str, _: &str) -> Result<bool, Failure> {
        Ok(true)
    }

    async fn project_id(&self) -> Result<String, Failure> {
        Ok("p1".to_owned())
    }
}

/// The result of a finder of Kiln's own types, and the requests.
async fn shipped_found(rows: Value, finder: &str, name: &str) -> (String, Vec<String>) {
    let cloud = Objects::of(&rows);
    let found = find(&cloud, shipped::finders(), finder, name).await;
    (found.unwrap_or_else(|failure| failure.to_string()), cloud.asked.into_inner().unwrap())
}

fn row(id: &str, name: &str) -> Value {
    value!({"id": id, "name": name, "domain_id": "absent-domain"})
}

const UUID: &str = "8f1d7a3e-3f0c-4d8c-9c39-6d7a7c1d0001";

/// What code had said before these finders were data.
#[tokio::test]
async fn missing_and_ambiguous_objects_have_the_texts_of_heat() {
    let twice = || value!([(row("1", "absent")), (row("2", "absent"))]);
    let first = "1";
    for (finder, missing, ambiguous) in [
        ("keystone.project", "EntityNotFound: The KeystoneProject (absent) could not be found.", first),
        ("keystone.user", "EntityNotFound: The KeystoneUser (absent) could not be found.", first),
        ("keystone.group", "EntityNotFound: The KeystoneGroup (absent) could not be found.", first),
        ("keystone.role", "EntityNotFound: The KeystoneRole (absent) could not be found.", first),
        ("keystone.domain", "EntityNotFound: The KeystoneDomain (absent) could not be found.", first),
        (
            "keystone.service",
            "EntityNotFound: The KeystoneService (absent) could not be found.",
            "KeystoneServiceNameConflict: Keystone has more than one service with same name absent. Please use service \
             id instead of name",
        ),
        ("nova.flavor", "NotFound: No Flavor matching {'name': 'absent'}. (HTTP 404)", first),
        (
            "glance.image",
            "EntityMatchNotFound: No images matching {'name': 'absent'}.",
            "EntityUniqueMatchNotFound: No images unique match found for {'name': 'absent'}.",
        ),
        ("cinder.vtype", "EntityNotFound: The VolumeType (absent) could not be found.", first),
        ("cinder.qos_specs", "NotFound: No QoSSpecs matching {'name': 'absent'}. (HTTP 404)", first),
        (
            "neutron.segment",
            "NotFoundException: No Segment found for absent",
            "DuplicateResource: More than one Segment exists with the name 'absent'.",
        ),
        (
            "neutron.security_group",
            "NotFound: Unable to find security_group with name or id 'absent'",
            "PhysicalResourceNameAmbiguity: Multiple physical resources were found with name (absent).",
        ),
        ("neutron.lbaas.pool", "NotFound: Unable to find pool with name or id 'absent'", ""),
        ("barbican.secret", "EntityNotFound: The Secret (absent) could not be found.", ""),
        ("barbican.container", "EntityNotFound: The Container (absent) could not be found.", ""),
        ("cinder.snapshot", "EntityNotFound: The VolumeSnapshot (absent) could not be found.", ""),
        ("cinder.backup", "EntityNotFound: The Volume backup (absent) could not be found.", ""),
        ("ironic.node", "EntityNotFound: The Node (absent) could not be found.", ""),
        ("ironic.portgroup", "EntityNotFound: The PortGroup (absent) could not be found.", ""),
        ("trove.flavor", "NotFound: 404 (HTTP 404)", ""),
        (
            "manila.share_snapshot",
            "EntityNotFound: The share snapshot (absent) could not be found.",
            "NoUniqueMatch: Ambiguous share snapshot name 'absent'. Found more than one share snapshot for this name in \
             Manila.",
        ),
        (
            "manila.share_type",
            "EntityNotFound: The share type (absent) could not be found.",
            "NoUniqueMatch: Ambiguous share type name 'absent'. Found more than one share type for this name in Manila.",
        ),
        (
            "designate.zone",
            "EntityNotFound: The Designate Zone (absent) could not be found.",
            "EntityNotFound: The Designate Zone (absent) could not be found.",
        ),
        ("nova.host", "NotFound: no such object (HTTP 404)", ""),
        (
            "neutron.lbaas.provider",
            "StackValidationFailed: Unable to find neutron provider 'absent', available providers are [].",
            "",
        ),
    ] {
        assert_eq!(shipped_found(value!([]), finder, "absent").await.0, missing, "{finder}");
        if !ambiguous.is_empty() {
            assert_eq!(shipped_found(twice(), finder, "absent").await.0, ambiguous, "{finder}");
        }
    }
}

/// The requests are those that code had sent before these finders were data.
#[tokio::test]
async fn requests_are_those_of_heats_clients() {
    let rows = || value!([(row("1", "absent-a")), (row("2", "absent-b")), (row(UUID, "absent-c"))]);
    let uuid_read = format!("/v2/images/{}", UUID.replace('-', "%2D"));
    for (finder, name, id, requests) in [
        ("nova.flavor", "1", "1", vec!["/flavors/1"]),
        (
            "nova.flavor",
            "absent-c",
            UUID,
            vec!["/flavors/absent%2Dc", "/flavors?is_public=None", "/flavors?is_public=None&marker=2"],
        ),
        ("glance.image", "1", "EntityMatchNotFound: No images matching {'name': '1'}.", vec!["/v2/images?name=1"]),
        ("glance.image", "absent-b", "2", vec!["/v2/images?name=absent-b"]),
        ("cinder.vtype", "1", "1", vec!["/v3/types?is_public=None"]),
        ("cinder.vtype", "absent-b", "2", vec!["/v3/types?is_public=None"]),
        ("cinder.qos_specs", "absent-b", "2", vec!["/v3/qos-specs/absent%2Db", "/v3/qos-specs"]),
        ("neutron.segment", "absent-a", "1", vec!["/v2.0/segments"]),
        ("neutron.segment", "2", "2", vec!["/v2.0/segments"]),
        (
            "neutron.security_group",
            "absent-b",
            "2",
            vec!["/v2.0/security-groups?fields=id&fields=name&name=absent-b&project_id=p1"],
        ),
        ("keystone.role", "absent-a", "1", vec!["/v3/roles/absent%2Da", "/v3/roles?name=absent-a"]),
        ("barbican.secret", "http://b/v1/secrets/2", "http://b/v1/secrets/2", vec!["/v1/secrets/2"]),
        ("cinder.snapshot", "2", "2", vec!["/v3/snapshots/2"]),
    ] {
        let (found, asked) = shipped_found(rows(), finder, name).await;
        assert_eq!((found.as_str(), asked.iter().map(String::as_str).collect::<Vec<_>>()), (id, requests), "{finder}");
    }
    // A UUID that no image has may be the name of one.
    let (found, asked) = shipped_found(value!([(row("1", UUID))]), "glance.image", UUID).await;
    assert_eq!((found.as_str(), asked), ("1", vec![uuid_read, format!("/v2/images?name={UUID}")]));
}

#[tokio::test]
async fn a_name_in_a_domain_is_looked_for_there() {
    let rows = || value!([(row("u1", "absent-ann")), (row("absent-domain", "absent-d")), (row("u2", "absent-bob"))]);
    let (id, asked) = shipped_found(rows(), "keystone.user", "absent-bob{absent-domain}").await;
    let searched = "/v3/users?name=absent-bob&domain_id=absent-domain";
    let requests = ["/v3/domains/absent%2Ddomain", "/v3/domains?name=absent-domain"];
    assert_eq!(id, "EntityNotFound: The KeystoneUser (absent-bob{absent-domain}) could not be found.", "{asked:?}");
    assert_eq!(asked, requests);
    let (id, asked) = shipped_found(rows(), "keystone.user", "absent-bob{absent-d}").await;
    assert_eq!((id.as_str(), asked.last().map(String::as_str)), ("u2", Some(searched)));
    // Domains and services are in no domain.
    let (text, _) = shipped_found(rows(), "keystone.service", "absent{absent-d}").await;
    assert_eq!(text, "EntityNotFound: The KeystoneService (absent{absent-d}) could not be found.");
}

#[tokio::test]
async fn an_error_may_show_the_names_in_the_list() {
    let rows = value!([(row("1", "octavia")), (row("2", "a {value}"))]);
    let (text, _) = shipped_found(rows, "neutron.lbaas.provider", "{known}").await;
    let told = "Unable to find neutron provider '{known}', available providers are ['octavia', 'a {value}'].";
    assert_eq!(text, format!("StackValidationFailed: {told}"));
}

#[tokio::test]
async fn a_service_that_ignores_the_marker_has_one_page() {
    let (text, requests) = found("{ name: acme.shelf, pages: true }", "none").await;
    assert_eq!(text, "EntityNotFound: The Shelf (none) could not be found.");
    let pages = ["/v1/shelves/none", "/v1/shelves?name=none", "/v1/shelves?name=none&marker=s3"];
    assert_eq!(requests, pages);
}
