//! Validation of a volume beyond its schema.

use kiln_resource::Facts;
use kiln_value::{Diagnostic, Value};

use crate::validation::{conflict, failed, is_given};

/// A volume has one source, and a size unless the source determines it.
pub(super) fn validate(facts: &Facts) -> Result<(), Diagnostic> {
    let has = |name: &str| facts.property(name).is_truthy();
    if has("image") && has("imageRef") {
        return Err(conflict(&["image", "imageRef"]));
    }
    if has("backup_id") {
        return Ok(());
    }
    let sources = ["snapshot_id", "source_volid", "image", "imageRef"];
    let given: Vec<&str> = sources.into_iter().filter(|name| is_given(facts, name)).collect();
    let sized = given.iter().filter(|name| matches!(**name, "snapshot_id" | "source_volid")).count();
    let shown = || kiln_value::text::repr(&given.iter().copied().collect::<Value>());
    if !is_given(facts, "size") && (sized != 1 || given.len() != 1) {
        return Err(failed(format!(
            "If neither \"backup_id\" nor \"size\" is provided, one and only one of \"source_volid\", \"snapshot_id\" \
             must be specified, but currently specified options: {}.",
            shown()
        )));
    }
    if has("size") && given.len() > 1 {
        return Err(failed(format!(
            "If \"size\" is provided, only one of \"image\", \"imageRef\", \"source_volid\", \"snapshot_id\" can be \
             specified, but currently specified options: {}.",
            shown()
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use kiln_value::value;

    fn error(properties: &Value) -> String {
        let facts = Facts { properties: properties.as_map().unwrap().clone(), ..Facts::default() };
        validate(&facts).map_or_else(|e| e.text.clone(), |()| String::new())
    }

    #[test]
    fn one_source_and_a_size_are_required() {
        assert_eq!(error(&value!({"size": 1})), "");
        assert_eq!(error(&value!({"snapshot_id": "s"})), "");
        assert_eq!(error(&value!({"backup_id": "b"})), "");
        assert!(error(&value!({"image": "i"})).ends_with("specified options: ['image']."));
        assert!(error(&value!({"size": 1, "image": "i", "snapshot_id": "s"})).starts_with("If \"size\" is provided"));
    }
}
