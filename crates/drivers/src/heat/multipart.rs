//! The message of `OS::Heat::MultipartMime`.

use kiln_resource::{Context, Failure, size_limit};
use kiln_value::{Class, Value, text};

use crate::mime::{Part, join, split};

/// The parts in one message; those of a message in it one by one.
pub(super) async fn message(cx: &Context<'_>) -> Result<String, Failure> {
    let (mut parts, mut size) = (Vec::new(), 0);
    for item in cx.facts.property("parts").as_list().unwrap_or_default() {
        let given = item.str_at("config").unwrap_or_default();
        let content = config_or_text(cx, given).await?;
        // One config may be many parts.
        size += content.len();
        size_limit::check_text(size).map_err(|text| Failure::other(Class::RequestLimitExceeded, text))?;
        if item.str_at("type") == Some("multipart") {
            let inner = split(&content).unwrap_or_default();
            parts.extend(inner.into_iter().map(|part| part_of(part.content, Some(&part.subtype), part.file_name)));
        } else {
            parts.push(part_of(content, item.str_at("subtype"), item.str_at("filename").map(str::to_owned)));
        }
    }
    // Any string that does not occur in a part is suitable.
    Ok(join(&parts, &format!("{:020}", cx.random())))
}

/// The text of a config with this ID, or the given text.
pub(crate) async fn config_or_text(cx: &Context<'_>, given: &str) -> Result<String, Failure> {
    if given.parse::<uuid::Uuid>().is_err() {
        return Ok(given.to_owned());
    }
    let config = cx.software.config(given).await?;
    Ok(config.map_or_else(|| given.to_owned(), |config| as_text(&config.body.config)))
}

fn as_text(config: &Value) -> String {
    match config {
        Value::Null => String::new(),
        Value::Str(text) => text.clone(),
        other => text::json(other),
    }
}

/// As in Heat, the name of a file without a type tells its subtype.
fn part_of(content: String, subtype: Option<&str>, file_name: Option<String>) -> Part {
    let file_name = file_name.filter(|name| !name.is_empty());
    let of_name = || file_name.as_deref().map(|name| name.rsplit_once('.').map_or(name, |(stem, _)| stem));
    let subtype = subtype.filter(|subtype| !subtype.is_empty()).or_else(of_name).unwrap_or("plain");
    Part::new(content, file_name.as_deref(), subtype)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_typed_by_its_subtype_or_file() {
        let subtype = |subtype, name: &str| part_of(String::new(), subtype, Some(name.to_owned())).subtype;
        assert_eq!(subtype(Some("x-shellscript"), "a.sh"), "x-shellscript");
        assert_eq!(subtype(None, "cloud-config.yaml"), "cloud-config");
        assert_eq!(subtype(Some(""), ""), "plain");
        assert_eq!(part_of(String::new(), None, Some(String::new())).file_name, None);
    }
}
