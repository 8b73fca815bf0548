#!/usr/bin/env python3
"""Compares Kiln's YAML and JSON parsers with PyYAML and Python's json for all templates in some folders.

    tests/peer/yaml_tree.py FOLDER...

The value must be the same with the order of keys and every type, and where the text is refused, the words of the error.
JSON's refusals are compared without words. Needs PyYAML with libyaml and cargo; fetches nothing. Prints a line for every
file read differently, then a line a folder; fails if there is a difference.
"""
import collections
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SUFFIXES = {'.yaml', '.yml', '.template', '.json', '.j2', '.env'}
PYTHON = [sys.executable, str(ROOT / 'crates/yaml/tests/python/peer.py')]
KILN = ['cargo', 'run', '--quiet', '--manifest-path', str(ROOT / 'Cargo.toml'), '-p', 'kiln-yaml', '--example', 'read']


class Reader:
    """A child process that handles one request at a time."""

    def __init__(self, command):
        self.child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, operation, text):
        self.child.stdin.write(json.dumps([operation, text]) + '\n')
        self.child.stdin.flush()
        line = self.child.stdout.readline()
        if not line:
            sys.exit(f'{self.child.args[0]} has ended')
        return json.loads(line)


def comparable(operation, answer):
    """A result in the common format."""
    if 'value' in answer:
        return 'value', answer['value']
    # Python also reports the class; Heat does not show JSON errors.
    return 'error', None if operation == 'json' else answer['error'].partition(': ')[2]


def compare(folder, kiln, python):
    """Counts (operation, 'value' or 'error', the same or not) over all templates of a folder."""
    counts = collections.Counter()
    for path in sorted(path for path in folder.rglob('*') if path.suffix in SUFFIXES and path.is_file()):
        text = path.read_text(errors='replace')
        for operation in ['yaml', 'json']:
            ours, theirs = kiln.ask(operation, text), python.ask(operation, text)
            if 'error' in ours:
                ours['error'] = f'Kiln: {ours["error"]}'
            kind, theirs = comparable(operation, theirs)
            same = comparable(operation, ours) == (kind, theirs)
            counts[operation, kind, same] += 1
            if not same:
                print(f'{path}: {operation}\n  Kiln   {str(ours)[:600]}\n  Python {kind}: {str(theirs)[:600]}')
    return counts


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    kiln, python, different = Reader(KILN), Reader(PYTHON), 0
    for folder in map(pathlib.Path, sys.argv[1:]):
        counts = compare(folder, kiln, python)
        figures = [f'{operation} {kind} {counts[operation, kind, True]} alike, {counts[operation, kind, False]} not'
                   for operation in ['yaml', 'json'] for kind in ['value', 'error']]
        different += sum(n for (_, _, same), n in counts.items() if not same)
        print(f'{folder.name}: {"; ".join(figures)}')
    sys.exit(1 if different else 0)


main()
