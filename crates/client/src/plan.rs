//! The plan in the answer to a preview.

use kiln_plan_document::{Action, Bounds, Decision, Downtime, Entry, FORMAT, PlanDocument, Risk};
use kiln_value::Value;

use crate::Error;

/// The plan in the answer of a Kiln; `None` for one of a Heat.
pub(crate) fn of_kiln(answer: &Value) -> Result<Option<PlanDocument>, Error> {
    answer.get("plan").map(document).transpose()
}

/// Reads a plan of a Kiln.
pub(crate) fn document(plan: &Value) -> Result<PlanDocument, Error> {
    let format = plan.get("format").and_then(Value::as_i64).unwrap_or_default();
    if format != i64::from(FORMAT) {
        let text = format!("The plan of the service has the format {format}, this command reads {FORMAT}");
        return Err(Error::Answer(text));
    }
    let unreadable = |error: serde_json::Error| Error::Answer(format!("The plan of the service: {error}"));
    let json = serde_json::to_vec(plan).map_err(unreadable)?;
    serde_json::from_slice(&json).map_err(unreadable)
}

/// The plan of a Heat, whose answer has lists of resources without their properties.
pub(crate) fn of_heat(action: Action, stack: &str, answer: &Value) -> PlanDocument {
    let lists = [
        ("unchanged", Decision::Keep),
        ("added", Decision::Create),
        ("updated", Decision::Update),
        ("replaced", Decision::Replace),
        ("deleted", Decision::Delete),
    ];
    let changes = answer.get("resource_changes");
    let of_list = |(list, decision): (&str, Decision)| {
        let entries = changes.and_then(|changes| changes.get(list)?.as_list()).unwrap_or_default();
        entries.iter().map(move |entry| {
            let text = |key| entry.str_at(key).unwrap_or_default().to_owned();
            let decision = Bounds::certain(decision);
            let object = Some(text("physical_resource_id")).filter(|id| !id.is_empty());
            let has_object = decision.at_most == Decision::Delete;
            Entry {
                decision,
                object,
                risk: Risk::of(decision, false, Downtime::None, has_object),
                ..Entry::kept(text("resource_name"), text("resource_type"))
            }
        })
    };
    let entries = lists.into_iter().flat_map(of_list).collect();
    PlanDocument::new(action, stack.to_owned(), entries, Vec::new())
}

#[cfg(test)]
mod tests {
    use kiln_value::value;

    use super::*;

    #[test]
    fn the_lists_of_a_heat_are_a_plan() {
        let resource = |name: &str| value!({"resource_name": name, "resource_type": "OS::Nova::Server"});
        let answer = value!({"resource_changes": {
            "unchanged": [(resource("a"))], "deleted": [(resource("b"))], "replaced": [(resource("c"))],
        }});
        let plan = of_heat(Action::Update, "web", &answer);
        assert!(of_kiln(&answer).unwrap().is_none());
        let shown: Vec<_> =
            plan.resources.iter().map(|one| (one.path.as_str(), one.decision.at_most, one.risk)).collect();
        assert_eq!(
            shown,
            [
                ("a", Decision::Keep, Risk::None),
                ("b", Decision::Delete, Risk::Replacement),
                ("c", Decision::Replace, Risk::Replacement),
            ]
        );
    }

    #[test]
    fn a_plan_of_another_format_is_refused() {
        let error = of_kiln(&value!({"plan": {"format": 2}})).unwrap_err();
        assert!(error.to_string().contains("format 2"), "{error}");
    }
}
