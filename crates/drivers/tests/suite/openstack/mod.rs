//! The OpenStack types with a cloud: each scenario runs on the simulated one, and on request on a real one: `cargo test
//! -p kiln-drivers --test suite openstack -- --ignored` with `OS_*` and `KILN_TEST_ADMIN` set.

mod adoption;
mod amazon;
mod cinder;
mod credentials;
mod glance;
mod ground;
mod keystone;
mod neutron;
mod nova;
mod outside_hand;
mod peer;
mod rest_nouns;
mod services;
mod swift;

/// Runs scenarios with both clouds.
#[macro_export]
macro_rules! scenarios {
    ($($name:ident),* $(,)?) => {
        mod simulated {
            $(#[tokio::test]
            async fn $name() {
                let ground = $crate::openstack::ground::Ground::simulated().await;
                super::$name(&ground).await;
                ground.assert_clean();
            })*
        }
        mod real {
            $(#[tokio::test]
            #[ignore = "needs a real OpenStack"]
            async fn $name() {
                super::$name(&$crate::openstack::ground::Ground::real().await).await;
            })*
        }
    };
}
