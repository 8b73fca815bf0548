//! Every accepted blueprint of the sample data is lowered, and what it becomes is valid.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod validation;

use std::fs;
use std::path::{Path, PathBuf};

use kiln_package::{Format, Limits, Package};
use kiln_topology::blueprint::{self, Application, Library};
use kiln_topology::lower::lower;
use kiln_topology::package::read_blueprint;
use kiln_value::Map;

/// Blueprints with components that Kiln cannot deploy, and a word of the error.
const REFUSED: [(&str, &str); 8] = [
    ("12-fulfillment-of-what-exists-already.yaml", "nowhere to run"),
    ("17-concrete-type-by-alias.yaml", "com.amazon.ec2.Instance"),
    ("18-providers-deny.yaml", "com.amazon.ec2.Instance"),
    ("19-providers-deny-beats-allow.yaml", "com.example.lb.HaProxy"),
    ("08-default-requirement-as-value.yaml", "com.example.database:MySql"),
    ("09-default-requirement-in-a-list.yaml", "com.example.database:MySql"),
    ("10-default-requirement-in-full.yaml", "com.example.database:MySql"),
    ("20-global-default-requirement.yaml", "No server hosts"),
];

fn blueprints() -> Vec<(String, Application)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/topology/tests/data/blueprint");
    let library = Library::parse(&fs::read_to_string(folder.join("library.yaml")).unwrap()).unwrap();
    let mut found = Vec::new();
    for part in ["cases", "seed", "packages"] {
        let mut files: Vec<PathBuf> = fs::read_dir(folder.join(part)).unwrap().map(|e| e.unwrap().path()).collect();
        files.sort();
        for file in files.iter().filter(|file| !file.to_string_lossy().ends_with(".expect.yaml")) {
            let name = file.file_name().unwrap().to_string_lossy().into_owned();
            let read = if part == "packages" {
                let package = Package::open(&fs::read(file).unwrap(), &Limits::default());
                let package = package.ok().filter(|package| package.format != Format::Csar);
                package.and_then(|package| read_blueprint(&package, &library).ok())
            } else {
                blueprint::read(&fs::read_to_string(file).unwrap(), &library).ok()
            };
            found.extend(read.map(|blueprint| (name, blueprint)));
        }
    }
    found
}

#[test]
fn every_accepted_blueprint_becomes_a_valid_template() {
    let (mut passed, mut failed) = (0, Vec::new());
    for (name, blueprint) in blueprints() {
        let refused = REFUSED.iter().find(|(known, _)| *known == name).map(|(_, word)| *word);
        let lowered = blueprint.graph().and_then(|(graph, _)| lower(&graph, "heat.yaml"));
        let problem = match (lowered, refused) {
            (Ok(lowered), None) => validation::validate(&lowered, &Map::new()),
            (Ok(_), Some(_)) => Some("is accepted".to_owned()),
            (Err(refusals), Some(word)) if refusals.iter().any(|r| r.message.contains(word)) => None,
            (Err(refusals), _) => Some(refusals.iter().map(|r| r.message.clone()).collect::<Vec<_>>().join("\n")),
        };
        match problem {
            None => passed += 1,
            Some(problem) => failed.push(format!("{name}: {problem}")),
        }
    }
    println!("{passed} passed, {} failed", failed.len());
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
