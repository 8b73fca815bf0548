"""Mappings of types, hooks, restrictions, child environments."""

from common import failure
from heat.engine import environment, resources


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
