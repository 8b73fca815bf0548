//! Which user of this machine has the other end of a connection.

use std::fs;
use std::net::{IpAddr, SocketAddr};

/// The kernel's lists of connections (proc_net_tcp(5)); the second has those of sockets for both versions of IP.
const LISTS: [&str; 2] = ["/proc/net/tcp", "/proc/net/tcp6"];
const ROOT: &str = "0";

/// Whether the client of a connection is another user than that of the server, and not root. `false` where no kernel lists it.
pub(crate) fn is_of_other_user(client: SocketAddr, server: SocketAddr) -> bool {
    let lists: String = LISTS.iter().filter_map(|list| fs::read_to_string(list).ok()).collect();
    lists_other_user(&lists, client, server)
}

fn lists_other_user(lists: &str, client: SocketAddr, server: SocketAddr) -> bool {
    let own: Vec<_> = users(lists, server, client).collect();
    users(lists, client, server).any(|user| user != ROOT && !own.contains(&user))
}

/// The IDs of the users of the sockets at `local` that are connected with `remote`.
fn users(lists: &str, local: SocketAddr, remote: SocketAddr) -> impl Iterator<Item = &str> {
    let (local, remote) = (written(local), written(remote));
    lists.lines().filter_map(move |line| {
        let mut columns = line.split_whitespace().skip(1);
        let is_it = columns.next()?.ends_with(&local) && columns.next()?.ends_with(&remote);
        columns.nth(4).filter(|_| is_it)
    })
}

/// An address as the kernel writes it, or the end of that: `0100007F:1F90`.
fn written(address: SocketAddr) -> String {
    let ip = match address.ip().to_canonical() {
        IpAddr::V4(ip) => format!("{:08X}", u32::from_ne_bytes(ip.octets())),
        IpAddr::V6(_) => String::new(),
    };
    format!("{ip}:{:04X}", address.port())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn the_kernel_lists_both_ends() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = listener.local_addr().unwrap();
        let stream = TcpStream::connect(server).unwrap();
        let (accepted, client) = listener.accept().unwrap();
        let lists = fs::read_to_string(LISTS[0]).unwrap();
        let own: Vec<_> = users(&lists, client, server).collect();
        assert_eq!(own, users(&lists, server, client).collect::<Vec<_>>());
        assert_eq!(own.len(), 1, "{lists}");
        assert!(!is_of_other_user(client, server));
        drop((stream, accepted));
    }

    #[test]
    fn another_user_is_found_in_either_list() {
        let (client, server): (SocketAddr, SocketAddr) =
            ("127.0.0.1:40000".parse().unwrap(), "127.0.0.1:8080".parse().unwrap());
        let line = |local: &str, remote: &str, user: &str| {
            format!(" 1: {local} {remote} 01 00000000:00000000 00:00000000 00000000 {user} 0 1 1\n")
        };
        let own = line(&written(server), &written(client), "1000");
        for before in ["", "0000000000000000FFFF0000"] {
            let [local, remote] = [client, server].map(|address| format!("{before}{}", written(address)));
            for (user, is_other) in [("1001", true), ("1000", false), (ROOT, false)] {
                let lists = format!("{}{own}", line(&local, &remote, user));
                assert_eq!(lists_other_user(&lists, client, server), is_other, "{user} in {lists}");
            }
        }
        // The same ports at another address of this machine.
        let elsewhere = line(&written(client), &written("127.0.0.2:8080".parse().unwrap()), "1001");
        assert!(!lists_other_user(&elsewhere, client, server));
    }
}
