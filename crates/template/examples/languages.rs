//! Kiln's part of `bench/languages.py`: `languages MEASURE FILE` prints the duration of the fastest run in seconds and
//! the peak memory of the process in bytes.

#![expect(clippy::disallowed_methods, reason = "a measurement runs by the real clock")]

use std::error::Error;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kiln_template::constraint::AcceptAll;
use kiln_template::{Bound, Files, Template, Unbuilt, source};
use kiln_value::{Map, Value};
use kiln_yaql::Limits;

/// The allocator of the binary.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn bound(text: &str) -> Result<Bound> {
    let template = Template::from_value(source::parse(text, source::ROOT, usize::MAX)?.value)?;
    let parameters = template.parameters(None, &Map::new(), &Map::new())?;
    Ok(Bound::new(Arc::new(template), Arc::new(parameters), Arc::new(Files::default())))
}

/// The fastest run in about one second.
fn best(mut run: impl FnMut() -> Result<()>) -> Result<f64> {
    let (mut best, began) = (Duration::MAX, Instant::now());
    while began.elapsed() < Duration::from_secs(1) {
        let start = Instant::now();
        run()?;
        best = best.min(start.elapsed());
    }
    Ok(best.as_secs_f64())
}

/// Parses a template with its definitions and outputs and validates it.
fn validate(text: &str) -> Result<()> {
    let errors = bound(text)?.validate(&AcceptAll, false);
    errors.into_iter().next().map_or(Ok(()), |error| Err(error.into()))
}

fn resolve(text: &str) -> Result<f64> {
    let bound = bound(text)?;
    let outputs = bound.outputs()?;
    let scope = Unbuilt::empty(&bound);
    best(|| {
        for output in outputs.values() {
            black_box(output.value.value(&scope)?);
        }
        Ok(())
    })
}

fn yaql(text: &str) -> Result<f64> {
    let input = kiln_yaml::json::parse(text)?;
    let data = input.get("data").ok_or("data")?;
    let expressions: Vec<&str> = input
        .get("expressions")
        .and_then(Value::as_list)
        .ok_or("expressions")?
        .iter()
        .filter_map(Value::as_str)
        .collect();
    best(|| {
        for expression in &expressions {
            black_box(kiln_yaql::parse(expression)?.evaluate(data, &Limits::default())?);
        }
        Ok(())
    })
}

fn peak_memory() -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("VmHWM")?;
    Ok(line.trim().trim_end_matches(" kB").parse::<u64>()? * 1024)
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let (Some(measure), Some(file)) = (arguments.next(), arguments.next()) else {
        return Err("languages MEASURE FILE".into());
    };
    let text = std::fs::read_to_string(file)?;
    let seconds = match measure.as_str() {
        "validate" => best(|| validate(&text))?,
        "resolve" => resolve(&text)?,
        "yaql" => yaql(&text)?,
        "read" => {
            let start = Instant::now();
            black_box(bound(&text)?.definitions()?);
            start.elapsed().as_secs_f64()
        }
        other => return Err(format!("no such measure: {other}").into()),
    };
    println!("{seconds} {}", peak_memory()?);
    Ok(())
}
