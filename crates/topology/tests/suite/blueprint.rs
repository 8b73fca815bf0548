//! Every case of `data/blueprint`, compared with its expected reading or error.

use std::fs;
use std::path::{Path, PathBuf};

use kiln_topology::blueprint::{self, Library};
use kiln_value::{Segment, Value, value};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/blueprint")
}

fn parse(path: &Path) -> Value {
    kiln_yaml::parse(&fs::read_to_string(path).unwrap()).unwrap().value
}

/// The reading of a text, or its errors, in the form of the expectations.
fn read(text: &str, library: &Library) -> Value {
    match blueprint::read(text, library) {
        Ok(blueprint) => blueprint.reading(),
        Err((_, refusals)) => {
            let errors: Vec<Value> = refusals
                .iter()
                .map(|refusal| {
                    let at = refusal.at.0.iter().map(|segment| match segment {
                        Segment::Key(key) => Value::from(key),
                        Segment::Index(index) => Value::from(*index),
                    });
                    value!({"kind": (refusal.kind), "at": (at.collect::<Vec<Value>>())})
                })
                .collect();
            match <[Value; 1]>::try_from(errors) {
                Ok([error]) => value!({"error": error}),
                Err(several) => value!({"errors": several}),
            }
        }
    }
}

#[test]
fn reads_every_case_as_expected() {
    let library = Library::parse(&fs::read_to_string(folder().join("library.yaml")).unwrap()).unwrap();
    let (mut passed, mut failed) = (0, Vec::new());
    for name in ["cases", "seed"] {
        let mut files: Vec<PathBuf> = fs::read_dir(folder().join(name)).unwrap().map(|e| e.unwrap().path()).collect();
        files.sort();
        for file in files.iter().filter(|file| !file.to_string_lossy().ends_with(".expect.yaml")) {
            let expected = parse(&file.with_extension("expect.yaml"));
            let found = read(&fs::read_to_string(file).unwrap(), &library);
            if found == expected {
                passed += 1;
            } else {
                let json = kiln_value::text::json;
                failed.push(format!("{}\n  expected {}\n  found    {}", file.display(), json(&expected), json(&found)));
            }
        }
    }
    println!("{passed} passed, {} failed", failed.len());
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    // 57 cases, and six forms of the proposal's four examples.
    assert_eq!(passed, 57 + 6);
}

#[test]
fn the_shipped_library_is_valid() {
    Library::shipped().unwrap();
}
