//! The document or package that a template was lowered from, kept among the files of the stack.
//!
//! So it is stored, updated, rolled back and exported with the template, also by services that know nothing of it. The
//! entry names the template by a digest: after an update with another template there is no original.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use kiln_package::Package;
use kiln_value::{Value, value};
use sha2::{Digest as _, Sha256};

/// The name of the entry among the files.
pub const FILE: &str = "kiln:original";

/// What a user wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Original {
    /// `application/yaml`, `application/zip`, `application/gzip` or `application/x-tar`.
    pub content_type: String,
    /// The document or package.
    pub content: Vec<u8>,
}

impl Original {
    /// Takes a document or package; its type is seen by its content.
    pub fn new(content: Vec<u8>) -> Self {
        let content_type = match &content[..] {
            [b'P', b'K', ..] => "application/zip",
            [0x1f, 0x8b, ..] => "application/gzip",
            bytes if Package::is_archive(bytes) => "application/x-tar",
            _ => "application/yaml",
        };
        Self { content_type: content_type.to_owned(), content }
    }

    /// The content of the entry, for the template that this became.
    pub fn to_file(&self, template: &Value) -> String {
        let entry = value!({
            "type": (&self.content_type),
            "template": (digest(template)),
            "content": (BASE64.encode(&self.content)),
        });
        kiln_value::text::json(&entry)
    }

    /// From the content of the entry; `None` if `template` is not what this became.
    pub fn of_file(entry: &str, template: &Value) -> Option<Self> {
        let entry = kiln_yaml::json::parse(entry).ok()?;
        if entry.str_at("template")? != digest(template) {
            return None;
        }
        let content = BASE64.decode(entry.str_at("content")?).ok()?;
        Some(Self { content_type: entry.str_at("type")?.to_owned(), content })
    }
}

fn digest(template: &Value) -> String {
    BASE64.encode(Sha256::digest(kiln_value::text::json(template)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_original_belongs_to_its_template() {
        let template = value!({"heat_template_version": "2018-08-31"});
        for (content, kind) in [("PK\u{3}\u{4}", "application/zip"), ("components: {}", "application/yaml")] {
            let original = Original::new(content.as_bytes().to_vec());
            assert_eq!(original.content_type, kind);
            let entry = original.to_file(&template);
            assert_eq!(Original::of_file(&entry, &template), Some(original));
            assert_eq!(Original::of_file(&entry, &value!({"heat_template_version": "2021-04-16"})), None);
            assert_eq!(Original::of_file("{}", &template), None);
        }
    }
}
