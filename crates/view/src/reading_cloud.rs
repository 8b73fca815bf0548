//! A cloud for comparisons: it sends only requests that read, and reads many objects of one kind by a list.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use kiln_resource::{
    Access, AccountNames, Cloud, CloudRequest, CloudResponse, Failure, Method, RemoteCloud, SignalEndpoints, UserDomain,
};
use kiln_value::{Class, Map, Secret, Value};
use tokio::sync::OnceCell;

use crate::import::kind::{KINDS, ObjectKind};

/// So many objects of a list are read one by one: their stack may have no more.
const SINGLE: usize = 3;
/// The state of a list.
#[derive(Default)]
struct Read {
    /// Reads of single objects.
    single: AtomicUsize,
    /// The list, once it was read.
    objects: OnceCell<Objects>,
}

#[derive(Default)]
struct Objects {
    by_id: HashMap<String, Value>,
    /// Those of one device: the ports of servers. Empty unless these are all objects of the list.
    by_device: HashMap<String, Vec<Value>>,
}

/// What a request asks for.
enum Asked {
    Object(String),
    /// The objects of a device.
    OfDevice(String),
}

/// Which list: its index in [`KINDS`], and the microversion.
type Key = (usize, Option<String>);

/// See the module.
pub(crate) struct ReadingCloud {
    inner: Arc<dyn Cloud>,
    lists: Mutex<HashMap<Key, Arc<Read>>>,
    /// Pages that are read of one list at most. What is on later ones is read object by object.
    pages: usize,
}

impl ReadingCloud {
    /// For a stack with this number of resources.
    pub(crate) fn new(inner: Arc<dyn Cloud>, resources: usize) -> Self {
        // A page takes as long as some objects. A project may have many more objects than the stack.
        Self { inner, lists: Mutex::default(), pages: 1 + resources / 20 }
    }

    /// The list that has what a request asks for.
    fn list_of(request: &CloudRequest) -> Option<(usize, Asked)> {
        if request.method != Method::Get || request.region.is_some() {
            return None;
        }
        let asked = |list: &ObjectKind| match &request.query[..] {
            [] => {
                let id = request.path.strip_prefix(list.item?)?.strip_prefix('/')?;
                let is_object = !id.is_empty() && !id.contains('/') && id != "detail";
                is_object.then(|| Asked::Object(id.to_owned()))
            }
            [(name, device)] if name == "device_id" && request.path == list.path => {
                Some(Asked::OfDevice(device.clone()))
            }
            _ => None,
        };
        let lists = KINDS.iter().enumerate().filter(|(_, list)| list.service == request.service);
        lists.into_iter().find_map(|(index, list)| Some((index, asked(list)?)))
    }

    /// An answer from a list. `None`: the request is to be sent, because the list has not what it asks for or cannot be read, or
    /// because few such requests came.
    async fn listed(&self, request: &CloudRequest) -> Option<Value> {
        let (index, asked) = Self::list_of(request)?;
        let list = KINDS.get(index)?;
        let read = {
            let mut lists = self.lists.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(lists.entry((index, request.microversion.clone())).or_default())
        };
        if read.single.fetch_add(1, Ordering::Relaxed) < SINGLE {
            return None;
        }
        let objects = read.objects.get_or_init(|| self.read(list, request)).await;
        let (key, found) = match asked {
            Asked::Object(id) => (list.keys.1, objects.by_id.get(&id)?.clone()),
            Asked::OfDevice(device) => (list.keys.0, objects.by_device.get(&device)?.clone().into()),
        };
        Some(Value::Map(Map::from_iter([(key.to_owned(), found)])))
    }

    /// The objects of a list, as far as the service shows them.
    async fn read(&self, list: &ObjectKind, of: &CloudRequest) -> Objects {
        let (found, is_whole, _) = list.list(&*self.inner, of.microversion.as_ref(), self.pages).await;
        let mut objects = Objects::default();
        for object in found {
            if let Some(device) = object.str_at("device_id").filter(|device| is_whole && !device.is_empty()) {
                objects.by_device.entry(device.to_owned()).or_default().push(object.clone());
            }
            if let Some(id) = object.str_at("id") {
                objects.by_id.insert(id.to_owned(), object);
            }
        }
        objects
    }
}

/// Whether a request certainly changes nothing. Cinder associates, and ends associations, by GET.
fn reads(request: &CloudRequest) -> bool {
    let action = request.path.rsplit('/').next().unwrap_or_default();
    let associates = matches!(action, "associate" | "disassociate" | "disassociate_all");
    matches!(request.method, Method::Get | Method::Head) && !associates
}

#[async_trait]
impl Cloud for ReadingCloud {
    async fn call(&self, request: CloudRequest) -> Result<CloudResponse, Failure> {
        if !reads(&request) {
            let why = format!("a comparison changes nothing, and this request may: {}", request.path);
            return Err(Failure::other(Class::NotSupported, why));
        }
        match self.listed(&request).await {
            Some(body) => Ok(CloudResponse { status: 200, body, ..CloudResponse::default() }),
            None => self.inner.call(request).await,
        }
    }

    async fn find(&self, finder: &str, name_or_id: &str) -> Result<String, Failure> {
        self.inner.find(finder, name_or_id).await
    }

    async fn has_service(&self, service: &str) -> Result<bool, Failure> {
        self.inner.has_service(service).await
    }

    async fn has_extension(&self, service: &str, alias: &str) -> Result<bool, Failure> {
        self.inner.has_extension(service, alias).await
    }

    async fn endpoint(&self, service: &str) -> Result<Option<String>, Failure> {
        self.inner.endpoint(service).await
    }

    async fn user_domain(&self) -> Result<Option<UserDomain>, Failure> {
        // Its cloud could send any request.
        Ok(None)
    }

    async fn signal_endpoints(&self) -> Result<SignalEndpoints, Failure> {
        self.inner.signal_endpoints().await
    }

    async fn account_names(&self) -> Result<AccountNames, Failure> {
        self.inner.account_names().await
    }

    async fn access(&self, refused: Option<&Secret<String>>) -> Result<Access, Failure> {
        self.inner.access(refused).await
    }

    async fn remote(&self, remote: &RemoteCloud) -> Result<Arc<dyn Cloud>, Failure> {
        let inner = self.inner.remote(remote).await?;
        Ok(Arc::new(Self::new(inner, 0)))
    }

    async fn time(&self, service: &str) -> Option<i64> {
        self.inner.time(service).await
    }

    async fn project_id(&self) -> Result<String, Failure> {
        self.inner.project_id().await
    }
}

#[cfg(test)]
mod tests {
    use kiln_value::value;

    use super::*;

    /// A cloud with five networks, and a port of each of five servers, which writes down what it is asked.
    #[derive(Default)]
    struct Five(Mutex<Vec<String>>);

    const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];

    impl Five {
        fn asked(&self) -> Vec<String> {
            std::mem::take(&mut *self.0.lock().expect("whole"))
        }
    }

    #[async_trait]
    impl Cloud for Five {
        async fn call(&self, request: CloudRequest) -> Result<CloudResponse, Failure> {
            let device = request.query.iter().find(|(name, _)| name == "device_id").map(|(_, device)| device.as_str());
            let of = device.map(|device| format!(" of {device}")).unwrap_or_default();
            self.0.lock().expect("whole").push(format!("{:?} {}{of}", request.method, request.path));
            let network = |id: &str| value!({ "id": id });
            let body = match request.path.strip_prefix("/v2.0/networks/") {
                Some("gone") => {
                    return Err(Failure::new(kiln_resource::FailureKind::NotFound, Class::NotFound, "gone"));
                }
                Some(id) => value!({ "network": (network(id)) }),
                None if request.path == "/v2.0/ports" => {
                    let ports = NAMES.into_iter().filter(|name| device.is_none_or(|device| device == *name));
                    value!({ "ports": (ports.map(|name| value!({"id": name, "device_id": name})).collect::<Value>()) })
                }
                None => value!({ "networks": (NAMES.map(network).into_iter().collect::<Value>()) }),
            };
            Ok(CloudResponse { status: 200, body, ..CloudResponse::default() })
        }

        async fn find(&self, _: &str, name: &str) -> Result<String, Failure> {
            Ok(name.to_owned())
        }

        async fn has_service(&self, _: &str) -> Result<bool, Failure> {
            Ok(true)
        }

        async fn has_extension(&self, _: &str, _: &str) -> Result<bool, Failure> {
            Ok(true)
        }

        async fn project_id(&self) -> Result<String, Failure> {
            Ok("p".to_owned())
        }
    }

    #[tokio::test]
    async fn ports_of_servers_are_read_by_one_list() {
        let ports = Arc::new(Five::default());
        let cloud = ReadingCloud::new(ports.clone(), 1_000);
        for device in ["a", "b", "c", "d", "e", "none"] {
            let request = CloudRequest::new("network", Method::Get, "/v2.0/ports").query("device_id", device);
            let read = cloud.call(request).await.expect("there").body;
            let expected = if device == "none" { value!([]) } else { value!([{"id": device, "device_id": device}]) };
            assert_eq!(read, value!({ "ports": expected }), "{device}");
        }
        // What the list does not have is asked for.
        let asked = [" of a", " of b", " of c", "", " of none"].map(|of| format!("Get /v2.0/ports{of}"));
        assert_eq!(ports.asked(), asked);
    }

    #[tokio::test]
    async fn what_may_change_something_is_not_sent() {
        let networks = Arc::new(Five::default());
        let cloud = ReadingCloud::new(networks.clone(), 1_000);
        let refused = [
            (Method::Post, "/v2.0/networks"),
            (Method::Put, "/v2.0/networks/a"),
            (Method::Patch, "/v2/images/a"),
            (Method::Delete, "/v2.0/networks/a"),
            (Method::Get, "/v3/qos-specs/a/associate"),
            (Method::Get, "/v3/qos-specs/a/disassociate_all"),
        ];
        for (method, path) in refused {
            let failure = cloud.call(CloudRequest::new("any", method, path)).await.expect_err(path);
            assert!(failure.message.contains("a comparison changes nothing"), "{failure}");
        }
        assert_eq!(networks.asked(), Vec::<String>::new());
    }

    #[tokio::test]
    async fn the_fourth_object_is_read_by_a_list_and_a_missing_one_by_itself() {
        let networks = Arc::new(Five::default());
        let cloud = ReadingCloud::new(networks.clone(), 1_000);
        for id in ["a", "b", "c", "d", "e"] {
            let path = format!("/v2.0/networks/{id}");
            let read = cloud.call(CloudRequest::new("network", Method::Get, path)).await.expect("there");
            assert_eq!(read.body, value!({ "network": { "id": id } }));
        }
        let singles = ["a", "b", "c"].map(|id| format!("Get /v2.0/networks/{id}"));
        assert_eq!(networks.asked(), [&singles[..], &["Get /v2.0/networks".to_owned()]].concat());
        let gone = cloud.call(CloudRequest::new("network", Method::Get, "/v2.0/networks/gone")).await;
        assert!(gone.is_err_and(|failure| failure.is_not_found()));
        assert_eq!(networks.asked(), ["Get /v2.0/networks/gone"]);
    }
}
