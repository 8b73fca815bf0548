//! The order of the sections of a template.

use kiln_value::{Value, text};

const HOT: &[&str] = &[
    "heat_template_version",
    "description",
    "parameter_groups",
    "parameters",
    "conditions",
    "resources",
    "outputs",
    "moved",
];
const CFN: &[&str] = &[
    "AWSTemplateFormatVersion",
    "HeatTemplateFormatVersion",
    "Description",
    "Metadata",
    "ParameterGroups",
    "Parameters",
    "Mappings",
    "Conditions",
    "Resources",
    "Outputs",
    "Moved",
];

/// A formatted text with its sections in the usual order, each with the comments above it; the head and the end of the
/// text do not move. `None` if nothing changes, or if the sections cannot be moved: the text is not a template, a
/// section is unknown, or an anchor must precede its aliases.
pub(crate) fn ordered(formatted: &str) -> Option<String> {
    let document = kiln_yaml::parse(formatted).ok()?;
    let sections = document.value.as_map()?;
    let usual = [HOT, CFN].into_iter().find(|usual| sections.keys().all(|name| usual.contains(&name.as_str())))?;
    if !sections.keys().any(|name| name.ends_with("ersion")) {
        return None;
    }
    let lines: Vec<&str> = formatted.lines().collect();
    let mut blocks: Vec<(usize, usize)> = Vec::with_capacity(sections.len());
    for (name, spans) in sections.keys().zip(&document.spans.children) {
        let key = spans.key.filter(|key| key.start.column == 1)?;
        let line = usize::try_from(key.start.line).ok()? - 1;
        let start = if blocks.is_empty() { below_head(&lines, line) } else { below_content(&lines, line) };
        blocks.push((usual.iter().position(|known| known == name)?, start));
    }
    let (_, head) = *blocks.first()?;
    let end = below_content(&lines, lines.len());
    let ends = blocks.iter().skip(1).map(|(_, start)| *start).chain([end]);
    let mut moved: Vec<(usize, &[&str])> = Vec::with_capacity(blocks.len());
    for ((rank, start), end) in blocks.iter().zip(ends) {
        moved.push((*rank, trimmed(lines.get(*start..end)?)));
    }
    if moved.is_sorted_by_key(|(rank, _)| *rank) {
        return None;
    }
    moved.sort_by_key(|(rank, _)| *rank);
    let mut blocks: Vec<String> = moved.iter().map(|(_, block)| block.join("\n")).collect();
    blocks.push(trimmed(lines.get(end..)?).join("\n"));
    let mut text: String = lines.get(..head)?.iter().flat_map(|line| [line, "\n"]).collect();
    text.push_str(blocks.join("\n\n").trim_end_matches('\n'));
    text.push('\n');
    has_same_sections(&text, &document.value).then_some(text)
}

fn is_comment(line: &str) -> bool {
    line.starts_with('#')
}

/// The first line of the comments directly above the first section. Comments further up belong to the text.
fn below_head(lines: &[&str], section: usize) -> usize {
    let above = lines.get(..section).unwrap_or_default();
    section - above.iter().rev().take_while(|line| is_comment(line)).count()
}

/// The first line that belongs to the section at a line: after the empty line that separates it from the text above.
fn below_content(lines: &[&str], section: usize) -> usize {
    let above = lines.get(..section).unwrap_or_default();
    let between = above.iter().rev().take_while(|line| line.is_empty() || is_comment(line)).count();
    let own = above.iter().skip(section - between).take_while(|line| !line.is_empty()).count();
    section - between + own
}

/// The lines without leading and trailing empty ones.
fn trimmed<'l, 't>(lines: &'l [&'t str]) -> &'l [&'t str] {
    let from = lines.iter().take_while(|line| line.is_empty()).count();
    let empty = lines.iter().rev().take_while(|line| line.is_empty()).count();
    lines.get(from..lines.len() - empty).unwrap_or_default()
}

/// Whether a text has the same sections, including the order of entries and the types of numbers.
fn has_same_sections(text: &str, sections: &Value) -> bool {
    let (Ok(document), Some(sections)) = (kiln_yaml::parse(text), sections.as_map()) else { return false };
    let same = |(name, value): (&String, &Value)| {
        document.value.get(name).is_some_and(|other| text::repr(other) == text::repr(value))
    };
    document.value.as_map().is_some_and(|map| map.len() == sections.len()) && sections.iter().all(same)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_move_with_their_comments() {
        let text = "\
# Licence

# About outputs
outputs:
  o: {value: 1}
#  p: {value: 2}

# About

# resources
resources:
  a: {type: OS::Heat::None}

heat_template_version: 2018-08-31

# vim: set et
";
        let expected = "\
# Licence

heat_template_version: 2018-08-31

# About

# resources
resources:
  a: {type: OS::Heat::None}

# About outputs
outputs:
  o: {value: 1}
#  p: {value: 2}

# vim: set et
";
        assert_eq!(ordered(text).as_deref(), Some(expected));
        assert_eq!(ordered(expected), None);
    }

    #[test]
    fn sections_do_not_move_if_the_value_would_change() {
        let anchored = "heat_template_version: 2018-08-31\nresources: {a: &a {type: OS::Heat::None}}\nparameters: *a\n";
        assert_eq!(ordered(anchored), None);
        let foreign = "outputs: {}\nplaybooks: []\nheat_template_version: 2018-08-31\n";
        assert_eq!(ordered(foreign), None);
        let environment = "resources: {}\nparameters: {a: 1}\n";
        assert_eq!(ordered(environment), None);
        let kept = "resources:\n  a: |+\n    text\n\n\nheat_template_version: 2018-08-31\n";
        assert_eq!(ordered(kept), None);
    }

    #[test]
    fn cfn_sections_are_ordered() {
        let text = "Resources: {}\n\nAWSTemplateFormatVersion: '2010-09-09'\n";
        assert_eq!(ordered(text).as_deref(), Some("AWSTemplateFormatVersion: '2010-09-09'\n\nResources: {}\n"));
    }
}
