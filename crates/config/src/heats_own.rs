//! Options of Heat, of its older releases and of its libraries that Kiln does not read, and why.

use std::collections::BTreeSet;

use anyhow::{Error, anyhow};

use super::Config;
use super::option::ACCOUNTS;

/// Options that Kiln does not read for one reason.
#[derive(Debug)]
pub struct Unread {
    /// Why, in a few words.
    pub reason: &'static str,
    /// Sections with options, separated by spaces; `*`: all others of the section. A section that ends with `*` stands
    /// for all with this beginning.
    pub options: &'static [(&'static str, &'static str)],
}

/// An option that means something in Heat, but whose other values are not built in Kiln: they are refused.
#[derive(Debug)]
pub struct Fixed {
    /// Section.
    pub section: &'static str,
    /// Name.
    pub name: &'static str,
    /// The values that mean what Kiln does.
    pub allowed: &'static [&'static str],
    /// What Kiln does.
    pub behaviour: &'static str,
}

/// Why Kiln does not read an option of Heat.
pub fn reason(section: &str, name: &str) -> Option<&'static str> {
    let is_section = |known: &str| match known.strip_suffix('*') {
        Some(start) => section.starts_with(start),
        None => known == section,
    };
    let lists = |(known, names): &(&str, &str)| is_section(known) && names.split(' ').any(|known| known == name);
    let takes_all = |(known, names): &(&str, &str)| is_section(known) && *names == "*";
    let by_name = UNREAD.iter().find(|unread| unread.options.iter().any(lists));
    by_name.or_else(|| UNREAD.iter().find(|unread| unread.options.iter().any(takes_all))).map(|found| found.reason)
}

/// The section of [`Fixed`] options of Keystone users.
const ACCOUNT: &str = "a section with a Keystone user";

/// The section of the audit filter of keystonemiddleware.
const AUDIT: &str = "audit_middleware_notifications";

/// What is known of an option whose values are not all built.
pub fn fixed(section: &str, name: &str) -> Option<&'static Fixed> {
    let is_account = ACCOUNTS.contains(&section) || section.starts_with("ec2authtoken.");
    let is_section = |known: &str| known == section || (is_account && known == ACCOUNT);
    FIXED.iter().find(|fixed| is_section(fixed.section) && fixed.name == name)
}

impl Fixed {
    /// Whether a value means what Kiln does.
    pub fn allows(&self, value: &str) -> bool {
        value.is_empty() || self.allowed.iter().any(|allowed| allowed.eq_ignore_ascii_case(value))
    }

    /// The sections that it may be in.
    fn sections(&self) -> Vec<&'static str> {
        if self.section == ACCOUNT { ACCOUNTS.to_vec() } else { vec![self.section] }
    }
}

/// The values, also from the environment, that mean something in Heat which Kiln does not do.
pub fn refused(config: &Config) -> Vec<Error> {
    let known = FIXED.iter().flat_map(|fixed| fixed.sections().into_iter().map(|section| (section, fixed.name)));
    let names: BTreeSet<(&str, &str)> = known.chain(config.names()).collect();
    let refused = names.into_iter().filter_map(|(section, name)| {
        let fixed = fixed(section, name)?;
        let (value, _) = config.given_as(section, name).filter(|(value, _)| !fixed.allows(value))?;
        Some(anyhow!("[{section}] {name} does not support the value {value:?}: {}", fixed.behaviour))
    });
    refused.collect()
}

/// The options without a meaning in Kiln, by reason.
pub static UNREAD: &[Unread] = &[
    Unread {
        reason: "one process uses all processors and serves all connections",
        options: &[
            ("DEFAULT", "num_engine_workers executor_thread_pool_size rpc_thread_pool_size"),
            ("heat_api", "workers"),
            ("heat_api_cfn", "workers"),
            ("DEFAULT", "workers"),
            ("heat_api_cloudwatch", "workers"),
        ],
    },
    Unread {
        reason: "the parts of Kiln need no message broker; RabbitMQ is used for notifications only",
        options: &[
            ("DEFAULT", "rpc_response_timeout rpc_ping_enabled rpc_conn_pool_size conn_pool_min_size conn_pool_ttl"),
            ("DEFAULT", "engine_life_check_timeout rpc_backend"),
            ("DEFAULT", "kombu_reconnect_delay rabbit_ha_queues rabbit_login_method rabbit_retry_backoff"),
            ("amqp1", "*"),
            ("oslo_messaging_amqp", "*"),
            ("oslo_messaging_kafka", "*"),
            ("oslo_messaging_rabbit", "*"),
        ],
    },
    Unread {
        reason: "the certificate of RabbitMQ and its name are always verified",
        options: &[("oslo_messaging_rabbit", "ssl_enforce_hostname_verification")],
    },
    Unread {
        reason: "a notification is sent again for an hour while RabbitMQ does not answer",
        options: &[("oslo_messaging_notifications", "retry")],
    },
    Unread {
        reason: "Kiln has its own HTTP server; its limits are in [kiln]",
        options: &[
            ("DEFAULT", "wsgi_default_pool_size wsgi_keep_alive wsgi_log_format wsgi_server_debug tcp_keepidle"),
            ("DEFAULT", "client_socket_timeout max_header_line api_paste_config backlog"),
            ("eventlet_opts", "*"),
            ("heat_api", "backlog max_header_line tcp_keepidle heat_api_root"),
            ("heat_api_cfn", "backlog max_header_line tcp_keepidle"),
            ("paste_deploy", "api_paste_config"),
            ("oslo_middleware", "http_basic_auth_user_file secure_proxy_ssl_header"),
        ],
    },
    Unread {
        reason: "the limit of request bodies is [DEFAULT] max_json_body_size",
        options: &[
            ("oslo_middleware", "max_request_body_size"),
            ("DEFAULT", "max_request_body_size osapi_max_request_body_size"),
        ],
    },
    Unread {
        reason: "Kiln does not run in Python: use kiln manage report to look inside",
        options: &[("DEFAULT", "backdoor_port backdoor_socket fatal_deprecations")],
    },
    Unread {
        reason: "logrotate, systemd or the container runtime rotates the log",
        options: &[
            ("DEFAULT", "log_rotate_interval log_rotate_interval_type"),
            ("DEFAULT", "log_rotation_type max_logfile_count max_logfile_size_mb"),
        ],
    },
    Unread {
        reason: "logs go to standard error, a file or systemd-journald, which can pass them to syslog",
        options: &[("DEFAULT", "use_syslog syslog_log_facility use_eventlog log_color")],
    },
    Unread {
        reason: "[kiln] log_format selects one of three forms; the variable RUST_LOG sets levels by module",
        options: &[
            ("DEFAULT", "default_log_levels instance_format instance_uuid_format log_config_append log_config"),
            ("DEFAULT", "log_date_format log_options logging_context_format_string logging_debug_format_suffix"),
            ("DEFAULT", "logging_default_format_string logging_exception_prefix logging_user_identity_format"),
            ("DEFAULT", "publish_errors verbose"),
            ("clients_*", "http_log_debug"),
        ],
    },
    Unread {
        reason: "a stopping service completes its requests; [kiln] drain limits the time for calls",
        options: &[("DEFAULT", "graceful_shutdown_timeout")],
    },
    Unread {
        reason: "caches are in the memory of the process and need no set-up",
        options: &[
            ("cache", "*"),
            ("constraint_validation_cache", "*"),
            ("resource_finder_cache", "*"),
            ("service_extension_cache", "*"),
            ("keystone_authtoken", "cache memcached_servers memcache_servers memcache_password memcache_username"),
            ("keystone_authtoken", "memcache_secret_key memcache_security_strategy memcache_use_advanced_pool"),
            ("keystone_authtoken", "memcache_pool_conn_get_timeout memcache_pool_dead_retry memcache_pool_maxsize"),
            ("keystone_authtoken", "memcache_pool_socket_timeout memcache_pool_unused_timeout"),
            ("keystone_authtoken", "memcache_sasl_enabled memcache_tls_enabled memcache_tls_allowed_ciphers"),
            ("ec2authtoken", "memcached_servers"),
            ("keystone_authtoken", "memcache_tls_cafile memcache_tls_certfile memcache_tls_keyfile"),
        ],
    },
    Unread {
        reason: "Kiln manages the connections to the database itself and repeats failed transactions",
        options: &[
            ("database", "backend connection_debug connection_parameters connection_trace"),
            ("database", "db_inc_retry_interval db_max_retries db_max_retry_interval db_retry_interval max_overflow"),
            ("database", "max_retries mysql_sql_mode mysql_enable_ndb pool_timeout"),
            ("database", "retry_interval synchronous_reader use_db_reconnect min_pool_size idle_timeout use_tpool"),
            ("database", "asyncio_connection"),
            ("DEFAULT", "db_backend sql_connection_debug sql_connection_trace sql_max_overflow sql_max_retries"),
            ("DEFAULT", "sql_retry_interval"),
            ("DATABASE", "reconnect_interval sql_max_retries sqlalchemy_max_overflow sqlalchemy_pool_timeout"),
        ],
    },
    Unread {
        reason: "all queries go to one database",
        options: &[("database", "slave_connection asyncio_slave_connection")],
    },
    Unread {
        reason: "Kiln does not load Python code; use [kiln] plugins (kiln_plugin.heat runs classes of Heat plug-ins), resource_types_dir and lifecycle_plugins",
        options: &[("DEFAULT", "plugin_dirs cloud_backend keystone_backend stack_domain_backend")],
    },
    Unread {
        reason: "templates of resource types are compiled in",
        options: &[("DEFAULT", "template_dir loadbalancer_template")],
    },
    Unread {
        reason: "notifications are versioned objects only in Nova; Heat's have one form",
        options: &[("notifications", "notification_format")],
    },
    Unread { reason: "Kiln notifies systemd itself when it is ready", options: &[("DEFAULT", "onready")] },
    Unread {
        reason: "it is used with region_name_for_shared_services only, which Kiln does not support",
        options: &[("DEFAULT", "shared_services_types")],
    },
    Unread {
        reason: "every stack is processed by the convergence algorithm",
        options: &[("DEFAULT", "convergence_engine error_wait_time")],
    },
    Unread {
        reason: "engines clean up continuously, in batches of their own size",
        options: &[
            ("DEFAULT", "event_purge_batch_size periodic_interval run_external_periodic_tasks"),
            ("DEFAULT", "periodic_fuzzy_delay"),
        ],
    },
    Unread {
        reason: "Kiln asks the service for the versions that it supports",
        options: &[
            ("DEFAULT", "max_cinder_api_microversion max_ironic_api_microversion max_nova_api_microversion"),
            ("keystone_authtoken", "auth_version"),
            ("trustee", "auth_version"),
            ("ec2authtoken", "auth_version version min_version max_version"),
        ],
    },
    Unread {
        reason: "only boto in servers used it, and current agents do not use boto",
        options: &[
            ("DEFAULT", "instance_connection_is_secure instance_connection_https_validate_certificates"),
            ("DEFAULT", "instance_user instance_driver"),
        ],
    },
    Unread {
        reason: "the CloudWatch API was removed from Heat",
        options: &[("heat_api_cloudwatch", "*"), ("DEFAULT", "enable_cloud_watch_lite heat_watch_server_url")],
    },
    Unread {
        reason: "the service was removed from OpenStack",
        options: &[
            ("clients_monasca", "*"),
            ("clients_sahara", "*"),
            ("clients_senlin", "*"),
            ("clients_vitrage", "*"),
            ("clients_ceilometer", "*"),
        ],
    },
    Unread {
        reason: "[kiln] call_timeout and client_retry_limit apply to calls of Keystone too",
        options: &[
            ("keystone_authtoken", "http_connect_timeout http_request_max_retries"),
            ("ec2authtoken", "connect_retries connect_retry_delay status_code_retries status_code_retry_delay"),
            ("ec2authtoken", "retriable_status_codes timeout"),
            ("trustee", "connect_retries connect_retry_delay status_code_retries status_code_retry_delay timeout"),
        ],
    },
    Unread {
        reason: "[keystone_authtoken] auth_url is called as it is, without the catalog",
        options: &[
            ("keystone_authtoken", "interface endpoint_type valid_interfaces service_type service_name"),
            ("keystone_authtoken", "endpoint_override identity_api_version admin_user admin_password"),
            ("keystone_authtoken", "admin_tenant_name auth_host auth_port auth_protocol auth_admin_prefix"),
            ("ec2authtoken", "interface valid_interfaces service_type service_name endpoint_override"),
            ("trustee", "interface valid_interfaces service_type service_name endpoint_override"),
            ("clients_keystone", "auth_uri"),
        ],
    },
    Unread {
        reason: "a service validates each token itself, with Keystone",
        options: &[
            ("keystone_authtoken", "delay_auth_decision include_service_catalog enforce_token_bind signing_dir"),
            ("keystone_authtoken", "revocation_cache_time"),
            ("keystone_authtoken", "check_revocations_for_cached hash_algorithms"),
        ],
    },
    Unread {
        reason: "TLS follows the defaults of rustls: versions 1.2 and 1.3",
        options: &[("ec2authtoken", "tls_ciphers tls_min_version"), ("ssl", "version ciphers")],
    },
    Unread {
        reason: "calls of Keystone are in the metrics, and in the log at level debug",
        options: &[
            ("ec2authtoken", "collect_timing split_loggers"),
            ("keystone_authtoken", "collect_timing split_loggers"),
            ("trustee", "collect_timing split_loggers"),
        ],
    },
    Unread {
        reason: "the rules themselves check the scope of a token (system_scope:all)",
        options: &[("oslo_policy", "enforce_scope")],
    },
    Unread {
        reason: "interfaces are checked until the timeout of the stack",
        options: &[("DEFAULT", "max_interface_check_attempts")],
    },
    Unread { reason: "audit events are written to files before they are sent", options: &[(AUDIT, "mem_queue_size")] },
    Unread {
        reason: "the parts of Kiln exchange no versioned objects of oslo",
        options: &[("oslo_versionedobjects", "*")],
    },
    Unread { reason: "locks are in the database", options: &[("oslo_concurrency", "*")] },
    Unread {
        reason: "Kiln has no osprofiler; [kiln] otlp_endpoint sends traces by OpenTelemetry",
        options: &[
            ("profiler", "*"),
            ("profiler_jaeger", "*"),
            ("profiler_otlp", "*"),
            ("oslo_middleware_tracing", "*"),
        ],
    },
    Unread {
        reason: "/healthcheck always reports the database and the engines",
        options: &[("healthcheck", "path backends")],
    },
    Unread {
        reason: "rules are checked by Kiln; remote checks are not supported, and an error when the policy is read",
        options: &[
            ("DEFAULT", "policy_default_rule"),
            ("oslo_policy", "policy_default_rule remote_content_type remote_ssl_ca_crt_file remote_timeout"),
            ("oslo_policy", "remote_ssl_client_crt_file remote_ssl_client_key_file remote_ssl_verify_server_crt"),
        ],
    },
    Unread {
        reason: "a user without a Keystone token cannot use Kiln as a service",
        options: &[("noauth", "*"), ("auth_password", "allowed_auth_uris"), ("ec2authtoken", "allowed_auth_uris")],
    },
];

/// The options with values that are not built.
pub static FIXED: &[Fixed] = &[
    Fixed { section: ACCOUNT, name: "domain_id", allowed: &[""], behaviour: "users log in to a project" },
    Fixed { section: ACCOUNT, name: "domain_name", allowed: &[""], behaviour: "users log in to a project" },
    Fixed { section: ACCOUNT, name: "system_scope", allowed: &[""], behaviour: "users log in to a project" },
    Fixed { section: ACCOUNT, name: "trust_id", allowed: &[""], behaviour: "users log in to a project" },
    Fixed {
        section: ACCOUNT,
        name: "default_domain_id",
        allowed: &[""],
        behaviour: "set user_domain_id and project_domain_id",
    },
    Fixed {
        section: ACCOUNT,
        name: "default_domain_name",
        allowed: &[""],
        behaviour: "set user_domain_name and project_domain_name",
    },
    Fixed {
        section: "DEFAULT",
        name: "reauthentication_auth_method",
        allowed: &["", "trusts"],
        behaviour: "operations always act by a trust, so that they do not end with the token of the user",
    },
    Fixed {
        section: "DEFAULT",
        name: "allow_trusts_redelegation",
        allowed: &["false"],
        behaviour: "trusts cannot be delegated again",
    },
    Fixed {
        section: "DEFAULT",
        name: "server_keystone_endpoint_type",
        allowed: &["", "public"],
        behaviour: "servers get [keystone_authtoken] www_authenticate_uri",
    },
    Fixed {
        section: "DEFAULT",
        name: "region_name_for_shared_services",
        allowed: &[""],
        behaviour: "all services are in region_name_for_services",
    },
    Fixed {
        section: "DEFAULT",
        name: "max_server_name_length",
        allowed: &["53"],
        behaviour: "generated names of servers have at most 53 characters",
    },
    Fixed {
        section: "DEFAULT",
        name: "metadata_put_timeout",
        allowed: &["60", "60.0"],
        behaviour: "metadata is sent with [kiln] call_timeout",
    },
    Fixed {
        section: "oslo_messaging_rabbit",
        name: "ssl_enforce_fips_mode",
        allowed: &["false"],
        behaviour: "TLS is implemented by rustls, without FIPS mode",
    },
    Fixed {
        section: "oslo_messaging_rabbit",
        name: "rabbit_login_method",
        allowed: &["AMQPLAIN", "PLAIN"],
        behaviour: "users log in with their password",
    },
    Fixed {
        section: "auth_password",
        name: "multi_cloud",
        allowed: &["false"],
        behaviour: "a service has one Keystone; for other clouds use OS::Heat::Stack with credentials",
    },
    Fixed {
        section: "paste_deploy",
        name: "flavor",
        allowed: &["", "keystone"],
        behaviour: "users authenticate with tokens of Keystone",
    },
    Fixed {
        section: "healthcheck",
        name: "detailed",
        allowed: &["false"],
        behaviour: "/healthcheck is public and has no details; see kiln manage doctor",
    },
    Fixed {
        section: "healthcheck",
        name: "disable_by_file_path",
        allowed: &[""],
        behaviour: "/healthcheck does not look at files",
    },
    Fixed {
        section: "healthcheck",
        name: "disable_by_file_paths",
        allowed: &[""],
        behaviour: "/healthcheck does not look at files",
    },
    Fixed {
        section: "healthcheck",
        name: "enable_by_file_paths",
        allowed: &[""],
        behaviour: "/healthcheck does not look at files",
    },
    Fixed {
        section: "healthcheck",
        name: "allowed_source_ranges",
        allowed: &[""],
        behaviour: "/healthcheck is public",
    },
    Fixed {
        section: "healthcheck",
        name: "ignore_proxied_requests",
        allowed: &["false"],
        behaviour: "/healthcheck is public",
    },
    Fixed {
        section: "ssl",
        name: "cert_file",
        allowed: &[""],
        behaviour: "HTTPS is served with [heat_api] cert_file and key_file",
    },
    Fixed {
        section: "ssl",
        name: "key_file",
        allowed: &[""],
        behaviour: "HTTPS is served with [heat_api] cert_file and key_file",
    },
    Fixed { section: "ssl", name: "ca_file", allowed: &[""], behaviour: "client certificates are not checked" },
];
