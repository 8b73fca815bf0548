//! The language server, driven like by an editor, with a realistic template.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::run::Folder;

const TEXT: &str = include_str!("../../../../tests/data/heat-templates/hot/servers_in_new_neutron_net.yaml");

/// An editor with one file open.
pub(crate) struct Editor {
    server: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    uri: String,
    text: String,
    asked: i64,
    /// What the server says that it can do.
    able: Value,
}

/// What this editor can do.
fn able() -> Value {
    let actions = json!({"codeActionLiteralSupport": {"codeActionKind": {"valueSet": ["quickfix"]}}});
    let symbols = json!({"hierarchicalDocumentSymbolSupport": true});
    json!({"textDocument": {"codeAction": actions, "documentSymbol": symbols, "rename": {"prepareSupport": true}}})
}

impl Editor {
    pub(crate) fn start(folder: &Folder, name: &str, text: &str) -> Self {
        Self::of(folder.kiln(&["lsp"]), folder, name, text)
    }

    fn of(mut command: Command, folder: &Folder, name: &str, text: &str) -> Self {
        let path = folder.write(name, text);
        let mut server = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (server.stdin.take().unwrap(), BufReader::new(server.stdout.take().unwrap()));
        let uri = format!("file://{}", path.display());
        let mut editor = Self { server, input, output, uri, text: text.to_owned(), asked: 0, able: Value::Null };
        let root = format!("file://{}", path.parent().unwrap().display());
        let able = editor.ask("initialize", &json!({"processId": null, "rootUri": root, "capabilities": able()}));
        editor.able = able["capabilities"].clone();
        editor.tell("initialized", &json!({}));
        editor.open(&editor.uri.clone(), text);
        editor
    }

    fn open(&mut self, uri: &str, text: &str) {
        let document = json!({"uri": uri, "languageId": "yaml", "version": 1, "text": text});
        self.tell("textDocument/didOpen", &json!({"textDocument": document}));
    }

    /// Asks about the whole file.
    fn ask_file(&mut self, method: &str) -> Value {
        self.ask(method, &json!({"textDocument": {"uri": self.uri}}))
    }

    /// The labels that are suggested at the end of a text's first occurrence.
    fn suggested(&mut self, behind: &str) -> Vec<String> {
        let before = &self.text[..self.text.find(behind).unwrap() + behind.len()];
        let (line, last) = (before.matches('\n').count(), before.rsplit('\n').next().unwrap());
        let position = json!({"line": line, "character": last.encode_utf16().count()});
        let params = json!({"textDocument": {"uri": self.uri}, "position": position});
        let items = self.ask("textDocument/completion", &params);
        items.as_array().unwrap().iter().map(|item| item["label"].as_str().unwrap().to_owned()).collect()
    }

    fn send(&mut self, message: &Value) {
        let body = message.to_string();
        write!(self.input, "Content-Length: {}\r\n\r\n{body}", body.len()).unwrap();
        self.input.flush().unwrap();
    }

    fn receive(&mut self) -> Value {
        let mut length = 0;
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).unwrap() > 0, "the server is gone");
            match line.trim_end().split_once(": ") {
                Some((_, value)) => length = value.parse().unwrap(),
                None => break,
            }
        }
        let mut body = vec![0; length];
        self.output.read_exact(&mut body).unwrap();
        serde_json::from_slice(&body).unwrap()
    }

    fn tell(&mut self, method: &str, params: &Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    fn answer(&mut self, method: &str, params: &Value) -> Value {
        self.asked += 1;
        let id = self.asked;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        let answer = self.receive();
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        let mut answer = self.answer(method, params);
        assert!(answer.get("error").is_none(), "{answer}");
        answer["result"].take()
    }

    /// Sends a request for the middle of the first occurrence of a text.
    fn ask_at(&mut self, method: &str, what: &str, more: &Value) -> Value {
        let before = &self.text[..self.text.find(what).unwrap() + what.len() / 2];
        let (line, last) = (before.matches('\n').count(), before.rsplit('\n').next().unwrap());
        let position = json!({"line": line, "character": last.encode_utf16().count()});
        let mut params = json!({"textDocument": {"uri": self.uri}, "position": position});
        if let (Some(params), Some(more)) = (params.as_object_mut(), more.as_object()) {
            params.extend(more.clone());
        }
        self.ask(method, &params)
    }

    /// The next diagnostics of the server.
    pub(crate) fn told(&mut self) -> Vec<Value> {
        let notice = self.receive();
        assert_eq!(notice["method"], "textDocument/publishDiagnostics", "{notice}");
        assert_eq!(notice["params"]["uri"], self.uri);
        assert!(notice["params"]["version"].is_i64(), "{notice}");
        notice["params"]["diagnostics"].as_array().unwrap().clone()
    }

    fn change(&mut self, text: &str) -> Vec<Value> {
        text.clone_into(&mut self.text);
        let document = json!({"uri": self.uri, "version": 2});
        self.tell("textDocument/didChange", &json!({"textDocument": document, "contentChanges": [{"text": text}]}));
        self.told()
    }

    /// Replaces the first occurrence of a text and notifies the server, as an editor does: by range.
    fn type_over(&mut self, what: &str, new: &str) -> Vec<Value> {
        let start = self.text.find(what).unwrap();
        let place = |text: &str| {
            let last = text.rsplit('\n').next().unwrap();
            json!({"line": text.matches('\n').count(), "character": last.encode_utf16().count()})
        };
        let range = json!({"start": place(&self.text[..start]), "end": place(&self.text[..start + what.len()])});
        self.text.replace_range(start..start + what.len(), new);
        let document = json!({"uri": self.uri, "version": 3});
        let changes = json!([{"range": range, "text": new}]);
        self.tell("textDocument/didChange", &json!({"textDocument": document, "contentChanges": changes}));
        self.told()
    }

    /// Applies the edits of a response to the text.
    fn apply(&self, edits: &Value) -> String {
        let offset = |place: &Value| {
            let line = usize::try_from(place["line"].as_u64().unwrap()).unwrap();
            let character = usize::try_from(place["character"].as_u64().unwrap()).unwrap();
            let before: usize = self.text.split_inclusive('\n').take(line).map(str::len).sum();
            before + character
        };
        let mut edits: Vec<_> = edits.as_array().unwrap().iter().collect();
        edits.sort_by_key(|edit| std::cmp::Reverse(offset(&edit["range"]["start"])));
        let mut text = self.text.clone();
        for edit in edits {
            let range = offset(&edit["range"]["start"])..offset(&edit["range"]["end"]).min(text.len());
            text.replace_range(range, edit["newText"].as_str().unwrap());
        }
        text
    }

    pub(crate) fn leave(mut self) {
        assert_eq!(self.ask("shutdown", &Value::Null), Value::Null);
        self.tell("exit", &Value::Null);
        assert!(self.server.wait().unwrap().success());
    }
}

fn errors(diagnostics: &[Value]) -> Vec<&Value> {
    diagnostics.iter().filter(|one| one["severity"] == 1).collect()
}

#[test]
fn an_editor_works_on_a_template() {
    let folder = Folder::new("lsp");
    let mut editor = Editor::start(&folder, "web.yaml", TEXT);
    let first = editor.told();
    assert!(errors(&first).is_empty(), "{first:?}");

    // A misspelled type is reported immediately, until it is corrected.
    let told = editor.change(&TEXT.replacen("OS::Neutron::Net", "OS::Neutron::Nte", 1));
    let wrong = errors(&told);
    assert_eq!(wrong.len(), 1, "{told:?}");
    let line = TEXT.lines().position(|line| line.contains("OS::Neutron::Net")).unwrap();
    assert_eq!(wrong[0]["range"]["start"]["line"], line);
    assert!(errors(&editor.change(TEXT)).is_empty());

    let hover = editor.ask_at("textDocument/hover", "OS::Neutron::Router", &json!({}));
    assert!(hover["contents"]["value"].as_str().unwrap().contains("OS::Neutron::Router"), "{hover}");
    let definition = editor.ask_at("textDocument/definition", "private_net }", &json!({}));
    let declared = TEXT.lines().position(|line| line == "  private_net:").unwrap();
    assert_eq!(definition["range"]["start"], json!({"line": declared, "character": 2}));
    let references = editor.ask_at("textDocument/references", "private_net }", &json!({}));
    assert_eq!(references.as_array().unwrap().len(), 4, "{references}");
    let symbols = editor.ask("textDocument/documentSymbol", &json!({"textDocument": {"uri": editor.uri}}));
    assert!(symbols.as_array().unwrap().iter().any(|one| one["name"] == "resources"), "{symbols}");

    // After renaming, the template has no errors and does not contain the old name.
    let renamed = editor.ask_at("textDocument/rename", "private_net }", &json!({"newName": "inner"}));
    let text = editor.apply(&renamed["changes"][editor.uri.as_str()]);
    assert!(!text.contains("get_resource: private_net }") && text.contains("  inner:\n"), "{text}");
    assert!(errors(&editor.change(&text)).is_empty());

    // While a line is being typed, the text may be invalid.
    let writing = format!(
        "{}\n  new_port:\n    type: OS::Neutron::Port\n    properties: {{ network: {{ get_resource: in",
        text.split("\noutputs:").next().unwrap()
    );
    editor.change(&writing);
    let position = json!({"line": writing.matches('\n').count(), "character": 45});
    let items =
        editor.ask("textDocument/completion", &json!({"textDocument": {"uri": editor.uri}, "position": position}));
    let labels: Vec<&str> = items.as_array().unwrap().iter().filter_map(|item| item["label"].as_str()).collect();
    assert_eq!(labels.first(), Some(&"inner"), "{items}");
    let unknown = editor.answer("textDocument/unheardOf", &json!({}));
    assert_eq!(unknown["error"]["code"], -32601);
    editor.leave();
}

#[test]
fn formatting_is_an_edit_and_other_files_are_left_alone() {
    let folder = Folder::new("lsp-format");
    folder
        .write("inner.yaml", "heat_template_version: 2021-04-16\nparameters: {size: {type: number}}\nresources: {}\n");
    let text = "heat_template_version:  2021-04-16\nresources:\n    a: {type: inner.yaml, properties: {size: 1}}\n";
    let mut editor = Editor::start(&folder, "web.yaml", text);
    let told = editor.told();
    assert!(errors(&told).is_empty(), "the file beside it is not read: {told:?}");
    let options = json!({"tabSize": 2, "insertSpaces": true});
    let edits =
        editor.ask("textDocument/formatting", &json!({"textDocument": {"uri": editor.uri}, "options": options}));
    let formatted = editor.apply(&edits);
    assert_eq!(
        formatted,
        "heat_template_version: 2021-04-16\n\nresources:\n  a: {type: inner.yaml, properties: {size: 1}}\n"
    );
    assert!(editor.change("- hosts: all\n  tasks: []\n").is_empty());
    editor.leave();
}

#[test]
fn a_file_is_edited_by_ranges() {
    let folder = Folder::new("lsp-ranges");
    let mut editor = Editor::start(&folder, "web.yaml", TEXT);
    editor.told();
    // Characters outside of the basic plane count twice, and positions after them are still correct.
    editor.type_over("2013-05-23\n", "2013-05-23 # 😀 ä 𝄞 end\n");
    editor.type_over("ä 𝄞", "ö 😀😀");
    let told = editor.type_over("OS::Neutron::Net", "OS::Neutron::Nte");
    assert_eq!(errors(&told).len(), 1, "{told:?}");
    let added = "\n  added:\n    type: OS::Heat::None\n\noutputs:";
    let told = editor.type_over("\noutputs:", added);
    assert_eq!(errors(&told).len(), 1, "{told:?}");
    let told = editor.type_over("OS::Neutron::Nte", "OS::Neutron::Net");
    assert!(errors(&told).is_empty(), "{told:?}");
    let told = editor.type_over("OS::Heat::None", "OS::Heat::Noon");
    let row = editor.text.lines().position(|line| line.contains("OS::Heat::Noon")).unwrap();
    assert_eq!(errors(&told)[0]["range"]["start"]["line"], row);
    assert!(errors(&editor.type_over("  added:\n    type: OS::Heat::Noon\n", "")).is_empty());
    // The text of the server is the same as that of the editor.
    let options = json!({"tabSize": 2, "insertSpaces": true});
    let edits =
        editor.ask("textDocument/formatting", &json!({"textDocument": {"uri": editor.uri}, "options": options}));
    assert_eq!(edits[0]["newText"], kiln_authoring::format::format(&editor.text).unwrap());
    assert!(edits[0]["newText"].as_str().unwrap().contains("# 😀 ö 😀😀 end"));
    editor.leave();
}

#[test]
fn environments_are_judged() {
    let folder = Folder::new("lsp-environment");
    folder.write("web.yaml", TEXT);
    let text = "parameters: {image: cirros}\nresource_registry:\n  My::Web: web.yaml\n";
    let mut editor = Editor::start(&folder, "env.yaml", text);
    assert_eq!(editor.told(), [Value::Null; 0]);
    let told = editor.type_over("web.yaml", "wbe.yaml");
    assert_eq!(told[0]["message"], "The file wbe.yaml does not exist.");
    assert_eq!(told[0]["range"]["start"], json!({"line": 2, "character": 2}));
    assert!(editor.type_over("wbe.yaml", "web.yaml").is_empty());
    let told = editor.type_over("parameters", "parametres");
    assert_eq!((&told[0]["severity"], &told[0]["range"]["start"]["line"]), (&json!(1), &json!(0)));
    editor.leave();
}

/// Each capability with the requests that it stands for.
const CAPABILITIES: [(&str, &[&str]); 15] = [
    ("codeActionProvider", &["textDocument/codeAction"]),
    ("completionProvider", &["textDocument/completion"]),
    ("definitionProvider", &["textDocument/definition"]),
    ("documentFormattingProvider", &["textDocument/formatting"]),
    ("documentHighlightProvider", &["textDocument/documentHighlight"]),
    ("documentLinkProvider", &["textDocument/documentLink"]),
    ("documentSymbolProvider", &["textDocument/documentSymbol"]),
    ("foldingRangeProvider", &["textDocument/foldingRange"]),
    ("hoverProvider", &["textDocument/hover"]),
    ("referencesProvider", &["textDocument/references"]),
    ("renameProvider", &["textDocument/prepareRename", "textDocument/rename"]),
    ("semanticTokensProvider", &["textDocument/semanticTokens/full"]),
    ("signatureHelpProvider", &["textDocument/signatureHelp"]),
    ("textDocumentSync", &[]),
    ("workspaceSymbolProvider", &["workspace/symbol"]),
];

#[test]
fn what_is_announced_works() {
    let folder = Folder::new("lsp-capabilities");
    let text = "heat_template_version: 2021-04-16
parameters:
  unused: {type: string}
  size: {type: string}
resources:
  inner:
    type: inner.yaml
    properties:
      size: {get_param: size}
";
    folder.write(
        "inner.yaml",
        "heat_template_version: 2021-04-16\nparameters: {size: {type: string}}\nresources: {in: {type: OS::Heat::Value, properties: {value: {get_param: size}}}}\n",
    );
    let mut editor = Editor::start(&folder, "web.yaml", text);
    assert_eq!(editor.told().len(), 1);
    let mut announced: Vec<String> = editor.able.as_object().unwrap().keys().cloned().collect();
    announced.sort();
    assert_eq!(announced, CAPABILITIES.map(|(name, _)| name));
    // Each request about a place where there is something to tell.
    let whole = json!({"start": {"line": 0, "character": 0}, "end": {"line": 9, "character": 0}});
    let more =
        json!({"newName": "extent", "query": "in", "range": whole, "context": {"diagnostics": []}, "options": {}});
    for method in CAPABILITIES.iter().flat_map(|(_, methods)| *methods) {
        let what = if method.ends_with("/hover") { "get_param" } else { "size}" };
        let answer = editor.ask_at(method, what, &more);
        let is_empty = answer.is_null() || answer.as_array().is_some_and(Vec::is_empty);
        assert!(!is_empty, "{method}: {answer}");
    }

    let signature = editor.ask_at("textDocument/signatureHelp", "size}", &json!({}));
    assert_eq!(signature["signatures"][0]["label"], "get_param: [parameter, path…]");
    let links = editor.ask_file("textDocument/documentLink");
    let inner = editor.uri.replace("web.yaml", "inner.yaml");
    assert_eq!(links[0]["target"], inner);
    let highlights = editor.ask_at("textDocument/documentHighlight", "size}", &json!({}));
    let kinds: Vec<i64> = highlights.as_array().unwrap().iter().filter_map(|one| one["kind"].as_i64()).collect();
    assert_eq!(kinds, [3, 2]);
    let prepared = editor.ask_at("textDocument/prepareRename", "size}", &json!({}));
    assert_eq!(prepared["placeholder"], "size");
    let folds = editor.ask_file("textDocument/foldingRange");
    assert!(folds.as_array().unwrap().contains(&json!({"startLine": 4, "endLine": 8, "kind": "region"})), "{folds}");
    let tokens = editor.ask_file("textDocument/semanticTokens/full");
    assert_eq!(tokens["data"].as_array().unwrap()[..5], [0, 0, 21, 0, 0].map(|n| json!(n)));
    let symbols = editor.ask("workspace/symbol", &json!({"query": "in"}));
    let names: Vec<(&str, &str)> = symbols
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["name"].as_str().unwrap(), one["location"]["uri"].as_str().unwrap()))
        .collect();
    assert_eq!(names, [("inner", editor.uri.as_str()), ("in", inner.as_str())]);
    editor.leave();
}

#[test]
fn less_is_announced_to_an_editor_that_can_do_less() {
    let folder = Folder::new("lsp-plain");
    let mut editor = Editor::start(&folder, "web.yaml", TEXT);
    editor.told();
    let able = editor.ask("initialize", &json!({"capabilities": {}}))["capabilities"].take();
    assert_eq!(able["renameProvider"], true);
    assert_eq!(able.get("codeActionProvider"), None);
    let symbols = editor.ask_file("textDocument/documentSymbol");
    assert!(symbols[0]["location"]["range"].is_object() && symbols[0]["containerName"] == "parameters", "{symbols}");
    editor.leave();
}

#[test]
fn a_hint_is_followed_by_a_code_action() {
    let folder = Folder::new("lsp-actions");
    let mut editor = Editor::start(&folder, "web.yaml", &TEXT.replacen("OS::Neutron::Net", "OS::Neutron::Nett", 1));
    let told = editor.told();
    let wrong = errors(&told)[0].clone();
    let params =
        json!({"textDocument": {"uri": editor.uri}, "range": wrong["range"], "context": {"diagnostics": [wrong]}});
    let actions = editor.ask("textDocument/codeAction", &params);
    assert_eq!((&actions[0]["kind"], &actions[0]["diagnostics"][0]), (&json!("quickfix"), &wrong));
    let text = editor.apply(&actions[0]["edit"]["changes"][editor.uri.as_str()]);
    assert_eq!(text, TEXT);
    let elsewhere = json!({"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 1}});
    let params = json!({"textDocument": {"uri": editor.uri}, "range": elsewhere, "context": {"diagnostics": []}});
    assert_eq!(editor.ask("textDocument/codeAction", &params), json!([]));
    editor.leave();
}

const CHILD: &str = "heat_template_version: 2021-04-16
parameters:
  size: {type: string, description: How big.}
  color: {type: string, default: red}
resources:
  v: {type: OS::Heat::Value, properties: {value: [{get_param: size}, {get_param: color}]}}
outputs:
  told: {value: {get_attr: [v, value]}}
";

#[test]
fn templates_used_as_types_are_known() {
    let folder = Folder::new("lsp-children");
    folder.write("inner.yaml", CHILD);
    let text = "heat_template_version: 2021-04-16
resources:
  one:
    type: inner.yaml
    properties: {size: a}
  group:
    type: OS::Heat::ResourceGroup
    properties:
      count: 2
      resource_def:
        type: inner.yaml
        properties: {size: b}
  scaled:
    type: OS::Heat::AutoScalingGroup
    properties:
      min_size: 1
      max_size: 2
      resource: {type: inner.yaml, properties: {size: c}}
outputs:
  o: {value: {get_attr: [one, told]}}
";
    let mut editor = Editor::start(&folder, "web.yaml", text);
    let told = editor.told();
    assert!(errors(&told).is_empty(), "{told:?}");
    for (behind, before) in [("size: a", "{size: a}"), ("size: b", "{size: b}"), ("size: c", "{size: c}")] {
        let told = editor.type_over(before, &before.replace('}', ", colour: x}"));
        let wrong = errors(&told);
        assert!(wrong.len() == 1 && wrong[0]["message"].as_str().unwrap().contains("colour"), "{behind}: {told:?}");
        editor.type_over(", colour: x}", "}");
        editor.type_over(behind, &format!("{behind}, "));
        let found = editor.suggested(&format!("{behind}, "));
        assert!(found.contains(&"color".to_owned()) && !found.contains(&"size".to_owned()), "{behind}: {found:?}");
        editor.type_over(&format!("{behind}, "), behind);
    }
    editor.type_over("[one, told]", "[one, ]");
    assert!(editor.suggested("[one, ").contains(&"told".to_owned()));
    editor.type_over("[one, ]", "[one, told]");
    let inner = editor.uri.replace("web.yaml", "inner.yaml");
    for (what, line) in [("size: a", 2), ("size: b", 2), ("size: c", 2), ("told", 7)] {
        let found = editor.ask_at("textDocument/definition", what, &json!({}));
        assert_eq!((&found["uri"], &found["range"]["start"]["line"]), (&json!(inner), &json!(line)), "{what}");
    }
    let hover = editor.ask_at("textDocument/hover", "size: b", &json!({}));
    assert!(hover["contents"]["value"].as_str().unwrap().contains("How big."), "{hover}");
    editor.leave();
}

#[test]
fn a_change_in_an_open_child_judges_its_parent_again() {
    let folder = Folder::new("lsp-parent");
    folder.write("inner.yaml", CHILD);
    let text =
        "heat_template_version: 2021-04-16\nresources:\n  one:\n    type: inner.yaml\n    properties: {size: a}\n";
    let mut editor = Editor::start(&folder, "web.yaml", text);
    assert!(errors(&editor.told()).is_empty());
    let child = editor.uri.replace("web.yaml", "inner.yaml");
    editor.open(&child, CHILD);
    assert_eq!(editor.receive()["params"]["uri"], child);
    editor.told();
    let document = json!({"uri": child, "version": 2});
    let changes = json!([{"text": CHILD.replace("  size:", "  extent:")}]);
    editor.tell("textDocument/didChange", &json!({"textDocument": document, "contentChanges": changes}));
    assert_eq!(editor.receive()["params"]["uri"], child);
    let told = editor.told();
    assert!(errors(&told)[0]["message"].as_str().unwrap().contains("size"), "{told:?}");
    // Closed without being saved, the file counts as it is stored.
    editor.tell("textDocument/didClose", &json!({"textDocument": {"uri": child}}));
    assert_eq!(editor.receive()["params"]["diagnostics"], json!([]));
    assert!(errors(&editor.told()).is_empty());
    editor.leave();
}

#[test]
fn a_broken_text_still_has_hovers_and_symbols() {
    let folder = Folder::new("lsp-broken");
    let mut editor = Editor::start(&folder, "web.yaml", TEXT);
    editor.told();
    let told = editor.type_over("type: OS::Neutron::Router\n", "type: OS::Neutron::Router\n    properties: {a: [\n");
    assert_eq!(errors(&told).len(), 1, "{told:?}");
    let hover = editor.ask_at("textDocument/hover", "OS::Neutron::Net", &json!({}));
    assert!(hover["contents"]["value"].as_str().unwrap().contains("OS::Neutron::Net"), "{hover}");
    let symbols = editor.ask_file("textDocument/documentSymbol");
    let names: Vec<&str> = symbols.as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["parameters", "resources", "outputs"]);
    let position = json!({"line": 20, "character": 5});
    let params = json!({"textDocument": {"uri": editor.uri}, "position": position, "newName": "x"});
    assert_eq!(editor.answer("textDocument/rename", &params)["error"]["code"], -32803);
    editor.leave();
}

#[test]
fn environments_are_files_like_templates() {
    let folder = Folder::new("lsp-environment-names");
    folder.write("web.yaml", CHILD);
    let text = "parameters: {size: a}\nresource_registry:\n  My::Web: web.yaml\n  My::Net: OS::Neutron::Net\n";
    let mut editor = Editor::start(&folder, "env.yaml", text);
    assert_eq!(editor.told(), [Value::Null; 0]);
    editor.type_over("{size: a}", "{size: a, }");
    assert_eq!(editor.suggested("size: a, "), ["color"]);
    editor.type_over("{size: a, }", "{size: a}");
    let hover = editor.ask_at("textDocument/hover", "size", &json!({}));
    assert!(hover["contents"]["value"].as_str().unwrap().contains("How big."), "{hover}");
    let template = editor.uri.replace("env.yaml", "web.yaml");
    let definition = editor.ask_at("textDocument/definition", "size", &json!({}));
    assert_eq!((&definition[0]["uri"], &definition[0]["range"]["start"]["line"]), (&json!(template), &json!(2)));
    let definition = editor.ask_at("textDocument/definition", "web.yaml", &json!({}));
    assert_eq!(definition[0]["uri"], template);
    let renamed = editor.ask_at("textDocument/rename", "My::Net", &json!({"newName": "Our::Net"}));
    let text = editor.apply(&renamed["changes"][editor.uri.as_str()]);
    assert!(text.ends_with("  Our::Net: OS::Neutron::Net\n"), "{text}");
    assert_eq!(editor.ask_file("textDocument/documentSymbol").as_array().unwrap().len(), 2);
    assert_eq!(editor.ask_file("textDocument/documentLink")[0]["target"], template);
    editor.leave();
}

#[test]
fn types_of_an_environment_beside_a_template_are_known() {
    let folder = Folder::new("lsp-registry");
    folder.write("inner.yaml", CHILD);
    let environment = "resource_registry:\n  My::Inner: inner.yaml\n  My::Net: OS::Neutron::Net\n";
    let path = folder.write("env.yaml", environment);
    let text = "heat_template_version: 2021-04-16
resources:
  a: {type: My::Inner, properties: {size: x}}
  b: {type: My::Net, properties: {name: y}}
";
    let mut editor = Editor::start(&folder, "web.yaml", text);
    let told = editor.told();
    assert!(errors(&told).is_empty(), "{told:?}");
    let told = editor.type_over("name: y", "nmae: y");
    assert!(errors(&told)[0]["message"].as_str().unwrap().contains("nmae"), "{told:?}");
    editor.type_over("nmae: y", "name: y");
    let told = editor.type_over("{size: x}", "{size: x, }");
    assert_eq!(errors(&told).len(), 0, "{told:?}");
    assert_eq!(editor.suggested("size: x, ")[0], "color");
    // A change in the environment counts at once.
    let uri = format!("file://{}", path.display());
    editor.open(&uri, environment);
    assert_eq!(editor.receive()["params"]["uri"], uri);
    editor.told();
    let changes = json!([{"text": environment.replace("My::Net", "My::Network")}]);
    let document = json!({"uri": uri, "version": 2});
    editor.tell("textDocument/didChange", &json!({"textDocument": document, "contentChanges": changes}));
    assert_eq!(editor.receive()["params"]["uri"], uri);
    let told = editor.told();
    assert!(errors(&told)[0]["message"].as_str().unwrap().contains("My::Net"), "{told:?}");
    editor.leave();
}

#[test]
fn a_text_is_judged_once_after_many_changes() {
    let folder = Folder::new("lsp-burst");
    let many: String = (0..400).fold(String::new(), |text, n| text + &format!("  r{n}: {{type: OS::Heat::Value}}\n"));
    let text = format!("heat_template_version: 2021-04-16\nresources:\n{many}");
    let mut editor = Editor::start(&folder, "web.yaml", &text);
    editor.told();
    let changes_in_all = 60_u64;
    for version in 2..2 + changes_in_all {
        let document = json!({"uri": editor.uri, "version": version});
        let start = json!({"line": 0, "character": 33});
        let changes = json!([{"range": {"start": start, "end": start}, "text": " "}]);
        editor.tell("textDocument/didChange", &json!({"textDocument": document, "contentChanges": changes}));
    }
    let mut published = 0;
    loop {
        published += 1;
        if editor.receive()["params"]["version"] == 1 + changes_in_all {
            break;
        }
    }
    assert!(published < changes_in_all / 2, "{published}");
    editor.leave();
}

/// Errors in blueprints and TOSCA, also after a file that they import has changed.
#[test]
fn topologies_are_diagnosed() {
    let folder = Folder::new("lsp-topology");
    let types = "tosca_definitions_version: tosca_simple_yaml_1_3\nnode_types:\n  my.Server: {derived_from: tosca.nodes.Compute}\n";
    folder.write("types.yaml", types);
    let text = "tosca_definitions_version: tosca_simple_yaml_1_3\nimports: [types.yaml]\ntopology_template:\n  node_templates:\n    a: {type: my.Server}\n    b: {type: my.Sever}\n";
    let mut editor = Editor::start(&folder, "service.yaml", text);
    let found = editor.told();
    let [wrong] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!((&wrong["range"]["start"]["line"], &wrong["severity"]), (&json!(5), &json!(1)), "{wrong}");
    assert!(wrong["message"].as_str().unwrap().contains("my.Sever"), "{wrong}");
    assert_eq!(editor.change(&text.replace("my.Sever}", "my.Server}")), Vec::<Value>::new());
    // A map that is not closed yet.
    assert_eq!(editor.change(text.trim_end().trim_end_matches('}')).len(), 1);
    let found = editor.change("components:\n  web: {type: server, requires: {run: nothing}}\n");
    assert_eq!((found.len(), &found[0]["range"]["start"]["line"]), (1, &json!(1)), "{found:?}");
    editor.tell("exit", &json!({}));
}

const SERVICE: &str = "\
tosca_definitions_version: tosca_simple_yaml_1_3
imports: [types.yaml]
topology_template:
  inputs:
    size: {type: integer}
  node_templates:
    disk:
      type: tosca.nodes.BlockStorage
      properties:
        si
    web:
      type: my.Ser
      capabilities:
        host: {properties: {num_cpus: {get_input: s}}}
      requirements:
      - local_storage: d
";

/// Words and descriptions in blueprints, TOSCA and type files.
#[test]
fn topologies_are_completed_and_explained() {
    let folder = Folder::new("lsp-topology-words");
    folder.write(
        "types.yaml",
        "tosca_definitions_version: tosca_simple_yaml_1_3\nnode_types:\n  my.Server: {derived_from: \
         tosca.nodes.Compute, description: Ours.}\n",
    );
    let mut editor = Editor::start(&folder, "service.yaml", SERVICE);
    editor.told();
    assert_eq!(editor.suggested("        si"), ["size"]);
    assert_eq!(editor.suggested("my.Ser"), ["my.Server"]);
    assert_eq!(editor.suggested("get_input: s"), ["size"]);
    editor.change(&SERVICE.replace("        si\n", "        size: 1 GB\n").replace("my.Ser\n", "my.Server\n"));
    let storage = editor.suggested("- local_storage: d");
    assert_eq!(storage[0], "disk");
    assert_eq!(editor.suggested("properties: {n"), ["num_cpus", "cpu_frequency"]);
    let hover = editor.ask_at("textDocument/hover", "my.Server", &json!({}));
    let text = hover["contents"]["value"].as_str().unwrap();
    assert!(text.starts_with("**my.Server**\n\nOurs.\n\nDerived from: tosca.nodes.Compute"), "{text}");
    let hover = editor.ask_at("textDocument/hover", "size: 1", &json!({}));
    assert_eq!(hover["contents"]["value"], "**size** (scalar-unit.size)");

    editor.change(
        "components:\n  web:\n    type: ser\n    requires:\n      minRam: 1gb\n      run: set\n      mi\n  setup: {type: \
         puppet, facts: {a: b}}\n",
    );
    assert_eq!(editor.suggested("type: ser")[0], "server");
    editor.change(
        "components:\n  web:\n    type: server\n    requires:\n      minRam: 1gb\n      run: set\n      mi\n  setup: \
         {type: puppet, facts: {a: b}}\n",
    );
    assert_eq!(editor.suggested("      mi"), ["minRam", "minCores"]);
    assert_eq!(editor.suggested("run: set"), ["setup"]);
    let text = "components:\n  web: {type: server, requires: {run: setup}}\n  setup: {type: puppet, content: x, facts: {a: \
                b}}\n";
    editor.change(text);
    let hover = editor.ask_at("textDocument/hover", "puppet", &json!({}));
    let shown = hover["contents"]["value"].as_str().unwrap();
    assert!(shown.starts_with("**org.openstack.heat.Puppet**\n\nA manifest of Puppet"), "{shown}");
    let hover = editor.ask_at("textDocument/hover", "facts", &json!({}));
    assert_eq!(hover["contents"]["value"], "**facts** (map, default {})\n\nFacts for the manifest.");

    editor.change(
        "topology_type: a.b\nderived_from: tosca.nodes.Softw\nproperties:\n  port: {type: integer}\nhot:\n  \
         resources:\n    _a:\n      type: OS::Heat::Rand\n      properties:\n        length: {$property: p}\n  \
         ope\n",
    );
    assert_eq!(editor.suggested("tosca.nodes.Softw"), ["tosca.nodes.SoftwareComponent"]);
    assert_eq!(editor.suggested("OS::Heat::Rand"), ["OS::Heat::RandomString"]);
    assert_eq!(editor.suggested("{$property: p"), ["port"]);
    assert_eq!(editor.suggested("\n  ope"), ["operations"]);
    assert!(editor.suggested("length: {$pr").contains(&"$property".to_owned()));
    editor.tell("exit", &json!({}));
}

#[test]
fn types_of_plugins_are_known_and_a_silent_one_does_no_harm() {
    let folder = Folder::new("lsp-plugin");
    let text = "heat_template_version: 2021-04-16\nresources:\n  it:\n    type: Test::Odd\n    properties:\n      does: {}\n      nose: 1\n";
    let odd = concat!(env!("CARGO_MANIFEST_DIR"), "/../plugin/tests/programs/odd.py");
    let mut command = folder.kiln(&["lsp"]);
    command.env("PATH", std::env::var_os("PATH").unwrap());
    command.env("KILN_PLUGINS", format!("/bin/sleep 1000,/usr/bin/env python3 {odd} {}", folder.path().display()));
    let mut editor = Editor::of(command, &folder, "t.yaml", text);
    let told = editor.told();
    let messages: Vec<&str> = told.iter().filter_map(|one| one["message"].as_str()).collect();
    assert!(messages.iter().any(|text| text.contains("Unknown Property nose")), "{messages:?}");
    assert!(!messages.iter().any(|text| text.contains("could not be found")), "{messages:?}");
    let hover = editor.ask_at("textDocument/hover", "Test::Odd", &json!({}));
    assert!(hover.to_string().contains("A thing that does what it is told."), "{hover}");
    assert!(editor.suggested("properties:\n      ").contains(&"zone".to_owned()));
    editor.leave();
}

#[test]
fn a_misspelt_parameter_of_an_environment_gets_a_suggestion() {
    let folder = Folder::new("lsp-parameter");
    folder.write("web.yaml", "heat_template_version: 2021-04-16\nparameters:\n  flavor: {type: string}\n");
    let mut editor = Editor::start(&folder, "env.yaml", "parameters:\n  other: a\n  flavr: m1.small\n");
    let told = editor.told();
    let shown: Vec<String> = told.iter().map(|one| one["message"].as_str().unwrap().to_owned()).collect();
    assert!(shown.len() == 1 && shown[0].contains("flavr") && shown[0].contains("did you mean flavor?"), "{told:?}");
    assert_eq!(told[0]["range"]["start"]["line"], 2);
    editor.leave();
}
