#!/bin/sh
# Runs a command with temporary PostgreSQL and MariaDB servers:
#
#   crates/store/tests/databases.sh cargo test -p kiln-store
#
# The servers come from Debian's packages (`apt-get install --no-install-recommends postgresql mariadb-server`; none of
# their services need run), keep their data in a temporary directory, listen on free loopback ports and end with the
# command. Their URLs are in KILN_TEST_DATABASES. A server that is not installed is skipped with a message;
# if CI is set, that is an error.
set -eu

if [ $# -eq 0 ]; then
    sed -n '2,9s/^# \{0,1\}//p' "$0"
    exit 2
fi

place=$(mktemp -d "${TMPDIR:-/tmp}/kiln-databases.XXXXXX")
chmod 755 "$place"
urls=
postgres_pid=
mariadb_pid=

stop() {
    trap - EXIT INT TERM
    [ -z "$postgres_pid" ] || kill -INT "$postgres_pid" 2>/dev/null || true
    [ -z "$mariadb_pid" ] || kill -TERM "$mariadb_pid" 2>/dev/null || true
    wait
    rm -rf "$place"
}
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

missing() {
    echo "databases.sh: $1 is not installed: its tests are left out" >&2
    if [ -n "${CI:-}" ]; then
        exit 1
    fi
}

free_port() {
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# Runs a command as an unprivileged user, because both servers refuse to run as root. It replaces the process of a subshell,
# so that it receives signals.
become() {
    user=$1
    shift
    if [ "$(id -u)" -eq 0 ]; then
        exec setpriv --reuid "$user" --regid "$user" --init-groups "$@"
    fi
    exec "$@"
}

await() {
    name=$1
    shift
    for _ in $(seq 150); do
        if "$@" >/dev/null 2>&1; then
            return
        fi
        sleep 0.2
    done
    echo "databases.sh: $name does not answer; its log:" >&2
    tail -n 20 "$place/$name.log" >&2
    exit 1
}

owned_by() {
    mkdir "$place/$2"
    if [ "$(id -u)" -eq 0 ]; then
        chown "$1" "$place/$2"
    fi
}

start_postgres() {
    bin=$(find /usr/lib/postgresql -mindepth 2 -maxdepth 2 -name bin 2>/dev/null | sort -V | tail -n 1)
    if [ -z "$bin" ]; then
        missing postgresql
        return
    fi
    port=$(free_port)
    owned_by postgres postgres
    (become postgres "$bin/initdb" -D "$place/postgres/data" -U kiln --auth=trust -E UTF8 --locale=C.UTF-8) \
        >"$place/postgres.log" 2>&1 || { tail -n 20 "$place/postgres.log" >&2; exit 1; }
    become postgres "$bin/postgres" -D "$place/postgres/data" -h 127.0.0.1 -p "$port" -k "$place/postgres" \
        -c max_connections=400 >>"$place/postgres.log" 2>&1 &
    postgres_pid=$!
    await postgres "$bin/psql" -h 127.0.0.1 -p "$port" -U kiln -d postgres -c 'SELECT 1'
    urls="$urls postgres://kiln@127.0.0.1:$port/postgres"
}

start_mariadb() {
    server=$(command -v mariadbd || ls /usr/sbin/mariadbd 2>/dev/null || true)
    if [ -z "$server" ]; then
        missing mariadb-server
        return
    fi
    port=$(free_port)
    socket="$place/mariadb/socket"
    owned_by mysql mariadb
    (become mysql mariadb-install-db --no-defaults --datadir="$place/mariadb/data" --skip-test-db \
        --auth-root-authentication-method=normal) >"$place/mariadb.log" 2>&1 || { tail -n 20 "$place/mariadb.log" >&2; exit 1; }
    become mysql "$server" --no-defaults --datadir="$place/mariadb/data" --bind-address=127.0.0.1 --port="$port" \
        --socket="$socket" --pid-file="$place/mariadb/pid" --max-connections=400 >>"$place/mariadb.log" 2>&1 &
    mariadb_pid=$!
    await mariadb mariadb --no-defaults -u root -S "$socket" -e 'SELECT 1'
    mariadb --no-defaults -u root -S "$socket" \
        -e "CREATE USER kiln@'127.0.0.1' IDENTIFIED BY 'kiln'; GRANT ALL ON *.* TO kiln@'127.0.0.1';"
    urls="$urls mysql://kiln:kiln@127.0.0.1:$port/mysql"
}

start_postgres
start_mariadb
KILN_TEST_DATABASES=${urls# }
export KILN_TEST_DATABASES
status=0
"$@" || status=$?
exit "$status"
