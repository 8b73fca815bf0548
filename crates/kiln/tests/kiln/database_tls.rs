//! Encrypted connections to MariaDB and PostgreSQL, and the parameters of database URLs.
//!
//! ```sh
//! crates/store/tests/databases.sh cargo test -p kiln --test kiln -- --ignored database_tls
//! ```

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::time::Duration;

use kiln_testcloud::Testcloud;
use sea_orm::{ConnectionTrait as _, Database, DbBackend, Statement};

use crate::databases::{servers, with_url};
use crate::run::{Folder, Ran};
use crate::running::Running;

/// What `kiln manage db sync` says.
fn synced(folder: &Folder, cloud: &Testcloud, url: &str) -> Ran {
    folder.run(&["manage", "db", "sync", "--config-file", &with_url(folder, cloud, url)])
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs servers: crates/store/tests/databases.sh"]
async fn every_connection_of_a_service_is_encrypted() {
    let cloud = Testcloud::builder().start().await.unwrap();
    for server in servers() {
        let folder = Folder::new("database-tls");
        let query = if server.is_postgres() {
            "sslmode=verify-full&sslrootcert=CA/ca.pem&application_name=tls"
        } else {
            "charset=utf8mb4&ssl_ca=CA/ca.pem&use_unicode=1"
        };
        server
            .with_database(async |database| {
                let url = server.of("secure", "localhost", database, query);
                let service =
                    Running::start(folder.kiln(&["serve", "--config-file", &with_url(&folder, &cloud, &url)]));
                service.url();
                let encrypted = service.wait_for("encrypted with TLSv1.3 TLS_");
                assert!(encrypted.ends_with("certificate and host name are verified"), "{encrypted}");
                if server.is_postgres() {
                    // Also the connection that listens.
                    let db = Box::pin(Database::connect(&server.url)).await.unwrap();
                    let query = "SELECT ssl, query FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) \
                                 WHERE application_name = 'tls'";
                    let is_listening = async || {
                        let rows = db.query_all_raw(Statement::from_string(DbBackend::Postgres, query)).await.unwrap();
                        rows.iter().any(|row| {
                            assert!(row.try_get_by_index::<bool>(0).unwrap(), "encrypted");
                            row.try_get_by_index::<String>(1).unwrap().starts_with("LISTEN")
                        })
                    };
                    while !is_listening().await {
                        tokio::time::sleep(Duration::from_millis(20)).await;
                    }
                } else {
                    service.wait_for("[database] connection: use_unicode has no effect: texts are always Unicode");
                }
                assert_eq!(service.stop().0, 0);
            })
            .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs servers: crates/store/tests/databases.sh"]
async fn what_is_demanded_of_a_connection_is_checked() {
    let cloud = Testcloud::builder().start().await.unwrap();
    let folder = Folder::new("database-demands");
    let [postgres, mariadb] = servers();
    std::fs::create_dir(folder.path().join("capath")).unwrap();
    std::fs::copy(format!("{}/ca.pem", mariadb.certificates), folder.path().join("capath/01.pem")).unwrap();
    folder.write(
        "my.cnf",
        &format!("[kiln]\nuser = secure\npassword = 'kiln'\nssl-ca = {}/ca.pem\n", mariadb.certificates),
    );
    let unknown = "no authority that is trusted has signed the certificate";
    let other_host = "the certificate of the server is for another host";
    let refused = "Access denied";
    // User, host, parameters, and the reason of the refusal: empty if the server takes it.
    let cases = [
        (&postgres, "secure", "127.0.0.1", "sslmode=require", ""),
        (&postgres, "secure", "127.0.0.1", "", ""),
        (&postgres, "secure", "127.0.0.1", "sslmode=allow", ""),
        (&postgres, "secure", "127.0.0.1", "sslmode=disable", "pg_hba.conf rejects connection"),
        (&postgres, "secure", "127.0.0.1", "sslmode=require&sslrootcert=CA/other.pem", unknown),
        (&postgres, "secure", "127.0.0.1", "sslmode=verify-ca&sslrootcert=CA/ca.pem", ""),
        (&postgres, "secure", "127.0.0.1", "sslmode=verify-full&sslrootcert=CA/ca.pem", other_host),
        (&postgres, "secure", "localhost", "sslmode=verify-full&sslrootcert=CA/other.pem", unknown),
        (&postgres, "certified", "localhost", "sslmode=require", "certificate"),
        (&postgres, "certified", "localhost", "sslmode=require&sslcert=CA/client.pem&sslkey=CA/client.key", ""),
        (&postgres, "kiln", "localhost", "target_session_attrs=read-write&options=-c%20statement_timeout=9s", ""),
        (
            &postgres,
            "kiln",
            "localhost",
            "target_session_attrs=read-write&options=-c%20default_transaction_read_only=on",
            "target_session_attrs demands read-write",
        ),
        (&mariadb, "secure", "127.0.0.1", "", refused),
        (&mariadb, "secure", "127.0.0.1", "ssl_mode=DISABLED", refused),
        (&mariadb, "secure", "127.0.0.1", "ssl_mode=REQUIRED", ""),
        (&mariadb, "secure", "127.0.0.1", "ssl_mode=PREFERRED", ""),
        (&mariadb, "secure", "127.0.0.1", "ssl_verify_cert=true&ssl_ca=CA/ca.pem", ""),
        (&mariadb, "secure", "127.0.0.1", "ssl_ca=CA/ca.pem", other_host),
        (&mariadb, "secure", "localhost", "ssl_ca=CA/ca.pem", ""),
        (&mariadb, "secure", "localhost", "ssl_ca=CA/other.pem", unknown),
        (&mariadb, "secure", "localhost", "ssl_verify_cert=true", unknown),
        (&mariadb, "secure", "127.0.0.1", "ssl_capath=capath&ssl_check_hostname=false", ""),
        (&mariadb, "certified", "localhost", "ssl_ca=CA/ca.pem", refused),
        (&mariadb, "certified", "localhost", "ssl_ca=CA/ca.pem&ssl_cert=CA/client.pem&ssl_key=CA/client.key", ""),
        (&mariadb, "", "localhost", "read_default_file=my.cnf&read_default_group=kiln", ""),
    ];
    for database in [&postgres, &mariadb] {
        database
            .with_database(async |name| {
                for (server, user, host, query, reason) in &cases {
                    if server.url != database.url {
                        continue;
                    }
                    let mut url = server.of(user, host, name, query);
                    if user.is_empty() {
                        url = url.replace("://:kiln@", "://");
                    }
                    let ran = synced(&folder, &cloud, &url);
                    assert_eq!(ran.code, i32::from(!reason.is_empty()), "{url}: {ran:?}");
                    assert!(ran.err.contains(reason) && !ran.err.contains(":kiln@"), "{url}: {ran:?}");
                }
            })
            .await;
    }
}

/// The first host answers nothing, the second refuses connections, the third only reads, the fourth is the server.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs servers: crates/store/tests/databases.sh"]
async fn the_first_host_that_writes_is_used() {
    let cloud = Testcloud::builder().start().await.unwrap();
    let folder = Folder::new("database-hosts");
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let [server, _] = servers();
    server
        .with_database(async |database| {
            let db = Box::pin(Database::connect(server.database(database))).await.unwrap();
            let reads =
                "CREATE ROLE reads_DB SUPERUSER LOGIN; ALTER ROLE reads_DB SET default_transaction_read_only = on";
            db.execute_unprepared(&reads.replace("DB", database)).await.unwrap();
            let silent = silent.local_addr().unwrap().port();
            let hosts = format!("127.0.0.1:{silent},127.0.0.1:{closed},localhost:{}", server.port);
            let query = "target_session_attrs=read-write&keepalives=1&keepalives_idle=5&application_name=hosts";
            let url = format!("postgresql+psycopg2://kiln@{hosts}/{database}?{query}");
            let service = Running::start(folder.kiln(&["serve", "--config-file", &with_url(&folder, &cloud, &url)]));
            service.url();
            service.wait_for("[database] connection: keepalives_idle has no effect: Kiln tests connections");
            let listens = "SELECT 1 FROM pg_stat_activity WHERE application_name = 'hosts' AND query LIKE 'LISTEN%'";
            let listens = Statement::from_string(DbBackend::Postgres, listens);
            while db.query_one_raw(listens.clone()).await.unwrap().is_none() {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            assert_eq!(service.stop().0, 0);

            // A server that only reads is not used.
            let url = url.replace("kiln@", &format!("reads_{database}@"));
            let ran = synced(&folder, &cloud, &url);
            assert!(ran.code == 1 && ran.err.contains("target_session_attrs demands read-write"), "{ran:?}");
            db.execute_unprepared(&format!("DROP ROLE reads_{database}")).await.unwrap();
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_sent_to_a_server_without_tls_that_must_have_it() {
    let cloud = Testcloud::builder().start().await.unwrap();
    let folder = Folder::new("database-no-tls");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = std::thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        let mut asked = [0; 8];
        client.read_exact(&mut asked).unwrap();
        client.write_all(b"N").unwrap();
        let mut more = Vec::new();
        client.read_to_end(&mut more).unwrap();
        (asked, more)
    });
    let ran = synced(&folder, &cloud, &format!("postgresql://u:s3cret@127.0.0.1:{port}/d?sslmode=require"));
    assert!(ran.code == 1 && ran.err.contains("/d?sslmode=require: the server does not offer TLS"), "{ran:?}");
    assert!(!ran.err.contains("s3cret"), "{ran:?}");
    assert_eq!(server.join().unwrap(), ([0, 0, 0, 8, 4, 210, 22, 47], Vec::new()), "only the question for TLS");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_parameter_is_named_by_the_check_and_at_the_start() {
    let cloud = Testcloud::builder().start().await.unwrap();
    let folder = Folder::new("database-parameters");
    for (url, reason) in [
        ("mysql+pymysql://h:s3cret@127.0.0.1:1/heat?ssl_ca=/no/ca.pem", "parameter ssl_ca: /no/ca.pem: No such file"),
        ("mysql+pymysql://h:s3cret@127.0.0.1:1/heat?ssl_cipher=AES", "parameter ssl_cipher is not supported: "),
        (
            "mysql+pymysql://h:s3cret@127.0.0.1:1/heat?plugin=dbcounter",
            "parameter plugin is unknown; the known ones are ",
        ),
        ("postgresql://h:s3cret@127.0.0.1:1/heat?sslmode=yes", "parameter sslmode: \"yes\" is not "),
        ("postgresql://h:s3cret@127.0.0.1:1/heat?sslcrl=/crl.pem", "parameter sslcrl is not supported: "),
        ("postgresql://h:s3cret@a,b,c/heat?port=1,2", "parameter port: 2 ports for 3 hosts"),
        ("mysql+pymysql://h:s3cret@a,b/heat", "several hosts are not supported with MySQL and MariaDB: put a proxy "),
    ] {
        let config = with_url(&folder, &cloud, url);
        let check = folder.run(&["config", "check", &config]);
        let start = Ran::from(folder.kiln(&["serve", "--config-file", &config]).output().unwrap());
        for ran in [&check, &start] {
            let said = format!("{}{}", ran.out, ran.err);
            assert!(ran.code == 1 && said.contains(reason) && !said.contains("s3cret"), "{url}: {ran:?}");
        }
    }
}
