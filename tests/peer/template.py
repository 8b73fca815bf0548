"""Whole templates: sections, conditions, definitions, outputs."""

from common import definition, either, failure, resolve
from heat.common import exception
from heat.engine import function


def expect(given):
    try:
        stack = definition(given)
    except Exception as error:
        return {"template_error": failure(error)}
    expected = either("template_valid", "template_validate_error", lambda: stack.t.validate() or True)
    try:
        expected.update(conditions(stack))
    except Exception as error:
        expected["conditions_error"] = failure(error)
    expected.update(either("resources", "resources_error", lambda: {
        name: resource(found) for name, found in stack.t.resource_definitions(stack).items()}))
    expected.update(either("outputs", "outputs_error", lambda: {
        name: output(found) for name, found in stack.t.outputs(stack).items()}))
    return expected


def conditions(stack):
    found = stack.t.conditions(stack)
    shown = either("valid", "conditions_validate_error", found.validate)
    shown.pop("valid", None)
    outcomes = {
        name: either("enabled", "error", lambda name=name: found.is_enabled(name)) for name in found._conditions}
    return {**shown, "conditions": outcomes} if outcomes else shown


def resource(found):
    shown = {
        "type": found.resource_type, "deletion_policy": found.deletion_policy(),
        "explicit_depends_on": list(found._depends) if found._depends else [],
        **either("required_resources", "required_resources_error", lambda: sorted(found.required_resource_names())),
        **either("properties", "properties_error", lambda: resolve(found._properties)),
    }
    optional = {
        "metadata": found._metadata, "update_policy": found._update_policy, "external_id": found._external_id}
    for key, expression in optional.items():
        if expression is not None:
            shown.update(either(key, f"{key}_error", lambda expression=expression: resolve(expression)))
    return shown


def output(found):
    shown = {"description": found.description()}
    try:
        found.validate()
    except exception.HeatException as error:
        shown["validate_error"] = failure(error)
    return {**shown, **either("value", "value_error", found.get_value)}
