#!/usr/bin/env python3
"""Writes vectors that an installed Heat computes from generated input.

    tests/peer/generate.py <kind> <count> [seed] > more.jsonl
    KILN_VECTORS=more.jsonl cargo test -p kiln-tests --test vectors

    tests/peer/generate.py --recompute vectors.jsonl <kind> > as-here.jsonl

The kinds are those of WRITTEN below. A kind that ends in _odd mutates the shipped vectors of the kind. --recompute computes the
results for the inputs of a file. Run it with the Python that has Heat (Debian: /usr/bin/python3). Recursive aliases are
omitted: Kiln rejects them immediately, Heat exceeds the stack.
"""

import copy
import json
import logging
import random
import sys

import groups
import properties
import resolve
import single
import template
from common import plain
from functions import Functions
from heat.engine import resources
from merge import Merge
from mutate import Mutants
from parameters import Parameters
from registry import Registry
from schemata import Changes, Provided, Schemata

# By name: the generator of the input.
WRITTEN = {
    "parameters": Parameters, "registry": Registry, "merge": Merge, "functions": Functions, "properties": Schemata,
    "update_diff": Changes, "schema_to_template": Provided, "groups": groups.Groups}
# By kind of vector: the function that computes the result.
ANSWERS = {
    "resolve": resolve.expect,
    "template": template.expect,
    "group_template": groups.expect,
    "parameters": Parameters(None).expect,
    "environment_merge": Merge(None).expect,
    "properties": properties.Properties().expect,
    "update_diff": properties.UpdateDiff().expect,
    "schema_to_template": properties.SchemaToTemplate().expect,
    "constraint": properties.Constraint().expect,
    "custom_constraint": properties.CustomConstraint().expect,
    "misc": single.Misc().expect,
    "identifier": single.Identifier().expect,
    "template_class": single.TemplateClass().expect,
    "template_parse": single.TemplateParse().expect,
    "environment_parse": single.EnvironmentParse().expect,
    "validate_parameter": single.ValidateParameter().expect,
    "structured_config": single.StructuredConfig().expect,
}
# Parts of inputs that select the operation or have a fixed type: only their content is changed.
FIXED = {
    "misc": ["function", "args"], "identifier": ["op"], "custom_constraint": ["constraint"], "properties": ["section", "data"],
    "schema_to_template": ["template_type"], "structured_config": ["input_values_validate"],
    "group_template": ["resource_name", "engine_count"], "environment_merge": ["environment_files"],
    "validate_parameter": ["env"], "parameters": ["env", "show_pseudo"], "template_parse": ["text"],
    "environment_parse": ["text"], "update_diff": ["before", "after"], "resolve": ["env"], "template": ["env"],
}


def vector(identity, kind, group, given, answer):
    """Writes a vector, unless the input is completely invalid."""
    written = {"id": identity, "kind": kind, "group": group, "input": copy.deepcopy(given)}
    try:
        line = json.dumps({**written, "expect": plain(answer(given))})
    except Exception as error:
        print(identity, type(error).__name__, error, file=sys.stderr)
        return
    print(line)


def generated(name, count, seed):
    chance = random.Random(seed)
    if name.endswith("_odd"):
        kind, group = name.removesuffix("_odd"), f"peer_{name}"
        source = Mutants(chance, kind, FIXED.get(kind, ()))
        answer = ANSWERS[kind]
    else:
        source = WRITTEN[name](chance)
        kind, group, answer = source.kind, source.group, source.expect
    for number in range(count):
        vector(f"{group}_{number}", kind, group, source.input(), answer)


def recomputed(file, wanted):
    for line in open(file):
        shipped = json.loads(line)
        if shipped["kind"] == wanted:
            vector(shipped["id"], wanted, shipped["group"], shipped["input"], ANSWERS[wanted])


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    logging.disable(logging.CRITICAL)
    resources.initialise()
    if sys.argv[1] == "--recompute":
        recomputed(*sys.argv[2:4])
    else:
        generated(sys.argv[1], int(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else None)


if __name__ == "__main__":
    main()
