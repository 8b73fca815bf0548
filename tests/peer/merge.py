"""Environment files merged by strategies."""

import json

from common import failure
from heat.common import environment_format, environment_util
from heat.engine import template
from parameters import Parameters


class Merge:
    group, kind = "peer_merge", "environment_merge"
    TEMPLATE = {
        "heat_template_version": "2021-04-16",
        "parameters": {
            "s": {"type": "string", "default": ""}, "n": {"type": "number", "default": 0},
            "l": {"type": "comma_delimited_list", "default": ""}, "j": {"type": "json", "default": {}},
            "b": {"type": "boolean", "default": False}},
    }

    def __init__(self, chance):
        self.chance = chance
        self.values = Parameters(chance)

    def section(self):
        return {self.chance.choice("snljbu"): self.values.value() for _ in range(self.chance.randint(0, 3))}

    def file(self):
        written = self.values.some(0.6, parameters=self.section, parameter_defaults=self.section)
        words = ["merge", "deep_merge", "overwrite", "merge", "deep_merge", "bogus"]
        names = ["s", "n", "l", "j", "b", "default"]
        written["parameter_merge_strategies"] = {
            self.chance.choice(names): self.chance.choice(words) for _ in range(self.chance.randint(0, 4))}
        return json.dumps(written)

    def input(self):
        files = {f"e{i}": self.file() for i in range(self.chance.randint(1, 3))}
        initial = self.chance.choice([{}, {"parameters": self.section()}])
        return {
            "template": self.TEMPLATE, "initial_environment": initial, "files": files, "environment_files": list(files)}

    def expect(self, given):
        sections = given["initial_environment"]
        environment_format.default_for_missing(sections)
        schemata = template.Template(given["template"]).all_param_schemata(given["files"])
        try:
            environment_util.merge_environments(given["environment_files"], given["files"], sections, schemata)
        except Exception as error:
            return {"error": failure(error)}
        return {"environment": sections}
