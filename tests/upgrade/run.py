#!/usr/bin/env python3
"""Two versions of Kiln on one database, changed one after the other under load, forth and back:

    crates/store/tests/databases.sh tests/upgrade/run.py KILN [FORMER]
    tests/upgrade/run.py --build    only builds FORMER

KILN is the present binary. FORMER is the binary of an older version; without it, the one of the last tag (or of the commit
in KILN_FORMER) is built once in $CARGO_TARGET_DIR/former. Databases: SQLite, and those in KILN_TEST_DATABASES.

If the former version does not take the schema of the present one, there is no way back.

Two services with API and engine share the database. Users create, update and delete stacks all the time, and read lists;
some updates fail and are rolled back, which takes seconds, so that another version takes rollbacks over. As behind an HTTP
server, a request that a service does not accept (connection refused) is sent to the other one; every other error counts. Prints one line a step, and `N passed, N failed`.
"""
import http.client
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.append(str(ROOT / 'tests'))
from harness.checks import check, finish, until  # noqa: E402
from harness.deployment import free_port, listens  # noqa: E402
from harness.pypi import TARGET  # noqa: E402
from harness.request import Keystone, send  # noqa: E402

# The commit before the first one that this test belongs to; a tag takes precedence.
FIRST_FORMER = 'd256a2c1'
USERS, PHASE = 6, 8.0
KEY = '0123456789abcdef0123456789abcdef'

def former():
    """The binary of the former version, built once."""
    def git(*args):
        return subprocess.run(['git', '-C', ROOT, *args], capture_output=True, text=True).stdout.strip()
    commit = os.environ.get('KILN_FORMER') or git('describe', '--tags', '--abbrev=0', 'HEAD^') or FIRST_FORMER
    commit = git('rev-parse', f'{commit}^{{commit}}')
    place = TARGET / 'former'
    binary, stamp = place / 'target/debug/kiln', place / 'commit'
    if not (binary.exists() and stamp.exists() and stamp.read_text() == commit):
        print(f'building {commit[:8]}', flush=True)
        shutil.rmtree(place / 'source', ignore_errors=True)
        (place / 'source').mkdir(parents=True)
        archive = subprocess.Popen(['git', '-C', ROOT, 'archive', commit], stdout=subprocess.PIPE)
        subprocess.run(['tar', 'x', '-C', place / 'source'], stdin=archive.stdout, check=True)
        subprocess.run(['cargo', 'build', '--quiet', '--locked', '-p', 'kiln'], cwd=place / 'source', check=True,
                       env={**os.environ, 'CARGO_TARGET_DIR': str(place / 'target')})
        stamp.write_text(commit)
    return binary


class Service:
    """A service with API and engine."""

    def __init__(self, work, name, binary):
        self.work, self.name, self.port, self.process, self.binary = work, name, free_port(), None, binary
        self.start(binary)

    def start(self, binary):
        self.binary = binary
        log = open(self.work / f'{self.name}.log', 'a')
        self.process = subprocess.Popen(
            [binary, 'serve', '--config-file', self.work / 'kiln.conf', '--bind-port', str(self.port)], stderr=log,
            stdout=log)
        await_port(self.port, self.process, self.work / f'{self.name}.log')

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(90)
        check(f'{self.name} stops', code == 0, f'exit status {code}')

    def change(self, binary):
        """Stops the service as an operator does, and starts the other version."""
        self.stop()
        self.start(binary)


class Balancer:
    """Sends requests to one of the services."""

    def __init__(self, services, keystone, old=None):
        self.services, self.token, self.project, self.old = services, keystone.token, keystone.project, old
        self.requests, self.errors, self.resets, self.lock = 0, [], 0, threading.Lock()

    def call(self, method, path, body=None, expected=()):
        services = random.sample(self.services, len(self.services))
        error = 'refused by all'
        end = time.monotonic() + 20
        while time.monotonic() < end:
            for service in services:
                binary = service.binary
                connection = http.client.HTTPConnection('127.0.0.1', service.port, timeout=60)
                try:
                    connection.connect()
                except ConnectionRefusedError:
                    continue
                with self.lock:
                    self.requests += 1
                try:
                    connection.request(method, f'/v1/{self.project}{path}', body and json.dumps(body),
                                       {'X-Auth-Token': self.token, 'Content-Type': 'application/json'})
                    response = connection.getresponse()
                    text = response.read()
                except OSError as broken:
                    if binary == self.old:
                        # It resets connections that come while it stops; that is not to be repaired any more.
                        with self.lock:
                            self.resets += 1
                        continue
                    error = repr(broken)
                else:
                    if response.status in expected:
                        is_json = 'json' in response.getheader('Content-Type', '') and text
                        return response.status, json.loads(text) if is_json else {}
                    error = f'{response.status} {text[:300]}'
                finally:
                    connection.close()
                with self.lock:
                    self.errors.append(f'{method} {path} at {service.name} ({binary}): {error}')
                return None, {}
            time.sleep(0.05)
        with self.lock:
            self.errors.append(f'{method} {path}: {error}')
        return None, {}


def template(size, slow):
    resources = {f'network{n}': {'type': 'OS::Neutron::Net'} for n in range(size)}
    resources['word'] = {'type': 'OS::Heat::RandomString'}
    resources['below'] = {'type': 'below.yaml', 'properties': {'text': {'get_attr': ['word', 'value']}}}
    if slow:
        resources['server'] = {'type': 'OS::Nova::Server', 'properties': {
            'image': 'cirros', 'flavor': 'm1.tiny', 'networks': [{'network': 'private'}]}}
    below = {'heat_template_version': '2018-08-31', 'parameters': {'text': {'type': 'string'}}, 'resources': {
        'group': {'type': 'OS::Nova::ServerGroup', 'properties': {'policies': ['affinity']}},
        'value': {'type': 'OS::Heat::Value', 'properties': {'value': {'get_param': 'text'}}}}}
    return {'template': {'heat_template_version': '2018-08-31', 'resources': resources},
            'files': {'below.yaml': json.dumps(below)}}


def failing(slow):
    """An update that fails; its rollback deletes a network and waits two seconds for another resource."""
    request = template(4, slow)
    request['template']['resources'] |= {
        'late': {'type': 'OS::Heat::TestResource', 'properties': {'action_wait_secs': {'delete': 2}}},
        'broken': {'type': 'OS::Heat::TestResource', 'depends_on': 'late', 'properties': {'fail': True}}}
    return {**request, 'disable_rollback': False}


class User(threading.Thread):
    """Creates, updates and deletes stacks until it is told to stop; keeps the last one."""

    def __init__(self, number, balancer, stop):
        super().__init__()
        self.number, self.balancer, self.stop, self.operations, self.harmed = number, balancer, stop, 0, []
        self.start()

    def settled(self, place, state):
        end, found = time.monotonic() + 120, ''
        while time.monotonic() < end:
            _, body = self.balancer.call('GET', place, expected=(200,))
            found = body.get('stack', {}).get('stack_status', '')
            if found == state:
                self.operations += 1
                return
            if found.endswith('_FAILED'):
                self.harmed.append(f"{place} {found}: {body['stack']['stack_status_reason']}")
                return
            time.sleep(0.1)
        self.harmed.append(f'{place} is not {state}: {found}')

    def rolled_back(self, place, slow):
        """An update that fails; the stack has the same resources as before."""
        def resources():
            _, body = self.balancer.call('GET', f'{place}/resources', expected=(200,))
            return sorted((one['resource_name'], one['physical_resource_id']) for one in body.get('resources', []))

        before = resources()
        self.balancer.call('PUT', place, failing(slow), expected=(202,))
        self.settled(place, 'ROLLBACK_COMPLETE')
        if resources() != before:
            self.harmed.append(f'{place} after a rollback: {resources()}, not {before}')

    def run(self):
        try:
            self.work()
        except Exception as error:   # a user that ends early is not load
            self.harmed.append(repr(error))

    def work(self):
        round = 0
        while True:
            name = f'user{self.number}-{round}'
            slow = (self.number + round) % 2 == 0
            status, made = self.balancer.call('POST', '/stacks', {'stack_name': name, **template(2, slow)}, expected=(201,))
            if status is None:
                return
            place = f"/stacks/{name}/{made['stack']['id']}"
            self.settled(place, 'CREATE_COMPLETE')
            self.balancer.call('PUT', place, template(3, slow), expected=(202,))
            self.settled(place, 'UPDATE_COMPLETE')
            self.rolled_back(place, slow)
            self.balancer.call('GET', '/stacks', expected=(200,))
            self.balancer.call('GET', f'{place}/resources?nested_depth=2', expected=(200,))
            self.balancer.call('GET', f'{place}/events', expected=(200,))
            if self.stop.is_set():
                return
            self.balancer.call('DELETE', place, expected=(204,))
            round += 1


def await_port(port, process, log):
    until(lambda: listens(port) or process.poll() is not None, bool, 60, 0.05)
    if not listens(port):
        raise SystemExit(f'nothing listens on port {port}:\n{log.read_text()[-3000:]}')


def configure(work, cloud, database):
    (work / 'kiln.conf').write_text(
        f'[database]\nconnection = {database}\n[DEFAULT]\nauth_encryption_key = {KEY}\n'
        f'[keystone_authtoken]\nauth_url = http://127.0.0.1:{cloud}/identity/v3\nusername = heat\npassword = password\n'
        'project_name = service\n[heat_api]\nbind_host = 127.0.0.1\n[kiln]\ncfn_api = false\n')


def objects(keystone):
    """How many objects of the project are in the cloud."""
    found = {}
    for service, path, key in [('network', '/v2.0/networks', 'networks'), ('compute', '/servers', 'servers'),
                               ('compute', '/os-server-groups', 'server_groups')]:
        answer = send('GET', keystone.endpoint(service) + path, token=keystone.token)
        found[key] = len(json.load(answer)[key])
    return found


def takes_schema(binary, work):
    """Whether a version takes the schema of the database as it is."""
    command = [binary, 'api', '--config-file', work / 'kiln.conf', '--bind-port', '0']
    try:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=5)
    except subprocess.TimeoutExpired:
        return True
    check('the former version refuses for its schema only', 'from a newer version' in ran.stderr, ran.stderr)
    return False


def rolling(database, kiln, old):
    """The rolling upgrade on one database."""
    name = database.split(':')[0]
    work = pathlib.Path(tempfile.mkdtemp(prefix='kiln-upgrade.'))
    processes, services = [], []
    try:
        cloud = free_port()
        log = open(work / 'cloud.log', 'w')
        processes.append(subprocess.Popen([kiln, 'testcloud', '--port', str(cloud), '--build-time', '2'], stdout=log,
                                          stderr=log))
        await_port(cloud, processes[0], work / 'cloud.log')
        if database == 'sqlite':
            database = f'sqlite://{work}/kiln.db?mode=rwc'
        configure(work, cloud, database)
        keystone = Keystone(f'http://127.0.0.1:{cloud}/identity/v3', 'demo')
        before = objects(keystone)
        services = [Service(work, 'one', old), Service(work, 'two', old)]
        balancer, stop = Balancer(services, keystone, old), threading.Event()
        users = [User(number, balancer, stop) for number in range(USERS)]
        changes = 0
        for way in [kiln, old, kiln]:
            if way == old and not takes_schema(old, work):
                print(f'{name}: the former version does not take the schema of this one: there is no way back', flush=True)
                way = kiln   # restarted instead
            for service in services:
                time.sleep(PHASE)
                service.change(way)
                changes += 1
        time.sleep(PHASE)
        stop.set()
        for user in users:
            user.join(300)
        harmed = [text for user in users for text in user.harmed]
        operations = sum(user.operations for user in users)
        check(f'{name}: requests', not balancer.errors, balancer.errors[:5])
        check(f'{name}: stacks', not harmed, harmed[:5])
        check(f'{name}: there was load', operations > 40, operations)
        # The rest is whole: it can be deleted, and nothing is left in the cloud.
        _, listed = balancer.call('GET', '/stacks', expected=(200,))
        for stack in listed['stacks']:
            balancer.call('DELETE', f"/stacks/{stack['stack_name']}/{stack['id']}", expected=(204,))
        left = until(lambda: objects(keystone), lambda found: found == before)
        check(f'{name}: nothing is left in the cloud', left == before, (before, left))
        logs = ''.join((work / f'{service.name}.log').read_text() for service in services)
        errors = [line for line in logs.splitlines() if ' ERROR ' in line]
        check(f'{name}: no errors in the logs', not errors, errors[:3])
        print(f'{name}: {changes} changes of version, {balancer.requests} requests, {len(balancer.errors)} failed '
              f'(and {balancer.resets} reset by the former version), '
              f'{operations} operations, {len(harmed)} stacks harmed', flush=True)
    finally:
        for process in processes + [service.process for service in services]:
            if process.poll() is None:
                process.kill()
                process.wait()
        shutil.rmtree(work, ignore_errors=True)


def main():
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    if sys.argv[1] == '--build':
        former()
        return
    kiln = pathlib.Path(sys.argv[1]).resolve()
    old = pathlib.Path(sys.argv[2]).resolve() if len(sys.argv) > 2 else former()
    for database in ['sqlite', *os.environ.get('KILN_TEST_DATABASES', '').split()]:
        if database != 'sqlite':
            database = created(database)
        rolling(database, kiln, old)
    finish()


def created(server):
    """An empty database on a server."""
    name = f'upgrade_{os.getpid()}'
    place, _ = server.rsplit('/', 1)
    host, port = place.split('@')[1].split(':')
    if server.startswith('postgres'):
        command = ['psql', '-h', host, '-p', port, '-U', 'kiln', '-d', 'postgres', '-c', f'CREATE DATABASE {name}']
    else:
        command = ['mariadb', '--no-defaults', '-h', host, '-P', port, '-u', 'kiln', '-pkiln', '-e', f'CREATE DATABASE {name}']
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return f'{place}/{name}'


if __name__ == '__main__':
    main()
