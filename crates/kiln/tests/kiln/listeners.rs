//! Where a service listens: TLS with certificates that are renewed, and Unix sockets.

use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kiln_testcloud::Testcloud;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::run::{Folder, Ran};
use crate::running::Running;
use crate::wire;

fn data(name: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../server/tests/data/tls")).join(name)
}

fn certificate(name: &str) -> CertificateDer<'static> {
    CertificateDer::from_pem_file(data(name)).unwrap()
}

/// Connects with TLS; trusts both authorities.
async fn connect(port: &str) -> TlsStream<TcpStream> {
    let mut roots = RootCertStore::empty();
    for name in ["ca.pem", "other-ca.pem"] {
        roots.add(certificate(name)).unwrap();
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = config.with_root_certificates(roots).with_no_client_auth();
    let stream = TcpStream::connect(format!("127.0.0.1:{port}")).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap()
}

fn shown(stream: &TlsStream<TcpStream>) -> CertificateDer<'_> {
    stream.get_ref().1.peer_certificates().unwrap()[0].clone()
}

/// The response of one request; the connection stays open.
async fn get(stream: &mut (impl AsyncRead + AsyncWrite + Unpin), path: &str) -> String {
    let request = format!("GET {path} HTTP/1.1\r\nHost: heat.example\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut text = String::new();
    loop {
        let length = text.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
        if let (Some((_, body)), Some(length)) = (text.split_once("\r\n\r\n"), length)
            && body.len() >= length
        {
            return text;
        }
        let mut buffer = [0; 4096];
        let read = stream.read(&mut buffer).await.unwrap();
        assert!(read > 0, "the connection ended after {text:?}");
        text.push_str(std::str::from_utf8(&buffer[..read]).unwrap());
    }
}

/// Replaces the certificate and its key.
fn install(folder: &Folder, name: &str) {
    for suffix in ["key", "pem"] {
        std::fs::copy(data(&format!("{name}.{suffix}")), folder.path().join(format!("own.{suffix}"))).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn certificates_are_renewed_while_connections_stay() {
    let folder = Folder::new("own-tls");
    let cloud = Testcloud::builder().start().await.unwrap();
    install(&folder, "server");
    let files = format!("cert_file = {0}/own.pem\nkey_file = {0}/own.key\n", folder.path().display());
    let config = folder.configured(&cloud, &format!("[heat_api]\n{files}[heat_api_cfn]\n{files}"));
    let service = Running::start(folder.kiln(&["serve", "--config-file", &config]));
    let url = service.url();
    let port = url.rsplit(':').next().unwrap();
    let cfn = service.wait_for("cfn=127.0.0.1:").split(' ').next().unwrap().to_owned();

    let mut first = connect(port).await;
    assert_eq!(shown(&first), certificate("server.pem"));
    let versions = get(&mut first, "/").await;
    assert!(versions.contains("https://heat.example/v1/"), "{versions}");
    assert_eq!(shown(&connect(&cfn).await), certificate("server.pem"));
    let mut list = folder.client(&cloud, &format!("https://localhost:{port}"), &["stack", "list", "-f", "json"]);
    assert_eq!(Ran::from(list.env("OS_CACERT", data("ca.pem")).output().unwrap()).ok().trim(), "[]");
    // Without TLS there is no answer.
    let mut plain = TcpStream::connect(format!("127.0.0.1:{port}")).await.unwrap();
    plain.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    let mut answer = Vec::new();
    let _ = plain.read_to_end(&mut answer).await;
    assert!(!answer.starts_with(b"HTTP"), "{answer:?}");

    // A key of another certificate: the former certificate stays.
    std::fs::copy(data("renewed.key"), folder.path().join("own.key")).unwrap();
    service.wait_for("the former one stays in use: [heat_api] cert_file ");
    assert_eq!(shown(&connect(port).await), certificate("server.pem"));
    install(&folder, "renewed");
    service.wait_for("the certificate was read again section=\"heat_api\" valid_until=");
    service.wait_for("the certificate was read again section=\"heat_api_cfn\"");
    assert_eq!(shown(&connect(port).await), certificate("renewed.pem"));
    assert_eq!(shown(&connect(&cfn).await), certificate("renewed.pem"));
    // The first connection is still the same.
    assert!(get(&mut first, "/healthcheck").await.contains("database: up"));
    install(&folder, "expired");
    service.signal("HUP");
    service.wait_for("the certificate has expired");
    assert_eq!(service.stop().0, 0);

    let ran = folder.run(&["manage", "doctor", "--config-file", &config]);
    assert!(ran.out.contains("failed  certificate [heat_api]     valid until 2021-01-01T00:00:00Z"), "{}", ran.out);
    install(&folder, "server");
    let ran = folder.run(&["manage", "doctor", "--config-file", &config]);
    assert!(ran.out.contains("ok      certificate [heat_api_cfn] valid until 2126-"), "{}", ran.out);

    folder.write("own.pem", "nothing\n");
    let refused = folder.run(&["serve", "--config-file", &config]);
    assert!(refused.code == 1 && refused.err.contains("no certificate in PEM format"), "{}", refused.err);
    let alone = folder.configured(&cloud, "[heat_api]\nkey_file = own.key\n");
    let refused = folder.run(&["config", "check", &alone]);
    assert!(refused.out.contains("[heat_api] cert_file is not set, but key_file is"), "{}", refused.out);
}

#[tokio::test(flavor = "multi_thread")]
async fn unix_sockets_are_served_beside_tcp_or_instead() {
    let folder = Folder::new("socket");
    let cloud = Testcloud::builder().start().await.unwrap();
    let (api, cfn) = (folder.path().join("api.sock"), folder.path().join("cfn.sock"));
    let sockets = format!("[kiln]\napi_socket = {}\ncfn_socket = {}\n", api.display(), cfn.display());
    let config = folder.configured(&cloud, &sockets);
    let service = Running::start(folder.kiln(&["serve", "--config-file", &config]));
    let url = service.url();
    let (tcp, path) = url.strip_prefix("http://").unwrap().split_once(',').unwrap();
    assert_eq!(path, api.display().to_string());
    let mut stream = UnixStream::connect(&api).await.unwrap();
    assert!(get(&mut stream, "/").await.contains("http://heat.example/v1/"));
    assert!(get(&mut stream, "/healthcheck").await.contains("database: up"));
    let mut stream = UnixStream::connect(&cfn).await.unwrap();
    assert!(get(&mut stream, "/v1/?Action=ListStacks").await.contains("IncompleteSignature"));
    let mut stream = TcpStream::connect(tcp).await.unwrap();
    assert!(get(&mut stream, "/healthcheck").await.contains("database: up"));
    assert_eq!(std::fs::metadata(&api).unwrap().permissions().mode() & 0o777, 0o660);

    // The socket of a running process is not taken away from it; that of a killed one is.
    let second = folder.run(&["serve", "--config-file", &config]);
    assert!(second.code == 1 && second.err.contains("another process listens there"), "{}", second.err);
    service.signal("KILL");
    service.wait();
    assert!(api.exists());
    let only = folder.configured(&cloud, &format!("{sockets}tcp = false\nsocket_mode = 600\n"));
    let service = Running::start(folder.kiln(&["serve", "--config-file", &only]));
    let served = service.wait_for("serving address=");
    assert!(served.starts_with(&format!("{} ", api.display())), "{served}");
    assert!(TcpStream::connect(tcp).await.is_err());
    let mut stream = UnixStream::connect(&api).await.unwrap();
    assert!(get(&mut stream, "/healthcheck").await.contains("database: up"));
    assert_eq!(std::fs::metadata(&cfn).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(service.stop().0, 0);
    assert!(!api.exists() && !cfn.exists());

    for (options, expected) in [
        ("[kiln]\ntcp = false\n", "api_socket is not set, but tcp is false"),
        ("[kiln]\nsocket_mode = rw\n", "\"rw\" is not an octal number up to 777"),
    ] {
        let wrong = folder.configured(&cloud, options);
        let refused = folder.run(&["serve", "--config-file", &wrong]);
        assert!(refused.code == 1 && refused.err.contains(expected), "{}", refused.err);
        let found = folder.run(&["config", "check", &wrong]).out;
        assert!(found.contains(expected), "{found}");
    }
}

/// Servers send signals to the CloudFormation API: a service does not start without it.
#[tokio::test(flavor = "multi_thread")]
async fn a_taken_port_of_the_cloudformation_api_stops_the_start() {
    let folder = Folder::new("taken-port");
    let cloud = Testcloud::builder().start().await.unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let config = folder.configured(&cloud, &format!("[heat_api_cfn]\nbind_host = 127.0.0.1\nbind_port = {port}\n"));
    let ran: Ran = folder.kiln(&["serve", "--config-file", &config]).output().unwrap().into();
    let expected = format!(
        "cannot listen on 127.0.0.1 port {port} for the CloudFormation API: set [heat_api_cfn] bind_host and bind_port, \
         or [kiln] cfn_api = false"
    );
    assert!(ran.code == 1 && ran.err.contains(&expected), "{}", ran.err);
}

/// `kiln` with a socket that systemd has opened, and its name.
fn with_socket(folder: &Folder, socket: &TcpListener, name: &str, config: &str) -> Command {
    let kiln = folder.kiln(&["serve", "--config-file", config]);
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", "LISTEN_FDS=1 LISTEN_PID=$$ exec \"$0\" \"$@\" 3<&0 0</dev/null"]);
    shell.arg(kiln.get_program()).args(kiln.get_args()).current_dir(folder.path()).env_clear();
    shell.envs(kiln.get_envs().filter_map(|(variable, value)| Some((variable, value?))));
    shell.env("LISTEN_FDNAMES", name).stdin(OwnedFd::from(socket.try_clone().unwrap()));
    shell
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_with_a_socket_of_systemd_loses_no_connection() {
    let folder = Folder::new("passed-socket");
    let cloud = Testcloud::builder().start().await.unwrap();
    // Its port cannot be bound.
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let config = folder.configured(&cloud, "[kiln]\ncfn_api = false\n");
    let text = std::fs::read_to_string(&config).unwrap();
    folder.write("kiln.conf", &text.replace("bind_port = 0", &format!("bind_port = {port}")));
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap().to_string();

    let refused = Ran::from(with_socket(&folder, &socket, "web", &config).output().unwrap());
    assert!(refused.code != 0 && refused.err.contains("has the name \"web\""), "{}", refused.err);

    let start = || Running::start(with_socket(&folder, &socket, "api", &config));
    let mut service = start();
    assert_eq!(service.url(), format!("http://{address}"));
    let is_over = Arc::new(AtomicBool::new(false));
    let (stop, at) = (Arc::clone(&is_over), address.clone());
    let load = std::thread::spawn(move || {
        let mut answered = 0;
        while !stop.load(Ordering::SeqCst) {
            assert_eq!(wire::status(&wire::get(&at, "/healthcheck")), 200);
            answered += 1;
        }
        answered
    });
    for _ in 0..2 {
        std::thread::sleep(Duration::from_millis(300));
        let (code, log) = service.stop();
        assert_eq!(code, 0, "{log}");
        // Clients connect meanwhile, and wait.
        std::thread::sleep(Duration::from_millis(300));
        service = start();
        service.url();
    }
    is_over.store(true, Ordering::SeqCst);
    assert!(load.join().unwrap() > 20);
}
