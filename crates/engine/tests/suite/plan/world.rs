//! The objects that generated templates refer to by name, and what their owners do with them.

use std::collections::BTreeMap;
use std::sync::Arc;

use kiln_cloud::{Connector, Credentials, StackCloud};
use kiln_resource::{Cloud, CloudRequest, Failure, Method};
use kiln_testcloud::{Account, Testcloud};
use kiln_value::{Value, value};

use super::generate::Dice;

/// The types of named objects, each with two names.
pub(crate) const NAMES: [(Noun, [&str; 2]); 3] =
    [(Noun::Image, ["golden", "plain"]), (Noun::Flavor, ["tiny", "small"]), (Noun::Network, ["lan", "dmz"])];

/// The type of a named object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Noun {
    Image,
    Flavor,
    Network,
}

/// What the names mean today.
pub(crate) type Meanings = BTreeMap<(Noun, String), String>;

/// Objects by ID.
pub(crate) type Objects = BTreeMap<String, Value>;

/// The named objects of a cloud.
pub(crate) struct World {
    admin: Arc<StackCloud>,
    pub(crate) demo: Arc<StackCloud>,
    pub(crate) meanings: Meanings,
    /// The number of objects made so far.
    made: usize,
}

async fn call(cloud: &dyn Cloud, service: &str, method: Method, path: &str, body: Option<Value>) -> Value {
    let request = CloudRequest::new(service, method, path);
    let request = if let Some(body) = body { request.body(body) } else { request };
    cloud.call(request).await.expect("done").body
}

impl World {
    pub(crate) async fn new(cloud: &Testcloud, connector: &Connector) -> Self {
        let credentials =
            |account: Account| Credentials::password(account.user, account.password, account.project, "Default");
        let admin = connector.cloud(&credentials(cloud.users().admin)).await;
        let demo = connector.cloud(&credentials(cloud.users().demo)).await;
        let mut world = Self { admin, demo, meanings: Meanings::new(), made: 0 };
        for (noun, names) in NAMES {
            for name in names {
                let id = world.make(noun, name).await;
                world.meanings.insert((noun, name.to_owned()), id);
            }
        }
        world
    }

    async fn make(&mut self, noun: Noun, name: &str) -> String {
        self.made += 1;
        let made = match noun {
            Noun::Image => {
                let body = value!({
                    "name": name, "visibility": "public", "disk_format": "raw", "container_format": "bare",
                });
                let image = call(&*self.admin, "image", Method::Post, "/v2/images", Some(body)).await;
                let file = format!("/v2/images/{}/file", image.str_at("id").expect("an ID"));
                call(&*self.admin, "image", Method::Put, &file, Some(value!({}))).await;
                return image.str_at("id").expect("an ID").to_owned();
            }
            Noun::Flavor => {
                let body = value!({"flavor": {"name": name, "ram": 64, "vcpus": 1, "disk": 1}});
                call(&*self.admin, "compute", Method::Post, "/flavors", Some(body)).await
            }
            Noun::Network => {
                let body = value!({"network": {"name": name}});
                let made = call(&*self.demo, "network", Method::Post, "/v2.0/networks", Some(body)).await;
                let network = made.get("network").and_then(|network| network.str_at("id")).expect("an ID");
                let cidr = format!("10.{}.0.0/16", self.made);
                let subnet = value!({"subnet": {"network_id": network, "ip_version": 4, "cidr": cidr}});
                call(&*self.demo, "network", Method::Post, "/v2.0/subnets", Some(subnet)).await;
                made
            }
        };
        let object = made.as_map().and_then(|map| map.values().next()).expect("an object");
        object.str_at("id").expect("an ID").to_owned()
    }

    /// Deletes an object, or takes its name away if it is in use.
    async fn unmake(&self, noun: Noun, id: &str) {
        match noun {
            Noun::Image => _ = call(&*self.admin, "image", Method::Delete, &format!("/v2/images/{id}"), None).await,
            Noun::Flavor => _ = call(&*self.admin, "compute", Method::Delete, &format!("/flavors/{id}"), None).await,
            Noun::Network => {
                let body = value!({"network": {"name": "former"}});
                call(&*self.demo, "network", Method::Put, &format!("/v2.0/networks/{id}"), Some(body)).await;
            }
        }
    }

    /// Gives up to two names a new meaning: mostly the object is made again, sometimes it is only gone.
    pub(crate) async fn change(&mut self, dice: &mut Dice) {
        for _ in 0..dice.below(3) {
            let (noun, names) = NAMES[dice.below(NAMES.len())];
            let key = (noun, names[dice.below(2)].to_owned());
            if let Some(id) = self.meanings.remove(&key) {
                self.unmake(noun, &id).await;
                if dice.one_in(5) {
                    continue;
                }
            }
            let id = self.make(noun, &key.1).await;
            self.meanings.insert(key, id);
        }
    }

    /// The objects of stacks, by ID.
    pub(crate) async fn objects(&self) -> Objects {
        let lists = [
            ("network", "/v2.0/networks"),
            ("network", "/v2.0/ports"),
            ("network", "/v2.0/subnets"),
            ("volumev3", "/v3/volumes/detail"),
            ("compute", "/servers/detail"),
        ];
        let mut objects = Objects::new();
        for (service, path) in lists {
            let listed = call(&*self.demo, service, Method::Get, path, None).await;
            let listed = listed.as_map().into_iter().flat_map(|map| map.values()).find_map(Value::as_list);
            for object in listed.unwrap_or_default() {
                objects.insert(object.str_at("id").expect("an ID").to_owned(), object.clone());
            }
        }
        objects
    }

    /// Changes or deletes an object of the stack behind its back.
    pub(crate) async fn tamper(&self, dice: &mut Dice, service: &str, path: &str, key: &str) -> Result<(), Failure> {
        let request = if dice.one_in(4) {
            CloudRequest::new(service, Method::Delete, path)
        } else {
            let body = value!({key: {"name": (format!("other-{}", dice.below(100)))}});
            CloudRequest::new(service, Method::Put, path).body(body)
        };
        self.demo.call(request).await.map(|_| ())
    }
}
