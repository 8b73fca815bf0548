"""Nested function calls."""

import resolve


class Functions:
    group, kind = "peer_functions", "resolve"
    WORDS = ["a", "b", "ab", "%a%", "%b%", "x", "", "1", "é", ",", "a,b", "p", "l", "j", "none", "true"]

    def __init__(self, chance):
        self.chance = chance

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
        """Sometimes a call, or a value of another type."""
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
        return resolve.expect(given)
