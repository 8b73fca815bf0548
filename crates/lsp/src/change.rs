//! Applies an editor's changes to an open text.

use kiln_authoring::lines::Lines;
use serde_json::Value;

/// Makes a change of `contentChanges` in a text: the new text of a range, or the whole text anew. `None` for what is no
/// change; the text is then as it was.
pub(super) fn apply(text: &mut String, change: &Value) -> Option<()> {
    let new = change.get("text")?.as_str()?;
    let Some(range) = change.get("range") else {
        new.clone_into(text);
        return Some(());
    };
    let lines = Lines::new(text);
    let offset = |end: &str| {
        let number = |key| u32::try_from(range.get(end)?.get(key)?.as_u64()?).ok();
        let at = lines.of_utf16(text, number("line")?, number("character")?);
        // Below the last line is the text's end.
        Some(lines.offset(text, at).unwrap_or(text.len()))
    };
    let (start, end) = (offset("start")?, offset("end")?);
    text.replace_range(start..end.max(start), new);
    Some(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn changed(text: &str, (line, character): (u32, u32), end: (u32, u32), new: &str) -> String {
        let mut text = text.to_owned();
        let end = json!({"line": end.0, "character": end.1});
        let range = json!({"start": {"line": line, "character": character}, "end": end});
        apply(&mut text, &json!({"range": range, "text": new})).unwrap();
        text
    }

    #[test]
    fn ranges_count_utf16() {
        assert_eq!(changed("a😀b\nc\n", (0, 3), (0, 4), "x"), "a😀x\nc\n");
        assert_eq!(changed("a😀b\nc\n", (0, 1), (1, 0), ""), "ac\n");
        assert_eq!(changed("a\nb", (1, 1), (1, 1), "c\nd"), "a\nbc\nd");
    }

    #[test]
    fn ranges_end_with_their_line_and_text() {
        assert_eq!(changed("a\r\nb\r\n", (0, 1), (0, 99), "x"), "ax\r\nb\r\n");
        assert_eq!(changed("a\nb\n", (1, 0), (7, 0), "x"), "a\nx");
        assert_eq!(changed("", (0, 0), (0, 0), "x"), "x");
    }

    #[test]
    fn a_change_without_a_range_is_the_text() {
        let mut text = "a".to_owned();
        apply(&mut text, &json!({"text": "b"})).unwrap();
        assert_eq!(text, "b");
        assert_eq!(apply(&mut text, &json!({"range": {"start": {}}, "text": "c"})), None);
        assert_eq!(apply(&mut text, &json!({"text": 1})), None);
        assert_eq!(text, "b");
    }
}
