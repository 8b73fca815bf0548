//! The actions, one file each: the row that describes an action, and its handler. The names are those of AWS.

mod cancel_update_stack;
mod continue_update_rollback;
mod create_change_set;
mod create_generated_template;
mod create_stack;
mod create_stack_refactor;
mod delete_change_set;
mod delete_generated_template;
mod delete_stack;
mod describe_change_set;
mod describe_generated_template;
mod describe_resource_scan;
mod describe_stack_drift_detection_status;
mod describe_stack_events;
mod describe_stack_refactor;
mod describe_stack_resource;
mod describe_stack_resource_drifts;
mod describe_stack_resources;
mod describe_stacks;
mod detect_stack_drift;
mod detect_stack_resource_drift;
mod estimate_template_cost;
mod execute_change_set;
mod execute_stack_refactor;
mod get_generated_template;
mod get_stack_policy;
mod get_template;
mod get_template_summary;
mod list_change_sets;
mod list_generated_templates;
mod list_resource_scan_related_resources;
mod list_resource_scan_resources;
mod list_resource_scans;
mod list_stack_refactor_actions;
mod list_stack_refactors;
mod list_stack_resources;
mod list_stacks;
mod parameter;
mod rollback_stack;
mod set_stack_policy;
mod start_resource_scan;
mod update_generated_template;
mod update_stack;
mod update_termination_protection;
mod validate_template;

use futures::future::BoxFuture;
use kiln_value::Value;

use crate::call::Call;
use crate::fault::Fault;
use crate::params::Parameter;

/// An action.
pub(crate) struct Action {
    pub(crate) name: &'static str,
    /// The rule of the policy that a call needs. Heat has no change sets and no drift: they are subject to the rules of
    /// stacks and resources, which show the same.
    pub(crate) rule: &'static str,
    /// Its parameters, some of them as groups that several actions have. A handler reads no others.
    pub(crate) parameters: &'static [&'static [Parameter]],
    /// Handles a call that the rule allows, and returns the content of the result.
    run: for<'a> fn(&'a Call) -> BoxFuture<'a, Result<Value, Fault>>,
}

static ACTIONS: &[&Action] = &[
    &cancel_update_stack::ACTION,
    &continue_update_rollback::ACTION,
    &create_change_set::ACTION,
    &create_generated_template::ACTION,
    &create_stack::ACTION,
    &create_stack_refactor::ACTION,
    &delete_change_set::ACTION,
    &delete_generated_template::ACTION,
    &delete_stack::ACTION,
    &describe_change_set::ACTION,
    &describe_generated_template::ACTION,
    &describe_resource_scan::ACTION,
    &describe_stack_events::ACTION,
    &describe_stack_refactor::ACTION,
    &describe_stack_resource::ACTION,
    &describe_stack_resources::ACTION,
    &describe_stack_drift_detection_status::ACTION,
    &describe_stack_resource_drifts::ACTION,
    &describe_stacks::ACTION,
    &detect_stack_drift::ACTION,
    &detect_stack_resource_drift::ACTION,
    &estimate_template_cost::ACTION,
    &execute_change_set::ACTION,
    &execute_stack_refactor::ACTION,
    &get_generated_template::ACTION,
    &get_stack_policy::ACTION,
    &get_template::ACTION,
    &get_template_summary::ACTION,
    &list_change_sets::ACTION,
    &list_generated_templates::ACTION,
    &list_resource_scan_related_resources::ACTION,
    &list_resource_scan_resources::ACTION,
    &list_resource_scans::ACTION,
    &list_stack_refactor_actions::ACTION,
    &list_stack_refactors::ACTION,
    &list_stack_resources::ACTION,
    &list_stacks::ACTION,
    &rollback_stack::ACTION,
    &set_stack_policy::ACTION,
    &start_resource_scan::ACTION,
    &update_generated_template::ACTION,
    &update_stack::ACTION,
    &update_termination_protection::ACTION,
    &validate_template::ACTION,
];

impl Action {
    /// The action with a name.
    pub(crate) fn of_name(name: &str) -> Option<&'static Self> {
        ACTIONS.iter().find(|action| action.name == name).copied()
    }

    /// Whether it changes something.
    pub(crate) fn is_change(&self) -> bool {
        let reading = ["Describe", "Detect", "Estimate", "Get", "List", "Validate"];
        !reading.iter().any(|verb| self.name.starts_with(verb))
    }

    /// Whether the agents of servers use it: it is never refused because of too many requests.
    pub(crate) fn is_of_guests(&self) -> bool {
        self.name == "DescribeStackResource"
    }

    /// Runs a call with the parameters that the action requires.
    pub(crate) async fn run(&self, call: &Call) -> Result<Value, Fault> {
        for parameter in self.parameters.iter().copied().flatten().filter(|parameter| parameter.is_required) {
            call.params.require(parameter.name)?;
        }
        (self.run)(call).await
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;
    use crate::params::NOT_BUILT;

    #[test]
    fn every_rule_has_a_default() {
        let rules = kiln_identity::Policy::default().names();
        for action in ACTIONS {
            assert!(rules.iter().any(|rule| rule == action.rule), "{}: Heat has no rule {}", action.name, action.rule);
        }
    }

    /// The actions and their parameters, for the manual.
    fn page() -> String {
        let mut page = String::from("## Actions\n\n| action | parameter | meaning |\n| --- | --- | --- |\n");
        for action in ACTIONS {
            let mut name = action.name;
            for Parameter { name: parameter, about, is_required } in action.parameters.iter().copied().flatten() {
                let required = if *is_required { " (required)" } else { "" };
                _ = writeln!(page, "| {name} | `{parameter}` | {about}{required} |");
                name = "";
            }
            if !name.is_empty() {
                _ = writeln!(page, "| {name} | | |");
            }
        }
        let refused = NOT_BUILT.map(|name| format!("`{name}`")).join(", ");
        _ = write!(
            page,
            "\nA request without a required parameter is refused with `MissingParameter`. One of these parameters is refused \
             with `InvalidParameterValue`,\nunless it is empty or false: {refused}.\nAll other parameters have no effect.\n"
        );
        page
    }

    #[test]
    fn the_manual_has_every_parameter() {
        let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/cloudformation.md");
        let text = std::fs::read_to_string(&file).expect("the page");
        let (begin, _) = text.split_once("## Actions\n").expect("the part of the actions is the last one");
        let expected = format!("{begin}{}", page());
        if std::env::var_os("KILN_UPDATE_DATA").is_some() {
            std::fs::write(&file, &expected).expect("written");
        } else {
            assert!(
                text == expected,
                "KILN_UPDATE_DATA=1 .ci/tests kiln-cfn:lib the_manual writes docs/cloudformation.md"
            );
        }
    }

    #[test]
    fn every_file_is_a_module_with_tests() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/action");
        for entry in std::fs::read_dir(folder).expect("the folder") {
            let entry = entry.expect("an entry");
            let file = entry.file_name().into_string().expect("UTF-8");
            let name = file.trim_end_matches(".rs");
            let text = std::fs::read_to_string(entry.path()).expect("text");
            // What parameters are is no action.
            let is_tested = name == "parameter" || text.contains("mod tests {");
            assert!(is_tested, "action/{file}: add a test of what a client sees");
            let is_declared = include_str!("mod.rs").contains(&format!("mod {name};\n"));
            assert!(name == "mod" || is_declared, "action/{file}: declare it and add its row to ACTIONS in mod.rs");
        }
    }
}
