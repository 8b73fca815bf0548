//! A simulated or real cloud.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use kiln_cloud::{Connector, Credentials, Options, RetryPolicy, SharedClient, StackCloud, TlsOptions};
use kiln_resource::Cloud as _;
use kiln_testcloud::{Snapshot, Testcloud};
use kiln_value::Value;

use crate::resource::Resource;

/// The environment of a scenario.
pub(crate) struct Ground {
    /// The cloud of an ordinary user.
    pub(crate) cloud: Arc<StackCloud>,
    /// The cloud of an administrator.
    pub(crate) admin: Arc<StackCloud>,
    /// The simulated cloud, if it is one.
    pub(crate) testcloud: Option<Testcloud>,
    before: Option<Snapshot>,
}

fn connector(auth_url: &str) -> Connector {
    let client = SharedClient::new(&TlsOptions::default()).unwrap();
    let mut options = Options::new(auth_url.parse().unwrap());
    options.retry = RetryPolicy { base: Duration::from_millis(5), ..RetryPolicy::default() };
    // The service to compare with, if the catalog contains another one.
    if let Ok(peer) = std::env::var("KILN_TEST_PEER") {
        options.endpoint_overrides.insert("orchestration".into(), peer.parse().unwrap());
    }
    Connector::new(Arc::new(client), options)
}

impl Ground {
    /// A new simulated cloud.
    pub(crate) async fn simulated() -> Self {
        let testcloud = Testcloud::builder().seed(7).start().await.unwrap();
        let connector = connector(&testcloud.auth_url());
        let users = testcloud.users();
        let credentials = |account: kiln_testcloud::Account| {
            Credentials::password(account.user, account.password, account.project, "Default")
        };
        let before = testcloud.snapshot();
        Self {
            cloud: connector.cloud(&credentials(users.demo)).await,
            admin: connector.cloud(&credentials(users.admin)).await,
            testcloud: Some(testcloud),
            before: Some(before),
        }
    }

    /// Whether the cloud has a service; devcloud starts only those that it is told to.
    pub(crate) async fn offers(&self, service: &str) -> bool {
        self.cloud.has_service(service).await.unwrap()
    }

    /// The real cloud of the `OS_*` variables; its administrator is `KILN_TEST_ADMIN` (user:password:project).
    pub(crate) async fn real() -> Self {
        let get = |name: &str| std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set"));
        let connector = connector(&get("OS_AUTH_URL"));
        let domain = get("OS_USER_DOMAIN_NAME");
        let own = Credentials::password(&get("OS_USERNAME"), &get("OS_PASSWORD"), &get("OS_PROJECT_NAME"), &domain);
        let admin = get("KILN_TEST_ADMIN");
        let mut parts = admin.split(':');
        let mut next = || parts.next().unwrap_or_default().to_owned();
        let admin = Credentials::password(&next(), &next(), &next(), &domain);
        Self { cloud: connector.cloud(&own).await, admin: connector.cloud(&admin).await, testcloud: None, before: None }
    }

    /// A resource that is not created yet.
    pub(crate) fn resource(&self, type_name: &str, name: &str) -> Resource {
        self.resource_of(self.cloud.clone(), type_name, name)
    }

    /// The same, as an administrator.
    pub(crate) fn admin_resource(&self, type_name: &str, name: &str) -> Resource {
        self.resource_of(self.admin.clone(), type_name, name)
    }

    fn resource_of(&self, cloud: Arc<StackCloud>, type_name: &str, name: &str) -> Resource {
        // A cloud may have the objects of other runs.
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let run = format!("{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let mut resource = Resource::new(cloud, &run, type_name, name);
        if self.testcloud.is_some() {
            resource.engine.longest_pause = Duration::from_millis(20);
        }
        resource
    }

    /// A created resource.
    pub(crate) async fn made(&self, type_name: &str, name: &str, given: Value) -> Resource {
        let mut resource = self.resource(type_name, name);
        resource.create(given).await.unwrap_or_else(|failure| panic!("{type_name} {name}: {failure}"));
        resource
    }

    /// Fails if anything is left; only the simulated cloud can be checked.
    pub(crate) fn assert_clean(&self) {
        if let (Some(testcloud), Some(before)) = (&self.testcloud, &self.before) {
            assert_eq!(before.added_in(&testcloud.snapshot()), Vec::<String>::new());
        }
    }
}
