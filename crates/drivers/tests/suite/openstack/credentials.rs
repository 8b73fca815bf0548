//! An invalid credential is never treated as a missing object.

use kiln_cloud::{Connector, Credentials, Options, create_trust, delete_trust};
use kiln_resource::{Context, FailureKind, Operation};
use kiln_testcloud::{Account, Testcloud};
use kiln_value::value;

use crate::resource::Resource;

fn connector(testcloud: &Testcloud) -> Connector {
    Connector::new(testcloud.transport(), Options::new(testcloud.auth_url().parse().unwrap()))
}

fn credentials(account: Account) -> Credentials {
    Credentials::password(account.user, account.password, account.project, "Default")
}

/// The trust of a stack is deleted externally, with or without a cached token: the delete fails, and the object can be
/// deleted later.
#[tokio::test(start_paused = true)]
async fn a_delete_without_a_trust_fails() {
    for is_token_at_hand in [true, false] {
        let testcloud = Testcloud::builder().in_process();
        let first = connector(&testcloud);
        let users = testcloud.users();
        let demo = first.session(credentials(users.demo));
        let heat = first.session(credentials(users.heat)).token().await.unwrap();
        let trust = create_trust(&demo, &heat.info.user.id, &[], None).await.unwrap();
        let trusted = credentials(users.heat).with_trust(&trust);
        let mut net = Resource::new(first.cloud(&trusted).await, "trust", "OS::Neutron::Net", "net");
        net.create(value!({})).await.unwrap();
        let there = testcloud.snapshot().count("networks");

        delete_trust(&demo, &trust).await.unwrap();
        let second = connector(&testcloud);
        let cloud = if is_token_at_hand { &first } else { &second }.cloud(&trusted).await;
        for _ in 0..3 {
            let cx = Context { cloud: &*cloud, ..net.context() };
            let failure = net.driver().start(&cx, &Operation::Delete).await.unwrap_err();
            assert_eq!((failure.kind, failure.class.name()), (FailureKind::Refused, "AuthorizationFailure"));
            assert!(failure.message.contains(&format!("user heat by trust {trust}")), "{failure}");
        }
        assert_eq!(testcloud.snapshot().count("networks"), there);
    }
}
