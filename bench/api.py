#!/usr/bin/env python3
"""Measures the read requests of the API with many stacks in the database, with wrk.

    cargo build --release -p kiln
    bench/api.py [--stacks 1000] [--binary target/release/kiln] [REQUEST...]    # all requests, or those with a word
    bench/api.py --url http://127.0.0.1:8004/v1                                 # another service, with OS_* of an account

It starts `kiln testcloud` and `kiln serve` on free ports, creates the stacks (three resources and an output each), and then,
for each request, asks as fast as possible, and afterwards at half of that rate (or at --rate), for which it prints the
latency. The best of three rounds counts, because the machine is shared. wrk runs on the same cores. Another service keeps
the stacks for the next run. Nothing is asserted.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request

import scale

TEMPLATE = {
    'heat_template_version': '2018-08-31',
    'parameters': {'word': {'type': 'string', 'default': 'a'}},
    'resources': {name: {'type': 'OS::Heat::Value', 'properties': {'value': {'get_param': 'word'}}}
                  for name in ('one', 'two', 'three')},
    'outputs': {'out': {'value': {'get_attr': ['one', 'value']}}},
}
# wrk sends the next request of a connection after a pause of random length, so that the rate is nearly constant.
PACED = 'local pause = tonumber(os.getenv("PAUSE"))\nfunction delay() return math.random(0, 2 * pause) end\n'


class Other:
    """A service that runs already; the account is in OS_*."""

    def __init__(self, url):
        env = os.environ
        domain = {'name': env.get('OS_USER_DOMAIN_NAME', 'Default')}
        identity = {'methods': ['password'], 'password': {
            'user': {'name': env['OS_USERNAME'], 'password': env['OS_PASSWORD'], 'domain': domain}}}
        body = {'auth': {'identity': identity, 'scope': {'project': {'name': env['OS_PROJECT_NAME'], 'domain': domain}}}}
        request = urllib.request.Request(env['OS_AUTH_URL'].rstrip('/').removesuffix('/v3') + '/v3/auth/tokens',
                                         json.dumps(body).encode(), {'Content-Type': 'application/json'})
        with urllib.request.urlopen(request) as answer:
            self.token, self.project = answer.headers['X-Subject-Token'], json.load(answer)['token']['project']['id']
        self.base = f'{url}/{self.project}'

    def stop(self):
        pass


def ask(service, method, path, body=None):
    request = urllib.request.Request(service.base + path, None if body is None else json.dumps(body).encode(),
                                     {'X-Auth-Token': service.token, 'Content-Type': 'application/json'}, method=method)
    with urllib.request.urlopen(request, timeout=300) as answer:
        return json.load(answer) if answer.status != 204 else None


def fill(service, count):
    """Creates the stacks that do not exist yet and waits for them; returns the path of one."""
    there = {one['stack_name']: one['id'] for one in ask(service, 'GET', '/stacks')['stacks']}

    def create(number):
        name = f'api-{number}'
        if name in there:
            return there[name]
        return ask(service, 'POST', '/stacks', {'stack_name': name, 'template': TEMPLATE})['stack']['id']

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        ids = list(pool.map(create, range(count)))
    while ask(service, 'GET', '/stacks?status=IN_PROGRESS&limit=1')['stacks']:
        time.sleep(0.5)
    listed = ask(service, 'GET', '/stacks?limit=1&with_count=true')
    print(f"{listed['count']} stacks", flush=True)
    return f'/stacks/api-{count // 2}/{ids[count // 2]}'


def wrk(service, path, seconds, connections, folder, pause=None):
    """Requests per second, p50 and p99 in ms, failed requests."""
    command = ['wrk', '-t2', f'-c{connections}', f'-d{seconds}', '--latency', '--timeout', '60',
               '-H', f'X-Auth-Token: {service.token}']
    if pause is not None:
        (folder / 'paced.lua').write_text(PACED)
        command += ['-s', str(folder / 'paced.lua')]
    text = subprocess.run([*command, service.base + path], capture_output=True, text=True, check=True,
                          env={**os.environ, 'PAUSE': str(pause)}).stdout
    failed = re.search(r'Non-2xx or 3xx responses: (\d+)', text)
    latency = [milliseconds(re.search(rf'\s{share}%\s+(\S+)', text)[1]) for share in (50, 99)]
    return float(re.search(r'Requests/sec:\s+([\d.]+)', text)[1]), *latency, int(failed[1]) if failed else 0


def milliseconds(text):
    number, unit = re.fullmatch(r'([\d.]+)(us|ms|s|m)', text).groups()
    return float(number) * {'us': 0.001, 'ms': 1, 's': 1000, 'm': 60000}[unit]


def measure(service, name, path, options, folder):
    start = time.monotonic()
    ask(service, 'GET', path)
    if time.monotonic() - start > options.seconds / 16:
        # It would answer none of 16 in a round, and still be busy with them in the next one.
        best = wrk(service, path, options.seconds * 6, 2, folder)
        print(f'{name:32} {best[0]:9.2f}/s (p50 {best[1]:.0f} ms, p99 {best[2]:.0f} ms)', flush=True)
        return
    best = max(wrk(service, path, options.seconds, 16, folder) for _ in range(3))
    rate = options.rate or best[0] / 2
    # As many connections as make the pause at least 10 ms.
    connections = max(16, int(rate * 0.02) + 1)
    pause = max(round(connections / rate * 1000 - best[1] / 2), 0)
    half = min((wrk(service, path, options.seconds, connections, folder, pause) for _ in range(3)), key=lambda run: run[2])
    failed = f'   {best[3] + half[3]} FAILED' if best[3] + half[3] else ''
    print(f'{name:32} {best[0]:9.1f}/s (p50 {best[1]:.1f} ms, p99 {best[2]:.1f} ms)   '
          f'at {half[0]:6.1f}/s: p50 {half[1]:.2f} ms, p99 {half[2]:.2f} ms{failed}', flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('requests', nargs='*')
    parser.add_argument('--binary', default=str(scale.TARGET / 'release/kiln'))
    parser.add_argument('--url')
    parser.add_argument('--stacks', type=int, default=1000)
    parser.add_argument('--seconds', type=int, default=5)
    parser.add_argument('--rate', type=float, help='requests/s for the latency (default: half of the highest rate)')
    options = parser.parse_args()
    if not shutil.which('wrk'):
        sys.exit('wrk is not installed')
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        if options.url:
            service = Other(options.url)
        else:
            service = scale.Cluster(options.binary, folder, None, 1)
        try:
            if not options.url:
                service.base = f'http://127.0.0.1:{service.port}/v1/{service.project}'
            stack = fill(service, options.stacks)
            requests = {
                'stack list, a page of 50': '/stacks?limit=50',
                f'stack list, all {options.stacks}': '/stacks',
                'stack show': stack,
                'stack show, without outputs': f'{stack}?resolve_outputs=false',
                'resource list': f'{stack}/resources',
                'event list': f'{stack}/events',
                'resource types': '/resource_types',
                'build info': '/build_info',
            }
            for what, path in requests.items():
                if not options.requests or any(word in what for word in options.requests):
                    measure(service, what, path, options, folder)
            if not options.url:
                print(f"memory {scale.memory(service.service.pid, 'VmHWM'):.0f} MB at most")
        finally:
            service.stop()


if __name__ == '__main__':
    main()
