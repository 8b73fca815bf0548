//! `sim`: simulates clusters from seeds.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::ops::Range;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context as _, bail};
use clap::Parser;
use kiln_sim::generate;
use kiln_sim::run::{Outcome, run};
use kiln_sim::sabotage::Sabotage;
use kiln_sim::scenario::Scenario;
use kiln_sim::shrink::shrink;

/// Simulate whole clusters, one for each seed
#[derive(Parser)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command")]
struct Arguments {
    /// Seed or range of seeds: FROM..TO
    seeds: Option<String>,
    /// Print a trace of all events
    #[arg(long)]
    trace: bool,
    /// Shrink a failing scenario and print it as JSON
    #[arg(long)]
    shrink: bool,
    /// Run a scenario from a file instead of a seed
    #[arg(long)]
    scenario: Option<PathBuf>,
    /// Add a defect; `all` tries every defect and reports the seed and rule that detect it
    #[arg(long)]
    sabotage: Option<String>,
    /// Print the scenario of a seed as JSON
    #[arg(long)]
    show: bool,
    /// Stop at the first failing seed
    #[arg(long)]
    first: bool,
    /// Number of threads
    #[arg(long, default_value_t = std::thread::available_parallelism().map_or(1, usize::from))]
    threads: usize,
}

fn main() -> anyhow::Result<ExitCode> {
    let arguments = Arguments::parse();
    let sabotage = match arguments.sabotage.as_deref() {
        Some("all") => {
            return try_all(&seeds(arguments.seeds.as_deref().unwrap_or("0..2000"))?, arguments.threads);
        }
        Some(name) => Some(name.parse().map_err(anyhow::Error::msg)?),
        None => None,
    };
    if let Some(file) = &arguments.scenario {
        let text = std::fs::read_to_string(file).with_context(|| file.display().to_string())?;
        return one(serde_json::from_str(&text)?, &arguments, sabotage);
    }
    let Some(range) = arguments.seeds.as_deref() else { bail!("specify the seeds: FROM..TO") };
    let seeds = seeds(range)?;
    if arguments.show || arguments.trace || arguments.shrink || !range.contains("..") {
        let scenario = generate::scenario(seeds.start);
        if arguments.show {
            println!("{}", serde_json::to_string_pretty(&scenario)?);
            return Ok(ExitCode::SUCCESS);
        }
        return one(scenario, &arguments, sabotage);
    }
    Ok(many(seeds, arguments.threads, sabotage, arguments.first))
}

fn seeds(text: &str) -> anyhow::Result<Range<u64>> {
    if let Some((from, to)) = text.split_once("..") {
        return Ok(from.parse()?..to.parse()?);
    }
    let seed: u64 = text.parse()?;
    Ok(seed..seed + 1)
}

/// Runs one scenario with details.
fn one(scenario: Scenario, arguments: &Arguments, sabotage: Option<Sabotage>) -> anyhow::Result<ExitCode> {
    let outcome = run(&scenario, arguments.trace && !arguments.shrink, sabotage);
    let mut out = std::io::stdout().lock();
    write!(out, "{}", outcome.trace)?;
    let Some(violation) = outcome.violation else {
        writeln!(out, "1 passed, 0 failed")?;
        return Ok(ExitCode::SUCCESS);
    };
    writeln!(out, "seed {}: {violation}", scenario.seed)?;
    if arguments.shrink {
        let smaller = shrink(scenario, violation.rule, sabotage);
        writeln!(out, "{}", serde_json::to_string_pretty(&smaller)?)?;
        let outcome = run(&smaller, arguments.trace, sabotage);
        write!(out, "{}", outcome.trace)?;
        if let Some(violation) = outcome.violation {
            writeln!(out, "shrunk: {violation}")?;
        }
    }
    writeln!(out, "0 passed, 1 failed")?;
    Ok(ExitCode::FAILURE)
}

/// Runs many seeds on several threads; `each` is called for every failing one and returns whether to continue.
fn sweep(
    seeds: Range<u64>,
    threads: usize,
    sabotage: Option<Sabotage>,
    each: impl Fn(u64, &Outcome) -> bool + Sync,
) -> u64 {
    let (next, stop) = (AtomicU64::new(seeds.start), AtomicU64::new(0));
    let passed = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::SeqCst);
                    if seed >= seeds.end || stop.load(Ordering::SeqCst) > 0 {
                        return;
                    }
                    let outcome = run(&generate::scenario(seed), false, sabotage);
                    if outcome.violation.is_none() {
                        passed.fetch_add(1, Ordering::SeqCst);
                    } else if !each(seed, &outcome) {
                        stop.store(1, Ordering::SeqCst);
                    }
                }
            });
        }
    });
    passed.into_inner()
}

fn many(seeds: Range<u64>, threads: usize, sabotage: Option<Sabotage>, only_first: bool) -> ExitCode {
    let rules: Mutex<BTreeMap<&'static str, Vec<u64>>> = Mutex::default();
    let passed = sweep(seeds, threads, sabotage, |seed, outcome| {
        if let Some(violation) = &outcome.violation {
            println!("seed {seed}: {violation}");
            let mut rules = rules.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            rules.entry(violation.rule.name()).or_default().push(seed);
        }
        !only_first
    });
    let rules = rules.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    let failed: usize = rules.values().map(Vec::len).sum();
    for (rule, mut seeds) in rules {
        seeds.sort_unstable();
        let first: Vec<String> = seeds.iter().take(8).map(u64::to_string).collect();
        println!("{rule}: {} ({} …)", seeds.len(), first.join(" "));
    }
    println!("{passed} passed, {failed} failed");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Tries each defect and reports the seed and rule that detect it.
fn try_all(seeds: &Range<u64>, threads: usize) -> anyhow::Result<ExitCode> {
    let mut missed = 0;
    for sabotage in Sabotage::ALL.iter().copied() {
        let found: Mutex<Option<(u64, &'static str)>> = Mutex::default();
        sweep(seeds.clone(), threads, Some(sabotage), |seed, outcome| {
            // A seed that also fails without the defect does not count.
            let sound = run(&generate::scenario(seed), false, None).violation.is_none();
            let Some(violation) = outcome.violation.as_ref().filter(|_| sound) else { return true };
            let mut found = found.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            if found.is_none_or(|(first, _)| seed < first) {
                *found = Some((seed, violation.rule.name()));
            }
            false
        });
        let found = found.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut out = std::io::stdout().lock();
        if let Some((seed, rule)) = found {
            writeln!(out, "{:<24} seed {seed:<6} {rule}", sabotage.name())?;
        } else {
            missed += 1;
            writeln!(out, "{:<24} not found", sabotage.name())?;
        }
    }
    println!("{} found, {missed} missed", Sabotage::ALL.len() - missed);
    Ok(if missed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
