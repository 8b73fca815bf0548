//! The section `moved`: resources that have another name than before. Heat does not have it.

use std::collections::BTreeSet;

use kiln_value::{Class, Diagnostic, Path, Value};

use crate::Template;

/// A resource that has another name than before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
    /// Its former name.
    pub from: String,
    /// Its name, or a later former one.
    pub to: String,
}

impl Template {
    /// The entries of the section, in its order.
    ///
    /// # Errors
    /// An entry that is no move, or that contradicts another one or the resources.
    pub fn moves(&self) -> Result<Vec<Move>, Diagnostic> {
        let name = self.words().moved;
        let section = Path::root().key(name);
        let Some(given) = self.as_value().get(name).filter(|given| !given.is_null()) else { return Ok(Vec::new()) };
        let wrong =
            |path: Path, why: String| Diagnostic::new(Class::StackValidationFailed, format!("{name}: {why}")).at(path);
        let entries = given
            .as_list()
            .ok_or_else(|| wrong(section.clone(), "a list of maps with 'from' and 'to' is expected".to_owned()))?;
        let (mut former, mut latter) = (BTreeSet::new(), BTreeSet::new());
        let mut moves = Vec::with_capacity(entries.len());
        for (index, entry) in entries.iter().enumerate() {
            let place = section.index(index);
            let name_at = |key: &str| entry.get(key).and_then(Value::as_str).filter(|name| !name.is_empty());
            let (Some(from), Some(to), true) =
                (name_at("from"), name_at("to"), entry.as_map().is_some_and(|entry| entry.len() == 2))
            else {
                return Err(wrong(place, "an entry has the names 'from' and 'to', and nothing else".to_owned()));
            };
            if let Some(path) = [from, to].into_iter().find(|path| path.contains('/')) {
                return Err(wrong(
                    place,
                    format!("{path} is in a nested stack: only resources of this template are moved"),
                ));
            }
            if self.has_resource(from) {
                return Err(wrong(place, format!("the resource {from} is still in the template")));
            }
            if !former.insert(from) || !latter.insert(to) {
                let twice = if moves.iter().any(|one: &Move| one.from == from) { from } else { to };
                return Err(wrong(place, format!("the resource {twice} is moved twice")));
            }
            moves.push(Move { from: from.to_owned(), to: to.to_owned() });
        }
        Ok(moves)
    }
}

#[cfg(test)]
mod tests {
    use kiln_value::value;

    use super::*;

    fn moves(section: Value) -> Result<Vec<(String, String)>, String> {
        let template =
            value!({"heat_template_version": "2018-08-31", "resources": {"c": {"type": "T"}}, "moved": section});
        let template = Template::from_value(template).expect("a template");
        let moves = template.moves().map_err(|error| error.to_string())?;
        Ok(moves.into_iter().map(|one| (one.from, one.to)).collect())
    }

    #[test]
    fn the_section_is_a_list_of_names() {
        let named = |from: &str, to: &str| (from.to_owned(), to.to_owned());
        let chain = value!([{"from": "a", "to": "b"}, {"from": "b", "to": "c"}]);
        assert_eq!(moves(chain), Ok(vec![named("a", "b"), named("b", "c")]));
        assert_eq!(moves(Value::Null), Ok(vec![]));
        for (wrong, why) in [
            (value!({"a": "c"}), "a list of maps"),
            (value!([{"from": "a"}]), "the names 'from' and 'to'"),
            (value!([{"from": "a", "to": "c", "by": "me"}]), "nothing else"),
            (value!([{"from": "c", "to": "a"}]), "the resource c is still in the template"),
            (value!([{"from": "a", "to": "c"}, {"from": "b", "to": "c"}]), "the resource c is moved twice"),
            (value!([{"from": "a", "to": "b"}, {"from": "a", "to": "c"}]), "the resource a is moved twice"),
            (value!([{"from": "group/0", "to": "c"}]), "is in a nested stack"),
        ] {
            let error = moves(wrong.clone()).expect_err("refused");
            assert!(error.contains(why), "{wrong:?}: {error}");
        }
    }
}
