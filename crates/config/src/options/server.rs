//! Options of the database, the APIs, their policy and the logs.

use super::options;
use crate::option::Kind::{Choice, Flag, Limit, List, Path, Repeated, Text, Whole};
use crate::option::{ConfigOption, Place};

const MAIN: Place = Place::Section("DEFAULT");
const DATABASE: Place = Place::Section("database");
const API: Place = Place::Section("heat_api");
const CFN: Place = Place::Section("heat_api_cfn");
const POLICY: Place = Place::Section("oslo_policy");
const REPORTS: Place = Place::Section("oslo_reports");
const CORS: Place = Place::Section("cors");

options! {
    DEBUG = ConfigOption::new(
        MAIN, "debug", Flag, "Log at level debug instead of info. The variable RUST_LOG takes precedence.",
    ).default("false").mutable();
    USE_JSON = ConfigOption::new(
        MAIN, "use_json", Flag, "Log one JSON object a line, as --log-format json does.",
    ).default("false");
    USE_JOURNAL = ConfigOption::new(
        MAIN, "use_journal", Flag, "Send the log to systemd-journald, with its fields.",
    ).default("false");
    LOG_FILE = ConfigOption::new(
        MAIN, "log_file", Path, "Write the log to this file, relative to log_dir.",
    ).older(&["logfile"]);
    LOG_DIR = ConfigOption::new(
        MAIN, "log_dir", Path, "Folder of log files. Without log_file: kiln.log, kiln-api.log or kiln-engine.log.",
    ).older(&["logdir"]);
    WATCH_LOG_FILE = ConfigOption::new(
        MAIN, "watch_log_file", Flag,
        "Open the file again when it was moved or removed, for logrotate. It is opened again on SIGHUP in any case.",
    ).default("false");
    USE_STDERR = ConfigOption::new(
        MAIN, "use_stderr", Flag, "Write the log to standard error too. Without another destination, it is written there \
        in any case.",
    ).default("false");
    RATE_LIMIT_INTERVAL = ConfigOption::new(
        MAIN, "rate_limit_interval", Whole(0, 86_400),
        "Interval of rate_limit_burst; 0: no limit.",
    ).default("1").unit("seconds");
    RATE_LIMIT_BURST = ConfigOption::new(
        MAIN, "rate_limit_burst", Whole(0, 1_000_000),
        "Maximum number of lines with the same message in rate_limit_interval, so that a flood of requests does not fill the \
         disk; 0: no limit. The next line has the number of lines that were left out.",
    ).default("1000");
    RATE_LIMIT_EXCEPT_LEVEL = ConfigOption::new(
        MAIN, "rate_limit_except_level", Choice(&["CRITICAL", "ERROR", "WARNING", "INFO", "DEBUG"]),
        "Lines of this level and above have no such limit.",
    ).default("CRITICAL");
    CONNECTION = ConfigOption::new(
        DATABASE, "connection", Text,
        "URL of the database: sqlite:///FILE, postgresql://…, mysql://…. Drivers and parameters as in URLs of \
         SQLAlchemy (mysql+pymysql://…?ssl_ca=FILE) are accepted. Required.",
    ).older(&["DEFAULT/sql_connection", "DATABASE/sql_connection", "sql/connection"]).secret();
    MAX_POOL_SIZE = ConfigOption::new(
        DATABASE, "max_pool_size", Whole(1, 10_000), "Maximum number of connections of a process to the database.",
    ).default("10");
    CONNECTION_RECYCLE_TIME = ConfigOption::new(
        DATABASE, "connection_recycle_time", Limit,
        "Age at which a connection to a server is replaced.",
    ).default("3600").unit("seconds");
    MYSQL_WSREP_SYNC_WAIT = ConfigOption::new(
        DATABASE, "mysql_wsrep_sync_wait", Whole(0, 15),
        "Galera only: statements that wait until the node has applied the earlier commits of other nodes, as a bit mask \
         (1: reads). Set it to 1 if the connections of Kiln go to several nodes.",
    ).computed("the value of the server");
    SQLITE_SYNCHRONOUS = ConfigOption::new(
        DATABASE, "sqlite_synchronous", Flag,
        "SQLite only: wait for the disk at each commit, so that a power failure loses nothing.",
    ).older(&["DEFAULT/sqlite_synchronous"]).default("false");
    API_BIND_HOST = ConfigOption::new(API, "bind_host", Text, "Address or host name of the REST API.")
        .older(&["DEFAULT/bind_host"])
        .default("0.0.0.0");
    API_BIND_PORT = ConfigOption::new(API, "bind_port", Whole(0, 65_535), "Port of the REST API; 0: a free one.")
        .older(&["DEFAULT/bind_port"])
        .default("8004");
    API_CERT_FILE = ConfigOption::new(
        API, "cert_file", Path,
        "Serve HTTPS with this certificate, in PEM format, with the certificates of its authorities. It is read again when it changes.",
    ).older(&["DEFAULT/cert_file"]);
    API_KEY_FILE = ConfigOption::new(API, "key_file", Path, "File with the key of the certificate.")
        .older(&["DEFAULT/key_file"]);
    CFN_BIND_HOST = ConfigOption::new(CFN, "bind_host", Text, "Address or host name of the CloudFormation API.")
        .computed("[heat_api] bind_host");
    CFN_BIND_PORT = ConfigOption::new(
        CFN, "bind_port", Whole(0, 65_535), "Port of the CloudFormation API; 0: a free one.",
    ).computed("8000; a free port if bind_port of [heat_api] is 0");
    CFN_CERT_FILE = ConfigOption::new(CFN, "cert_file", Path, "As in [heat_api].");
    CFN_KEY_FILE = ConfigOption::new(CFN, "key_file", Path, "As in [heat_api].");
    ENABLE_PROXY_HEADERS_PARSING = ConfigOption::new(
        Place::Section("oslo_middleware"), "enable_proxy_headers_parsing", Flag,
        "The API is behind a proxy: take scheme, host and path prefix of URLs from X-Forwarded-Proto, -Host and \
         -Prefix. Set it only if the proxy replaces these headers.",
    ).default("false");
    REPORTS_LOG_DIR = ConfigOption::new(
        REPORTS, "log_dir", Path, "Folder for reports. SIGUSR2 requests one.",
    ).computed("standard error");
    REPORTS_FILE_EVENT_HANDLER = ConfigOption::new(
        REPORTS, "file_event_handler", Path, "A change of this file requests a report too.",
    );
    REPORTS_FILE_EVENT_HANDLER_INTERVAL = ConfigOption::new(
        REPORTS, "file_event_handler_interval", Whole(1, 86_400), "Interval between checks of the file.",
    ).default("1").unit("seconds");
    ALLOWED_ORIGIN = ConfigOption::new(
        CORS, "allowed_origin", List, "Origins of web pages that may use the API; *: all. Empty: none.",
    );
    ALLOW_CREDENTIALS = ConfigOption::new(CORS, "allow_credentials", Flag, "Such pages may send credentials.")
        .default("true");
    EXPOSE_HEADERS = ConfigOption::new(CORS, "expose_headers", List, "Headers that such pages may read.")
        .computed("as in Heat");
    MAX_AGE = ConfigOption::new(
        CORS, "max_age", Whole(0, u32::MAX as i64), "How long a browser may keep the answer about an origin.",
    ).default("3600").unit("seconds");
    ALLOW_METHODS = ConfigOption::new(CORS, "allow_methods", List, "Methods that such pages may use.")
        .computed("as in Heat");
    ALLOW_HEADERS = ConfigOption::new(CORS, "allow_headers", List, "Headers that such pages may send.")
        .computed("as in Heat");
    ENFORCE_NEW_DEFAULTS = ConfigOption::new(
        POLICY, "enforce_new_defaults", Flag, "Use Heat's newer default rules with the roles reader and member only.",
    ).default("true");
    POLICY_FILE = ConfigOption::new(
        POLICY, "policy_file", Path,
        "File with rules, in YAML or JSON, relative to the folder of the configuration file or /etc/kiln. It is read \
         again when it changes.",
    ).older(&["DEFAULT/policy_file"]).computed("policy.yaml if it exists");
    POLICY_DIRS = ConfigOption::new(
        POLICY, "policy_dirs", Repeated, "Folder with more such files.",
    ).older(&["DEFAULT/policy_dirs"]).computed("policy.d if it exists");
}
