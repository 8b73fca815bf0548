#!/usr/bin/env python3
"""Every command of the standard client, asked of Heat and of Kiln.

    devcloud/devcloud up kiln heat && tests/cloud/tour.py [REGEX]

Runs the steps of `tour.txt` (one command line each, `$NAME` stands for a template in `tour/`) once against the Python Heat
and once against Kiln on devcloud, and compares exit code, output and errors without IDs, times and random values. A text
in brackets before a step is the reason of an expected difference. Lines are compared without their order. Prints each
unexpected difference, and `N passed, N failed`.
"""
import concurrent.futures
import difflib
import os
import pathlib
import re
import shlex
import subprocess
import sys
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent))
from harness.pypi import CLIENTS  # noqa: E402

import run as cloud  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
WORK = CLIENTS / 'tour'
PORTS = {'heat': os.environ.get('HEAT_PORT', '8004'), 'kiln': os.environ.get('KILN_PORT', '8014')}
INTERFACES = {'heat': 'admin', 'kiln': 'public'}

# What differs between two runs of the same service.
NOISE = [
    (re.compile(r'\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b'), 'UUID'),
    (re.compile(r'\b[0-9a-f]{32}\b'), 'ID'),
    (re.compile(r'\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\dZ?'), 'TIME'),
    (re.compile(r'(http://[\d.]+):80[01]4'), r'\1:PORT'),
    (re.compile(r'(tour-\w+)-[a-z0-9]{12}\b'), r'\1-SHORT'),
    (re.compile(r'-[a-z0-9]{12}\b'), '-SHORT'),
    (re.compile(r'-{4,}'), '----'),
    (re.compile(r'( *[-"]?description"?: ).*'), r'\1TEXT'),
    (re.compile(r' {2,}'), ' '),
    (re.compile(r'\breq-\S+'), 'REQ'),
]


def plain(text):
    for pattern, word in NOISE:
        text = pattern.sub(word, text)
    return [line.strip().rstrip(',') for line in text.splitlines() if line.strip(' {}[],')]


def steps():
    """(reason of an expected difference or None, words)"""
    for line in (HERE / 'tour.txt').read_text().splitlines():
        line = line.strip()
        if not line or line.startswith('#'):
            continue
        reason = None
        if line.startswith('['):
            reason, _, line = line[1:].partition('] ')
        yield reason, line


def endpoints(admin):
    """The catalog names Kiln as the public and Heat as the admin endpoint of the orchestration service."""
    for name, interface in INTERFACES.items():
        url = f'http://127.0.0.1:{PORTS[name]}/v1/%(project_id)s'
        for endpoint in admin.json('endpoint', 'list', '--service', 'orchestration', '--interface', interface):
            admin.run('endpoint', 'set', '--url', url, endpoint['ID'])


def ask(name, env, line):
    """Runs a step against one of the services: exit code, output, errors."""
    env = dict(env, OS_INTERFACE=INTERFACES[name])
    folder = WORK / name
    folder.mkdir(parents=True, exist_ok=True)
    words = shlex.split(line)
    words = [str(HERE / 'tour' / word[1:]) if word.startswith('$') else word for word in words]
    words = [word if not word.startswith('%') else remembered[name][word[1:]] for word in words]
    done = subprocess.run([cloud.OPENSTACK, *words], env=env, capture_output=True, text=True, timeout=300, cwd=folder)
    return done.returncode, done.stdout, done.stderr


remembered = {'heat': {}, 'kiln': {}}


def main():
    wanted = re.compile(sys.argv[1]) if len(sys.argv) > 1 else None
    endpoints(cloud.Client(cloud.credentials('admin')))
    env = cloud.credentials('demo')
    for name in INTERFACES:
        listed = ask(name, env, 'stack list -f value -c "Stack Name"')[1].split()
        leftovers = [word for word in listed if word.startswith('tour-')]
        if leftovers:
            ask(name, env, f'stack delete --yes --wait {" ".join(leftovers)}')
    passed, failed, expected = 0, 0, 0
    for reason, line in steps():
        if wanted and not wanted.search(line):
            continue
        # `NAME = command` keeps the last line of the output, for `%NAME`.
        key, sep, command = line.partition(' = ')
        if not sep or ' ' in key:
            key, command = None, line
        # At the same time: some steps must come soon after the one before.
        with concurrent.futures.ThreadPoolExecutor() as pool:
            asked = {name: pool.submit(ask, name, env, command) for name in INTERFACES}
        answers = {}
        for name, future in asked.items():
            try:
                code, out, err = future.result()
            except KeyError as missing:
                code, out, err = -1, '', f'no value {missing}'
            if key:
                remembered[name][key] = (out.strip().splitlines() or [''])[-1]
            answers[name] = [f'exit code {code}', *plain(out), *plain(err)]
        # Heat's order of maps and lists of equal age is arbitrary.
        if sorted(answers['heat']) == sorted(answers['kiln']):
            passed += 1
        elif reason:
            expected += 1
        else:
            failed += 1
            print(f'FAILED {command}')
            sides = sorted(answers['heat']), sorted(answers['kiln'])
            for diff in list(difflib.unified_diff(*sides, 'heat', 'kiln', n=0, lineterm=''))[2:]:
                print('   ', diff)
            sys.stdout.flush()
        time.sleep(0.1)
    print(f'{expected} differ as expected')
    print(f'{passed} passed, {failed} failed')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
