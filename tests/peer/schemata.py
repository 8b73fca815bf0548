"""Property schemata, nested as deeply as in resource types, and data that almost matches them."""

from common import SCALARS
from properties import Properties, SchemaToTemplate, UpdateDiff


class Schemata:
    """Input of the kind `properties`, which the other kinds are derived from."""

    group, kind = "peer_properties", "properties"
    NAMES = ["a", "b", "c", "description", "d1", "é"]
    TYPES = ["string", "integer", "number", "boolean", "map", "list", "any"]
    VALUES = {
        "string": ["a", "abc", "10.0.0.1", "", 5, True, "é" * 4], "integer": [0, 1, 7, -3, "5", " 6 ", "1_0", 5.7, True],
        "number": [0, 1.5, "2.5", "1e3", -1, "nan", 1e22, "7"], "boolean": [True, False, "true", "FALSE", "False"],
        "map": [{}, {"a": 1}, {"a": None, "zz": [1]}], "list": [[], ["a", "b"], [1, None], [{"a": "x"}], ["a,b"]],
    }

    # Real types have valid schemata.
    DEFAULTS = {
        "string": ["a", "abc", ""], "integer": [0, 1, 7], "number": [0, 1.5, -1], "boolean": [True, False],
        "map": [{}, {"a": 1}], "list": [[], ["a", "b"]]}

    def __init__(self, chance):
        self.chance = chance

    def some(self, likelihood, **entries):
        return {key: make() for key, make in entries.items() if self.chance.random() < likelihood}

    def schema(self, depth=0):
        chance = self.chance
        kind = chance.choice(self.TYPES if depth < 3 else self.TYPES[:4])
        flags = dict.fromkeys(["required", chance.choice(["update_allowed", "immutable"])], lambda: True)
        written = {"type": kind, **self.some(0.25, **flags)}
        if kind in ("map", "list") and chance.random() < 0.2:
            written["allow_conversion"] = True
        if chance.random() < 0.05:
            written["implemented"] = False
        if chance.random() < 0.35:
            written["default"] = chance.choice(self.DEFAULTS.get(kind, SCALARS))
        if kind == "map" and chance.random() < 0.7:
            written["schema"] = self.schemata(depth + 1)
        if kind == "list" and chance.random() < 0.7:
            written["schema"] = {"*": self.schema(depth + 1)}
        if chance.random() < 0.35 and kind != "any":
            written["constraints"] = [self.constraint(kind) for _ in range(chance.randint(1, 2))]
        return written

    def schemata(self, depth=0):
        return {self.chance.choice(self.NAMES): self.schema(depth) for _ in range(self.chance.randint(1, 4))}

    def bound(self):
        return self.chance.choice([0, 1, 2, 3, 5])

    def constraint(self, kind):
        chance = self.chance
        values = self.VALUES.get(kind, SCALARS)
        length = {"length": {"min": 1, **self.some(0.7, max=self.bound)}}
        span = {"range": {"max": 3, **self.some(0.7, min=self.bound)}}
        modulo = {"modulo": {"step": chance.choice([2, 3]), "offset": chance.choice([0, 1])}}
        allowed = {"allowed_values": chance.choices(values, k=3)}
        pattern = {"allowed_pattern": chance.choice(["[a-c]+", "^a", "a|abc", "\\d+", ".*b$"])}
        custom = {"custom_constraint": chance.choice(["ip_addr", "net_cidr", "mac_addr", "dns_name", "no_such"])}
        fitting = {
            "string": [length, allowed, pattern, custom], "integer": [span, modulo, allowed],
            "number": [span, modulo, allowed], "boolean": [allowed],
            "map": [length], "list": [length, allowed]}
        made = chance.choice(fitting[kind])
        return {**made, **self.some(0.15, description=lambda: "why")}

    def value(self, schema):
        chance = self.chance
        if chance.random() < 0.07:
            return chance.choice([*SCALARS, [], {}, ["a"], {"a": 1}, [None]])
        inner = schema.get("schema")
        if inner and chance.random() < 0.9:
            if "*" in inner:
                return [self.value(inner["*"]) for _ in range(chance.randint(0, 3))]
            return self.data(inner)
        return chance.choice(self.VALUES.get(schema["type"], SCALARS))

    def data(self, schemata):
        given = {name: self.value(schema) for name, schema in schemata.items() if self.chance.random() < 0.75}
        if self.chance.random() < 0.03:
            given["unknown"] = self.chance.choice(SCALARS)
        return given

    def rule(self, schemata):
        """A rule with an existing target."""
        chance = self.chance
        path = [chance.choice(list(schemata))]
        found, around = schemata[path[0]], schemata
        while (inner := found.get("schema")) and chance.random() < 0.7:
            around = inner if "*" not in inner else inner["*"].get("schema") or {}
            if not around or "*" in around:
                break
            path.append(chance.choice(list(around)))
            found = around[path[-1]]
        fitting = ["add"] if found["type"] == "list" else ["replace", "delete"]
        rule = {"rule": chance.choice(fitting), "path": path}
        if rule["rule"] == "delete":
            return rule
        # A property that is translated by itself causes an endless recursion in Heat.
        others = [name for name in schemata if name not in path]
        sources = [{"value_path": [chance.choice(others)]}] if others else []
        if rule["rule"] == "add":
            sources.append({"value": [self.value(found)]})
        else:
            sources.append({"value": self.value(found)})
            if len(path) > 1 and around:
                sources += [{"value_name": name} for name in around if name != path[-1]]
        return {**rule, **chance.choice(sources)}

    def input(self):
        schemata = self.schemata()
        given = {"schema": schemata, "data": self.data(schemata)}
        if self.chance.random() < 0.25:
            given["translation_rules"] = [self.rule(schemata)]
        if self.chance.random() < 0.2:
            given["section"] = True
        return given

    def expect(self, given):
        return Properties().expect(given)


class Changes(Schemata):
    group, kind = "peer_update_diff", "update_diff"

    def input(self):
        schemata = self.schemata()
        before = self.data(schemata)
        after = {**before, **{name: value for name, value in self.data(schemata).items() if self.chance.random() < 0.4}}
        return {"schema": schemata, "before": before, "after": after}

    def expect(self, given):
        return UpdateDiff().expect(given)


class Provided(Schemata):
    group, kind = "peer_schema_to_template", "schema_to_template"

    def input(self):
        return {"schema": self.schemata(), "template_type": self.chance.choice(["hot", "cfn"])}

    def expect(self, given):
        return SchemaToTemplate().expect(given)
