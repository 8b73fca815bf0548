#!/usr/bin/env python3
"""Compares Kiln and the Python Heat under the same load.

    devcloud/devcloud up heat && devcloud/devcloud up kiln     # the cloud, the peer, Kiln beside it
    bench/run.py [LOAD...]                                     # all loads, or some
    bench/run.py --kiln-only                                   # the target figures, at full size

Both are asked through their REST APIs on loopback, in turn, as the user demo; Kiln is a release build on SQLite. A load
prints the seconds (or requests a second) of both and how many times as fast Kiln is. Only standard library and, for
request rates, wrk (Debian package). Nothing is asserted: the machine is shared.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
import uuid

ROOT = pathlib.Path(__file__).resolve().parent.parent


def devcloud(*words):
    return subprocess.run([str(ROOT / 'devcloud/devcloud'), *words], capture_output=True, text=True).stdout


def account(user='demo'):
    return dict(re.findall(r'export (\w+)=(.*)', devcloud('rc', user)))


def token(env=None):
    """The token and the project of an account, by default that of demo on devcloud."""
    env = env or account()
    body = {'auth': {'identity': {'methods': ['password'], 'password': {'user': {
        'name': env['OS_USERNAME'], 'domain': {'id': 'default'}, 'password': env['OS_PASSWORD']}}},
        'scope': {'project': {'name': env['OS_PROJECT_NAME'], 'domain': {'id': 'default'}}}}}
    request = urllib.request.Request(env['OS_AUTH_URL'] + '/auth/tokens', json.dumps(body).encode(),
                                     {'Content-Type': 'application/json'})
    with urllib.request.urlopen(request) as reply:
        return reply.headers['X-Subject-Token'], json.load(reply)['token']['project']['id']


def call(method, url, token, body=None, **headers):
    """The JSON of an answer, or None."""
    request = urllib.request.Request(
        url, json.dumps(body).encode() if body is not None else None,
        {'Content-Type': 'application/json', 'Accept': 'application/json', 'X-Auth-Token': token, **headers}, method=method)
    with urllib.request.urlopen(request) as reply:
        text = reply.read()
        return json.loads(text) if text.startswith(b'{') else None


class Service:
    """An orchestration service."""

    def __init__(self, name, port, processes, env=None):
        self.name, self.processes = name, processes
        self.token, project = token(env)
        self.url = f'http://127.0.0.1:{port}/v1/{project}'

    def call(self, method, path, body=None):
        return call(method, self.url + path, self.token, body)

    def status(self, stack):
        return self.call('GET', f'/stacks/{stack}?resolve_outputs=false')['stack']

    def wait(self, stack, pause=0.02):
        while True:
            shown = self.status(stack)
            if not shown['stack_status'].endswith('IN_PROGRESS'):
                return shown
            time.sleep(pause)

    def create(self, template, files=None, parameters=None, pause=0.02):
        """Seconds until a stack is complete, and its path."""
        name = 'bench-' + uuid.uuid4().hex[:8]
        start = time.time()
        made = self.call('POST', '/stacks', {'stack_name': name, 'template': template, 'files': files or {},
                                             'parameters': parameters or {}, 'timeout_mins': 60})
        path = f"{name}/{made['stack']['id']}"
        shown = self.wait(path, pause)
        if shown['stack_status'] != 'CREATE_COMPLETE':
            raise RuntimeError(f"{self.name}: {shown['stack_status']} {shown['stack_status_reason']}")
        return time.time() - start, path

    def delete(self, path):
        try:
            self.call('DELETE', f'/stacks/{path}')
            while self.wait(path)['stack_status'] != 'DELETE_COMPLETE':
                time.sleep(0.05)
        except urllib.error.HTTPError as error:
            if error.code != 404:
                raise

    def pids(self):
        """The processes of the service, by devcloud's pid files."""
        run = pathlib.Path(os.environ.get('DEVCLOUD_DIR', '/var/tmp/devcloud')) / 'run'
        pids = []
        for process in self.processes:
            leader = (run / f'{process}.pid').read_text().split()[0]
            group = subprocess.run(['pgrep', '-g', leader], capture_output=True, text=True).stdout.split()
            pids += group
        return pids

    def resident(self):
        """MB resident; pages that processes share count once."""
        total = 0
        for pid in self.pids():
            for line in pathlib.Path(f'/proc/{pid}/smaps_rollup').read_text().splitlines():
                if line.startswith('Pss:'):
                    total += int(line.split()[1])
        return total / 1024

    def cpu(self):
        """CPU seconds used so far."""
        ticks = os.sysconf('SC_CLK_TCK')
        total = 0
        for pid in self.pids():
            fields = pathlib.Path(f'/proc/{pid}/stat').read_text().rsplit(') ', 1)[1].split()
            total += int(fields[11]) + int(fields[12])
        return total / ticks


def hot(resources, outputs=None):
    return {'heat_template_version': '2021-04-16', 'resources': resources, 'outputs': outputs or {}}


def values(n):
    return hot({f'v{i}': {'type': 'OS::Heat::Value', 'properties': {'value': f'x{i}'}} for i in range(n)})


def chain(n):
    def one(i):
        value = {'get_attr': [f'v{i - 1}', 'value']} if i else 'x'
        return {'type': 'OS::Heat::Value', 'properties': {'value': value}}
    return hot({f'v{i}': one(i) for i in range(n)})


def nested(n, inner):
    child = json.dumps(values(inner))
    return hot({f'n{i}': {'type': 'child.yaml'} for i in range(n)}), {'child.yaml': child}


def networks(n):
    return hot({f'n{i}': {'type': 'OS::Neutron::Net', 'properties': {'name': f'bench-{i}'}} for i in range(n)})


def timed(template, files=None, parameters=None):
    def load(service):
        seconds, path = service.create(template, files, parameters)
        service.delete(path)
        return seconds
    return load


def rate(path, seconds=3):
    """Requests per second with two connections, measured by wrk."""
    def load(service):
        done = subprocess.run(['wrk', '-t', '1', '-c', '8', '-d', f'{seconds}s', '-H', f'X-Auth-Token: {service.token}',
                               '-H', 'Accept: application/json', service.url + path], capture_output=True, text=True)
        if 'Non-2xx' in done.stdout:
            raise RuntimeError(done.stdout)
        return float(re.search(r'Requests/sec:\s+([\d.]+)', done.stdout)[1])
    return load


def stack_list(service):
    made = [service.create(values(1))[1] for _ in range(50 - len(service.call('GET', '/stacks')['stacks']))]
    try:
        return rate('/stacks')(service)
    finally:
        for path in made:
            service.delete(path)


def three_tier(service):
    """Wall seconds on the real cloud, and the fraction of CPU time of the service."""
    # The client sends templates as JSON; YAML texts do as well.
    text = (ROOT / 'examples/three-tier.yaml').read_text()
    before = service.cpu()
    # Poll rarely, to measure the engine and not the API.
    flavors = {'web_flavor': 'm1.nano', 'database_flavor': 'm1.nano'}
    seconds, path = service.create(text, parameters=flavors, pause=0.5)
    share = (service.cpu() - before) / seconds * 100
    service.delete(path)
    print(f'    {service.name}: {share:.1f} % of the wall time is its own computing')
    return seconds


def loads(full):
    """name -> (load, unit); `full` are the sizes to reach, else those that the peer can bear."""
    many, small = (100, 100) if full else (10, 10)
    template, files = nested(many, 5)
    found = {
        f'{100 if not full else 1000} independent values': (timed(values(1000 if full else 100)), 's'),
        'chain of 200 values': (timed(chain(200)), 's'),
        f'{many} nested stacks of 5': (timed(template, files), 's'),
        'stack list of 50 stacks': (stack_list, '/s'),
        'resource type list': (rate('/resource_types'), '/s'),
        '50 Neutron networks': (timed(networks(50)), 's'),
        'three-tier stack': (three_tier, 's'),
    }
    if full:
        found['10000 independent values'] = (big, 's')
    return found


def big(service):
    seconds, path = service.create(values(10_000))
    print(f'    {service.name}: {service.resident():.0f} MB resident behind 10000 resources')
    service.delete(path)
    return seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('load', nargs='*', help='words of the loads to run')
    parser.add_argument('--kiln-only', action='store_true', help='Kiln alone, at the full sizes')
    parser.add_argument('--kiln-port', default=os.environ.get('KILN_PORT', '8014'))
    parser.add_argument('--heat-port', default=os.environ.get('HEAT_PORT', '8004'))
    args = parser.parse_args()
    if not shutil.which('wrk'):
        sys.exit('wrk is missing: apt-get install wrk')
    kiln = Service('kiln', args.kiln_port, ['kiln'])
    heat = None if args.kiln_only else Service('heat', args.heat_port, ['heat-api', 'heat-engine'])
    print(f'{"load":32} {"kiln":>10} {"heat":>10} {"ratio":>8}')
    resident = [f'{kiln.resident():.0f} MB', f'{heat.resident():.0f} MB' if heat else '']
    print(f'{"resident, idle":32} {resident[0]:>10} {resident[1]:>10}')
    for name, (load, unit) in loads(args.kiln_only).items():
        if args.load and not any(word in name for word in args.load):
            continue
        mine = load(kiln)
        line = f'{name:32} {mine:8.2f} {unit}'
        if heat:
            theirs = load(heat)
            ratio = theirs / mine if unit == 's' else mine / theirs
            line += f' {theirs:8.2f} {unit} {ratio:7.0f}x'
        print(line, flush=True)


if __name__ == '__main__':
    main()
