//! Requests compared with those of python-heatclient 5.3.0 for the same files.
//!
//! `data/bundle/expected.json` was computed by its `template_utils` and `utils`; `/BASE` stands for the folder.

use std::path::{Path, PathBuf};

use kiln_client::{Bundle, InputError, Source, file_parameters, parameters};
use kiln_value::{Value, text};

/// A copy of the data in a separate folder, because one file contains the absolute URL of its folder.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let base = std::env::temp_dir().join(format!("kiln-bundle-{name}-{}", std::process::id()));
        copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/bundle"), &base);
        let base = base.canonicalize().unwrap();
        let one = base.join("env/one.yaml");
        let text = std::fs::read_to_string(&one).unwrap().replace("/BASE", base.to_str().unwrap());
        std::fs::write(one, text).unwrap();
        Self(base)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }

    /// Replaces the folder in a value with `/BASE`.
    fn generic(&self, value: &Value) -> Value {
        serde_json::from_str(&text::json(value).replace(self.0.to_str().unwrap(), "/BASE")).unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[tokio::test]
async fn the_same_as_heatclient() {
    let folder = Folder::new("same");
    let environments = [folder.path("env/one.yaml"), folder.path("env/two.yaml")];
    let main = folder.path("main.yaml");
    let mut bundle = Bundle::read(&Source::files(), Some(&main), &environments).await.unwrap();
    bundle.set_hooks(&["server".into(), "nested/in*".into()], "pre-update");
    let given: Vec<String> = ["a=1", "b=x=y", "a=2"].map(str::to_owned).to_vec();
    let mut values = parameters(&given).unwrap();
    values.extend(file_parameters(&Source::files(), &["script=script.sh".into()], Some(&main)).await.unwrap());

    let expected: Value = serde_json::from_str(include_str!("../data/bundle/expected.json")).unwrap();
    let same = |key: &str, value: Value| {
        let (got, wanted) = (folder.generic(&value), expected.get(key).unwrap());
        assert_eq!(text::json_sorted(&got), text::json_sorted(wanted), "{key}");
    };
    same("template", bundle.template.unwrap());
    same("environment", bundle.environment.into());
    same("environment_files", bundle.environment_files.into());
    same("parameters", values.into());
    same("one_parameter", parameters(&["a=1;b=2".to_owned()]).unwrap().into());
    // The JSON of nested templates is compared by value, because the order of keys is arbitrary.
    let wanted = expected.get("files").unwrap().as_map().unwrap();
    let got = folder.generic(&bundle.files.into());
    let got = got.as_map().unwrap();
    let mut names: Vec<_> = got.keys().collect();
    let mut wanted_names: Vec<_> = wanted.keys().collect();
    names.sort();
    wanted_names.sort();
    assert_eq!(names, wanted_names);
    for (name, content) in got {
        assert_eq!(content, &wanted[name.as_str()], "{name}");
    }
}

#[tokio::test]
async fn errors_in_heatclients_words() {
    let folder = Folder::new("errors");
    let write = |name: &str, text: &str| {
        std::fs::write(folder.0.join(name), text).unwrap();
        folder.path(name)
    };
    let read = async |template: &str, environments: &[String]| {
        let error = Bundle::read(&Source::files(), Some(template), environments).await.unwrap_err();
        error.to_string().replace(folder.0.to_str().unwrap(), "/BASE")
    };
    let right = write("right.yaml", "heat_template_version: 2018-08-31\n");
    for (text, message) in [
        // In words of our own: heatclient could not fetch it.
        ("", "Template file:///BASE/t.yaml is empty"),
        ("a: b\n", "Error parsing template file:///BASE/t.yaml Template format version not found."),
        ("{\"a\": ", "Error parsing template file:///BASE/t.yaml Expecting value: line 1 column 6 (char 5)"),
        (
            "heat_template_version: 2018-08-31\nx: {get_file: none.txt}\n",
            "Could not fetch contents for file:///BASE/none.txt",
        ),
    ] {
        assert_eq!(read(&write("t.yaml", text), &[]).await, message);
    }
    let broken = read(&write("t.yaml", "a: [b\n"), &[]).await;
    let start = "Error parsing template file:///BASE/t.yaml while parsing a flow sequence\n";
    assert!(broken.starts_with(start) && broken.contains("line 1, column 4"), "{broken}");
    for (text, message) in [
        ("parametersx: {}\n", "environment has wrong section \"parametersx\""),
        ("- 1\n", "The environment is not a valid YAML mapping data type."),
    ] {
        assert_eq!(read(&right, &[write("e.yaml", text)]).await, message);
    }
    let malformed = parameters(&["foo".to_owned()]).unwrap_err();
    assert_eq!(malformed.to_string(), "Malformed parameter(foo). Use the key=value format.");
    assert!(matches!(malformed, InputError::Parameter(_)));
}

#[tokio::test]
async fn a_template_that_contains_itself_is_read_once() {
    let folder = Folder::new("self");
    let text = "heat_template_version: 2018-08-31\nresources: {a: {type: self.yaml}}\n";
    std::fs::write(folder.0.join("self.yaml"), text).unwrap();
    let bundle = Bundle::read(&Source::files(), Some(&folder.path("self.yaml")), &[]).await.unwrap();
    assert_eq!(bundle.files.len(), 1);
}

#[tokio::test]
async fn the_network_is_not_asked_unless_allowed() {
    let folder = Folder::new("network");
    let text = "heat_template_version: 2018-08-31\nx: {get_file: 'http://192.0.2.1/a'}\n";
    std::fs::write(folder.0.join("t.yaml"), text).unwrap();
    let error = Bundle::read(&Source::files(), Some(&folder.path("t.yaml")), &[]).await.unwrap_err();
    let InputError::Reference { url, reason, .. } = error else { panic!("{error}") };
    assert_eq!(url, "http://192.0.2.1/a");
    assert!(reason.contains("--allow-remote"), "{reason}");
}
