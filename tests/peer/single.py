"""Single functions, identities, texts of templates and environments, configurations, parameters in validate calls."""

import copy

from common import IDENTITY, either, failure
from heat.common import environment_format, identifier, param_utils, short_id, template_format, timeutils
from heat.engine import api, constraints, resource, template
from heat.engine.resources.openstack.heat import structured_config
from heat.scaling import rolling_update, scalingutil

FUNCTIONS = {
    "reduce_physical_resource_name": resource.Resource.reduce_physical_resource_name,
    "short_id": short_id.get_id,
    "parse_isoduration": timeutils.parse_isoduration,
    "calculate_new_capacity": scalingutil.calculate_new_capacity,
    "rolling_needs_update": rolling_update.needs_update,
    "rolling_next_batch": rolling_update.next_batch,
    "extract_bool": param_utils.extract_bool,
    "extract_int": param_utils.extract_int,
    "extract_tags": param_utils.extract_tags,
    "extract_template_type": param_utils.extract_template_type,
    "delim_string_to_list": param_utils.delim_string_to_list,
    "str_to_num": constraints.Schema.str_to_num,
}


class Misc:
    def expect(self, given):
        return either("value", "error", lambda: FUNCTIONS[given["function"]](*given["args"]))


class Identifier:
    def expect(self, given):
        try:
            found = self.identity(given)
        except Exception as error:
            return {"error": failure(error)}
        return {
            "identity": found.identity, "arn": found.arn(), "arn_url_path": found.arn_url_path(),
            "url_path": found.url_path(), "stack_path": found.stack_path()}

    def identity(self, given):
        parts = dict(given.get("identity", {}))
        match given["op"]:
            case "from_arn":
                return identifier.HeatIdentifier.from_arn(given["arn"])
            case "from_arn_url":
                return identifier.HeatIdentifier.from_arn_url(given["url"])
            case "resource":
                return identifier.ResourceIdentifier(**parts)
            case "event":
                return identifier.EventIdentifier(**parts)
        return identifier.HeatIdentifier(**parts)


class TemplateClass:
    def expect(self, given):
        return either("version", "error", lambda: template.Template(given["template"]).version)


class TemplateParse:
    def expect(self, given):
        return either("value", "error", lambda: template_format.parse(given["text"]))


class EnvironmentParse:
    def expect(self, given):
        def read():
            found = environment_format.parse(given["text"])
            environment_format.default_for_missing(found)
            return found
        return either("value", "error", read)


class ValidateParameter:
    def expect(self, given):
        def shown():
            parsed = template.Template(given["template"])
            found = parsed.parameters(
                IDENTITY, given["env"].get("parameters", {}), param_defaults=given["env"].get("parameter_defaults"))
            return {
                name: api.format_validate_parameter(found.params[name]) for name in parsed.param_schemata()}
        return either("parameters", "error", shown)


class StructuredConfig:
    def expect(self, given):
        deploy = structured_config.StructuredDeployment
        return either("value", "error", lambda: deploy.parse(
            given["inputs"], given["input_key"], given["config"],
            check_input_val=given["input_values_validate"]))
