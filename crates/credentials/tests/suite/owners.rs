//! Stacks whose credentials do not work any more: their owner is disabled, or has deleted the trust.

use kiln_resource::Cloud;
use kiln_service::StackAction;
use kiln_value::value;

use super::users::world;
use super::*;

const TEMPLATE: &str = "
heat_template_version: 2018-08-31
resources: {net: {type: OS::Neutron::Net}}
";

#[tokio::test(flavor = "multi_thread")]
async fn others_check_update_and_delete_the_stack_of_a_disabled_user() {
    for kind in ["delete", "check", "update"] {
        let world = world().await;
        let networks = world.cloud.snapshot().count("networks");
        let (alice, bob) = world.alice_and_bob().await;
        let template = TemplateText::parse(TEMPLATE, &Limits::default()).expect("a template");
        let stack = world.create_of(&alice, "s", template).await.expect("a stack");
        let stack = world.settled(stack.id).await;
        assert!(stack.state.is_complete(Action::Create), "{}", stack.reason);
        let admin = world.cloud.users().admin;
        let admin = Credentials::password(admin.user, admin.password, admin.project, "Default");
        let path = format!("/v3/users/{}", alice.user_id);
        let body = value!({"user": {"enabled": false}});
        let request = CloudRequest::new("identity", Method::Patch, path).body(body);
        world.connector.cloud(&admin).await.call(request).await.expect("disabled");

        match kind {
            "check" => {
                world.service.act(&bob, &stack, StackAction::Check).await.expect("accepted");
                let stack = world.settled(stack.id).await;
                assert!(stack.state.is_complete(Action::Check), "{}", stack.reason);
            }
            "update" => {
                let text = TEMPLATE.replace("net:", "other:");
                let template = TemplateText::parse(&text, &Limits::default()).expect("a template");
                let update = UpdateStack { template: Some(template), ..UpdateStack::default() };
                world.service.update_stack(&bob, &stack, update).await.expect("accepted");
                let stack = world.settled(stack.id).await;
                assert!(stack.state.is_complete(Action::Update), "{}", stack.reason);
            }
            _ => {}
        }
        let stack = world.service.backends.store.stack(stack.id).await.expect("read").expect("there");
        world.service.delete_stack(&bob, &stack).await.expect("accepted");
        let stack = world.settled(stack.id).await;
        assert!(stack.state.is_complete(Action::Delete), "{kind}: {}", stack.reason);
        assert_eq!(world.cloud.snapshot().count("networks"), networks, "{kind}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_user_repairs_a_stack_whose_trust_is_deleted() {
    for kind in ["update", "delete"] {
        let world = world().await;
        let networks = world.cloud.snapshot().count("networks");
        let demo = world.cloud.users().demo;
        let (alice, _) = world.alice_and_bob().await;
        let template = TemplateText::parse(TEMPLATE, &Limits::default()).expect("a template");
        let stack = world.create_of(&alice, "s", template).await.expect("a stack");
        world.settled(stack.id).await;
        let own = Credentials::password(demo.user, demo.password, demo.project, "Default");
        for trust in world.trusts() {
            let request = CloudRequest::new("identity", Method::Delete, format!("/v3/OS-TRUST/trusts/{trust}"));
            world.connector.cloud(&own).await.call(request).await.expect("deleted");
        }

        let act = async |stack: &Stack| {
            let stack = world.service.backends.store.stack(stack.id).await.expect("read").expect("there");
            if kind == "delete" {
                world.service.delete_stack(&alice, &stack).await.expect("accepted");
            } else {
                let text = TEMPLATE.replace("net:", "other:");
                let template = TemplateText::parse(&text, &Limits::default()).expect("a template");
                let update = UpdateStack { template: Some(template), ..UpdateStack::default() };
                world.service.update_stack(&alice, &stack, update).await.expect("accepted");
            }
            world.settled(stack.id).await
        };
        // The token of the deleted trust is revoked with it.
        let failed = act(&stack).await;
        assert_eq!(failed.state.status, Status::Failed, "{kind}: {}", failed.reason);
        assert!(failed.reason.contains("AuthorizationFailure"), "{kind}: {}", failed.reason);
        let repaired = act(&stack).await;
        assert_eq!(repaired.state.status, Status::Complete, "{kind}: {}", repaired.reason);
        if kind == "delete" {
            assert_eq!(world.cloud.snapshot().count("networks"), networks);
        }
    }
}
