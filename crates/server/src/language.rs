//! The language server of the dashboard's editor.

use std::sync::Arc;

use kiln_dashboard::{Language, LanguageSession};
use kiln_plan::ResourceTypes;
use kiln_topology::TypeFiles;
use serde_json::Value;

/// Checks templates with the resource types of a service. It reads no file.
pub struct Templates {
    /// The resource types.
    pub resource_types: Arc<ResourceTypes>,
    /// The types of blueprints and TOSCA.
    pub topology_types: Arc<TypeFiles>,
}

impl Language for Templates {
    fn session(&self) -> Box<dyn LanguageSession> {
        let (types, topology) = (Arc::clone(&self.resource_types), Arc::clone(&self.topology_types));
        Box::new(Editor(kiln_lsp::Session::new(types, topology)))
    }
}

struct Editor(kiln_lsp::Session);

impl LanguageSession for Editor {
    fn receive(&mut self, message: &Value) -> Vec<Value> {
        self.0.receive(message)
    }

    fn settle(&mut self) -> Vec<Value> {
        self.0.settle()
    }

    fn bytes(&self) -> usize {
        self.0.bytes()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use kiln_plugin::Plugins;
    use serde_json::json;
    use tokio::time::Instant;

    use super::*;
    use crate::{resource_types, topology_types};

    /// An editor with one text.
    struct Page(Box<dyn LanguageSession>);

    const URI: &str = "file:///stack/template.yaml";

    impl Page {
        fn new() -> Self {
            let resource_types = Arc::new(resource_types::shipped_and_own(None, Plugins::default()).unwrap());
            let topology_types = topology_types::of_folder(None).unwrap();
            let mut page = Self(Templates { resource_types, topology_types }.session());
            let root = json!({"rootUri": "file:///etc", "workspaceFolders": [{"uri": "file:///", "name": "all"}]});
            page.ask("initialize", &root);
            page
        }

        fn open(&mut self, uri: &str, text: &str) -> Value {
            let document = json!({"uri": uri, "version": 1, "text": text});
            let notice = json!({"method": "textDocument/didOpen", "params": {"textDocument": document}});
            assert!(self.0.receive(&notice).is_empty());
            Value::from(self.0.settle())
        }

        fn ask(&mut self, method: &str, params: &Value) -> Value {
            Value::from(self.0.receive(&json!({"id": 1, "method": method, "params": params})))
        }
    }

    /// A file of this machine, which must be in no answer, and its folder.
    fn planted() -> (std::path::PathBuf, &'static str) {
        let folder = std::env::temp_dir().join(format!("kiln-language-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let child = "heat_template_version: 2018-08-31\nparameters:\n  planted_parameter: {type: string}\n\
                     outputs:\n  planted_output: {value: 1}\n";
        std::fs::write(folder.join("child.yaml"), child).unwrap();
        let environment = "resource_registry:\n  Planted::Type: child.yaml\n";
        std::fs::write(folder.join("environment.yaml"), environment).unwrap();
        std::fs::write(folder.join("planted.txt"), "planted_text").unwrap();
        (folder, "planted_")
    }

    #[test]
    fn no_file_of_the_machine_is_read() {
        let (folder, secret) = planted();
        let place = format!("file://{}", folder.display());
        let template = format!(
            "heat_template_version: 2018-08-31\nresources:\n  nested:\n    type: {place}/child.yaml\n    properties:\n      \
             x: 1\n  own:\n    type: Planted::Type\n  beside:\n    type: child.yaml\n  text:\n    type: OS::Heat::Value\n    \
             properties:\n      value: {{get_file: {place}/planted.txt}}\n  etc:\n    type: OS::Heat::Value\n    properties:\n      \
             value: {{get_file: /etc/passwd}}\n  passwd:\n    type: file:///etc/passwd\noutputs:\n  out:\n    \
             value: {{get_attr: [nested, x]}}\n"
        );
        let blueprint = format!(
            "tosca_definitions_version: tosca_simple_yaml_1_3\nimports:\n  - {place}/child.yaml\n  - file:///etc/passwd\n\
             topology_template: {{}}\n"
        );
        let environment = format!("resource_registry:\n  A::B: {place}/child.yaml\nparameters:\n  x: 1\n");
        let mut page = Page::new();
        let mut told = Vec::new();
        // Texts of the page that claim to be in the folder of the files, too.
        for base in [URI.to_owned(), format!("{place}/template.yaml"), "file:///etc/template.yaml".to_owned()] {
            for text in [&template, &blueprint, &environment] {
                told.push(page.open(&base, text));
                let lines = text.lines().count();
                for (line, column) in (0..lines).flat_map(|line| [(line, 4), (line, 14), (line, 200)]) {
                    let at = json!({"textDocument": {"uri": &base}, "position": {"line": line, "character": column}});
                    for method in ["completion", "hover", "definition", "signatureHelp", "references"] {
                        told.push(page.ask(&format!("textDocument/{method}"), &at));
                    }
                }
                let whole = json!({"textDocument": {"uri": &base}});
                for method in ["documentLink", "documentSymbol", "codeAction"] {
                    told.push(page.ask(&format!("textDocument/{method}"), &whole));
                }
            }
        }
        told.push(page.ask("workspace/symbol", &json!({"query": ""})));
        let said = Value::from(told).to_string();
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(said.contains("OS::Heat::Value"), "it answers");
        for word in ["parameter", "output", "text"].map(|end| format!("{secret}{end}")) {
            assert!(!said.contains(&word), "{word}");
        }
        assert!(!said.contains("root:x:"));
    }

    #[test]
    fn a_file_of_the_page_is_known() {
        let mut page = Page::new();
        let child = "heat_template_version: 2018-08-31\nparameters:\n  size: {type: number}\n";
        page.open("file:///stack/child.yaml", child);
        let template = "heat_template_version: 2018-08-31\nresources:\n  one:\n    type: child.yaml\n    properties:\n      sise: 1\n";
        let told = page.open(URI, template).to_string();
        assert!(told.contains("sise"), "{told}");
    }

    #[test]
    fn hostile_texts_take_bounded_time() {
        let nine = |n: usize| vec![format!("*a{n}"); 9].join(",");
        let bombs: Vec<String> = (1..30).map(|n| format!("a{n}: &a{n} [{}]", nine(n - 1))).collect();
        let bomb = format!("heat_template_version: 2018-08-31\na0: &a0 x\n{}", bombs.join("\n"));
        let deep = format!("heat_template_version: 2018-08-31\nresources: {}", "[".repeat(400_000));
        let calls = "{list_join: [x, ".repeat(20_000);
        let nested = format!("heat_template_version: 2018-08-31\noutputs:\n  a:\n    value: {calls}1");
        let resource =
            |n: usize| format!("  r{n}: {{type: OS::Heat::Value, depends_on: r{}, properties: {{value: 1}}}}", n + 1);
        let resources: Vec<String> = (0..9_000).map(resource).collect();
        let wide = format!("heat_template_version: 2018-08-31\nresources:\n{}", resources.join("\n"));
        let keys = format!("heat_template_version: 2018-08-31\n{}", "? ".repeat(100_000));
        let own = "heat_template_version: 2018-08-31\nresources:\n  a:\n    type: template.yaml\n";
        let texts = [&bomb, &deep, &nested, &wide, &keys, own];
        for (at, text) in texts.into_iter().enumerate() {
            let mut page = Page::new();
            let start = Instant::now();
            page.open(URI, text);
            let place = json!({"textDocument": {"uri": URI}, "position": {"line": 1, "character": 20}});
            page.ask("textDocument/completion", &place);
            page.ask("textDocument/hover", &place);
            assert!(start.elapsed() < Duration::from_secs(20), "text {at} takes {:?}", start.elapsed());
        }
    }

    /// A thread with little stack would end the process.
    #[test]
    fn deep_texts_of_each_kind_are_answered() {
        let blocks: Vec<String> = (0..1_300).map(|depth| format!("{}k:", " ".repeat(depth + 2))).collect();
        let deep = ["[".repeat(200_000), "{a: ".repeat(200_000), "- ".repeat(200_000), "? ".repeat(200_000)];
        let deep = deep.into_iter().chain(["!a &b ".repeat(100_000), format!("\n{}", blocks.join("\n"))]);
        let deep: Vec<String> = deep.collect();
        let kinds = [
            "heat_template_version: 2018-08-31\nresources:\n  a: ",
            "tosca_definitions_version: tosca_simple_yaml_1_3\ntopology_template:\n  a: ",
            "resource_registry:\n  a: ",
            "version: blueprint\nservices:\n  a: ",
        ];
        let mut page = Page::new();
        for (kind, body) in kinds.into_iter().flat_map(|kind| deep.iter().map(move |body| (kind, body))) {
            page.open(URI, &format!("{kind}{body}"));
            for (line, column) in [(2, 8), (1_000, 900)] {
                let at = json!({"textDocument": {"uri": URI}, "position": {"line": line, "character": column}});
                for method in ["completion", "hover", "definition", "formatting"] {
                    page.ask(&format!("textDocument/{method}"), &at);
                }
            }
        }
    }
}
