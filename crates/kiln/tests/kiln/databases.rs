//! The servers of `crates/store/tests/databases.sh`: PostgreSQL and MariaDB, with TLS.

use std::sync::atomic::{AtomicUsize, Ordering};

use kiln_testcloud::Testcloud;
use sea_orm::{ConnectionTrait as _, Database};

use crate::run::Folder;

/// A server, whose certificate is for "localhost".
pub(crate) struct Server {
    /// With a user that may do everything.
    pub(crate) url: String,
    pub(crate) port: String,
    /// The folder of the certificates.
    pub(crate) certificates: String,
}

/// PostgreSQL and MariaDB.
pub(crate) fn servers() -> [Server; 2] {
    let certificates = std::env::var("KILN_TEST_TLS").expect("started by crates/store/tests/databases.sh");
    ["postgres:", "mysql:"].map(|scheme| Server::of_scheme(scheme, &certificates))
}

/// PostgreSQL and MariaDB, or the first node of a Galera cluster, which has no certificates.
pub(crate) fn servers_or_cluster() -> Vec<Server> {
    if urls().contains(',') { vec![Server::of_scheme("mysql:", "")] } else { servers().into() }
}

/// The URLs of the servers; the nodes of a cluster are separated by commas.
fn urls() -> String {
    std::env::var("KILN_TEST_DATABASES").expect("started by crates/store/tests/databases.sh")
}

impl Server {
    fn of_scheme(scheme: &str, certificates: &str) -> Self {
        let urls = urls();
        let url = urls.split([' ', ',']).find(|url| url.starts_with(scheme)).expect("both servers").to_owned();
        let port = url.rsplit_once(':').unwrap().1.split('/').next().unwrap().to_owned();
        Self { url, port, certificates: certificates.to_owned() }
    }

    /// A name for folders.
    pub(crate) fn kind(&self) -> &'static str {
        if self.is_postgres() { "postgres" } else { "mariadb" }
    }

    pub(crate) fn is_postgres(&self) -> bool {
        self.url.starts_with("postgres")
    }

    /// The URL of a database.
    pub(crate) fn database(&self, name: &str) -> String {
        format!("{}/{name}", self.url.rsplit_once('/').unwrap().0)
    }

    /// A URL as the drivers of Python have it; `CA` stands for the folder of certificates.
    pub(crate) fn of(&self, user: &str, host: &str, database: &str, query: &str) -> String {
        let scheme = if self.is_postgres() { "postgresql+psycopg2" } else { "mysql+pymysql" };
        let query = query.replace("CA", &self.certificates);
        format!("{scheme}://{user}:kiln@{host}:{}/{database}?{query}", self.port)
    }

    async fn execute(&self, statement: &str) {
        let db = Box::pin(Database::connect(&self.url)).await.unwrap();
        db.execute_unprepared(statement).await.unwrap();
    }

    /// The database is made, used and removed.
    pub(crate) async fn with_database<F: AsyncFnOnce(&str)>(&self, test: F) {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let name = format!("kiln_own_{}_{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        self.execute(&format!("CREATE DATABASE {name}")).await;
        test(&name).await;
        let force = if self.is_postgres() { " WITH (FORCE)" } else { "" };
        self.execute(&format!("DROP DATABASE {name}{force}")).await;
    }
}

/// A configuration with this database; its path.
pub(crate) fn with_url(folder: &Folder, cloud: &Testcloud, url: &str) -> String {
    let config = folder.configured(cloud, "");
    let text = std::fs::read_to_string(&config).unwrap();
    let own = text.lines().find(|line| line.starts_with("connection = ")).unwrap();
    std::fs::write(&config, text.replace(own, &format!("connection = {url}"))).unwrap();
    config
}
