//! Sockets that systemd has opened for the service (`sd_listen_fds(3)`). They stay open when it restarts, and connections wait in
//! them.

use anyhow::{Context as _, Result, bail};
use kiln_web::{Listener, Tls};
use listenfd::ListenFd;
use tokio::net::{TcpListener, UnixListener};

/// A passed socket.
enum Passed {
    Tcp(TcpListener),
    Unix(UnixListener),
}

/// The sockets of each API.
#[derive(Default)]
pub(crate) struct PassedSockets {
    api: Vec<Passed>,
    cfn: Vec<Passed>,
}

impl PassedSockets {
    /// Takes the sockets of this process. Their names (`FileDescriptorName=`) say what they are for: `api` or `cfn`.
    pub(crate) fn take() -> Result<Self> {
        let names = std::env::var("LISTEN_FDNAMES").unwrap_or_default();
        Self::of(ListenFd::from_env(), &names)
    }

    fn of(mut given: ListenFd, names: &str) -> Result<Self> {
        let (mut found, mut names) = (Self::default(), names.split(':'));
        for number in 0..given.len() {
            let name = names.next().unwrap_or_default();
            let of_api = match name {
                "api" => &mut found.api,
                "cfn" => &mut found.cfn,
                _ => bail!("a passed socket has the name {name:?}: set FileDescriptorName to api or cfn"),
            };
            of_api.push(taken(&mut given, number).with_context(|| format!("the passed socket {name:?}"))?);
        }
        Ok(found)
    }

    /// The sockets of the REST API. Those of TCP expect TLS if there is a certificate.
    pub(crate) fn api(&mut self, tls: Option<&Tls>) -> Vec<Listener> {
        listeners(std::mem::take(&mut self.api), tls)
    }

    /// The sockets of the CloudFormation API.
    pub(crate) fn cfn(&mut self, tls: Option<&Tls>) -> Vec<Listener> {
        listeners(std::mem::take(&mut self.cfn), tls)
    }

    /// Whether there are sockets of the REST API.
    pub(crate) fn has_api(&self) -> bool {
        !self.api.is_empty()
    }

    /// Whether there are sockets of the CloudFormation API.
    pub(crate) fn has_cfn(&self) -> bool {
        !self.cfn.is_empty()
    }
}

fn taken(given: &mut ListenFd, number: usize) -> Result<Passed> {
    if let Ok(Some(socket)) = given.take_tcp_listener(number) {
        socket.set_nonblocking(true)?;
        return Ok(Passed::Tcp(TcpListener::from_std(socket)?));
    }
    let socket = given.take_unix_listener(number)?.context("it is no socket")?;
    socket.set_nonblocking(true)?;
    Ok(Passed::Unix(UnixListener::from_std(socket)?))
}

fn listeners(sockets: Vec<Passed>, tls: Option<&Tls>) -> Vec<Listener> {
    let listener = |socket| match socket {
        Passed::Tcp(socket) => Listener::from(socket).with_tls(tls.cloned()),
        Passed::Unix(socket) => socket.into(),
    };
    sockets.into_iter().map(listener).collect()
}
