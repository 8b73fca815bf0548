#!/usr/bin/python3
"""Every resource type on the real services, with Heat and with Kiln.

    devcloud/devcloud up all && tests/cloud/every_type.py [-v] [WORD...]

Takes each type of `tests/cloud/types/` (or those with a WORD in their name) through its life, first with the Python Heat,
then with Kiln: create, check, updates in place and to replacement, suspend and resume, delete. Compares, after each step,
the requests that both sent to the services, the objects as their service shows them, states, reasons, attributes and
outputs. After each create and update, Kiln must find no drift. Both services are started again behind a recording proxy
(`recorder.py`), and again without it at the end.

A file of `types/` has these keys:

    needs       services that the catalog must have, besides those of the types
    resources   the resources of the template; those of the type itself are compared with all attributes
    steps       label -> resource -> changed properties (null: removed), or the whole resource; null removes it. Each
                step starts from `resources`. A label begins with update, replace, suspend or resume.
    outputs     outputs of the template, in addition to the IDs
    failing     the steps that are expected to fail, with both
    before      requests of an administrator before the first step: service, path, body

Every type has a file, or an entry with a reason in `types/without.yaml`. Differences with a reason are in `types/explained.yaml`: glob of the type, glob of the field, reason. Prints one line per
type and one per unexplained difference (-v: also the explained ones), and `N passed, N failed`. With --table, the table in
docs/conformance.md is replaced by the results.
"""
import argparse
import collections
import concurrent.futures
import fnmatch
import json
import os
import pathlib
import pickle
import queue
import subprocess
import sys
import threading
import time
import traceback

import yaml

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.append(str(HERE.parent))
from difference import compare  # noqa: E402
from harness import request  # noqa: E402
from life import Case, Life, Side  # noqa: E402
from recorder import Recorder  # noqa: E402

TYPES, DEFINITIONS = HERE / 'types', ROOT / 'resource-types'
DEVCLOUD = str(ROOT / 'devcloud/devcloud')
KEYSTONE = 'http://127.0.0.1:5000/v3'
# The ports of both services that are compared; the catalog has one of them.
ORCHESTRATION = {8004: 'orchestration', 8014: 'orchestration', 8000: 'cloudformation', 8010: 'cloudformation'}
# Name -> address of the proxy, URL of the service.
SIDES = {'peer': ('127.0.0.2', 'http://127.0.0.1:8004/v1'), 'kiln': ('127.0.0.3', 'http://127.0.0.1:8014/v1')}
WORKERS = 4
# A part of the names of stacks: one that another run could not delete does not matter.
RUN = f't{os.getpid() % 65536:04x}'


def devcloud(*words, **variables):
    done = subprocess.run([DEVCLOUD, *words], env=os.environ | variables, stdout=subprocess.DEVNULL)
    if done.returncode:
        sys.exit(f'devcloud {" ".join(words)} failed')


class Admin:
    """An administrator of devcloud."""

    def __init__(self):
        self.token, token = self.scoped('admin')
        self.user = token['user']['id']
        self.catalog = token['catalog']

    def scoped(self, project):
        user = {'name': 'admin', 'password': os.environ.get('DEVCLOUD_PASSWORD', 'devcloud'), 'domain': {'id': 'default'}}
        body = {'identity': {'methods': ['password'], 'password': {'user': user}},
                'scope': {'project': {'name': project, 'domain': {'id': 'default'}}}}
        _, headers, answer = request.call('POST', f'{KEYSTONE}/auth/tokens', {'auth': body})
        return headers['X-Subject-Token'], answer['token']

    def call(self, method, path, body=None):
        status, _, answer = request.call(method, KEYSTONE + path, body, self.token)
        if status >= 400:
            sys.exit(f'{method} {path}: {answer}')
        return answer

    def project(self, name):
        """The ID of a project, with a token of the administrator for it."""
        found = self.call('GET', f'/projects?name={name}&domain_id=default')['projects']
        one = found[0] if found else self.call('POST', '/projects', {'project': {'name': name}})['project']
        for role in self.call('GET', '/roles')['roles']:
            if role['name'] in ('admin', 'member', 'heat_stack_owner', 'creator', 'load-balancer_member'):
                self.call('PUT', f'/projects/{one["id"]}/users/{self.user}/roles/{role["id"]}')
        return one['id'], self.scoped(name)[0]

    def services(self):
        """Port -> type of the services in the catalog."""
        found = {}
        for service in self.catalog:
            for endpoint in service['endpoints']:
                port = int(endpoint['url'].split(':')[2].split('/')[0])
                # One that has several types, as Cinder, is called by the first in the alphabet: that without a version.
                found[port] = min(found.get(port, service['type']), service['type'])
        return found


def definitions():
    """Type -> services, of which the cloud must have one."""
    found = {}
    for path in DEFINITIONS.rglob('*.yaml'):
        text = yaml.load(path.read_text(), yaml.CSafeLoader)
        services = text.get('service', [])
        found[text['type']] = [services] if isinstance(services, str) else services
    return found


def read(path):
    text = yaml.safe_load(path.read_text())
    unknown = set(text) - {'needs', 'resources', 'steps', 'outputs', 'failing', 'before'}
    if unknown:
        sys.exit(f'{path}: unknown keys {sorted(unknown)}')
    kind = '::'.join(path.relative_to(TYPES).with_suffix('').parts)
    steps = {'check': {}} | text.get('steps', {})
    return Case(kind, text['resources'], steps, text.get('outputs', {}), text.get('failing', []), text.get('before', [])), \
        text.get('needs', [])


def missing(case, needs, offered, known):
    """The services that the template needs and the cloud does not have."""
    wanted = [known.get(resource['type'], []) for resource in case.resources.values()] + [[one] for one in needs]
    return sorted({'/'.join(services) for services in wanted if services and not offered & set(services)})


def fits(value, wanted):
    return value == wanted or isinstance(value, str) and isinstance(wanted, str) and fnmatch.fnmatchcase(value, wanted)


class Explained:
    def __init__(self):
        path = TYPES / 'explained.yaml'
        self.entries = yaml.safe_load(path.read_text()) or []
        self.used = collections.Counter()

    def reason(self, kind, field, peer, kiln):
        for number, entry in enumerate(self.entries):
            if fnmatch.fnmatchcase(kind, entry.get('type', '*')) and fnmatch.fnmatchcase(field, entry['field']) \
                    and fits(peer, entry.get('peer', peer)) and fits(kiln, entry.get('kiln', kiln)):
                self.used[number] += 1
                return entry['reason']
        return None


def failures(case, life):
    """The steps that did not end as the file says."""
    for label, observed in life.phases.items():
        status = observed.get('stack', {}).get('status', 'refused')
        if status.endswith('_COMPLETE') == (label in case.failing):
            reason = observed.get('stack', {}).get('reason') or observed.get('refused')
            yield f'{label}: {status}: {reason}'


def short(value):
    text = json.dumps(value, sort_keys=True)
    return text if len(text) < 700 else text[:700] + '…'


def prepare(case, services, token):
    """Makes what the file needs, unless it is there."""
    for one in case.before:
        port = next(port for port, service in services.items() if service == one['service'])
        status, _, answer = request.call('POST', f'http://127.0.0.1:{port}{one["path"]}', one['body'], token,
                                         **one.get('headers', {}))
        if status >= 400 and status != 409:
            raise RuntimeError(f'{one["path"]}: {answer}')


def play(case, projects, sides):
    """Both lives, and how many seconds they took."""
    prepare(case, sides[0].recorder.services, projects[0][1])
    lives, seconds = [], []
    for side, (project, token) in zip(sides, projects):
        start = time.monotonic()
        lives.append(Life(side, case, f'{RUN}-{case.type.replace("::", "-")}', token, project).run())
        seconds.append(time.monotonic() - start)
    return lives, seconds


def judge(lives, seconds, explained, verbose):
    """Lines about the type, the last one with the result, and whether it passed."""
    case, lines, bad, good = lives[0].case, [], set(), 0
    for failure in failures(case, lives[0]):
        lines.append(f'FAILED {case.type}: the peer, {failure}')
        bad.add(failure)
    for field, peer, kiln in compare(*lives):
        reason = explained.reason(case.type, field, peer, kiln)
        good += bool(reason)
        if not reason:
            bad.add(field)
        if not reason or verbose:
            what = f'  ({reason})' if reason else 'FAILED'
            lines.append(f'{what} {case.type}: {field}: peer {short(peer)}, Kiln {short(kiln)}')
    for label, drifted in lives[1].drift.items():
        for name, what in drifted.items():
            reason = explained.reason(case.type, f'drift {label} {name}', None, what)
            good += bool(reason)
            if not reason:
                bad.add(f'drift {label} {name}')
                lines.append(f'FAILED {case.type}: {label}: {name} has drifted although nobody has changed it: {short(what)}')
    sent = [sum(len(phase.get('requests', [])) for phase in life.phases.values()) for life in lives]
    summary = 'same' if not bad else f'{len(bad)} fields differ'
    if good:
        summary += f', {good} explained'
    lines.append(f'{case.type}: {summary} ({len(lives[0].phases)} steps, {sent[0]} and {sent[1]} requests, '
                 f'{seconds[0]:.0f} s and {seconds[1]:.0f} s)')
    return lines, not bad


class Cloud:
    """devcloud, with both services behind the proxy."""

    def __init__(self, keep):
        self.keep, admin = keep, Admin()
        self.services = ORCHESTRATION | admin.services()
        self.offered = {service['type'] for service in admin.catalog}
        self.sides = [Side(name, url, Recorder(address, self.services)) for name, (address, url) in SIDES.items()]
        addresses = [f'http://{address}:5000' for address, _ in SIDES.values()]
        devcloud('down', 'heat', 'kiln')
        devcloud('up', '--only', 'heat', 'kiln', HEAT_KEYSTONE_URL=addresses[0], KILN_KEYSTONE_URL=addresses[1])
        self.known, self.projects = definitions(), queue.SimpleQueue()
        for number in range(WORKERS):
            self.projects.put([admin.project(f'types-{side.name}-{number}') for side in self.sides])

    def play(self, case, needs):
        """Both lives; or the services that the cloud lacks."""
        lacks = missing(case, needs, self.offered, self.known)
        if lacks:
            return lacks
        own = self.projects.get()
        try:
            return play(case, own, self.sides)
        finally:
            self.projects.put(own)

    def close(self):
        if not self.keep:
            devcloud('down', 'heat', 'kiln')
            devcloud('up', '--only', 'heat', 'kiln')
        for side in self.sides:
            side.recorder.close()


def uncompared(types, files):
    """Type -> reason of those that have no file; ends the script if there is neither."""
    reasons = yaml.safe_load((TYPES / 'without.yaml').read_text())
    without = {kind: next((reason for glob, reason in reasons.items() if fnmatch.fnmatchcase(kind, glob)), None)
               for kind in sorted(set(types) - files)}
    unknown = [kind for kind, reason in without.items() if reason is None]
    if unknown:
        sys.exit(f'no file and no reason in types/without.yaml: {", ".join(unknown)}')
    return without


def write_table(results, without):
    """Replaces the table of the types. `results`: type -> (result, explained differences)."""
    rows = collections.defaultdict(lambda: collections.defaultdict(list))
    for kind, (result, explained) in results.items():
        column = 'skipped' if result is None else 'differs' if not result else 'explained' if explained else 'same'
        rows[kind.rpartition('::')[0]][column].append(kind.rpartition('::')[2])
    for kind, reason in without.items():
        rows[kind.rpartition('::')[0]][reason].append(kind.rpartition('::')[2])
    lines = ['| types | the same | with explained differences | with other differences | not compared |',
             '| --- | --- | --- | --- | --- |']
    for service, row in sorted(rows.items()):
        columns = [', '.join(sorted(row.pop(column, []))) for column in ('same', 'explained', 'differs')]
        lacks = row.pop('skipped', [])
        rest = [f'{", ".join(sorted(names))}: {reason}' for reason, names in row.items()]
        rest += [f'{", ".join(sorted(lacks))}: the service is not in devcloud'] if lacks else []
        lines.append(f'| {service} | {" | ".join(columns)} | {"; ".join(rest)} |')
    page = ROOT / 'docs/conformance.md'
    before, _, rest = page.read_text().partition('<!-- types -->\n')
    _, _, after = rest.partition('<!-- /types -->')
    text = '\n'.join(' '.join(line.split()) for line in lines)
    page.write_text(f'{before}<!-- types -->\n{text}\n<!-- /types -->{after}')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('-v', '--verbose', action='store_true', help='print the explained differences')
    parser.add_argument('--keep', action='store_true', help='leave both services behind the proxy')
    parser.add_argument('--save', type=pathlib.Path, metavar='FOLDER', help='write what was seen to a folder')
    parser.add_argument('--saved', type=pathlib.Path, metavar='FOLDER',
                        help='compare again what --save has written, without a cloud')
    parser.add_argument('--table', action='store_true', help='write the results into docs/conformance.md')
    parser.add_argument('words', nargs='*', metavar='WORD')
    options = parser.parse_args()
    files = sorted(path for path in TYPES.rglob('*.yaml') if path.parent != TYPES)
    cases = [(case, needs) for case, needs in map(read, files)
             if not options.words or any(word in case.type for word in options.words)]
    without = uncompared(definitions(), {'::'.join(path.relative_to(TYPES).with_suffix('').parts) for path in files})
    explained, printing, table = Explained(), threading.Lock(), {}
    cloud = None if options.saved else Cloud(options.keep)
    if options.save:
        options.save.mkdir(parents=True, exist_ok=True)

    def shown(pair):
        case, needs = pair
        try:
            file = case.type.replace('::', '-')
            if options.saved:
                path = options.saved / file
                if not path.exists():
                    return None
                seen = pickle.loads(path.read_bytes())
            else:
                seen = cloud.play(case, needs)
                if options.save:
                    (options.save / file).write_bytes(pickle.dumps(seen))
            if isinstance(seen, list):
                lines, good = [f'{case.type}: skipped, the cloud has no {", ".join(seen)}'], None
            else:
                lines, good = judge(*seen, explained, options.verbose)
        except Exception:
            lines, good = [f'FAILED {case.type}: {traceback.format_exc()}'], False
        table[case.type] = good, any(' explained' in line for line in lines[-1:])
        with printing:
            print('\n'.join(lines), flush=True)
        return good

    with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        results = list(pool.map(shown, cases))
    if not options.words:
        for number, entry in enumerate(explained.entries):
            if not explained.used[number]:
                print(f'unused: {entry.get("type", "*")} {entry["field"]}')
    if options.table:
        write_table(table, without)
    if cloud:
        cloud.close()
    print(f'{results.count(True)} passed, {results.count(False)} failed')
    sys.exit(False in results)


if __name__ == '__main__':
    main()
