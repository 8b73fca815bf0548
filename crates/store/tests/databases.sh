#!/bin/sh
# Runs a command with temporary PostgreSQL and MariaDB servers:
#
#   crates/store/tests/databases.sh cargo test -p kiln-store
#   crates/store/tests/databases.sh --galera cargo test -p kiln --test kiln -- --ignored short::mariadb
#
# With --galera, the server is a Galera cluster of two MariaDB nodes, with --galera=3 of three; their URLs have commas in
# between.
# The servers come from Debian's packages (`apt-get install --no-install-recommends postgresql mariadb-server`; none of
# their services need run), keep their data in a temporary directory, listen on free loopback ports and end with the
# command. Their URLs are in KILN_TEST_DATABASES. A server that is not installed is skipped with a message;
# if CI is set, that is an error.
# Single servers have TLS, with a certificate for "localhost" of the authority in KILN_TEST_TLS/ca.pem; other.pem there is
# another authority, client.pem and client.key belong to a client. The user "secure" must use TLS, "certified" must show
# a certificate too; their password is "kiln".
set -eu

nodes=
case ${1:-} in
    --galera) nodes=2; shift ;;
    --galera=[2-9]) nodes=${1#*=}; shift ;;
esac
if [ $# -eq 0 ]; then
    sed -n '2,15s/^# \{0,1\}//p' "$0"
    exit 2
fi

place=$(mktemp -d "${TMPDIR:-/tmp}/kiln-databases.XXXXXX")
chmod 755 "$place"
urls=
postgres_pid=
mariadb_pids=

stop() {
    trap - EXIT INT TERM
    [ -z "$postgres_pid" ] || kill -INT "$postgres_pid" 2>/dev/null || true
    for pid in $mariadb_pids; do
        kill -TERM "$pid" 2>/dev/null || true
    done
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

# Authorities, the certificate of the servers and that of a client.
make_certificates() {
    mkdir "$place/tls"
    (
        cd "$place/tls"
        key="-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes"
        for name in ca other; do
            openssl req -x509 $key -days 2 -keyout "$name.key" -out "$name.pem" -subj "/CN=Kiln test authority $name"
        done
        printf 'subjectAltName = DNS:localhost\nbasicConstraints = CA:FALSE\n' >leaf.ext
        for name in server client; do
            openssl req $key -keyout "$name.key" -out "$name.csr" -subj "/CN=$name"
            openssl x509 -req -in "$name.csr" -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile leaf.ext -out "$name.pem"
        done
    ) >"$place/tls.log" 2>&1 || { cat "$place/tls.log" >&2; exit 1; }
}

# A folder with the certificate of a server that only its user can read.
certificate_of() {
    owned_by "$1" "$2-tls"
    cp "$place/tls/server.key" "$place/tls/server.pem" "$place/tls/ca.pem" "$place/$2-tls"
    chmod 600 "$place/$2-tls/server.key"
    if [ "$(id -u)" -eq 0 ]; then
        chown -R "$1" "$place/$2-tls"
    fi
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
    certificate_of postgres postgres
    {
        echo 'hostnossl all secure,certified all reject'
        echo 'hostssl all certified all trust clientcert=verify-ca'
        cat "$place/postgres/data/pg_hba.conf"
    } >"$place/pg_hba.conf"
    cat "$place/pg_hba.conf" >"$place/postgres/data/pg_hba.conf"
    become postgres "$bin/postgres" -D "$place/postgres/data" -h 127.0.0.1 -p "$port" -k "$place/postgres" \
        -c max_connections=400 -c ssl=on -c ssl_cert_file="$place/postgres-tls/server.pem" \
        -c ssl_key_file="$place/postgres-tls/server.key" -c ssl_ca_file="$place/postgres-tls/ca.pem" >>"$place/postgres.log" 2>&1 &
    postgres_pid=$!
    await postgres "$bin/psql" -h 127.0.0.1 -p "$port" -U kiln -d postgres -c 'SELECT 1'
    "$bin/psql" -q -h 127.0.0.1 -p "$port" -U kiln -d postgres \
        -c 'CREATE ROLE secure SUPERUSER LOGIN; CREATE ROLE certified SUPERUSER LOGIN;'
    urls="$urls postgres://kiln@127.0.0.1:$port/postgres"
}

mariadbd=$(command -v mariadbd || ls /usr/sbin/mariadbd 2>/dev/null || true)

# A MariaDB server with more options; its files are in a folder of the name.
run_mariadb() {
    name=$1 port=$2
    shift 2
    socket="$place/$name/socket"
    owned_by mysql "$name"
    (become mysql mariadb-install-db --no-defaults --datadir="$place/$name/data" --skip-test-db \
        --auth-root-authentication-method=normal) >"$place/$name.log" 2>&1 || { tail -n 20 "$place/$name.log" >&2; exit 1; }
    become mysql "$mariadbd" --no-defaults --datadir="$place/$name/data" --bind-address=127.0.0.1 --port="$port" \
        --socket="$socket" --pid-file="$place/$name/pid" --max-connections=400 "$@" >>"$place/$name.log" 2>&1 &
    mariadb_pids="$mariadb_pids $!"
}

ask_mariadb() {
    name=$1
    shift
    mariadb --no-defaults -u root -S "$place/$name/socket" -N -e "$@"
}

grant_mariadb() {
    ask_mariadb "$1" "CREATE USER kiln@'127.0.0.1' IDENTIFIED BY 'kiln'; GRANT ALL ON *.* TO kiln@'127.0.0.1' WITH GRANT OPTION;"
}

start_mariadb() {
    if [ -z "$mariadbd" ]; then
        missing mariadb-server
        return
    fi
    port=$(free_port)
    certificate_of mysql mariadb
    run_mariadb mariadb "$port" --ssl-cert="$place/mariadb-tls/server.pem" --ssl-key="$place/mariadb-tls/server.key" \
        --ssl-ca="$place/mariadb-tls/ca.pem"
    await mariadb ask_mariadb mariadb 'SELECT 1'
    grant_mariadb mariadb
    ask_mariadb mariadb "CREATE USER secure@'127.0.0.1' IDENTIFIED BY 'kiln' REQUIRE SSL; GRANT ALL ON *.* TO secure@'127.0.0.1';
        CREATE USER certified@'127.0.0.1' IDENTIFIED BY 'kiln' REQUIRE X509; GRANT ALL ON *.* TO certified@'127.0.0.1';"
    urls="$urls mysql://kiln:kiln@127.0.0.1:$port/mysql"
}

# A node joins the cluster of the first one, if there is one, and copies its data by rsync.
start_node() {
    name=$1 port=$2 group=$3 cluster=$4
    run_mariadb "$name" "$port" --wsrep-on=ON --wsrep-provider="$provider" --wsrep-cluster-name=kiln \
        --wsrep-cluster-address="gcomm://$cluster" --wsrep-node-address="127.0.0.1:$group" --wsrep-sst-method=rsync \
        --wsrep-sst-receive-address="127.0.0.1:$(free_port)" --binlog-format=ROW --innodb-autoinc-lock-mode=2 \
        --wsrep-provider-options="gmcast.listen_addr=tcp://127.0.0.1:$group;ist.recv_addr=127.0.0.1:$(free_port)"
    await "$name" is_ready "$name"
}

is_ready() {
    ask_mariadb "$1" "SHOW STATUS LIKE 'wsrep_ready'" | grep -q ON
}

start_galera() {
    provider=$(ls /usr/lib/galera/libgalera_smm.so 2>/dev/null || true)
    if [ -z "$mariadbd" ] || [ -z "$provider" ] || [ -z "$(command -v rsync)" ]; then
        missing "a part of Galera (mariadb-server, galera-4, rsync)"
        return
    fi
    founder=$(free_port)
    for number in $(seq "$nodes"); do
        own=$(free_port) group=$(free_port)
        if [ "$number" = 1 ]; then
            start_node node-1 "$own" "$founder" ""
        else
            start_node "node-$number" "$own" "$group" "127.0.0.1:$founder"
        fi
        urls="$urls,mysql://kiln:kiln@127.0.0.1:$own/mysql"
    done
    grant_mariadb node-1
    urls=${urls#,}
}

if [ -n "$nodes" ]; then
    start_galera
else
    make_certificates
    start_postgres
    start_mariadb
    export KILN_TEST_TLS="$place/tls"
    # By default, so that tests can look into connections.
    export PGSSLMODE=disable
fi
KILN_TEST_DATABASES=${urls# }
export KILN_TEST_DATABASES
status=0
"$@" || status=$?
exit "$status"
