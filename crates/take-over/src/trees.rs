//! The trees of stacks in a Heat.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::heat::{HeatDatabase, Listed, ReadTree};

/// Which trees.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Only those of this project.
    pub project: Option<String>,
    /// Only those whose root stack has this name or ID.
    pub stack: Option<String>,
}

/// A root stack with all stacks below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree {
    /// ID of the root stack.
    pub root: String,
    /// Its name.
    pub name: String,
    /// ID of its project.
    pub project: String,
    /// The IDs of all its stacks.
    pub ids: Vec<String>,
    /// How many other live root stacks of the project have the same name.
    pub namesakes: usize,
}

/// Stacks that are read together.
const TOGETHER: usize = 60;

/// The trees in groups that are read together: of at most [`TOGETHER`] stacks, or of one tree.
pub(crate) fn groups(trees: &[Tree]) -> Vec<&[Tree]> {
    let (mut groups, mut begin, mut stacks) = (Vec::new(), 0, 0);
    for (at, tree) in trees.iter().enumerate() {
        if at > begin && stacks + tree.ids.len() > TOGETHER {
            groups.extend(trees.get(begin..at));
            (begin, stacks) = (at, 0);
        }
        stacks += tree.ids.len();
    }
    groups.extend(trees.get(begin..).filter(|rest| !rest.is_empty()));
    groups
}

/// Reads the trees of a group.
pub(crate) async fn read(heat: &HeatDatabase, group: &[Tree]) -> Result<Vec<ReadTree>, kiln_store::Error> {
    let wanted: Vec<(&str, &[String])> = group.iter().map(|tree| (tree.root.as_str(), tree.ids.as_slice())).collect();
    heat.trees(&wanted).await
}

/// The selected trees by project and name, and the live stacks that belong to none: their owners are deleted.
pub(crate) async fn trees(
    heat: &HeatDatabase,
    only: &Selection,
) -> Result<(Vec<Tree>, Vec<Listed>), kiln_store::Error> {
    Ok(of(&heat.live_stacks().await?, only))
}

fn of(listed: &[Listed], only: &Selection) -> (Vec<Tree>, Vec<Listed>) {
    let mut below: HashMap<&str, Vec<&Listed>> = HashMap::new();
    let mut named: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for stack in listed {
        match &stack.owner {
            Some(owner) => below.entry(owner).or_default().push(stack),
            None => *named.entry((&stack.project, &stack.name)).or_default() += 1,
        }
    }
    let (mut found, mut seen) = (Vec::new(), HashSet::new());
    for root in listed.iter().filter(|stack| stack.owner.is_none()) {
        let (mut ids, mut open) = (Vec::new(), vec![root]);
        while let Some(stack) = open.pop() {
            seen.insert(stack.id.as_str());
            ids.push(stack.id.clone());
            open.extend(below.get(stack.id.as_str()).into_iter().flatten());
        }
        ids.sort();
        let namesakes = named.get(&(root.project.as_str(), root.name.as_str())).map_or(0, |count| count - 1);
        let (id, name, project) = (root.id.clone(), root.name.clone(), root.project.clone());
        found.push(Tree { root: id, name, project, ids, namesakes });
    }
    let is_of_project = |project: &str| only.project.as_deref().is_none_or(|wanted| wanted == project);
    let lost = listed.iter().filter(|stack| !seen.contains(stack.id.as_str()) && is_of_project(&stack.project));
    let lost = lost.cloned().collect();
    found.retain(|tree| {
        let is_named = |wanted: &String| tree.name == *wanted || tree.root == *wanted;
        is_of_project(&tree.project) && only.stack.as_ref().is_none_or(is_named)
    });
    found.sort_by(|a, b| (&a.project, &a.name, &a.root).cmp(&(&b.project, &b.name, &b.root)));
    (found, lost)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stack(id: &str, name: &str, owner: Option<&str>) -> Listed {
        let (id, name, project) = (id.to_owned(), name.to_owned(), "p".to_owned());
        Listed { id, name, project, owner: owner.map(str::to_owned) }
    }

    #[test]
    fn trees_are_read_in_groups_of_some_stacks() {
        let tree = |stacks: usize| Tree {
            root: String::new(),
            name: String::new(),
            project: String::new(),
            ids: vec![String::new(); stacks],
            namesakes: 0,
        };
        let trees: Vec<Tree> = [30, 30, 1, 100, 59, 1, 1].into_iter().map(tree).collect();
        let sizes: Vec<usize> = groups(&trees).iter().map(|group| group.len()).collect();
        assert_eq!(sizes, [2, 1, 1, 2, 1]);
        assert!(groups(&[]).is_empty());
    }

    #[test]
    fn a_tree_has_all_stacks_below_its_root_and_orphans_are_told_apart() {
        let listed = vec![
            stack("1", "a", None),
            stack("2", "a-b", Some("1")),
            stack("3", "a-b-c", Some("2")),
            stack("4", "a", None),
            stack("5", "gone-x", Some("9")),
            // A circle of owners has no root.
            stack("6", "x", Some("7")),
            stack("7", "y", Some("6")),
        ];
        let (trees, lost) = of(&listed, &Selection::default());
        let ids: Vec<Vec<&str>> = trees.iter().map(|tree| tree.ids.iter().map(String::as_str).collect()).collect();
        assert_eq!(ids, [vec!["1", "2", "3"], vec!["4"]]);
        assert!(trees.iter().all(|tree| tree.namesakes == 1));
        assert_eq!(lost.iter().map(|stack| stack.id.as_str()).collect::<Vec<_>>(), ["5", "6", "7"]);
        let only = Selection { stack: Some("4".to_owned()), ..Selection::default() };
        assert_eq!(of(&listed, &only).0.len(), 1);
        let only = Selection { project: Some("q".to_owned()), ..Selection::default() };
        assert_eq!(of(&listed, &only), (Vec::new(), Vec::new()));
    }
}
