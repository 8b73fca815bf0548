//! The database is behind a proxy that goes silent, as `stopped_database` is. These tests stop no server that others use.
//!
//! ```sh
//! crates/store/tests/databases.sh cargo test -p kiln --test kiln -- --ignored silent_proxy
//! ```

use crate::processes::proxy::Proxy;
use crate::processes::stopped_database::{Silencer, everything_goes_on};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs servers: crates/store/tests/databases.sh"]
async fn silent_proxy() {
    let servers = std::env::var("KILN_TEST_DATABASES").expect("started by crates/store/tests/databases.sh");
    for server in servers.split_whitespace() {
        let proxy = Proxy::start(server).await;
        let url = proxy.url().to_owned();
        Box::pin(everything_goes_on(&url, Silencer::Proxy(proxy))).await;
    }
}
