# Kiln as the orchestration service of this cloud. The peer may run beside it: then the catalog names Kiln, and the
# peer is asked at its port.
: "${KILN_PORT:=8014}" "${KILN_CFN_PORT:=8010}"
: "${KILN:=${CARGO_TARGET_DIR:-$HERE/../target}/release/kiln}"   # the binary
: "${KILN_DATABASE:=}"                  # a URL; empty: SQLite below $DATA/kiln; 'mariadb': the cloud's own
: "${KILN_KEYSTONE_URL:=$KEYSTONE_URL}"  # what Kiln calls; a recording proxy, for example
OPTIONAL+=" kiln"
kiln_packages="python3-openstackclient python3-heatclient"
kiln_probe=$KILN
kiln_needs="keystone"
kiln_urls="http://$IP:$KILN_PORT/healthcheck"
kiln_catalog="user kiln
service orchestration heat http://$IP:$KILN_PORT/v1/%(project_id)s
service cloudformation heat-cfn http://$IP:$KILN_CFN_PORT/v1
domain heat heat_domain_admin"

kiln_database() {
    case $KILN_DATABASE in
        "") echo "sqlite:///$DATA/kiln/kiln.sqlite" ;;
        mariadb) db_url kiln ;;
        *) echo "$KILN_DATABASE" ;;
    esac
}

kiln_config() {
    local KEYSTONE_URL=$KILN_KEYSTONE_URL
    cat >"$ETC/kiln/kiln.conf" <<CONF
[DEFAULT]
auth_encryption_key = 0123456789abcdef0123456789abcdef
max_stacks_per_tenant = 1000000
stack_user_domain_name = heat
heat_waitcondition_server_url = http://$IP:$KILN_CFN_PORT/v1/waitcondition
stack_domain_admin = heat_domain_admin
stack_domain_admin_password = $DEVCLOUD_PASSWORD
enable_stack_adopt = true
enable_stack_abandon = true
max_resources_per_stack = -1
max_nested_stack_depth = 10
max_template_size = 10000000
max_json_body_size = 20000000

[database]
connection = $(kiln_database)

[heat_api]
bind_host = $IP
bind_port = $KILN_PORT

[heat_api_cfn]
bind_port = $KILN_CFN_PORT

[keystone_authtoken]
www_authenticate_uri = $KEYSTONE_URL
$(auth_conf kiln)

[trustee]
$(auth_conf kiln | grep -v project)

[kiln]
dashboard = true
template_urls = true
template_url_networks = $IP/32
CONF
}

kiln_db() {
    [ "$KILN_DATABASE" != mariadb ] || create_db kiln
    "$KILN" manage db sync --config-file "$ETC/kiln/kiln.conf"
}

kiln_start() { wait_for_catalog && spawn kiln "$KILN" serve --config-file "$ETC/kiln/kiln.conf"; }
