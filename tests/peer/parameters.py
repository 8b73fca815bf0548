"""Parameters of one name, HOT and CFN: types, defaults, constraints, values."""

from common import IDENTITY, SCALARS, failure
from heat.engine import template


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
        try:
            parsed = template.Template(given["template"])
            found = parsed.parameters(
                IDENTITY, given["env"]["parameters"], param_defaults=given["env"].get("parameter_defaults"))
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
