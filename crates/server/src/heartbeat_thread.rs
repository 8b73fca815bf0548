//! A separate thread for the heartbeat of an engine, so that CPU-bound work cannot delay the renewal of leases.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use kiln_store::{Options, SqlStore, Store};
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

/// A thread with its own runtime and store. It ends when this value is dropped.
pub struct HeartbeatThread {
    runtime: Handle,
    store: Arc<dyn Store>,
    _end: oneshot::Sender<()>,
}

impl HeartbeatThread {
    /// Starts the thread with its own database connections, so that a busy pool or a lock cannot delay it.
    pub async fn start(options: Options) -> Result<Self> {
        let runtime =
            Builder::new_current_thread().enable_all().build().context("cannot start the runtime of the heartbeat")?;
        let handle = runtime.handle().clone();
        let (opened, store) = oneshot::channel();
        let (end, ended) = oneshot::channel::<()>();
        let thread = std::thread::Builder::new().name("heartbeat".to_owned());
        let run = move || {
            runtime.block_on(async {
                if opened.send(SqlStore::open(options).await).is_ok() {
                    // Other spawned tasks run until the sender is dropped.
                    _ = ended.await;
                }
            });
        };
        thread.spawn(run).context("cannot start the heartbeat thread")?;
        let store = store.await.context("the heartbeat thread ended")?.context("[database] connection")?;
        Ok(Self { runtime: handle, store: Arc::new(store), _end: end })
    }

    /// The runtime of the thread.
    pub fn runtime(&self) -> Handle {
        self.runtime.clone()
    }

    /// The store of the thread.
    pub fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.store)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Barrier;
    use std::time::Duration;

    use kiln_client::{Bundle, Client, StackRequest};
    use kiln_cloud::{Connector, Credentials, SharedClient, TlsOptions};
    use kiln_stack::Chance;
    use kiln_store::{EngineId, StackQuery};
    use kiln_testcloud::Testcloud;
    use kiln_value::Secret;
    use url::Url;

    use super::*;
    use crate::in_process::{HOST, InProcess};
    use crate::runtime::Runtime;
    use crate::shutdown;
    use kiln_client::CloudAccess;
    use kiln_config::Config;

    const KEY: &str = "0123456789abcdef0123456789abcdef";
    const LEASE: Duration = Duration::from_secs(1);
    const TEMPLATE: &str =
        "{heat_template_version: 2018-08-31, resources: {v: {type: OS::Cinder::Volume, properties: {size: 1}}}}";

    fn config(cloud: &Testcloud, database: &str) -> Config {
        let heat = cloud.users().heat;
        Config::of_options(&[
            ("database", "connection", database.to_owned()),
            ("DEFAULT", "auth_encryption_key", KEY.to_owned()),
            ("kiln", "lease", LEASE.as_secs_f64().to_string()),
            ("keystone_authtoken", "auth_url", cloud.auth_url()),
            ("keystone_authtoken", "username", heat.user.to_owned()),
            ("keystone_authtoken", "password", heat.password.to_owned()),
            ("keystone_authtoken", "project_name", heat.project.to_owned()),
        ])
    }

    /// A client of an API in this process, as the demo user.
    fn client(cloud: &Testcloud, runtime: &Runtime) -> Client {
        let demo = cloud.users().demo;
        let mut options = kiln_cloud::Options::new(Url::parse(&cloud.auth_url()).unwrap());
        let endpoint = Url::parse(&format!("http://{HOST}/v1/%(project_id)s")).unwrap();
        options.endpoint_overrides.insert("orchestration".to_owned(), endpoint);
        let connector = Connector::new(Arc::new(SharedClient::new(&TlsOptions::default()).unwrap()), options);
        let access =
            CloudAccess::new(connector, Credentials::password(demo.user, demo.password, demo.project, "Default"));
        Client::new(Arc::new(InProcess::new(runtime.api().router())), Arc::new(access))
    }

    /// The number of leases that another engine could claim now.
    fn claimed_by_another(database: &Path) -> usize {
        let url = format!("sqlite://{}", database.display());
        let other = async {
            let store = SqlStore::open(Options::new(url, Secret::new(KEY.to_owned()))).await.unwrap();
            assert_eq!(store.count_stacks(&StackQuery::default()).await.unwrap(), 1);
            store.claim(EngineId(Chance::from_os().uuid()), LEASE, &[], 10).await.unwrap().len()
        };
        std::thread::scope(|scope| {
            let runtime = Builder::new_current_thread().enable_all().build().unwrap();
            scope.spawn(move || runtime.block_on(other)).join().unwrap()
        })
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn an_engine_whose_threads_are_all_busy_keeps_its_leases() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("kiln.db");
        let cloud = Testcloud::builder().build_time(Duration::from_mins(10)).start().await.unwrap();
        let runtime =
            Arc::new(Runtime::of_service(&config(&cloud, &format!("sqlite://{}", database.display()))).await.unwrap());
        let (_stop, stopping) = shutdown::channel();
        let engine = tokio::spawn({
            let runtime = Arc::clone(&runtime);
            async move { runtime.engine(stopping).await }
        });
        let template = kiln_yaml::parse(TEMPLATE).unwrap().value;
        let request = StackRequest {
            bundle: Bundle { template: Some(template), ..Bundle::default() },
            ..StackRequest::default()
        };
        let client = client(&cloud, &runtime);
        client.create_stack("busy", &request).await.unwrap();
        // After the volume's ID is stored, nothing is written until the volume is built.
        while !client.resource("busy", "v", &[]).await.is_ok_and(|volume| !volume.physical_id().is_empty()) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
        let all_busy = Arc::new(Barrier::new(3));
        let free = Arc::new(Barrier::new(3));
        for _ in 0..2 {
            let (all_busy, free) = (Arc::clone(&all_busy), Arc::clone(&free));
            tokio::spawn(async move {
                all_busy.wait();
                free.wait();
            });
        }
        all_busy.wait();
        std::thread::sleep(LEASE * 2);
        let claimed = claimed_by_another(&database);
        free.wait();
        assert_eq!(claimed, 0, "the lease ran out");
        assert!(!engine.is_finished());
    }
}
