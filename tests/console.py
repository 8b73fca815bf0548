#!/usr/bin/env python3
"""Compares the console commands of Heat with those of Kiln, output for output: tests/console.py KILN [-v] [--short | --record]

Every line of `console.txt` runs with heat-manage, heat-status and heat-keystone-setup-domain of Heat, and with a Kiln that is called
so. Exit codes, outputs and errors are compared, without times, IDs, random values and lines of the log; of errors in a command line
only that they are such errors (code 2), and of `--help` the options: all of Heat's must be there. Each program has a database of
its own with the same stacks and engines: Kiln's are made by a service that is killed, Heat's are rows that are written here.
heat-keystone-setup-domain has a simulated Keystone.

A text in brackets before a line is the reason of an expected difference, of all Heats or of one version: `[19: reason] LINE`.
docs/compatibility.md must name every reason; a difference that is gone is a failure. Compared are the Heat of PyPI (27) and, where
it is installed, that of Debian (19). With `--short`, what Heat 27 printed is read from `console-27.json`, which `--record` writes and
each run without `--short` checks. `-v` shows all differences. Prints `N passed, N failed`.
"""
import concurrent.futures
import contextlib
import difflib
import json
import pathlib
import re
import shlex
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
import uuid

sys.path.append(str(pathlib.Path(__file__).resolve().parent))
from harness import request  # noqa: E402
from harness.checks import check, finish, until  # noqa: E402
from harness.deployment import KILN, free_port, listens  # noqa: E402
from harness.pypi import ROOT, install  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
IS_LOUD = '-v' in sys.argv
IS_SHORT = '--short' in sys.argv
RECORDED = '27'
COMMANDS = ['heat-manage', 'heat-status', 'heat-keystone-setup-domain']
# What a later SQLAlchemy does not support.
PYPI = ['openstack-heat==27.0.1', 'SQLAlchemy<2.1', 'setuptools<81']
DEBIAN = pathlib.Path('/usr/bin/heat-manage')
KEY = '0123456789abcdef0123456789abcdef'
STACK, GONE, RESOURCE = (str(uuid.uuid5(uuid.NAMESPACE_DNS, name)) for name in ['web', 'gone', 'word'])

# What differs between two runs of the same program.
NOISE = [
    (re.compile(r'[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}'), '<uuid>'),
    (re.compile(r'\b[0-9a-f]{32}\b'), '<id>'),
    (re.compile(r'\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?Z?'), '<time>'),
    (re.compile(r'/tmp/[^/\s]+'), '<folder>'),
    (re.compile(r'^(value +)\S{32}', re.M), r'\1<random>'),
]
LOG = re.compile(r'\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+ \d+ (DEBUG|INFO|WARNING|ERROR|CRITICAL) ')


class Program:
    """The commands of a Heat or of Kiln, with a configuration and a database."""

    def __init__(self, name, folder, commands):
        self.name, self.folder, self.commands = name, folder, commands
        self.known = {}
        self.environment = {'PATH': '/usr/bin:/bin', 'HOME': str(folder), 'LANG': 'C.UTF-8', 'COLUMNS': '100',
                            'PYTHONWARNINGS': 'ignore'}
        self.cloud = None
        folder.mkdir(exist_ok=True)

    def configure(self, more=''):
        """A configuration file. The keyword of the URL is for Kiln, which does not create files unasked."""
        mode = '' if self.name != 'kiln' else '?mode=rwc'
        (self.folder / 'heat.conf').write_text(
            f'[DEFAULT]\nauth_encryption_key = {KEY}\ntransport_url = fake://\nrpc_response_timeout = 2\nhost = {socket.gethostname()}\n'
            f'[database]\nconnection = sqlite:///{self.folder}/heat.db{mode}\n'
            f'[keystone_authtoken]\nauth_url = {self.auth}\nusername = heat\npassword = password\nproject_name = service\n{more}')

    def start_cloud(self):
        port = free_port()
        self.auth = f'http://127.0.0.1:{port}/identity/v3'
        self.cloud = subprocess.Popen([KILN, 'testcloud', '--port', str(port), '--build-time', '3600'], stdout=subprocess.DEVNULL,
                                      stderr=subprocess.DEVNULL)
        until(lambda: listens(port), bool, 20)
        self.environment.update(OS_AUTH_URL=self.auth, OS_USERNAME='admin', OS_PASSWORD='password', OS_PROJECT_NAME='admin',
                                OS_USER_DOMAIN_NAME='Default', OS_PROJECT_DOMAIN_NAME='Default', OS_REGION_NAME='RegionOne')

    def sql(self, statement, *values):
        with contextlib.closing(sqlite3.connect(self.folder / 'heat.db')) as database, database:
            return database.execute(statement, values).fetchall()

    def run(self, line):
        """A step: exit code, output, errors."""
        if line in ('stacks', 'resources', 'engines'):
            return 0, getattr(self, line)(), ''
        if line in ('engines report', 'engines die'):
            self.set_engines(line == 'engines die')
            return 0, '', ''
        line, _, answer = line.partition(' < ')
        variables, words = {}, shlex.split(line)
        while '=' in words[0]:
            name, value = words.pop(0).split('=', 1)
            variables[name] = value
        words = [self.known.get(word.removeprefix('%'), word) if word.startswith('%') else word for word in words]
        command = [str(self.commands / words[0])]
        if '--config-file' not in words and words[0] != 'heat-keystone-setup-domain':
            command += ['--config-file', str(self.folder / 'heat.conf')]
        ran = subprocess.run(command + words[1:], input=answer + '\n' if answer else '', capture_output=True, text=True,
                             timeout=90, cwd=self.folder, env={**self.environment, **variables})
        if '--help' in words:
            return ran.returncode, options(ran.stdout), ''
        out, errors = plain(ran.stdout), plain(ran.stderr)
        if 'service' in words:
            out = without_host(out)
        # Python prints warnings of libraries before.
        errors = '\n'.join(line for line in errors.splitlines() if line.startswith(('ERROR: ', 'usage: ', 'Usage: ', 'error: ')))
        if ran.returncode == 2 and re.search('^(usage: |Usage: |error: )', errors, re.M):
            errors = '<usage>'
        return ran.returncode, out, errors


class Heat(Program):
    """Rows as Heat's engine writes them."""

    def fill(self):
        now, before = "datetime('now')", "datetime('now', '-1 day')"
        self.sql("INSERT INTO raw_template (id, template, environment) VALUES (1, '{\"heat_template_version\": \"2018-08-31\"}', '{}')")
        for id, name, action, status, deleted in [(STACK, 'web', 'CREATE', 'IN_PROGRESS', 'NULL'),
                                                  (GONE, 'gone', 'DELETE', 'COMPLETE', before)]:
            reason = f'Stack {action} {"started" if status == "IN_PROGRESS" else "completed successfully"}'
            self.sql(f'INSERT INTO stack (id, created_at, deleted_at, name, raw_template_id, action, status, status_reason, tenant, '
                     f'disable_rollback, backup, nested_depth, convergence, current_traversal) VALUES '
                     f"(?, {before}, {deleted}, ?, 1, ?, ?, ?, 'p', 1, 0, 0, 1, '')", id, name, action, status, reason)
        for number, name, status, reason in [(1, 'word', 'COMPLETE', 'state changed'), (2, 'server', 'IN_PROGRESS', 'state changed')]:
            self.sql(f'INSERT INTO resource (id, uuid, name, created_at, action, status, status_reason, stack_id, root_stack_id, '
                     f"current_template_id) VALUES (?, ?, ?, {before}, 'CREATE', ?, ?, ?, ?, 1)", number,
                     RESOURCE if number == 1 else str(uuid.uuid4()), name, status, reason, STACK, STACK)
        self.sql("INSERT INTO resource_data (id, key, value, redact, decrypt_method, resource_id) "
                 "VALUES (1, 'value', 'abcdefghijklmnopqrstuvwxyzabcdef', 0, '', 1)")
        host = socket.gethostname()
        self.sql(f'INSERT INTO service (id, engine_id, host, hostname, "binary", topic, report_interval, created_at, updated_at) '
                 f"VALUES (?, ?, ?, ?, 'heat-engine', 'engine', 60, {now}, {now})", str(uuid.uuid4()), str(uuid.uuid4()), host, host)
        self.known = {'STACK': STACK, 'GONE': GONE, 'RESOURCE': '1'}

    def set_engines(self, are_dead):
        self.sql(f"UPDATE service SET updated_at = datetime('now', '{-int(are_dead)} day')")

    def stacks(self):
        return rows(self.sql("SELECT name, action, status, status_reason FROM stack"))

    def resources(self):
        return rows(self.sql('SELECT name, action, status FROM resource'))

    def engines(self):
        return without_host(rows(self.sql('SELECT hostname FROM service WHERE deleted_at IS NULL')))


class Recorded:
    """What a Heat printed, step after step."""

    def __init__(self, version):
        self.steps = iter(recorded(version))

    def run(self, line):
        recorded_line, code, out, errors = next(self.steps, [None, None, '', ''])
        check(f'{line} is recorded', line == recorded_line, f'recorded is {recorded_line}: run tests/console.py KILN --record')
        return code, out, errors


def recording(version):
    return HERE / f'console-{version}.json'


def recorded(version):
    return json.loads(recording(version).read_text())


class Kiln(Program):
    """The same, made by a service that is killed."""

    def fill(self):
        port = free_port()
        self.configure(f'[heat_api]\nbind_host = 127.0.0.1\nbind_port = {port}\n[kiln]\ncfn_api = false\n')
        log = open(self.folder / 'serve.log', 'w')
        service = subprocess.Popen([KILN, 'serve', '--config-file', 'heat.conf'], cwd=self.folder, stdout=log, stderr=log)
        try:
            until(lambda: listens(port), bool, 20)
            keystone = request.Keystone(self.auth, 'demo')
            stacks = f'http://127.0.0.1:{port}/v1/{keystone.project}/stacks'
            template = {'heat_template_version': '2018-08-31', 'resources': {
                'word': {'type': 'OS::Heat::RandomString'},
                # Ready after the build time of the cloud.
                'server': {'type': 'OS::Nova::Server', 'properties': {
                    'image': 'cirros', 'flavor': 'm1.tiny', 'networks': [{'network': 'private'}]}}}}
            made = {}
            for name in ['gone', 'web']:
                body = {'stack_name': name, 'template': template if name == 'web' else {
                    'heat_template_version': '2018-08-31', 'resources': {'word': template['resources']['word']}}}
                made[name] = json.load(request.send('POST', stacks, body, keystone.token))['stack']['id']
                states = {'word': 'CREATE_COMPLETE', **({'server': 'CREATE_IN_PROGRESS'} if name == 'web' else {})}

                def resources():
                    found = request.call('GET', f'{stacks}/{name}/{made[name]}/resources', token=keystone.token)[2]['resources']
                    return {one['resource_name']: one['resource_status'] for one in found}
                has = until(resources, lambda has: all(has.get(key) == state for key, state in states.items()))
                check(f'the stack {name} of Kiln', states.items() <= has.items(), has)
            request.send('DELETE', f"{stacks}/gone/{made['gone']}", token=keystone.token)
            until(lambda: request.call('GET', f'{stacks}?name=gone', token=keystone.token)[2]['stacks'], lambda found: not found)
        finally:
            service.send_signal(signal.SIGKILL)
            service.wait()
        self.configure()
        [(word,)] = self.sql("SELECT id FROM kiln_resource WHERE name = 'word'")
        self.known = {'STACK': made['web'], 'GONE': made['gone'], 'RESOURCE': word}

    def set_engines(self, are_dead):
        # Microseconds; the interval is that of Heat's, so that a slow machine does not find it dead earlier.
        self.sql('UPDATE kiln_engine SET report_interval = 60, seen = ?', int((time.time() - 86_400 * are_dead) * 1_000_000))

    def stacks(self):
        return rows(self.sql('SELECT name, action, status, reason FROM kiln_stack'))

    def resources(self):
        return rows(self.sql("SELECT name, action, status FROM kiln_resource"))

    def engines(self):
        return without_host(rows(self.sql('SELECT hostname FROM kiln_engine')))


def rows(found):
    return '\n'.join(sorted(' '.join(map(str, row)) for row in found))


def without_host(text):
    """The name of this machine may be a word of other texts too."""
    return re.sub(rf'(?<![\w.-]){re.escape(socket.gethostname())}(?![\w.-]) *', '<host> ', text)


def plain(text):
    """A text without log, colours and noise."""
    text = re.sub(r'\x1b\[[0-9;]*m', '', text)
    text = '\n'.join(line.rstrip() for line in text.splitlines() if not LOG.match(line))
    for pattern, word in NOISE:
        text = pattern.sub(word, text)
    return text


def options(text):
    """The options and commands in a help."""
    return ' '.join(sorted(set(re.findall(r'(?<![\w-])--[a-zA-Z][\w-]*', text))))


def missing(line, of_heat, of_kiln, kiln):
    """Options of Heat that Kiln does not have: neither in its help, nor accepted, with a value or without."""
    absent = set(of_heat.split()) - set(of_kiln.split())
    return sorted(option for option in absent if not any(
        kiln.run(line.replace('--help', f'{given} --help'))[0] == 0 for given in [option, f'{option} x']))


def steps(version):
    """Lines with the reason of a difference in this version."""
    for line in (HERE / 'console.txt').read_text().splitlines():
        reason = None
        if line.startswith('['):
            reason, line = line[1:].split('] ', 1)
            only = re.match(r'(\d+): ', reason)
            if only:
                reason = reason[only.end():] if only.group(1) == version else None
        if line.strip() and not line.startswith('#'):
            yield reason, line


def compare(heat, kiln, version):
    """Compares all steps; returns what Heat printed."""
    guide = (ROOT / 'docs/compatibility.md').read_text()
    printed = []
    for reason, line in steps(version):
        results = [heat.run(line), kiln.run(line)]
        printed.append([line, *results[0]])
        if '--help' in line:
            results = [(results[0][0], ' '.join(missing(line, results[0][1], results[1][1], kiln)), ''), (results[1][0], '', '')]
        what = f'Heat {version}: {line}'
        shown = [[f'exit {code}', *out.splitlines(), '-- errors', *errors.splitlines()] for code, out, errors in results]
        difference = '\n'.join(difflib.unified_diff(*shown, 'heat', 'kiln', lineterm='', n=20))
        if reason is None:
            check(what, results[0] == results[1], f'\n{difference}')
        else:
            check(f'{what}: it differs: {reason}', results[0] != results[1], 'it does not differ any more')
            check(f'{what}: docs/compatibility.md has the reason', reason in guide, reason)
        if IS_LOUD and difference:
            print(f'{what} [{reason}]\n{difference}\n')
    return printed


def versions():
    """The folders of the commands of the Heats that are here; None for a recording."""
    if IS_SHORT:
        return {RECORDED: None}
    found = {RECORDED: install('heat-27', *PYPI) / 'bin'}
    if DEBIAN.exists():
        said = subprocess.run([DEBIAN, '--version'], capture_output=True, text=True).stdout.strip()
        found[said.split('.')[0]] = DEBIAN.parent
    return found


def of_version(version, commands):
    """All commands of a version of Heat, and the same of Kiln."""
    kiln = Kiln('kiln', work / f'kiln-{version}', links)
    heat = Recorded(version) if commands is None else Heat('heat', work / f'heat-{version}', commands)
    programs = [program for program in [heat, kiln] if isinstance(program, Program)]
    try:
        for program in programs:
            program.start_cloud()
            program.configure()
            program.run('heat-manage db_sync')
            program.fill()
        printed = compare(heat, kiln, version)
    finally:
        for program in programs:
            if program.cloud:
                program.cloud.kill()
                program.cloud.wait()
    if '--record' in sys.argv and version == RECORDED:
        recording(version).write_text('[\n' + ',\n'.join(json.dumps(step) for step in printed) + '\n]\n')
    elif version == RECORDED:
        check('the recording is what Heat prints', printed == recorded(version), 'run tests/console.py KILN --record')
    print(f'Heat {version}: {sum(1 for _ in steps(version))} commands', flush=True)


work = pathlib.Path(tempfile.mkdtemp(prefix='kiln-console.', dir='/tmp'))
links = work / 'bin'
links.mkdir()
for name in COMMANDS:
    (links / name).symlink_to(KILN)
try:
    # At the same time: each command of Heat takes a second of one processor.
    with concurrent.futures.ThreadPoolExecutor() as pool:
        list(pool.map(lambda one: of_version(*one), versions().items()))
finally:
    shutil.rmtree(work, ignore_errors=True)
finish()
