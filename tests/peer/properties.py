"""Properties with schemata: validity, values, effects of changes, the provider template, constraints."""

from common import CONTEXT, either, failure
from heat.common import exception
from heat.engine import constraints, properties, resource, rsrc_defn, stack, template, translation


TYPES = {name.lower(): name for name in properties.Schema.TYPES}


def constraint(written):
    """The first known key is used."""
    makers = {
        "length": lambda said: constraints.Length(said.get("min"), said.get("max")),
        "range": lambda said: constraints.Range(said.get("min"), said.get("max")),
        "modulo": lambda said: constraints.Modulo(said.get("step"), said.get("offset")),
        "allowed_values": constraints.AllowedValues,
        "allowed_pattern": constraints.AllowedPattern,
        "custom_constraint": constraints.CustomConstraint,
    }
    name = next(name for name in makers if name in written)
    made = makers[name](written[name])
    made.description = written.get("description")
    return made


def schema(written):
    inner = written.get("schema")
    if inner is not None:
        inner = schema(inner["*"]) if "*" in inner else schemata(inner)
    flags = ["required", "update_allowed", "immutable", "implemented", "allow_conversion"]
    return properties.Schema(
        TYPES.get(written["type"], written["type"]), default=written.get("default"), schema=inner,
        constraints=[constraint(entry) for entry in written.get("constraints", [])],
        **{flag: written[flag] for flag in flags if flag in written})


def schemata(written):
    return {name: schema(entry) for name, entry in written.items()}


def rules(found, written):
    return [
        translation.TranslationRule(
            found, rule["rule"].capitalize(), rule["path"],
            **{source: rule[source] for source in ("value", "value_name", "value_path") if source in rule})
        for rule in written or []]


class Properties:
    def expect(self, given):
        try:
            wanted = schemata(given["schema"])
            for entry in wanted.values():
                entry.validate(CONTEXT)
        except exception.HeatException as error:
            return {"schema_error": failure(error)}
        found = properties.Properties(
            wanted, given["data"], context=CONTEXT, section="Properties" if given.get("section") else None)
        try:
            found.update_translation(rules(found, given.get("translation_rules")))
        except exception.HeatException as error:
            return {"validate_error": failure(error)}
        expected = either("valid", "validate_error", lambda: found.validate() or True)
        values = {name: either("value", "error", lambda name=name: found[name]) for name in wanted}
        return {**expected, "values": values}


class UpdateDiff:
    def expect(self, given):
        kind = type("Test", (resource.Resource,), {"properties_schema": schemata(given["schema"])})
        empty = stack.Stack(CONTEXT, "teststack", template.Template({"heat_template_version": "2021-04-16"}))
        before, after = (
            rsrc_defn.ResourceDefinition("res", "Test::Type", given[when]) for when in ("before", "after"))
        old = before.properties(kind.properties_schema, CONTEXT)
        new = after.properties(kind.properties_schema, CONTEXT)
        # The parts of a resource that the comparison reads; a real resource would need a database.
        found = object.__new__(kind)
        found.name, found.stack, found.t, found.context, found.properties = "res", empty, before, CONTEXT, old
        try:
            changed = found.update_template_diff_properties(new, old)
        except resource.UpdateReplace:
            return {"decision": "replace"}
        except Exception as error:
            return {"decision": "error", "error": failure(error)}
        return {"decision": "update" if changed else "nothing", "changed": changed}


class SchemaToTemplate:
    def expect(self, given):
        parameters, found = properties.Properties.schema_to_parameters_and_properties(
            schemata(given["schema"]), given["template_type"])
        return {"parameters": parameters, "properties": found}


class Constraint:
    def expect(self, given):
        try:
            wanted = schema(given["schema"])
            wanted.validate(CONTEXT)
        except Exception as error:
            return {"schema_error": failure(error)}
        try:
            wanted.validate_constraints(given["value"], CONTEXT)
        except Exception as error:
            return {"error": failure(error)}
        return {"valid": True}


class CustomConstraint:
    def expect(self, given):
        found = constraints.CustomConstraint(given["constraint"])
        try:
            found.validate(given["value"], CONTEXT)
        except ValueError as error:
            return {"valid": False, "message": str(error)}
        return {"valid": True}
