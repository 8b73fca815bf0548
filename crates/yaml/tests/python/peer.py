"""Runs operations in Python: reads a JSON list [operation, argument...] per line, prints a JSON value per line."""

import json
import re
import sys
import warnings

import yaml


class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
    """Keeps timestamps as strings."""


Loader.add_constructor("tag:yaml.org,2002:timestamp", lambda loader, node: loader.construct_scalar(node))


def plain(value):
    """Converts a value to the types of Kiln: only lists, and maps with string keys."""
    if isinstance(value, dict):
        return {k if isinstance(k, str) else json.dumps(plain(k)): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, (set, frozenset)):
        return [plain(v) for v in value]
    if isinstance(value, bytes):
        return value.decode()
    return value


def match_end(pattern, text):
    found = re.compile(pattern).match(text)
    return found and len(text[: found.end()].encode())


def search_spans(pattern, text):
    found = re.compile(pattern).search(text)
    place = lambda at: len(text[:at].encode())  # noqa: E731
    return found and [None if found.start(group) < 0 else [*map(place, found.span(group))]
                      for group in range(len(found.groups()) + 1)]


def load(text):
    try:
        return yaml.load(text, Loader=Loader)
    except yaml.YAMLError:
        # As in Heat: the message of the loader in Python contains the position.
        yaml.load(text, Loader=yaml.SafeLoader)
        raise


OPERATIONS = {
    "yaml": lambda text: repr(plain(load(text))),
    "json": lambda text: repr(plain(json.loads(text))),
    "repr": lambda text: repr(json.loads(text)),
    "dumps": lambda text: json.dumps(json.loads(text)),
    "int": lambda text: repr(int(text)),
    "float": lambda text: repr(float(text)),
    "match": match_end,
    "search": search_spans,
}


def main():
    warnings.simplefilter("ignore")
    for line in sys.stdin:
        operation, *arguments = json.loads(line)
        try:
            answer = {"value": OPERATIONS[operation](*arguments)}
        except Exception as error:  # any refusal
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


main()
