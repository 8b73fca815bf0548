#!/usr/bin/env python3
"""Writes vectors that the Heat installed here computes from generated input.

    tests/peer/generate.py <kind> <count> [seed] > more.jsonl
    KILN_VECTORS=more.jsonl cargo test -p kiln-tests --test vectors

The kinds are parameters, registry, merge and functions. Run it with the Python that has Heat (Debian: /usr/bin/python3).
Aliases that lead to themselves are left out: Kiln refuses them at once, Heat runs out of stack.
"""

import copy
import json
import logging
import random
import sys

from heat.common import context, environment_format, environment_util, exception, identifier
from heat.engine import environment, function, resources, stack, template
from oslo_config import cfg

SCALARS = [
    None, True, False, 0, 1, -1, 5, 2.5, 1e16, 1e-7, 123456789012345678901234567890, "", "a", "abc", "Abc", "true",
    "yes", "Off", "1", "1.5", " 5 ", "1_000", "0x1", "nan", "a,b", "a, b,", ",", "[1, 2]", '{"a": 1}',
    '{"a":1,"a":2}', "{bad", "null", "é", "it's", "\n", "x" * 12, "1e5", "٣", '[1.0, 1e3, "\\u00e9"]',
]


def plain(value):
    if isinstance(value, float) and (value != value or abs(value) == float("inf")):
        return {"__float__": repr(value)}
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


def failure(error):
    """Texts of the interpreter and of libraries are advisory."""
    own = isinstance(error, exception.HeatException)
    return {"class": type(error).__name__, "message": str(error), "advisory_message": not own}


class Parameters:
    group, kind = "peer_parameters", "parameters"

    def __init__(self, chance):
        self.chance = chance

    def value(self, depth=0):
        chance = self.chance
        if depth > 2 or chance.random() < 0.6:
            return chance.choice(SCALARS)
        if chance.random() < 0.5:
            return [self.value(depth + 1) for _ in range(chance.randint(0, 3))]
        return {chance.choice(["a", "b", "é", "1"]): self.value(depth + 1) for _ in range(chance.randint(0, 3))}

    def bound(self):
        return self.chance.choice([0, 1, 2, 3, -1, 5, 10, "2", "x", 1.5, 2.0, None, True, "1.5", [], 1e3])

    def some(self, likelihood, **entries):
        return {key: make() for key, make in entries.items() if self.chance.random() < likelihood}

    def constraint(self):
        choice = self.chance.choice
        entry = choice([
            lambda: {"length": choice([self.some(0.8, min=self.bound, max=self.bound), 5, None])},
            lambda: {"range": choice([self.some(0.8, min=self.bound, max=self.bound), []])},
            lambda: {"modulo": self.some(0.9, step=self.bound, offset=self.bound)},
            lambda: {"allowed_values": choice([[choice(SCALARS) for _ in range(3)], "abc", None])},
            lambda: {"allowed_pattern": choice(["[a-z]+", "^a", "a|abc", "(?i)ABC", "\\d+", "a$", 5, None])},
            lambda: {"bogus": 1},
        ])()
        return {**entry, **self.some(0.2, description=lambda: choice(["why", "", None, 5]))}

    def hot(self):
        choice = self.chance.choice
        declared = {"type": choice(["string", "number", "json", "comma_delimited_list", "boolean"] * 4 + ["x", None])}
        declared.update(self.some(0.5, default=self.value))
        declared.update(self.some(0.6, constraints=lambda: choice([[self.constraint()], [], "x", None])))
        declared.update(self.some(
            0.1, hidden=lambda: choice([True, "true", "", 0]), tags=lambda: choice([["a"], "a", None]),
            label=lambda: choice(["L", None, ""]), description=lambda: choice(["D", None, 5]), bogus=self.bound))
        return choice([declared] * 20 + [None, "x"])

    def cfn(self):
        choice = self.chance.choice
        declared = {"Type": choice(["String", "Number", "Json", "CommaDelimitedList", "Boolean"])}
        declared.update(self.some(
            0.2, Default=self.value, MinLength=self.bound, MaxLength=self.bound, MinValue=self.bound,
            MaxValue=self.bound, AllowedValues=lambda: [choice(SCALARS) for _ in range(3)],
            AllowedPattern=lambda: choice(["[a-z]+", "^a", 5]), ConstraintDescription=lambda: choice(["why", ""]),
            NoEcho=lambda: choice([True, "true", "True", "x"])))
        return declared

    def input(self):
        version = self.chance.choice(["2021-04-16", "2018-03-02", "2017-02-24", "2013-05-23", None])
        if version:
            written = {"heat_template_version": version, "parameters": {"p": self.hot()}}
        else:
            written = {"AWSTemplateFormatVersion": "2010-09-09", "Parameters": {"p": self.cfn()}}
        given = {"parameters": self.some(0.8, p=self.value)}
        given.update(self.some(0.2, parameter_defaults=lambda: {"p": self.value()}))
        return {"template": written, "env": given}

    def expect(self, given):
        identity = identifier.HeatIdentifier("tenant-1", "teststack", "11111111-2222-4333-8444-555555555555")
        try:
            parsed = template.Template(given["template"])
            found = parsed.parameters(
                identity, given["env"]["parameters"], param_defaults=given["env"].get("parameter_defaults"))
        except Exception as error:
            return {"schema_error": failure(error)}
        expected = {"values": {}, "texts": {}}
        try:
            found.validate()
            expected["valid"] = True
        except Exception as error:
            expected["validate_error"] = failure(error)
        try:
            expected["values"]["p"] = {"value": found.params["p"].value()}
        except Exception as error:
            expected["values"]["p"] = {"error": failure(error)}
        try:
            expected["texts"]["p"] = str(found.params["p"])
        except Exception:
            expected["texts"]["p"] = None
        return expected


class Registry:
    group, kind = "peer_registry", "registry"
    OWN = ["OS::Nova::Server", "OS::Neutron::Net", "OS::Heat::None", "OS::Heat::TestResource", "AWS::EC2::Instance"]
    TYPES = [*OWN, "My::Type", "A", "B", "foo.yaml", "OS::Bogus::X"]
    PATTERNS = ["OS::*", "OS::Nova::*", "OS::Nova::S*", "*", "My::*", "A*"]

    def __init__(self, chance):
        self.chance = chance
        known = resources.global_env().registry._registry
        for name in set(known) - {*self.OWN, "resources"}:
            del known[name]

    def entries(self):
        choice = self.chance.choice
        values = [*self.TYPES, *self.PATTERNS, "my.yaml", "http://h/t.template", None]
        return {choice(self.TYPES + self.PATTERNS): choice(values) for _ in range(self.chance.randint(0, 4))}

    def of_resource(self):
        said = self.entries()
        if self.chance.random() < 0.4:
            said["hooks"] = self.chance.choice(["pre-create", ["pre-update", "post-delete"], None, "bogus", [], 5])
        if self.chance.random() < 0.3:
            said["restricted_actions"] = self.chance.choice(["update", ["update", "replace"], "bogus", None])
        if self.chance.random() < 0.2:
            said["inner"] = self.entries()
        return said

    def input(self):
        choice = self.chance.choice
        registry = self.entries()
        names = [choice(["r", "s", "r*", "*", "gr?p", "[rs]"]) for _ in range(self.chance.randint(0, 3))]
        registry["resources"] = {name: self.of_resource() for name in names}
        child = {"params": choice([{"x": 1}, {}, {"parameters": {"x": 1}, "resource_registry": self.entries()}])}
        if self.chance.random() < 0.6:
            child["resource_name"] = choice(["r", "s", "grup"])
        return {
            "environment": {"resource_registry": registry, "parameters": {"p": 1}, "parameter_defaults": {"d": 2}},
            "lookups": [[choice(self.TYPES), choice(["r", "s", "t"])] for _ in range(3)],
            "hooks": [[choice(["r", "s", "grup"]), choice(["pre-create", "pre-update"])]],
            "restricted": [choice(["r", "s", "grup"])],
            "child": child,
            "dump": True,
        }

    def expect(self, given):
        try:
            found = environment.Environment(given["environment"])
        except Exception as error:
            return {"environment_error": failure(error)}
        expected = {"lookups": [self.lookup(found, *wanted) for wanted in given["lookups"]]}
        registry = found.registry
        expected["hooks"] = [[name, hook, registry.matches_hook(name, hook)] for name, hook in given["hooks"]]
        expected["restricted_actions"] = [
            [name, sorted(registry.get_rsrc_restricted_actions(name))] for name in given["restricted"]]
        try:
            child = environment.get_child_environment(
                found, given["child"]["params"], None, given["child"].get("resource_name"))
            expected["child_environment"] = child.user_env_as_dict()
        except Exception as error:
            expected["child_error"] = failure(error)
        expected["user_environment"] = found.user_env_as_dict()
        return expected

    def lookup(self, found, resource_type, name):
        answer = {"type": resource_type, "resource_name": name}
        try:
            info = found.get_resource_info(resource_type, name)
        except RecursionError:
            raise
        except Exception as error:
            return {**answer, "error": failure(error)}
        if isinstance(info, environment.TemplateResourceInfo):
            answer.update(kind="template", template=info.template_name)
        else:
            answer.update(kind="class", implementation_type=info.name)
        return {**answer, "user_resource": info.user_resource}


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


class Functions:
    group, kind = "peer_functions", "resolve"
    WORDS = ["a", "b", "ab", "%a%", "%b%", "x", "", "1", "é", ",", "a,b", "p", "l", "j", "none", "true"]

    def __init__(self, chance):
        self.chance = chance
        self.context = context.RequestContext(
            project_id="tenant-1", user_id="u", username="u", password="p", auth_url="http://peer")

    def call(self, depth=0):
        chance, text, items, entries, index = self.chance, self.text, self.items, self.entries, self.index
        many = lambda make, least=0: [make(depth) for _ in range(chance.randint(least, 3))]  # noqa: E731
        calls = {
            "str_replace": lambda: {"template": text(depth), "params": entries(depth)},
            "str_replace_strict": lambda: {"template": text(depth), "params": entries(depth)},
            "str_replace_vstrict": lambda: {"template": text(depth), "params": entries(depth)},
            "list_join": lambda: [text(depth), *many(items, 1)],
            "repeat": lambda: {"template": self.anything(depth), "for_each": {"%a%": items(depth), "x": items(depth)}},
            "map_merge": lambda: many(entries),
            "map_replace": lambda: [entries(depth), {"keys": entries(depth), "values": entries(depth)}],
            "list_concat": lambda: many(items),
            "list_concat_unique": lambda: many(items),
            "str_split": lambda: [text(depth), text(depth), index()][: chance.randint(2, 3)],
            "digest": lambda: [chance.choice(["md5", "SHA1", "bogus"]), text(depth)],
            "get_param": lambda: chance.choice(["p", "l", "j", "nope", ["j", "a", 0], ["l", "0"], [], ["l", 9]]),
            "filter": lambda: [items(depth), items(depth)],
            "make_url": lambda: {key: text(depth) for key in chance.sample(["scheme", "host", "port", "query", "path"], 3)},
            "contains": lambda: [text(depth), items(depth)],
            "equals": lambda: [self.anything(depth), self.anything(depth)],
            "if": lambda: [chance.choice(["c", "d", "nope", True]), self.anything(depth), self.anything(depth)],
            "get_file": lambda: chance.choice(["f", "nope", 5]),
        }
        name = chance.choice(list(calls))
        return {name: calls[name]()}

    def odd(self, depth):
        """Now and then a call, or something of another kind."""
        if depth < 2 and self.chance.random() < 0.2:
            return [self.call(depth + 1)]
        return [self.anything(depth + 1)] if depth < 3 and self.chance.random() < 0.08 else []

    def text(self, depth):
        odd = self.odd(depth)
        return odd[0] if odd else self.chance.choice(self.WORDS) + self.chance.choice(["", "-%a%", "ab", ",b"])

    def index(self):
        return self.chance.choice([0, 1, -1, 5, "0", "x", 1.9, True, None])

    def items(self, depth):
        odd = self.odd(depth)
        return odd[0] if odd else [self.text(depth + 1) for _ in range(self.chance.randint(0, 3))]

    def entries(self, depth):
        odd = self.odd(depth)
        names = [self.chance.choice(self.WORDS) for _ in range(self.chance.randint(0, 3))]
        return odd[0] if odd else {name: self.anything(depth + 1) for name in names}

    def anything(self, depth):
        scalar = self.chance.choice([*self.WORDS, None, True, False, 0, 1, -1, 1.5, 1e20])
        if depth >= 3 or self.chance.random() < 0.5:
            return scalar
        return self.chance.choice([self.items, self.entries, self.text])(depth + 1)

    def input(self):
        version = self.chance.choice(["2021-04-16", "2018-08-31", "2017-09-01", "2016-10-14", "2015-10-15"])
        written = {"heat_template_version": version, "parameters": {
            "p": {"type": "string", "default": "x"}, "l": {"type": "comma_delimited_list", "default": "a,b,c"},
            "j": {"type": "json", "default": {"a": [1, {"k": "v"}]}}}}
        if version >= "2016-10-14":
            written["conditions"] = {"c": True, "d": {"equals": [{"get_param": "p"}, "y"]}}
        return {"template": written, "snippet": self.call(), "files": {"f": "content"}}

    def expect(self, given):
        parsed = template.Template(given["template"], files=given["files"])
        running = stack.Stack(self.context, "teststack", parsed, stack_id="11111111-2222-4333-8444-555555555555")
        try:
            expression = parsed.parse(running.defn, given["snippet"])
        except Exception as error:
            return {"parse_error": failure(error)}
        expected = {}
        try:
            function.validate(expression)
        except Exception as error:
            expected["validate_error"] = failure(error)
        try:
            value = plain(function.resolve(expression))
            json.dumps(value)
            expected["value"] = value
        except Exception as error:
            expected["resolve_error"] = failure(error)
        return expected


KINDS = {"parameters": Parameters, "registry": Registry, "merge": Merge, "functions": Functions}


def main():
    if len(sys.argv) < 3 or sys.argv[1] not in KINDS:
        sys.exit(__doc__)
    logging.disable(logging.CRITICAL)
    cfg.CONF(args=[], project="heat")
    resources.initialise()
    generator = KINDS[sys.argv[1]](random.Random(sys.argv[3] if len(sys.argv) > 3 else None))
    for number in range(int(sys.argv[2])):
        given = generator.input()
        vector = {
            "id": f"{generator.group}_{number}", "kind": generator.kind, "group": generator.group,
            "input": copy.deepcopy(given)}
        try:
            vector["expect"] = plain(generator.expect(given))
        except RecursionError:
            continue
        print(json.dumps(vector))


if __name__ == "__main__":
    main()
