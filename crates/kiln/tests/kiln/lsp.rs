//! The language server, driven like by an editor, with a realistic template.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use serde_json::{Value, json};

use crate::run::Folder;

const TEXT: &str = include_str!("../../../../tests/data/heat-templates/hot/servers_in_new_neutron_net.yaml");

/// An editor with one file open.
struct Editor {
    server: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    uri: String,
    text: String,
    asked: i64,
}

impl Editor {
    fn start(folder: &Folder, name: &str, text: &str) -> Self {
        let path = folder.write(name, text);
        let mut command = folder.kiln(&["lsp"]);
        let mut server = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (server.stdin.take().unwrap(), BufReader::new(server.stdout.take().unwrap()));
        let uri = format!("file://{}", path.display());
        let mut editor = Self { server, input, output, uri, text: text.to_owned(), asked: 0 };
        let able = editor.ask("initialize", &json!({"processId": null, "rootUri": null, "capabilities": {}}));
        assert_eq!(able["capabilities"]["renameProvider"], true);
        assert_eq!(able["capabilities"]["textDocumentSync"]["change"], 2);
        editor.tell("initialized", &json!({}));
        let document = json!({"uri": editor.uri, "languageId": "yaml", "version": 1, "text": text});
        editor.tell("textDocument/didOpen", &json!({"textDocument": document}));
        editor
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
    fn told(&mut self) -> Vec<Value> {
        let notice = self.receive();
        assert_eq!(notice["method"], "textDocument/publishDiagnostics", "{notice}");
        assert_eq!(notice["params"]["uri"], self.uri);
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

    fn leave(mut self) {
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
    assert_eq!(told[0]["message"], "There is no file wbe.yaml.");
    assert_eq!(told[0]["range"]["start"], json!({"line": 2, "character": 2}));
    assert!(editor.type_over("wbe.yaml", "web.yaml").is_empty());
    let told = editor.type_over("parameters", "parametres");
    assert_eq!((&told[0]["severity"], &told[0]["range"]["start"]["line"]), (&json!(1), &json!(0)));
    editor.leave();
}
