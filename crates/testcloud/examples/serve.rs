//! Runs a simulated cloud until it is interrupted, to try clients: `cargo run -p kiln-testcloud --example serve --
//! 127.0.0.1:5001`.

use std::time::Duration;

use kiln_testcloud::Testcloud;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut builder = Testcloud::builder().build_time(Duration::from_secs(2));
    if let Some(address) = std::env::args().nth(1) {
        builder = builder.address(address.parse()?);
    }
    let cloud = builder.start().await?;
    let demo = cloud.users().demo;
    println!("export OS_AUTH_URL={}", cloud.auth_url());
    println!("export OS_IDENTITY_API_VERSION=3 OS_USERNAME={} OS_PASSWORD={}", demo.user, demo.password);
    println!("export OS_PROJECT_NAME={} OS_USER_DOMAIN_NAME=Default OS_PROJECT_DOMAIN_NAME=Default", demo.project);
    println!("export OS_REGION_NAME={}", cloud.region());
    tokio::signal::ctrl_c().await?;
    cloud.stop().await;
    Ok(())
}
