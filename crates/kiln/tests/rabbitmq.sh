#!/bin/sh
# Runs a command with a temporary RabbitMQ:
#
#   crates/kiln/tests/rabbitmq.sh cargo test -p kiln --test kiln -- --ignored notifications
#
# It comes from Debian's package (`apt-get install --no-install-recommends rabbitmq-server`; its service need not run),
# keeps its data in a temporary directory, listens on free loopback ports and ends with the command.
# KILN_TEST_RABBITMQ is its address, KILN_TEST_RABBITMQ_TLS that for TLS, KILN_TEST_RABBITMQ_CA the file with the
# certificate of its authority. The account is guest, guest.
set -eu

if [ $# -eq 0 ]; then
    sed -n '2,9s/^# \{0,1\}//p' "$0"
    exit 2
fi
server=/usr/lib/rabbitmq/bin/rabbitmq-server
if [ ! -e "$server" ]; then
    echo "rabbitmq.sh: rabbitmq-server is not installed" >&2
    exit 1
fi

place=$(mktemp -d "${TMPDIR:-/tmp}/kiln-rabbitmq.XXXXXX")
chmod 755 "$place"
pid=

stop() {
    trap - EXIT INT TERM
    [ -z "$pid" ] || kill -TERM "$pid" 2>/dev/null || true
    wait
    # The port mapper of Erlang stays otherwise.
    ERL_EPMD_PORT=$epmd epmd -kill >/dev/null 2>&1 || true
    rm -rf "$place"
}

free_port() {
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

port=$(free_port)
tls=$(free_port)
dist=$(free_port)
epmd=$(free_port)
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

cd_back=$PWD
cd "$place"
openssl req -x509 -newkey rsa:2048 -nodes -days 2 -keyout ca.key -out ca.pem -subj "/CN=Kiln test authority" 2>/dev/null
openssl req -newkey rsa:2048 -nodes -keyout server.key -out server.csr -subj "/CN=localhost" 2>/dev/null
printf 'subjectAltName = DNS:localhost, IP:127.0.0.1\nbasicConstraints = CA:FALSE\n' >server.ext
openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile server.ext \
    -out server.pem 2>/dev/null
cat >rabbitmq.conf <<END
listeners.tcp.1 = 127.0.0.1:$port
listeners.ssl.1 = 127.0.0.1:$tls
ssl_options.cacertfile = $place/ca.pem
ssl_options.certfile = $place/server.pem
ssl_options.keyfile = $place/server.key
END
: >enabled_plugins
printf '[].' >enabled_plugins
: >env.conf
mkdir data log
cd "$cd_back"

become() {
    if [ "$(id -u)" -eq 0 ]; then
        chown -R rabbitmq "$place"
        exec setpriv --reuid rabbitmq --regid rabbitmq --init-groups "$@"
    fi
    exec "$@"
}

become env HOME="$place" ERL_EPMD_ADDRESS=127.0.0.1 ERL_EPMD_PORT="$epmd" \
    RABBITMQ_CONF_ENV_FILE="$place/env.conf" RABBITMQ_CONFIG_FILE="$place/rabbitmq" \
    RABBITMQ_NODENAME="kiln$port@localhost" RABBITMQ_DIST_PORT="$dist" \
    RABBITMQ_MNESIA_BASE="$place/data" RABBITMQ_LOG_BASE="$place/log" RABBITMQ_LOGS=- \
    RABBITMQ_ENABLED_PLUGINS_FILE="$place/enabled_plugins" RABBITMQ_PID_FILE="$place/pid" \
    RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS="-kernel inet_dist_use_interface {127,0,0,1} +sbwt none" \
    "$server" >"$place.log" 2>&1 &
pid=$!
answers() {
    python3 -c "import socket; socket.create_connection(('127.0.0.1', $1), 1)" 2>/dev/null
}
for _ in $(seq 150); do
    if answers "$port" && answers "$tls"; then
        break
    fi
    kill -0 "$pid" 2>/dev/null || break
    sleep 0.2
done
answers "$tls" || {
    echo "rabbitmq.sh: RabbitMQ does not answer; its log:" >&2
    tail -n 30 "$place.log" >&2
    exit 1
}
rm -f "$place.log"
export KILN_TEST_RABBITMQ="127.0.0.1:$port" KILN_TEST_RABBITMQ_TLS="localhost:$tls" KILN_TEST_RABBITMQ_CA="$place/ca.pem"
status=0
"$@" || status=$?
exit "$status"
