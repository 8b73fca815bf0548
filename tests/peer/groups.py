"""The nested template of a group."""

from unittest import mock

from common import CONTEXT, either
from heat.engine import function, stack, template
from heat.objects import service


def expect(given):
    def made():
        running = stack.Stack(CONTEXT, "teststack", template.Template(given["template"]))
        group = running[given["resource_name"]]
        group._rpc_client = mock.Mock()
        with mock.patch.object(service.Service, "active_service_count", return_value=given.get("engine_count", 1)):
            return written(group.child_template().t)
    return either("template", "error", made)


def written(value):
    """The stored form, with unresolved functions."""
    if isinstance(value, function.Function):
        return {value.fn_name: written(value.args)}
    if isinstance(value, dict):
        return {key: written(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [written(item) for item in value]
    return value


class Groups:
    """Groups with attributes that outputs read."""

    group, kind = "peer_group_template", "group_template"

    def __init__(self, chance):
        self.chance = chance

    def attribute(self):
        choice = self.chance.choice
        path = choice([[], [], ["x"], [0], ["x", 1]])
        name = choice([
            "refs", "refs_map", "attributes", "value", "resource.0", "resource.1.value", "resource.9.value",
            "resource.0.a.b", "show"])
        return ["grp", name, *path]

    def input(self):
        chance = self.chance
        value = chance.choice(["v-%index%", {"a%index%": ["%index%", 1, None]}, None, 5])
        if chance.random() < 0.5:
            kind, properties = "OS::Heat::ResourceGroup", {
                "count": chance.randint(0, 4), "resource_def": {"type": "OS::Heat::Value"}}
            if chance.random() < 0.8:
                properties["resource_def"]["properties"] = chance.choice([{"value": value}, {}, {"value": value, "x": None}])
            if chance.random() < 0.3:
                properties["resource_def"]["metadata"] = {"m": value}
            if chance.random() < 0.3:
                properties["index_var"] = chance.choice(["#", "%i", "v"])
            if chance.random() < 0.3:
                properties["removal_policies"] = [{"resource_list": chance.choice([["1"], ["0", "x"], [], ["0", "2"]])}]
        else:
            kind, properties = "OS::Heat::ResourceChain", {
                "resources": chance.choices(["OS::Heat::Value", "OS::Heat::None"], k=chance.randint(1, 4))}
            if chance.random() < 0.6:
                properties["resource_properties"] = {"value": value}
            if chance.random() < 0.6:
                properties["concurrent"] = chance.choice([True, False])
        written = {"heat_template_version": "2021-04-16", "resources": {"grp": {"type": kind, "properties": properties}}}
        outputs = {f"o{i}": {"value": {"get_attr": self.attribute()}} for i in range(chance.randint(0, 3))}
        if outputs:
            written["outputs"] = outputs
        given = {"template": written, "resource_name": "grp"}
        if kind.endswith("Chain"):
            given["engine_count"] = chance.randint(1, 3)
        return given

    def expect(self, given):
        return expect(given)
