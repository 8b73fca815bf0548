#!/usr/bin/env python3
"""Writes YAQL vectors: randomly nested calls of all functions and operators, with the results of yaql.

    tests/peer/yaql_calls.py COUNT [SEED] > more.jsonl
    KILN_VECTORS=more.jsonl cargo test --release -p kiln-tests --test vectors

Run it with a Python that has yaql (3.2); Heat is not needed. Arguments are drawn by the types that the library itself
declares, now and then wrongly; what was answered becomes an argument of what follows. A second process with another
order of hashing answers too: what depends on that, on the clock or on chance is left out, and so is what takes longer
than a second.
"""

import collections.abc  # noqa: F401: yaql uses it without importing it
import datetime
import json
import os
import random
import re
import signal
import subprocess
import sys

import yaql
from yaql.language import conventions, exceptions

# Heat's values.
OPTIONS = {"yaql.limitIterators": 200, "yaql.memoryQuota": 10000}
DATA = {
    "n": 7, "f": 2.5, "s": "Hello World", "t": True, "nothing": None, "e": [], "l": [3, 1, 2, 1],
    "w": ["b", "A", "", "é"], "d": {"a": 1, "b": {"c": [1, 2]}}, "m": [[1, 2], [3, [4]]], "big": 2**70,
    "p": [{"name": "ann", "age": 30}, {"name": "bob", "age": 25}, {"name": "cid", "age": 30}],
}
POOL = {
    "int": ["0", "1", "2", "-1", "7", "10", "$.data.n", "$.data.big", "123456789012345678901"],
    "float": ["0.0", "1.5", "-2.5", "$.data.f", "100.0", "1.0e20", "2.675"],
    "bool": ["true", "false", "$.data.t"],
    "NoneType": ["null", "$.data.nothing"],
    "str": ["''", "a", "'abc'", "'a,b, c'", "' x '", "'éÀ'", "'12'", "'a{0}b{x}'", "$.data.s", "name", "'%'",
            "'-1.5e1'",
            "`\\d`", "'aXbXc'", "'(a)(b)?'", "'2015-03-29'", "'%Y-%m'", "D", "'B'"],
    "list": ["[]", "[1, 2, 3]", "[a, b, a]", "[[1, a], [2, b]]", "$.data.l", "$.data.w", "$.data.p", "$.data.m",
             "range(3)",
             "[1, null, 2.5]", "[3, 1, 2].select($)", "[true, 1, 1.0]", "[{a => 1}, {a => 2}]", "list(range(4))",
             "$.data.p.age",
             "[1, 2].toList()", "[2, 1].orderBy($)", "$.data.e"],
    "set": ["set()", "set(1, 2, 3)", "set(2, 3)", "set(a)", "[1, 2, 2].toSet()", "{a => 1}.keys()"],
    "dict": ["{}", "{a => 1}", "{a => 1, b => 2}", "{1 => [1, 2], x => {y => 2}}", "$.data.d", "dict(a => 1)",
             "[[k, 5]].toDict($[0])"],
    "datetime": ["datetime(2015, 8, 29)", "datetime(2016, 2, 29, 23, 59, 58, 123456)",
                 "datetime('2015-08-29T10:20:30Z')",
                 "datetime(1440867600)", "datetime(2015, 1, 1, 0, 0, 0, 0, timespan(hours => 3))",
                 "datetime('2016-01-02 03:04:05+02:00')"],
    "timedelta": ["timespan(1)", "timespan(hours => -1)", "timespan(0, 1, 2, 3, 4, 5)",
                  "timespan(days => 2, seconds => 1)"],
    "Pattern": ["regex('b')", "regex('(a)(x)?')", "regex('A', true)", "regex('[a-c]+|')", "regex(`\\W`)",
                "regex('^.', multiLine => true)"],
}
LAMBDAS = [
    "$", "$", "$ + 1", "$ * 2", "$1 + $2", "$1 - $2", "$ > 1", "$ < 3", "$ = 1", "not $", "true", "false", "1", "a",
    "null", "[$, $]",
    "[$1, $2]", "str($)", "$.len()", "$.name", "$.age", "$[0]", "$[1]", "{a => $}", "{$ => 1}", "$.a", "$2",
    "$1 > $2", "$.sum()",
    "$ mod 2", "$ mod 2 = 0", "len($)", "$.toUpper()", "range($)", "$1.concat($2)", "$.first()", "[]", "$x",
    "$.value", "$.start",
    "$1.value + $2.value", "$.limit(2)", "set($)", "$ in [1, a]", "isString($)", "$.get(a)", "$.select($)",
    "dict(x => $)",
]
WORDS = ["a", "name", "age", "len", "x", "b", "year", "days", "data"]
CHANCY = {"now", "random", "randomInt", "randomDouble", "localtz", "yaqlize"}
HIDDEN = {"Context", "Engine", "Delegate", "Super", "Receiver", "YaqlInterface", "FunctionDefinition", "StringConstant"}


def library():
    """The definitions of each name that expressions can call."""
    found, context = {}, yaql.create_context()
    while context is not None:
        for name, definitions in sorted(context._functions.items()):
            if name not in CHANCY | {"#call", "#finalize", "#iter", "#get_context_data"}:
                found.setdefault(name, []).extend(sorted(definitions, key=lambda one: sorted(map(str, one.parameters))))
        context = context.parent
    return found


class Calls:
    def __init__(self, chance):
        self.chance = chance
        self.pool = {kind: list(texts) for kind, texts in POOL.items()}
        self.library = library()
        self.convention = conventions.CamelCaseConvention()

    def any(self):
        return self.chance.choice(self.pool[self.chance.choice(list(self.pool))])

    def of(self, *kinds):
        choice = self.chance.random()
        if choice < 0.06:
            return self.any()
        if choice < 0.09:
            return "null"
        return self.chance.choice(self.pool[self.chance.choice(kinds)])

    def body(self):
        """A lambda argument."""
        choice = self.chance.random()
        if choice < 0.75:
            return self.chance.choice(LAMBDAS)
        return self.any().replace("$.data.n", "$")

    def argument(self, parameter):
        value_type = parameter.value_type
        kind = type(value_type).__name__
        if kind in ("Lambda", "YaqlExpression"):
            return self.body()
        if kind == "MappingRule":
            return f"{self.body()} => {self.body()}"
        if kind == "Keyword":
            return self.chance.choice(WORDS)
        by_name = {
            "String": ["str"], "Integer": ["int"], "Number": ["int", "int", "float"], "Iterator": ["list"],
            "Iterable": ["list", "list", "list", "set"], "Sequence": ["list"], "DateTime": ["datetime"]}
        if kind in by_name:
            return self.of(*by_name[kind])
        types = getattr(value_type, "python_type", None)
        types = types if isinstance(types, tuple) else (types,)
        known = [kind for wanted in types for kind in self.kinds(wanted)]
        return self.of(*known) if known else self.any()

    def kinds(self, wanted):
        if wanted in (None, object):
            return []
        samples = {
            "int": 1, "float": 1.0, "bool": True, "str": "", "list": [], "set": frozenset(), "dict": {},
            "datetime": datetime.datetime.min, "timedelta": datetime.timedelta(), "Pattern": re.compile("")}
        return [kind for kind, sample in samples.items() if isinstance(sample, wanted)] or (
            ["dict"] if "Mapping" in repr(wanted) or "Dict" in repr(wanted) else
            ["list"] if "Order" in repr(wanted) or "Iter" in repr(wanted) else [])

    def arguments(self, definition):
        """Positional arguments, the receiver first, and keyword arguments."""
        chance = self.chance
        visible = [(key, p) for key, p in definition.parameters.items() if type(p.value_type).__name__ not in HIDDEN]
        positional = [p for key, p in visible if p.position is not None and key != "*"]
        positional.sort(key=lambda p: p.position)
        by_position, by_name = [], []
        for parameter in positional:
            optional = parameter.default is not yaql.language.utils.NO_VALUE
            if optional and chance.random() < 0.4:
                break
            if by_position and chance.random() < 0.12:
                break
            by_position.append(self.argument(parameter))
        for parameter in positional[len(by_position):]:
            optional = parameter.default is not yaql.language.utils.NO_VALUE
            if chance.random() < (0.2 if optional else 0.9):
                name = parameter.alias or self.convention.convert_parameter_name(parameter.name.rstrip("_"))
                by_name.append(f"{name} => {self.argument(parameter)}")
        rest = definition.parameters.get("*")
        if rest is not None and not by_name:
            by_position += [self.argument(rest) for _ in range(chance.randint(0, 3))]
        if "**" in definition.parameters:
            by_name += [f"{chance.choice('xyz')} => {self.any()}" for _ in range(chance.randint(0, 2))]
        if chance.random() < 0.03:
            by_position.append(self.any())
        return by_position, by_name

    def call(self):
        chance = self.chance
        name = chance.choice(list(self.library))
        definition = chance.choice(self.library[name])
        positional, named = self.arguments(definition)
        first, rest = (positional or ["1"])[0], [*positional[1:], *named]
        second = (rest or ["2"])[0]
        if name == "#operator_.":
            return f"{first}.{chance.choice(WORDS)}"
        if name == "#operator_?.":
            return f"{first}?.{chance.choice([*WORDS, 'len()', 'first(1)', 'get(a)'])}"
        if name == "#operator_->":
            return f"{self.scope()} -> {self.body().replace('$', '$x') if chance.random() < 0.5 else self.body()}"
        if name.startswith("#operator_"):
            return f"({first} {name[10:]} {second})"
        if name in ("*equal", "*not_equal"):
            return f"({self.any()} {'=' if name == '*equal' else '!='} {self.any()})"
        if name.startswith("#unary_operator_"):
            return f"({name[16:]} {first})"
        if name.startswith("#property#"):
            return f"{first}.{name[10:]}"
        if name == "#indexer":
            return f"{first}[{', '.join(rest)}]"
        if name == "#list":
            return f"[{', '.join(positional)}]"
        if name == "#map":
            return "{" + ", ".join(f"{self.any()} => {self.any()}" for _ in range(chance.randint(0, 3))) + "}"
        if name in ("let", "with", "unpack", "def") and chance.random() < 0.9:
            asked = ["$x", "$", "$y", "$1", "[$x, $1]", "f(2)", "$x.len()", "$z", "f($x)"]
            return f"{self.scope()} -> {chance.choice(asked)}"
        if definition.is_method and (not definition.is_function or chance.random() < 0.6):
            return f"{first}.{name}({', '.join(rest)})"
        return f"{name}({', '.join([*positional, *named])})"

    def scope(self):
        any_ = self.any
        return self.chance.choice([
            lambda: f"let(x => {any_()}, y => {any_()})", lambda: f"let({any_()}, {any_()})", lambda: f"with({any_()})",
            lambda: f"{self.of('list')}.unpack(x, y)", lambda: f"{self.of('list')}.unpack()",
            lambda: f"def(f, {self.body()})",
            lambda: f"let(x => {any_()}) -> def(f, [$, $x])", lambda: f"{self.of('set')}.unpack(x)"])()

    def remember(self, expression, value):
        """Results are arguments of later calls."""
        texts = self.pool.get(type(value).__name__)
        if texts is None or len(expression) > 90:
            return
        if len(texts) < 150:
            texts.append(expression)
        else:
            texts[self.chance.randrange(len(POOL[type(value).__name__]), len(texts))] = expression


class Answers:
    """The result of Heat's function `yaql`."""

    def __init__(self):
        self.parse = yaql.YaqlFactory().create(OPTIONS)
        self.context = yaql.create_context()

    def expect(self, expression):
        """The expectation and the value."""
        try:
            statement = self.parse(expression)
        except exceptions.YaqlException as error:
            message = f"Bad expression {error}."
            return {
                "validate_error": {"class": "StackValidationFailed", "message": f"yaql: {message}"},
                "resolve_error": {"class": "ValueError", "message": message}}, None
        try:
            value = statement.evaluate({"data": DATA}, self.context.create_child_context())
        except Exception as error:
            message = str(error)
            foreign = not isinstance(error, (exceptions.YaqlException, KeyError)) and " " in message
            shown = None if foreign or " receiver repeat(" in message else message
            return {"resolve_error": {"class": type(error).__name__, "message": shown}}, None
        return {"value": plain(value)}, value


def plain(value):
    """Encodes values that JSON does not support."""
    if isinstance(value, float) and (value != value or abs(value) == float("inf")):
        return {"__float__": repr(value)}
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (set, frozenset)):
        if any(isinstance(item, (datetime.datetime, datetime.timedelta)) for item in value):
            raise TypeError("vectors have no times in sets")
        return {"__set__": sorted((plain(item) for item in value), key=json.dumps)}
    if isinstance(value, datetime.datetime):
        return {"__datetime__": value.isoformat()}
    if isinstance(value, datetime.timedelta):
        return {"__timespan_seconds__": value.total_seconds()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


class TooLong(BaseException):
    """Not caught by the tested code."""


def answer(answers, expression):
    """(expectation as JSON, value); None if it takes too long or cannot be encoded."""
    def stop(*_):
        raise TooLong

    signal.signal(signal.SIGALRM, stop)
    signal.alarm(1)
    try:
        expected, value = answers.expect(expression)
        return json.dumps(expected), value
    except (TooLong, RecursionError, TypeError, ValueError):
        return None, None
    finally:
        signal.alarm(0)


def twin():
    """The second process."""
    answers = Answers()
    for line in sys.stdin:
        print(json.dumps(answer(answers, json.loads(line))[0]), flush=True)


def main():
    if sys.argv[1:] == ["--twin"]:
        return twin()
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    environment = {**os.environ, "PYTHONHASHSEED": str(random.randrange(1, 2**32))}
    other = subprocess.Popen(
        [sys.executable, __file__, "--twin"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
    calls, answers, seen = Calls(random.Random(sys.argv[2] if len(sys.argv) > 2 else None)), Answers(), set()
    while len(seen) < int(sys.argv[1]):
        expression = calls.call()
        if expression in seen or len(expression) > 200:
            continue
        expected, value = answer(answers, expression)
        other.stdin.write(json.dumps(expression) + "\n")
        other.stdin.flush()
        same = json.loads(other.stdout.readline()) == expected
        if not same or expected is None or re.search(" at 0x[0-9a-f]{6}", expected):
            continue
        seen.add(expression)
        calls.remember(expression, value)
        print(json.dumps({
            "id": f"peer_yaql_{len(seen)}", "kind": "resolve", "group": "peer_yaql",
            "input": {
                "template": {"heat_template_version": "2021-04-16"},
                "snippet": {"yaql": {"expression": expression, "data": DATA}}},
            "expect": json.loads(expected)}))


if __name__ == "__main__":
    main()
