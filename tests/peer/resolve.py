"""Snippets: parsed, validated, resolved."""

from common import definition, either, failure, resolve
from heat.engine import function


def expect(given):
    try:
        stack = definition(given)
    except Exception as error:
        return {"template_error": failure(error)}
    parse = stack.t.parse
    if given.get("context") == "condition":
        parse = stack.t.parse_condition
    try:
        expression = parse(stack, given["snippet"])
    except Exception as error:
        return {"parse_error": failure(error)}
    expected = either("valid", "validate_error", lambda: function.validate(expression))
    expected.pop("valid", None)
    if given.get("report_dependencies"):
        expected.update(either(
            "dependencies", "dependencies_error",
            lambda: sorted({resource.name for resource in function.dependencies(expression)})))
        used = function.all_dep_attrs(expression)
        expected["attributes_required"] = [[name, shown(attribute)] for name, attribute in used]
    return {**expected, **either("value", "resolve_error", lambda: resolve(expression))}


def shown(attribute):
    return list(attribute) if isinstance(attribute, tuple) else attribute
