//! Multipart messages for cloud-init.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// A part.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) content: String,
    /// Without one, the part has no `Content-Disposition`.
    pub(crate) file_name: Option<String>,
    pub(crate) subtype: String,
}

impl Part {
    pub(crate) fn new(content: impl Into<String>, file_name: Option<&str>, subtype: &str) -> Self {
        Self { content: content.into(), file_name: file_name.map(str::to_owned), subtype: subtype.to_owned() }
    }

    /// The part with a file name, which may be empty.
    pub(crate) fn named(self) -> Self {
        Self { file_name: Some(self.file_name.unwrap_or_default()), ..self }
    }
}

/// A multipart message for cloud-init.
pub(crate) fn join(parts: &[Part], boundary: &str) -> String {
    let boundary = format!("==============={boundary}==");
    let mut out = format!("Content-Type: multipart/mixed; boundary=\"{boundary}\"\nMIME-Version: 1.0\n\n");
    for part in parts {
        let (charset, encoding, content) = if part.content.is_ascii() {
            ("us-ascii", "7bit", part.content.clone())
        } else {
            ("utf-8", "base64", wrapped(&STANDARD.encode(&part.content)))
        };
        let name = part.file_name.as_ref();
        let disposition = name.map(|name| format!("Content-Disposition: attachment; filename=\"{name}\"\n"));
        _ = write!(
            out,
            "--{boundary}\nContent-Type: text/{}; charset=\"{charset}\"\nMIME-Version: 1.0\n\
             Content-Transfer-Encoding: {encoding}\n{}\n{content}\n",
            part.subtype,
            disposition.unwrap_or_default(),
        );
    }
    _ = writeln!(out, "--{boundary}--");
    out
}

/// Wraps lines at 76 characters.
fn wrapped(base64: &str) -> String {
    let mut out = String::with_capacity(base64.len() + base64.len() / 76 + 1);
    for (i, c) in base64.chars().enumerate() {
        if i > 0 && i % 76 == 0 {
            out.push('\n');
        }
        out.push(c);
    }
    out.push('\n');
    out
}

/// The parts of user data that is a multipart message.
pub(crate) fn split(user_data: &str) -> Option<Vec<Part>> {
    let (headers, body) = user_data.split_once("\n\n")?;
    let content_type = header(headers, "content-type")?;
    if !content_type.to_ascii_lowercase().starts_with("multipart/") {
        return None;
    }
    let delimiter = format!("\n--{}", parameter(&content_type, "boundary")?);
    let body = format!("\n{body}");
    let mut pieces = body.split(&delimiter);
    pieces.next();
    let mut parts = Vec::new();
    for piece in pieces.take_while(|piece| !piece.starts_with("--")) {
        let piece = piece.trim_start_matches([' ', '\t', '\r']).strip_prefix('\n').unwrap_or(piece);
        let (headers, content) = piece.split_once("\n\n").unwrap_or(("", piece));
        let kind = header(headers, "content-type").unwrap_or_else(|| "text/plain".into());
        let subtype = kind.split(';').next().and_then(|k| k.split_once('/')).map_or("plain", |(_, s)| s.trim());
        let file_name = header(headers, "content-disposition").and_then(|d| parameter(&d, "filename"));
        let encoding = header(headers, "content-transfer-encoding").unwrap_or_default();
        let content = match encoding.trim().to_ascii_lowercase().as_str() {
            "base64" => decode(content).unwrap_or_else(|| content.to_owned()),
            _ => content.to_owned(),
        };
        parts.push(Part::new(content, file_name.as_deref(), subtype));
    }
    Some(parts)
}

fn decode(base64: &str) -> Option<String> {
    let packed: String = base64.split_whitespace().collect();
    String::from_utf8(STANDARD.decode(packed).ok()?).ok()
}

/// The value of a header, with continuation lines joined.
fn header(headers: &str, name: &str) -> Option<String> {
    let mut lines = headers
        .lines()
        .skip_while(|line| line.split_once(':').is_none_or(|(key, _)| !key.trim().eq_ignore_ascii_case(name)));
    let mut value = lines.next()?.split_once(':')?.1.trim().to_owned();
    for line in lines.take_while(|line| line.starts_with([' ', '\t'])) {
        value.push(' ');
        value.push_str(line.trim());
    }
    Some(value)
}

fn parameter(value: &str, name: &str) -> Option<String> {
    value.split(';').skip(1).find_map(|parameter| {
        let (key, value) = parameter.split_once('=')?;
        key.trim().eq_ignore_ascii_case(name).then(|| value.trim().trim_matches('"').to_owned())
    })
}
