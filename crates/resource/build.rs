//! Lists the definition files in `resource-types/`, which `src/shipped.rs` compiles into the binary.

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs, io};

const FOLDER: &str = "../../resource-types";

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed={FOLDER}");
    let mut names = Vec::new();
    walk(Path::new(FOLDER), "", &mut names)?;
    names.sort();
    let mut list = String::from("&[\n");
    for name in names {
        // Writing to a string cannot fail.
        _ = writeln!(
            list,
            "File {{ path: \"resource-types/{name}\", \
             text: include_str!(concat!(env!(\"CARGO_MANIFEST_DIR\"), \"/{FOLDER}/{name}\")) }},"
        );
    }
    list.push_str("]\n");
    let out = env::var_os("OUT_DIR").ok_or_else(|| io::Error::other("cargo sets OUT_DIR"))?;
    fs::write(Path::new(&out).join("shipped.rs"), list)
}

/// Adds the names of the files below a folder, such as `OS/Nova/Server.yaml`.
fn walk(folder: &Path, prefix: &str, names: &mut Vec<String>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            walk(&entry.path(), &format!("{name}/"), names)?;
        } else if Path::new(&name).extension().is_some_and(|extension| extension == "yaml") {
            names.push(name);
        }
    }
    Ok(())
}
