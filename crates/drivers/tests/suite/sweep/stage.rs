//! The environment of a run: a simulated cloud with the dependencies of the case.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kiln_cloud::{Connector, Credentials, Options};
use kiln_resource::{Cloud as _, CloudRequest, Method, Operation, StackFacts};
use kiln_testcloud::{Snapshot, Testcloud};
use kiln_value::{Map, Value};

use crate::resource::{Engine, Resource, uuid};
use crate::sweep::cases::Case;
use crate::sweep::signalling::Signalling;
use crate::sweep::wire::Wire;

/// A cloud and a transport to it.
pub(crate) struct Stage {
    pub(crate) testcloud: Testcloud,
    pub(crate) wire: Arc<Wire>,
    pub(crate) cloud: Arc<Signalling>,
    /// Physical IDs of the dependencies of the case, by name.
    made: Vec<(&'static str, String)>,
    /// The objects before the case begins.
    pub(crate) before: Snapshot,
}

impl Stage {
    /// A new cloud with the dependencies of the case.
    pub(crate) async fn furnished(case: &Case) -> Self {
        let epoch = "2026-01-01T00:00:00Z".parse().unwrap();
        let builder = Testcloud::builder().seed(7).epoch(epoch).build_time(Duration::from_secs(3));
        let mut stage = Self::of(builder.in_process(), case).await;
        for (name, type_name, given) in &case.needs {
            let mut resource = stage.resource(type_name, name);
            stage.give(&mut resource, given).await;
            resource.act(Operation::Create).await.unwrap_or_else(|failure| panic!("{name}: {failure}"));
            stage.made.push((*name, resource.id().to_owned()));
        }
        for (name, service, path, body) in &case.asks {
            tokio::time::sleep(Duration::from_mins(1)).await;
            let request = CloudRequest::new(*service, Method::Post, *path).body(stage.filled(body));
            let made = stage.cloud.call(request).await.unwrap_or_else(|failure| panic!("{name}: {failure}")).body;
            let object = made.as_map().and_then(|made| made.values().next());
            stage.made.push((*name, object.and_then(|object| object.str_at("id")).unwrap().to_owned()));
        }
        // The dependencies complete what they do in the background.
        tokio::time::sleep(Duration::from_mins(1)).await;
        stage.before = stage.testcloud.snapshot();
        stage
    }

    /// A copy of a furnished stage for one run, with a new session.
    pub(crate) async fn fork(&self, case: &Case) -> Self {
        let stage = Self::of(self.testcloud.fork(), case).await;
        Self { made: self.made.clone(), before: self.before.clone(), ..stage }
    }

    async fn of(testcloud: Testcloud, case: &Case) -> Self {
        let wire = Arc::new(Wire::new(testcloud.transport()));
        let connector = Connector::new(wire.clone(), Options::new(testcloud.auth_url().parse().unwrap()));
        let users = testcloud.users();
        let account = if case.is_admin { users.admin } else { users.demo };
        let credentials = Credentials::password(account.user, account.password, account.project, "Default");
        let cloud = connector.cloud(&credentials).await;
        cloud.project_id().await.unwrap();
        let cloud = Arc::new(Signalling::new(&connector, cloud).await);
        let nothing = Snapshot { objects: BTreeMap::new() };
        Self { testcloud, wire, cloud, made: Vec::new(), before: nothing }
    }

    /// A resource that is not created yet, in the stack of the case.
    pub(crate) fn resource(&self, type_name: &str, name: &str) -> Resource {
        let mut resource = Resource::new(self.cloud.clone(), "sweep", type_name, name);
        let death = Arc::clone(&self.wire.death);
        resource.engine = Engine { is_unmarked: true, further_attempts: 2, death, ..Engine::default() };
        let id = uuid("sweep");
        let project_id = "sweep".to_owned();
        resource.facts.stack = StackFacts { id: id.clone(), project_id, root_id: id, ..StackFacts::default() };
        resource
    }

    /// Sets the properties of a resource to values of the case.
    pub(crate) async fn give(&self, resource: &mut Resource, given: &Value) {
        resource.give(self.filled(given)).await.unwrap();
        resource.validate().unwrap();
    }

    /// A value of the case with `{name}` replaced by the physical ID of a dependency.
    pub(crate) fn filled(&self, value: &Value) -> Value {
        match value {
            Value::Str(text) => {
                let name = text.strip_prefix('{').and_then(|text| text.strip_suffix('}'));
                let made = name.and_then(|name| self.made.iter().find(|(made, _)| *made == name));
                made.map_or_else(|| value.clone(), |(_, id)| id.as_str().into())
            }
            Value::List(items) => items.iter().map(|item| self.filled(item)).collect(),
            Value::Map(map) => map.iter().map(|(key, value)| (key.clone(), self.filled(value))).collect::<Map>().into(),
            other => other.clone(),
        }
    }
}
