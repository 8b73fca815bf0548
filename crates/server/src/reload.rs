//! SIGHUP: a running service reads its files again.

use kiln_config::Config;
use kiln_config::ConfigArgs;
use kiln_telemetry::logging;
use kiln_value::Chain;
use tokio::signal::unix::Signal;

use crate::shutdown::{self, Stop};

/// Reads the configuration again at each SIGHUP, until a stop is requested.
pub async fn follow(mut hangups: Signal, args: ConfigArgs, mut config: Config, stop: Stop) {
    let stopped = shutdown::stopped(stop);
    tokio::pin!(stopped);
    loop {
        tokio::select! {
            received = hangups.recv() => if received.is_none() { return },
            () = &mut stopped => return,
        }
        let read = Config::load(&args).and_then(|new| Ok((logging::Settings::of(&new)?, new)));
        match read {
            Ok((settings, new)) => {
                settings.apply();
                let (applied, left) = changes(&config, &new);
                tracing::info!(applied = applied.join(", "), "the configuration was read again");
                if !left.is_empty() {
                    tracing::warn!("restart the service to apply the changes of {}", left.join(", "));
                }
                // Changes that need a restart are told again until there is one.
                config = config.with_mutable_of(&new);
            }
            Err(error) => {
                tracing::error!("the configuration is not valid, the former one stays in use: {}", Chain(&*error));
            }
        }
    }
}

/// The options that differ: those that are applied, and those that need a restart.
fn changes(old: &Config, new: &Config) -> (Vec<String>, Vec<String>) {
    let value = |config: &Config, at| config.given(at).map(|(value, _)| value);
    let changed = Config::places().filter(|at| value(old, *at) != value(new, *at));
    let (applied, left): (Vec<_>, Vec<_>) = changed.partition(|at| at.option.is_mutable());
    let names = |changed: Vec<kiln_config::option::At<'_>>| changed.iter().map(ToString::to_string).collect();
    (names(applied), names(left))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_that_need_a_restart_are_told_until_then() {
        let old = Config::parse("[DEFAULT]\nmax_template_size = 1\n[clients_nova]\ninsecure = true\n").unwrap();
        let text = "[DEFAULT]\ndebug = true\nmax_template_size = 2\n";
        let names = |changed: (Vec<String>, Vec<String>)| (changed.0.join(" "), changed.1.join(" "));
        let left = "[DEFAULT] max_template_size [clients_nova] insecure".to_owned();
        assert_eq!(names(changes(&old, &Config::parse(text).unwrap())), ("[DEFAULT] debug".to_owned(), left.clone()));
        let now = old.with_mutable_of(&Config::parse(text).unwrap());
        assert_eq!(names(changes(&now, &Config::parse(text).unwrap())), (String::new(), left));
    }
}
