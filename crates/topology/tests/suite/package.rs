//! Every package of `data/blueprint/packages`, compared with its expected reading or error.

use std::fs;
use std::path::{Path, PathBuf};

use kiln_package::{Format, Limits, Package};
use kiln_topology::TypeFiles;
use kiln_topology::blueprint::Library;
use kiln_topology::package::{Error, read_blueprint, read_csar};
use kiln_value::{Map, Segment, Value, value};

fn error(kind: &str, at: Vec<Value>) -> Value {
    value!({"error": {"kind": kind, "at": (Value::from(at))}})
}

fn read(bytes: &[u8], library: &Library) -> Value {
    let package = match Package::open(bytes, &Limits::default()) {
        Ok(package) => package,
        Err(refusal) => return error(refusal.kind, refusal.member.iter().map(Value::from).collect()),
    };
    let files: Vec<&str> = package.files.keys().map(String::as_str).collect();
    let described = |key: &str, reading: Value| value!({"format": (package.format.name()), "root": (&package.root), "files": (files.clone()), key: reading});
    if package.format == Format::Csar {
        return described(
            "model",
            read_csar(&package, &Map::new(), &TypeFiles::shipped().unwrap()).unwrap().graph.model(),
        );
    }
    let reading = match read_blueprint(&package, library) {
        Ok(blueprint) => blueprint.reading(),
        Err(Error::Package { refusal, .. }) => {
            return error(refusal.kind, refusal.member.iter().map(Value::from).collect());
        }
        Err(Error::Document(_, refusals)) => {
            let at = refusals[0].at.0.iter().map(|segment| match segment {
                Segment::Key(key) => Value::from(key),
                Segment::Index(index) => Value::from(*index),
            });
            return error(refusals[0].kind, at.collect());
        }
    };
    described("reading", reading)
}

#[test]
fn reads_every_package_as_expected() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/blueprint");
    let library = Library::parse(&fs::read_to_string(folder.join("library.yaml")).unwrap()).unwrap();
    let mut files: Vec<PathBuf> = fs::read_dir(folder.join("packages")).unwrap().map(|e| e.unwrap().path()).collect();
    files.sort();
    let (mut passed, mut failed) = (0, Vec::new());
    for file in files.iter().filter(|file| !file.to_string_lossy().ends_with(".expect.yaml")) {
        let expected = format!("{}.expect.yaml", file.display());
        let mut expected = kiln_yaml::parse(&fs::read_to_string(expected).unwrap()).unwrap().value;
        // What another program makes of it is compared elsewhere.
        expected.as_map_mut().unwrap().shift_remove("hot_by_heat_translator");
        let bytes = fs::read(file).unwrap();
        let found = read(&bytes, &library);
        if found == expected {
            passed += 1;
        } else {
            let json = kiln_value::text::json;
            failed.push(format!("{}\n  expected {}\n  found    {}", file.display(), json(&expected), json(&found)));
        }
    }
    println!("{passed} passed, {} failed", failed.len());
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    assert_eq!(passed, 19);
}
