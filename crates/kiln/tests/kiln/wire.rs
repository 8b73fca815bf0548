//! Requests to a service, as they are on the wire.

use std::fmt::Write as _;
use std::io::ErrorKind;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::net::UnixDatagram;

/// Sends a request and returns the whole response, with its head.
pub(crate) fn send(address: &str, method: &str, target: &str, headers: &[(&str, &str)], body: &str) -> String {
    let mut request = format!("{method} {target} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n");
    for (name, value) in headers {
        write!(request, "{name}: {value}\r\n").unwrap();
    }
    write!(request, "content-length: {}\r\n\r\n{body}", body.len()).unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// The response to a GET.
pub(crate) fn get(address: &str, target: &str) -> String {
    send(address, "GET", target, &[], "")
}

/// The status of a response.
pub(crate) fn status(response: &str) -> u16 {
    response.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_else(|| panic!("{response}"))
}

/// Receives a datagram; a test that was stopped meanwhile waits on.
pub(crate) fn received(socket: &UnixDatagram, buffer: &mut [u8]) -> usize {
    loop {
        match socket.recv(buffer) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            received => return received.unwrap(),
        }
    }
}
