#!/usr/bin/env python3
"""Updates the table of vectors in docs/conformance.md from the output of the runner.

    cargo test --release -p kiln-tests --test vectors | tests/ledger.py
"""
import pathlib
import re
import sys

LEDGER = pathlib.Path(__file__).resolve().parent.parent / 'docs/conformance.md'
LINE = re.compile(r'(\S+) (\S+) (?:(\d+) of (\d+)|not run \((\d+)\))$')
TABLE = re.compile(r'(<!-- vectors -->\n).*(<!-- /vectors -->)', re.S)


def main():
    kinds = {}
    for line in sys.stdin:
        if found := LINE.match(line.rstrip()):
            kind, group, passed, total, not_run = found.groups()
            kinds.setdefault(kind, []).append((group, int(passed or 0), int(total or not_run)))
    if not kinds:
        sys.exit('nothing of the runner was read')
    rows = ['| kind | passes | groups |', '| --- | --- | --- |']
    for kind, groups in kinds.items():
        passed, total = sum(group[1] for group in groups), sum(group[2] for group in groups)
        shown = ', '.join(f'{name} {n if n == of else f"**{n} of {of}**"}' for name, n, of in groups)
        rows.append(f'| {kind} | {passed} of {total} | {shown} |')
    text = LEDGER.read_text()
    LEDGER.write_text(TABLE.sub(lambda found: found[1] + '\n'.join(rows) + '\n' + found[2], text))


main()
