//! `kiln manage doctor`.

use kiln_testcloud::Testcloud;
use sea_orm::{ConnectionTrait as _, Database};

use crate::run::{Folder, Ran};

fn doctor(folder: &Folder, config: &str, variables: &[(&str, &str)]) -> (i32, serde_json::Value) {
    let mut command = folder.kiln(&["manage", "doctor", "--config-file", config, "-f", "json"]);
    let ran = Ran::from(command.envs(variables.iter().copied()).output().unwrap());
    (ran.code, serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {ran:?}")))
}

fn result(found: &serde_json::Value, check: &str) -> String {
    let row = found.as_array().unwrap().iter().find(|row| row["check"] == check);
    row.unwrap_or_else(|| panic!("no {check}: {found}"))["result"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_check_fails_for_its_own_reason() {
    let folder = Folder::new("doctor");
    let cloud = Testcloud::builder().start().await.unwrap();
    let config = folder.configured(&cloud, "");
    folder.run(&["manage", "db", "sync", "--config-file", &config]).ok();

    let (code, found) = doctor(&folder, &config, &[]);
    assert_eq!(code, 0, "{found}");
    for check in [
        "configuration",
        "encryption key",
        "clock of the database",
        "schema",
        "stored credentials",
        "Keystone",
        "clock of Keystone",
        "service user",
        "trustee",
        "service compute",
        "certificates",
    ] {
        assert_eq!(result(&found, check), "ok", "{check} {found}");
    }
    assert_eq!(
        (result(&found, "engines"), result(&found, "domain of stack users")),
        ("warning".into(), "warning".into())
    );

    let wrong = |variables: &[(&str, &str)], check: &str, expected: &str| {
        let (code, found) = doctor(&folder, &config, variables);
        assert_eq!((code, result(&found, check).as_str()), (i32::from(expected == "failed"), expected), "{found}");
    };
    wrong(&[("OS_KEYSTONE_AUTHTOKEN__PASSWORD", "no")], "service user", "failed");
    wrong(&[("OS_KEYSTONE_AUTHTOKEN__AUTH_URL", "http://127.0.0.1:1/v3")], "Keystone", "failed");
    wrong(&[("OS_DATABASE__CONNECTION", "sqlite:///no/such/folder/k.db")], "database", "failed");
    wrong(&[("OS_DEFAULT__AUTH_ENCRYPTION_KEY", "notgood but just long enough i t")], "encryption key", "failed");
    wrong(&[("OS_DEFAULT__AUTH_ENCRYPTION_KEY", "0123456789abcdef")], "encryption key", "warning");
    wrong(&[("OS_DEFAULT__MAX_TEMPLATE_SIZE", "x")], "configuration", "failed");
    let stacks = [
        ("OS_DEFAULT__STACK_USER_DOMAIN_NAME", "heat"),
        ("OS_DEFAULT__STACK_DOMAIN_ADMIN", "a"),
        ("OS_DEFAULT__STACK_DOMAIN_ADMIN_PASSWORD", "b"),
    ];
    wrong(&stacks, "domain of stack users", "failed");
    wrong(&[("OS_DEFAULT__AUTH_ENCRYPTION_KEY", "0123456789abcdef01234567")], "encryption key", "failed");
    let elsewhere = [("OS_DEFAULT__REGION_NAME_FOR_SERVICES", "nowhere")];
    wrong(&elsewhere, "service network", "warning");

    // Nothing listens there.
    let bus = [
        ("OS_OSLO_MESSAGING_NOTIFICATIONS__DRIVER", "messagingv2"),
        ("OS_DEFAULT__TRANSPORT_URL", "rabbit://u:p@127.0.0.1:1/"),
    ];
    wrong(&bus, "message bus", "failed");
    let domain = [
        ("OS_DEFAULT__STACK_USER_DOMAIN_NAME", "heat"),
        ("OS_DEFAULT__STACK_DOMAIN_ADMIN", "heat_domain_admin"),
        ("OS_DEFAULT__STACK_DOMAIN_ADMIN_PASSWORD", "password"),
    ];
    wrong(&domain, "role of stack users", "ok");
    let role = [&domain[..], &[("OS_DEFAULT__HEAT_STACK_USER_ROLE", "nosuch")]].concat();
    wrong(&role, "role of stack users", "failed");
    let delegated = |roles| [("OS_DEFAULT__TRUSTS_DELEGATED_ROLES", roles)];
    wrong(&delegated("heat_stack_owner"), "delegated role", "ok");
    wrong(&delegated("nosuch"), "delegated role", "failed");
    let url = |text| [("OS_DEFAULT__HEAT_WAITCONDITION_SERVER_URL", text)];
    wrong(&url("http://127.0.0.1:8000/v1/waitcondition"), "URL for servers", "warning");

    let ran = folder.run(&["manage", "doctor", "--config-file", &config]);
    assert!(ran.out.contains("\nwarning engines ") && ran.out.contains("hint: start a service"), "{}", ran.out);
    assert!(!ran.out.contains(cloud.users().heat.password), "{}", ran.out);

    let details = |check: &str, key: &str| {
        let (_, found) = doctor(&folder, &config, &[]);
        let row = found.as_array().unwrap().iter().find(|row| row["check"] == check).unwrap().clone();
        row[key].as_str().unwrap().to_owned()
    };
    assert!(details("services of types", "details").starts_with("not in the catalog: "));
    let database = format!("sqlite://{}/kiln.db", folder.path().display());
    let database = Box::pin(Database::connect(database)).await.unwrap();
    database.execute_unprepared("INSERT INTO kiln_schema_version (version, done) VALUES (999, 0)").await.unwrap();
    database.execute_unprepared("INSERT INTO kiln_schema_floor (floor) VALUES (999)").await.unwrap();
    assert_eq!(
        details("schema", "hint"),
        "use the newer Kiln, or restore the backup from before its upgrade: there is no downgrade"
    );
}
