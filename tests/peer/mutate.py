"""Mutations of the shipped vectors: parts are removed, or replaced with others of their kind or with unusual values."""

import copy
import json
import pathlib

from common import SCALARS

SHIPPED = pathlib.Path(__file__).parent.parent / "data" / "vectors.jsonl"
# The parts that describe the environment are not changed.
WORLD = {"resources", "parent", "context", "report_dependencies", "files", "availability_zones"}


class Mutants:
    """Mutated inputs of a kind."""

    def __init__(self, chance, kind, fixed=(), odd=SCALARS):
        self.chance, self.fixed, self.odd = chance, WORLD | set(fixed), odd
        vectors = (json.loads(line) for line in SHIPPED.open())
        self.inputs = [vector["input"] for vector in vectors if vector["kind"] == kind]
        self.parts, self.named = [], {}
        for given in self.inputs:
            for holder, key in self.places(given):
                self.parts.append(holder[key])
                self.named.setdefault(key if isinstance(key, str) else "", []).append(holder[key])

    def places(self, given):
        """The places of parts: a map or list and a key in it."""
        for key, part in given.items():
            if key not in self.fixed or key in ("text", "url", "arn") and isinstance(part, str):
                yield given, key
            if key not in WORLD:
                yield from self.inside(part)

    def inside(self, part):
        keys = part if isinstance(part, dict) else range(len(part)) if isinstance(part, list) else []
        for key in keys:
            yield part, key
            yield from self.inside(part[key])

    def input(self):
        given = copy.deepcopy(self.chance.choice(self.inputs))
        for _ in range(self.chance.choice([1, 1, 1, 2, 2, 3, 4])):
            self.change(given)
        return given

    def change(self, given):
        chance = self.chance
        places = list(self.places(given))
        if not places:
            return
        holder, key = chance.choice(places)
        deep = holder is not given
        likely = chance.random()
        if likely < 0.4:
            holder[key] = copy.deepcopy(chance.choice(self.named.get(key if isinstance(key, str) else "", self.parts)))
        elif likely < 0.55:
            holder[key] = copy.deepcopy(chance.choice(self.parts))
        elif likely < 0.7:
            holder[key] = chance.choice(self.odd)
        elif likely < 0.78 and deep:
            del holder[key]
        elif likely < 0.9 and isinstance(holder[key], dict):
            name = chance.choice(list(self.named))
            holder[key][name or "x"] = copy.deepcopy(chance.choice(self.named[name]))
        elif isinstance(holder[key], list):
            holder[key].insert(0, copy.deepcopy(chance.choice(self.parts)))
        elif isinstance(holder[key], str) and holder[key]:
            at = chance.randrange(len(holder[key]))
            extra = chance.choice(["", holder[key][at] * 2, chance.choice("aA0-:/%., _é*"), chance.choice("1{}[]#'\"\n")])
            holder[key] = holder[key][:at] + extra + holder[key][at + 1:]
