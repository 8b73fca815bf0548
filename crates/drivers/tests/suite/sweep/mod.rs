//! The sweep: every driver that the simulated cloud supports is tested with create, update and delete, with a fault in
//! each call, each step repeated, each undo repeated, and a failure of the engine between or within any two calls. The
//! result must be the same as without faults, nothing may exist twice, and nothing may be left after the delete.
//!
//! Each type is an entry in `cases.rs`; `resource.rs` beside it follows the rules of the engine. All runs use this process and
//! paused time.

mod cases;
mod compare;
mod coverage;
mod names;
mod properties;
mod readable;
mod recorder;
mod runs;
mod settings;
mod signalling;
mod stage;
mod wire;

/// A test of each case.
macro_rules! sweep {
    ($($name:ident),* $(,)?) => {
        $(#[tokio::test(start_paused = true)]
        async fn $name() {
            $crate::sweep::runs::sweep($crate::sweep::cases::$name()).await;
        })*

        /// The cases, by the name of their tests.
        fn all() -> Vec<(&'static str, cases::Case)> {
            vec![$((stringify!($name), cases::$name())),*]
        }
    };
}

cases::every_case!(sweep);

/// The users of stacks are not people: their passwords do not expire, as nobody would renew them.
#[tokio::test(start_paused = true)]
async fn rules_for_passwords_do_not_apply_to_users_of_stacks() {
    let case = cases::wait_handle_of_cfn();
    let stage = stage::Stage::furnished(&case).await;
    let mut handle = stage.resource("AWS::CloudFormation::WaitConditionHandle", "handle");
    handle.act(kiln_resource::Operation::Create).await.unwrap();
    let users = &stage.testcloud.snapshot().objects["users"];
    let user = users.iter().find(|user| user["name"].as_str().is_some_and(|name| name.contains("handle"))).unwrap();
    for option in ["ignore_change_password_upon_first_use", "ignore_password_expiry", "ignore_lockout_failure_attempts"]
    {
        assert_eq!(user["options"][option], true, "{option}");
    }
}
