//! The examples of the functions, and the page of the manual that shows them.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use kiln_template::version::Dialect;
use kiln_template::{Bound, Files, FunctionInfo, Release, ResourceView, Scope, Template, all_functions, functions};
use kiln_value::{Map, Value, value};

/// The template around the examples for HOT. The example is the value of the output.
const HOT: &str = "\
heat_template_version: 2021-04-16
parameters:
  name: {type: string, default: web}
  zones: {type: comma_delimited_list, default: 'a,b'}
  flavors: {type: json, default: {small: m1.small, large: m1.large}}
conditions:
  is_large: {equals: [{get_param: name}, database]}
resources:
  server:
    type: OS::Nova::Server
    properties: {flavor: m1.small, image: debian-12, networks: [{network: private}]}
";

/// The same for CFN.
const CFN: &str = "\
AWSTemplateFormatVersion: 2010-09-09
Parameters:
  Name: {Type: String, Default: web}
Mappings:
  Sizes: {small: {cpus: '1'}, large: {cpus: '4'}}
Conditions:
  IsLarge: {'Fn::Equals': [{Ref: Name}, database]}
Resources:
  Server:
    Type: AWS::EC2::Instance
    Properties: {ImageId: debian-12, InstanceType: m1.small}
";

/// The server of the examples, after its create.
struct Server;

impl ResourceView for Server {
    fn reference_id(&self) -> Value {
        "9a1c7b1e".into()
    }

    fn action(&self) -> &'static str {
        "CREATE"
    }

    fn status(&self) -> &'static str {
        "COMPLETE"
    }

    fn has_attribute(&self, name: &str) -> bool {
        self.attributes().contains_key(name)
    }

    fn attribute(&self, name: &str, path: &[Value]) -> Option<Value> {
        let value = self.attributes().get(name)?.clone();
        Some(kiln_template::select(value, path))
    }

    fn attributes(&self) -> Map {
        let attributes = value!({
            "first_address": "10.0.0.5",
            "PublicIp": "10.0.0.5",
            "addresses": {"private": [{"addr": "10.0.0.5"}]},
        });
        attributes.as_map().cloned().unwrap_or_default()
    }
}

struct Stack(Bound);

impl Scope for Stack {
    fn bound(&self) -> &Bound {
        &self.0
    }

    fn resource(&self, name: &str) -> Option<&dyn ResourceView> {
        name.eq_ignore_ascii_case("server").then_some(&Server as &dyn ResourceView)
    }
}

fn yaml(text: &str) -> Value {
    kiln_yaml::parse(text).unwrap_or_else(|error| panic!("{text}: {error}")).value
}

fn result(template: &str, call: &str) -> Value {
    let mut template = yaml(template);
    let is_hot = template.get("resources").is_some();
    let (outputs, field) = if is_hot { ("outputs", "value") } else { ("Outputs", "Value") };
    let output = Map::from_iter([(field.to_owned(), yaml(call))]);
    let all = Map::from_iter([("o".to_owned(), output.into())]);
    template.as_map_mut().expect("a map").insert(outputs.to_owned(), all.into());
    let template = Template::from_value(template).expect("a version");
    let parameters = template.parameters(None, &Map::new(), &Map::new()).expect("valid parameters");
    let files = Files([("motd.txt".to_owned(), "Welcome to web.".to_owned())].into());
    let stack = Stack(Bound::new(Arc::new(template), Arc::new(parameters), Arc::new(files)));
    let outputs = stack.0.outputs().expect("valid outputs");
    let value = &outputs["o"].value;
    value.resolve(&stack).unwrap_or_else(|error| panic!("{call}: {error}")).expect("a value")
}

fn template_of(function: &FunctionInfo) -> &'static str {
    let is_hot = functions(Release::Hot20210416, true).iter().any(|hot| hot.name == function.name);
    if is_hot { HOT } else { CFN }
}

#[test]
fn every_example_has_its_result() {
    for function in all_functions() {
        for example in function.examples {
            assert_eq!(result(template_of(function), example.call), yaml(example.result), "{}", example.call);
        }
        let has_facade = function.name.to_lowercase().contains("facade");
        assert!(has_facade || !function.examples.is_empty(), "{} has no example", function.name);
    }
}

/// The versions with a function: `from 2015-04-30 on`, `2013-05-23`.
fn versions(function: &FunctionInfo) -> String {
    let has = |release: &Release| functions(*release, true).iter().any(|known| known.name == function.name);
    let mut parts = Vec::new();
    for (dialect, word) in [(Dialect::Hot, "HOT"), (Dialect::Cfn, "CFN"), (Dialect::HeatCfn, "")] {
        let releases: Vec<Release> = Release::ALL.into_iter().filter(|release| release.dialect() == dialect).collect();
        let with: Vec<&Release> = releases.iter().filter(|release| has(release)).collect();
        let (Some(first), Some(last)) = (with.first(), with.last()) else { continue };
        parts.push(match releases.last() {
            _ if dialect == Dialect::HeatCfn => format!("HeatTemplateFormatVersion {}", first.name()),
            _ if dialect == Dialect::Cfn => format!("AWSTemplateFormatVersion {}", first.name()),
            newest if newest == Some(*last) => format!("{word} from {} on", first.name()),
            _ => format!("{word} from {} to {}", first.name(), last.name()),
        });
    }
    parts.join("; ")
}

fn page() -> String {
    let mut page = String::from(
        "\
# Template functions

A call is a map with one key, the name of the function. Arguments may contain calls. The examples are values in one of these
templates: the first is HOT, the second CFN. The server has the ID `9a1c7b1e` and the address 10.0.0.5, and `motd.txt` contains
`Welcome to web.`

",
    );
    _ = write!(page, "```yaml\n{HOT}```\n\n```yaml\n{CFN}```\n");
    let mut section = None;
    for function in all_functions() {
        let title = if std::ptr::eq(template_of(function), HOT) { "HOT" } else { "CFN and the first version of HOT" };
        if section != Some(title) {
            _ = write!(page, "\n## {title}\n");
            section = Some(title);
        }
        _ = write!(page, "\n### `{}`\n\n`{}`\n\n{}", function.name, function.label(), function.summary);
        if !function.text.is_empty() {
            _ = write!(page, " {}", function.text);
        }
        _ = write!(page, "\n\nVersions: {}.\n", versions(function));
        if !function.examples.is_empty() {
            page.push_str("\n| call | result |\n| --- | --- |\n");
        }
        for example in function.examples {
            _ = writeln!(page, "| `{}` | `{}` |", example.call, example.result);
        }
    }
    page
}

#[test]
fn the_page_of_the_manual_is_that_of_the_table() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/functions.md");
    let page = page();
    if std::env::var_os("KILN_UPDATE_DATA").is_some() {
        std::fs::write(&file, &page).unwrap();
    }
    let found = std::fs::read_to_string(file).unwrap_or_default();
    assert!(found == page, "KILN_UPDATE_DATA=1 .ci/tests kiln-template:suite manual writes docs/functions.md");
}

/// The fuzzers know every function.
#[test]
fn the_fuzzers_dictionary_has_every_function() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/dictionaries/template.dict");
    let words = std::fs::read_to_string(&file).unwrap();
    let missing: Vec<String> = all_functions()
        .iter()
        .map(|function| format!("\"{}: \"\n", function.name))
        .filter(|word| !words.contains(word.as_str()))
        .collect();
    if std::env::var_os("KILN_UPDATE_DATA").is_some() {
        std::fs::write(&file, words + &missing.concat()).unwrap();
    } else {
        assert!(missing.is_empty(), "KILN_UPDATE_DATA=1 adds {missing:?}");
    }
}
