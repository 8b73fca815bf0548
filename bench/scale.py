#!/usr/bin/env python3
"""Measures Kiln at sizes that Heat cannot reach.

    cargo build --release -p kiln
    bench/scale.py [LOAD...]                                   # all loads, or those whose name contains a word
    bench/scale.py --database postgresql://kiln:kiln@127.0.0.1/kiln --engines 3

It starts `kiln testcloud` and `kiln serve` (with more engines, also `kiln engine`) on free ports with an empty SQLite
database, or with the one of --database, and asks the REST API. Each load prints its seconds, and for the whole run (with set-up
and delete) the CPU seconds and the peak memory of the service.
Only the standard library is needed. Nothing is asserted: the machine is shared.
"""
import argparse
import concurrent.futures
import http.client
import json
import multiprocessing
import os
import pathlib
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent
TARGET = pathlib.Path(os.environ.get('CARGO_TARGET_DIR', ROOT / 'target'))


def free_port():
    with socket.socket() as one:
        one.bind(('127.0.0.1', 0))
        return one.getsockname()[1]


def memory(pid, field):
    """MB of a process: VmRSS (now) or VmHWM (at most)."""
    text = pathlib.Path(f'/proc/{pid}/status').read_text()
    return int(re.search(rf'{field}:\s+(\d+)', text)[1]) / 1024


def cpu(pid):
    """CPU seconds that a process has used."""
    fields = pathlib.Path(f'/proc/{pid}/stat').read_text().rsplit(') ', 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')


class Cluster:
    """A simulated cloud, one `kiln serve`, and more engines on the same database."""

    def __init__(self, binary, folder, database, engines, cloud_words=('--build-time', '0')):
        self.processes = []
        cloud = free_port()
        exports = folder / 'exports'
        self.run(binary, folder, 'testcloud', '--port', str(cloud), '--exports', str(exports), *cloud_words)
        while not exports.exists() or 'OS_PASSWORD' not in exports.read_text():
            time.sleep(0.02)
        self.rc = dict(re.findall(r'(OS_\w+)=(\S+)', exports.read_text()))
        self.port = free_port()
        config = folder / 'kiln.conf'
        config.write_text(f"""[database]
connection = {database or f'sqlite://{folder}/kiln.db?mode=rwc'}
[DEFAULT]
auth_encryption_key = 0123456789abcdef0123456789abcdef
max_resources_per_stack = -1
max_stacks_per_tenant = -1
max_template_size = 100000000
max_json_body_size = 200000000
[heat_api]
bind_host = 127.0.0.1
bind_port = {self.port}
[heat_api_cfn]
bind_port = {free_port()}
[keystone_authtoken]
auth_url = {self.rc['OS_AUTH_URL']}
username = heat
password = password
project_name = service
user_domain_name = Default
project_domain_name = Default
[oslo_policy]
enforce_scope = false
""")
        self.service = self.run(binary, folder, 'serve', '--config-file', str(config))
        for _ in range(engines - 1):
            self.run(binary, folder, 'engine', '--config-file', str(config))
        self.authenticate()
        for _ in range(600):
            try:
                self.call('GET', '/stacks')
                return
            except (urllib.error.URLError, ConnectionError):
                time.sleep(0.05)
        sys.exit('the service does not answer:\n' + (folder / 'serve-1.log').read_text())

    def run(self, binary, folder, *words):
        log = open(folder / f'{words[0]}-{len(self.processes)}.log', 'w')
        process = subprocess.Popen([str(binary), *words], stdout=log, stderr=log)
        self.processes.append(process)
        return process

    def stop(self):
        for process in reversed(self.processes):
            process.send_signal(signal.SIGTERM)
        for process in self.processes:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()

    def peak(self):
        """The highest memory of the service so far, in MB."""
        return memory(self.service.pid, 'VmHWM')

    def forget_peak(self):
        pathlib.Path(f'/proc/{self.service.pid}/clear_refs').write_text('5')

    def authenticate(self):
        domain = {'name': self.rc.get('OS_USER_DOMAIN_NAME', 'Default')}
        body = {'auth': {'identity': {'methods': ['password'], 'password': {'user': {
            'name': self.rc['OS_USERNAME'], 'domain': domain, 'password': self.rc['OS_PASSWORD']}}},
            'scope': {'project': {'name': self.rc['OS_PROJECT_NAME'], 'domain': domain}}}}
        request = urllib.request.Request(self.rc['OS_AUTH_URL'] + '/auth/tokens', json.dumps(body).encode(),
                                         {'Content-Type': 'application/json'})
        with urllib.request.urlopen(request) as reply:
            self.token = reply.headers['X-Subject-Token']
            self.project = json.load(reply)['token']['project']['id']

    def call(self, method, path, body=None):
        text = self.ask(method, path, body)
        return json.loads(text) if text.startswith(b'{') else None

    def ask(self, method, path, body=None):
        """The text of the response."""
        request = urllib.request.Request(
            f'http://127.0.0.1:{self.port}/v1/{self.project}{path}',
            json.dumps(body).encode() if body is not None else None,
            {'Content-Type': 'application/json', 'Accept': 'application/json', 'X-Auth-Token': self.token}, method=method)
        with urllib.request.urlopen(request) as reply:
            return reply.read()

    def settle(self, name, pause=0.01):
        """Waits for the end of an operation."""
        while True:
            shown = self.call('GET', f'/stacks/{name}?resolve_outputs=false')['stack']
            if not shown['stack_status'].endswith('IN_PROGRESS'):
                if not shown['stack_status'].endswith('COMPLETE'):
                    raise RuntimeError(f"{shown['stack_status']}: {shown['stack_status_reason']}")
                return shown['id']
            time.sleep(pause)

    def create(self, name, template, files=None):
        """Seconds until the request was accepted, and until the stack was complete."""
        start = time.time()
        made = self.call('POST', '/stacks', {'stack_name': name, 'template': template, 'files': files or {}, 'timeout_mins': 60})
        accepted = time.time() - start
        self.settle(f"{name}/{made['stack']['id']}")
        return accepted, time.time() - start

    def update(self, name, template):
        start = time.time()
        shown = self.call('GET', f'/stacks/{name}?resolve_outputs=false')['stack']
        self.call('PUT', f"/stacks/{name}/{shown['id']}", {'template': template, 'timeout_mins': 60})
        self.settle(f"{name}/{shown['id']}")
        return time.time() - start

    def delete(self, name):
        shown = self.call('GET', f'/stacks/{name}?resolve_outputs=false')['stack']
        path = f"/stacks/{name}/{shown['id']}"
        start = time.time()
        self.call('DELETE', path)
        self.settle(f"{name}/{shown['id']}")
        return time.time() - start


def hot(resources, outputs=None):
    return json.dumps({'heat_template_version': '2021-04-16', 'resources': resources, 'outputs': outputs or {}})


def value(text):
    return {'type': 'OS::Heat::Value', 'properties': {'value': text}}


def values(count):
    return hot({f'v{number}': value(f'x{number}') for number in range(count)})


def created(count):
    def load(cluster):
        accepted, seconds = cluster.create('values', values(count))
        peak = cluster.peak()
        deleted = cluster.delete('values')
        return seconds, f'accepted in {accepted:.2f} s, {peak:.0f} MB when created, deleted in {deleted:.2f} s'
    return load


def named_networks(cluster):
    """1,000 networks with names, as templates have them."""
    net = {'type': 'OS::Neutron::Net'}
    accepted, seconds = cluster.create('named', hot({
        f'n{number}': {**net, 'properties': {'name': f'named-{number}'}} for number in range(1000)}))
    deleted = cluster.delete('named')
    accepted, unnamed = cluster.create('unnamed', hot({f'n{number}': net for number in range(1000)}))
    cluster.delete('unnamed')
    return seconds, f'{unnamed:.2f} s without names, deleted in {deleted:.2f} s'


def update_without_changes(cluster):
    template = values(10_000)
    cluster.create('same', template)
    seconds = cluster.update('same', template)
    cluster.delete('same')
    return seconds, ''


def plan(template, changed, files=None, query=''):
    """The plan of an update: its seconds, and what the service takes for it above what it had."""
    def load(cluster):
        cluster.create('planned', template, files)
        shown = cluster.call('GET', '/stacks/planned?resolve_outputs=false')['stack']
        before = memory(cluster.service.pid, 'VmRSS')
        cluster.forget_peak()
        body = {'template': changed, 'files': files or {}}
        start = time.time()
        text = cluster.ask('PUT', f"/stacks/planned/{shown['id']}/preview{query}", body)
        seconds, more = time.time() - start, cluster.peak() - before
        answer = json.loads(text)
        if 'plan' in answer:
            counts = answer['plan']['totals']
        else:
            counts = {name: len(resources) for name, resources in answer['resource_changes'].items()}
        counts = ', '.join(f'{count} {name}' for name, count in counts.items() if count)
        cluster.delete('planned')
        return seconds, f'{more:.0f} MB more, {len(text) / 1e6:.1f} MB answered: {counts}'
    return load


def tenth_changed(count):
    return hot({f'v{number}': value(f'x{number}' if number % 10 else 'changed') for number in range(count)})


def saved_plan(cluster):
    """A saved plan of 10,000 resources: its seconds without the update itself, and those of what surrounds it."""
    template, changed = values(10_000), tenth_changed(10_000)
    cluster.create('planned', template)
    shown = cluster.call('GET', '/stacks/planned?resolve_outputs=false')['stack']
    before = memory(cluster.service.pid, 'VmRSS')
    cluster.forget_peak()

    def timed(*call):
        start = time.time()
        answer = cluster.call(*call)
        return time.time() - start, answer
    body = {'action': 'update', 'stack': 'planned', 'template': changed}
    saved, answer = timed('POST', '/plans', body)
    of_save = cluster.peak() - before
    previewed, _ = timed('PUT', f"/stacks/planned/{shown['id']}/preview?plan=true", {'template': changed})
    path = f"/plans/{answer['plan']['id']}"
    listed, _ = timed('GET', '/plans')
    read, _ = timed('GET', path)
    executed, _ = timed('POST', path + '/execute', {})
    start = time.time()
    cluster.settle(f"planned/{shown['id']}")
    settled, more = time.time() - start, cluster.peak() - before
    cluster.delete('planned')
    return saved, (f'a preview takes {previewed:.2f} s, a list {listed:.2f} s, a read {read:.2f} s; executed in {executed:.2f} s, '
                   f'updated in {settled:.2f} s; the save {of_save:.0f} MB more, all {more:.0f} MB')


def nest(text):
    return hot({f'n{number}': {'type': 'child.yaml', 'properties': {'p': text}} for number in range(100)})


# 100 values, of which one has the parameter.
CHILD = json.dumps({**json.loads(values(99)), 'parameters': {'p': {'type': 'string'}}}).replace(
    '"v0"', '"read": {"type": "OS::Heat::Value", "properties": {"value": {"get_param": "p"}}}, "v0"', 1)


def nested_stacks(cluster):
    """1,000 nested stacks of 22 resources."""
    template = hot({f'n{number}': {'type': 'child.yaml'} for number in range(1000)})
    accepted, seconds = cluster.create('nested', template, {'child.yaml': values(22)})
    peak = cluster.peak()
    deleted = cluster.delete('nested')
    return seconds, f'accepted in {accepted:.2f} s, {peak:.0f} MB when created, deleted in {deleted:.2f} s'


def fan_in(cluster):
    """10,000 values that one resource reads; seconds more than without it, by the shortest of three each, in turns."""
    resources = {f'v{number}': value(f'x{number}') for number in range(10_000)}
    templates = {'apart': hot(resources)}
    resources['all'] = value({'list_join': [',', [{'get_attr': [f'v{number}', 'value']} for number in range(10_000)]]})
    templates['together'], times = hot(resources), {'apart': [], 'together': []}
    for _ in range(3):
        for name, template in templates.items():
            times[name].append(cluster.create(name, template)[1])
            cluster.delete(name)
    without, seconds = min(times['apart']), min(times['together'])
    return seconds - without, f'{without:.2f} s without, {seconds:.2f} s with'


def read_until(port, project, token, stop, results):
    """Lists stacks again and again; sends the seconds of each read at the end."""
    connection, times = http.client.HTTPConnection('127.0.0.1', port), []
    while not stop.is_set():
        start = time.time()
        connection.request('GET', f'/v1/{project}/stacks?limit=20', headers={'X-Auth-Token': token, 'Accept': 'application/json'})
        connection.getresponse().read()
        times.append(time.time() - start)
        time.sleep(0.005)
    results.send(times)


def many_stacks(cluster):
    """2,000 stacks, 20 at a time; reads of another client meanwhile, which is a process of its own: a thread would wait
    for the other threads of this one."""
    template, stop = values(2), multiprocessing.Event()
    results, sent = multiprocessing.Pipe(duplex=False)
    reader = multiprocessing.Process(target=read_until, args=(cluster.port, cluster.project, cluster.token, stop, sent))
    reader.start()
    start = time.time()
    with concurrent.futures.ThreadPoolExecutor(20) as pool:
        list(pool.map(lambda number: cluster.create(f'many{number}', template), range(2000)))
    seconds = time.time() - start
    stop.set()
    times = results.recv()
    reader.join()
    with concurrent.futures.ThreadPoolExecutor(20) as pool:
        list(pool.map(lambda number: cluster.delete(f'many{number}'), range(2000)))
    cuts = statistics.quantiles(times, n=100)
    return seconds, f'{2000 / seconds:.0f} stacks/s; {len(times)} reads, p50 {cuts[49] * 1000:.1f} ms, p99 {cuts[98] * 1000:.1f} ms'


LOADS = {
    '10,000 values': created(10_000),
    '20,000 values': created(20_000),
    '100,000 values': created(100_000),
    '1,000 named networks': named_networks,
    'update of 10,000 without changes': update_without_changes,
    'plan of an update of 10,000': plan(values(10_000), tenth_changed(10_000)),
    'document of the plan of 10,000': plan(values(10_000), tenth_changed(10_000), query='?plan=true'),
    'document of the plan of 100 x 100': plan(nest('a'), nest('b'), {'child.yaml': CHILD}, '?plan=true'),
    'saved plan of 10,000': saved_plan,
    '1,000 nested stacks of 22': nested_stacks,
    'fan-in of 10,000': fan_in,
    '2,000 stacks, 20 at a time': many_stacks,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('load', nargs='*', help='words of the loads to run')
    parser.add_argument('--binary', default=TARGET / 'release/kiln', help='the binary of Kiln (default: %(default)s)')
    parser.add_argument('--database', help='a database URL instead of a new SQLite file')
    parser.add_argument('--engines', type=int, default=1, help='number of engines (more than one needs --database)')
    args = parser.parse_args()
    if args.engines > 1 and not args.database:
        parser.error('several engines need --database')
    print(f'{"load":34} {"wall":>9} {"CPU, all":>11} {"peak":>9}')
    for name, load in LOADS.items():
        if args.load and not any(word in name for word in args.load):
            continue
        with tempfile.TemporaryDirectory(prefix='kiln-scale') as folder:
            cluster = Cluster(args.binary, pathlib.Path(folder), args.database, args.engines)
            try:
                seconds, note = load(cluster)
                peak, used = cluster.peak(), cpu(cluster.service.pid)
                print(f'{name:34} {seconds:7.2f} s {used:9.2f} s {peak:6.0f} MB  {note}', flush=True)
            except (RuntimeError, urllib.error.HTTPError) as error:
                detail = error.read().decode()[:300] if isinstance(error, urllib.error.HTTPError) else ''
                print(f'{name:34} FAILED {error} {detail}', flush=True)
            finally:
                cluster.stop()


if __name__ == '__main__':
    main()
