//! Components: from the document to a draft.

use kiln_value::{Path, Value};

use super::reader::{Draft, DraftId, Need, Reader};
use crate::refusal::kind_of;

impl<'a> Reader<'a> {
    /// Reads a component. `None` is one without attributes, where `may_be_empty`.
    pub(super) fn read_component(&mut self, body: &'a Value, at: &Path, may_be_empty: bool) -> Option<DraftId> {
        let entries = match body {
            Value::Map(entries) => Some(entries),
            Value::Null if may_be_empty => None,
            other => {
                let message = format!("A component must be a map, but this is {}.", kind_of(other));
                self.refuse("bad-shape", at, message);
                return None;
            }
        };
        let mut draft = Draft { at: at.clone(), ..Draft::default() };
        let mut needs: Vec<Need<'a>> = Vec::new();
        // What the type knows as attribute is no requirement, so the type is read first.
        if let Some(word) = entries.and_then(|entries| entries.get("type")) {
            self.read_type(&mut draft, word, at);
        }
        for (key, value) in entries.into_iter().flatten() {
            match key.as_str() {
                "type" | "requires" => {}
                "id" => draft.id = self.read_text(value, &at.key("id"), "an ID"),
                "content" => draft.content = self.read_text(value, &at.key("content"), "the content"),
                "tags" => draft.tags = self.read_tags(value, &at.key("tags")),
                key => {
                    let known = draft.explicit.as_ref().map(|(kind, _)| *kind);
                    let is_attribute = known.is_some_and(|kind| {
                        self.library.has_attribute(kind, key) || self.library.spec(kind, key).is_some()
                    });
                    match self.library.find_requirement(key) {
                        Some(kind) if !is_attribute => needs.extend(self.read_need(kind, value, &at.key(key))),
                        _ => draft.others.push((key, value)),
                    }
                }
            }
        }
        if let Some(requires) = entries.and_then(|entries| entries.get("requires")) {
            needs.extend(self.read_requires(
                requires,
                &at.key("requires"),
                draft.explicit.as_ref().map(|(kind, _)| *kind),
            ));
        }
        draft.tagged = self.type_of_tags(&draft.tags, at);
        self.drafts.push(draft);
        let id = self.drafts.len() - 1;
        for need in needs {
            self.add_need(id, need);
        }
        self.queue.push_back(id);
        Some(id)
    }

    fn read_type(&mut self, draft: &mut Draft<'a>, word: &Value, at: &Path) {
        let at = at.key("type");
        let Some(name) = self.read_text(word, &at, "a type") else {
            draft.broken = true;
            return;
        };
        if let Some(kind) = self.library.find_component(&name) {
            draft.explicit = Some((kind, name));
        } else {
            draft.broken = true;
            let message = format!("No component type is named {name}.");
            let known = self.library.component_words();
            self.refuse_word("unknown-type", &at, message, &name, known);
        }
    }

    fn read_text(&mut self, value: &Value, at: &Path, what: &str) -> Option<String> {
        match value {
            Value::Str(text) if !text.is_empty() => Some(text.clone()),
            other => {
                let found = if matches!(other, Value::Str(_)) { "an empty text" } else { kind_of(other) };
                self.refuse("bad-shape", at, format!("A text is expected for {what}, but this is {found}."));
                None
            }
        }
    }

    fn read_tags(&mut self, value: &Value, at: &Path) -> Vec<String> {
        match value {
            Value::Str(tag) => vec![tag.clone()],
            Value::List(tags) if tags.iter().all(|tag| tag.as_str().is_some()) => {
                tags.iter().filter_map(Value::as_str).map(str::to_owned).collect()
            }
            other => {
                let message = format!("Tags must be a list of texts, but this is {}.", kind_of(other));
                self.refuse("bad-shape", at, message);
                Vec::new()
            }
        }
    }
}
