#!/usr/bin/env python3
"""Measures Kiln with a large database: 100,000 stacks, 1,000,000 resources, 10,000,000 events.

    cargo build --release -p kiln && cargo build --release -p kiln-store --example copies
    bench/sized.py                                             # SQLite, at a tenth of the size and at the whole size
    crates/store/tests/databases.sh bench/sized.py --servers   # PostgreSQL and MariaDB, one after the other
    bench/sized.py --stacks 1000                               # smaller

The stacks are copies of one with ten resources, written by the store. Every tenth belongs to one project, the others to 1,000
projects; every hundredth is deleted, 40 days ago. For each size it prints the bytes of the database; the seconds from the start of
`kiln serve` to its first answer, until 1,000 stacks in progress are complete whose engine has died, and until what is old is purged;
the times of requests in milliseconds (median and the longest of 30, one after the other); and the memory of the service. A database
is deleted before the next one is filled. Nothing is asserted, except that each request succeeds.
"""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error

import scale

TEMPLATE = json.dumps({
    'heat_template_version': '2018-08-31',
    'resources': {f'r{number}': {'type': 'OS::Heat::Value', 'properties': {'value': f'v{number}'}} for number in range(10)},
    'outputs': {'out': {'value': {'get_attr': ['r0', 'value']}}},
})
EVENTS, RESOURCES, CRASHED, TIMES = 100, 10, 1000, 30
# What a size needs in a database, with indexes and its log.
BYTES_OF_STACK = 120_000


class Service(scale.Cluster):
    def __init__(self, binary, folder, database):
        super().__init__(binary, folder, database, 1)
        self.binary, self.folder = binary, folder
        (folder / 'policy.yaml').write_text("'stacks:global_index': ''\n")
        with open(folder / 'kiln.conf', 'a') as config:   # its last section is [oslo_policy]
            config.write(f'policy_file = {folder}/policy.yaml\n')

    def stop_service(self):
        self.service.terminate()
        self.service.wait(60)
        self.processes.remove(self.service)

    def start_service(self):
        """Seconds until it answers."""
        start = time.monotonic()
        self.service = self.run(self.binary, self.folder, 'serve', '--config-file', str(self.folder / 'kiln.conf'))
        while time.monotonic() < start + 600:
            try:
                self.call('GET', '/stacks?limit=1')
                return time.monotonic() - start
            except (urllib.error.URLError, ConnectionError):
                time.sleep(0.02)
        sys.exit('the service does not answer')


def fill(service, copies, url, first, last, events=EVENTS):
    start = time.monotonic()
    subprocess.run([copies, url, service.project, 'original', str(first), str(last), str(events)], check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - start


def timed(ask):
    taken = []
    for _ in range(TIMES):
        start = time.perf_counter()
        ask()
        taken.append(1000 * (time.perf_counter() - start))
    return statistics.median(taken), max(taken)


def until(done, seconds=1800):
    """Waits until something is so."""
    end = time.monotonic() + seconds
    while not done():
        if time.monotonic() > end:
            sys.exit(f'not done after {seconds} s')
        time.sleep(0.5)


def requests(service, stacks):
    """The requests by name."""
    number = stacks // 20 * 10   # one of the project, in the middle
    shown = service.call('GET', f'/stacks/copy-{number}?resolve_outputs=false')['stack']
    stack = f"/stacks/copy-{number}/{shown['id']}"
    page = service.call('GET', '/stacks?limit=1000')['stacks']
    resource = service.call('GET', f'{stack}/resources')['resources'][0]
    config = str(service.folder / 'kiln.conf')

    def get(path):
        return lambda: service.ask('GET', path)

    def command(*words):
        def run():
            ran = subprocess.run([service.binary, 'manage', *words, '--config-file', config], capture_output=True, text=True)
            assert ran.returncode in (0, 1), ran.stderr
        return run
    return {
        'list, first page of 50': get('/stacks?limit=50'),
        'list, page of 50 behind 1,000': get(f"/stacks?limit=50&marker={page[-1]['id']}"),
        'list, by name': get(f'/stacks?name=copy-{number}'),
        'list, by tag, 50': get('/stacks?tags=tag-3&limit=50'),
        'list, failed ones, 50': get('/stacks?status=FAILED&limit=50'),
        'list, sorted by name, 50': get('/stacks?sort_keys=stack_name&limit=50'),
        'list of all projects, 50': get('/stacks?global_tenant=true&limit=50'),
        'list with the number of all, 50': get('/stacks?limit=50&with_count=true'),
        'show by name': get(f'/stacks/copy-{number}'),
        'show with outputs': get(stack),
        'resources': get(f'{stack}/resources'),
        'events of a stack, 100': get(f'{stack}/events'),
        'preview of an update': lambda: service.call('PUT', f'{stack}/preview', {'template': TEMPLATE}),
        'manage who-uses': command('who-uses', resource['physical_resource_id']),
        'manage failures': command('failures', '--since', '1d'),
    }


def mariadb(url, statement):
    """The command that executes a statement."""
    user, place = url.removeprefix('mysql://').split('@')
    (name, password), (host, port) = user.split(':'), place.split('/')[0].split(':')
    return ['mariadb', '-N', '--protocol=tcp', '-h', host, '-P', port, '-u', name, f'-p{password}', '-e', statement]


def bytes_of(url, folder):
    if url.startswith('sqlite'):
        return sum(path.stat().st_size for path in folder.glob('sized.db*'))
    if url.startswith('postgres'):
        words = ['psql', '-XAtq', url, '-c', 'SELECT pg_database_size(current_database())']
    else:
        words = mariadb(url, 'SELECT SUM(data_length + index_length) FROM information_schema.tables WHERE table_schema = "sized"')
    done = subprocess.run(words, capture_output=True, text=True)
    return int(done.stdout.strip() or 0) if done.returncode == 0 else 0


def measure(service, copies, url, folder, first, last):
    """The figures at a size by name."""
    figures = {}
    figures['filled, s'] = fill(service, copies, url, first, last)
    base = 10_000_000 + (CRASHED if first else 0)
    fill(service, copies, url, base, base + CRASHED, 0)
    if url.startswith('postgres'):
        # As the server does on its own after a while.
        subprocess.run(['psql', '-XAtq', url, '-c', 'VACUUM ANALYZE'], check=True)
    figures['database, MB'] = bytes_of(url, folder) / 1e6
    figures['first answer, s'] = service.start_service()
    started = time.monotonic()
    until(lambda: not service.call('GET', '/stacks?status=IN_PROGRESS&limit=1')['stacks'])
    figures['1,000 stacks of a dead engine complete, s'] = time.monotonic() - started
    until(lambda: not service.call('GET', '/stacks?show_deleted=true&status=COMPLETE&action=DELETE&limit=1')['stacks'])
    figures['old stacks purged, s'] = time.monotonic() - started
    for name, ask in requests(service, last).items():
        figures[f'{name}, ms'] = timed(ask)
    figures['memory at most, MB'] = service.peak()
    service.stop_service()
    return figures


def shown(figure):
    if isinstance(figure, tuple):
        return f'{figure[0]:.1f} ({figure[1]:.0f})'
    return f'{figure:.1f}' if figure < 1000 else f'{figure:,.0f}'


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--binary', default=str(scale.TARGET / 'release/kiln'))
    parser.add_argument('--stacks', type=int, default=100_000)
    parser.add_argument('--servers', action='store_true', help='the servers of KILN_TEST_DATABASES instead of SQLite')
    parser.add_argument('--folder', help='where SQLite has its file')
    options = parser.parse_args()
    copies = str(scale.TARGET / 'release/examples/copies')
    urls = os.environ['KILN_TEST_DATABASES'].split() if options.servers else [None]
    for given in urls:
        with tempfile.TemporaryDirectory(dir=options.folder) as name:
            folder = pathlib.Path(name)
            free, needed = shutil.disk_usage(folder).free, options.stacks * BYTES_OF_STACK
            if free < needed:
                sys.exit(f'{needed / 1e9:.0f} GB are needed, and {free / 1e9:.0f} GB are free')
            url = given or f'sqlite://{folder}/sized.db?mode=rwc'
            if url.startswith('mysql'):
                subprocess.run(mariadb(url, 'CREATE DATABASE sized'), check=True)
                url = url.rsplit('/', 1)[0] + '/sized'
            service = Service(options.binary, folder, url)
            try:
                service.create('original', TEMPLATE)
                service.stop_service()
                sizes = [options.stacks // 10, options.stacks]
                results = [measure(service, copies, url, folder, first, last) for first, last in zip([0, sizes[0]], sizes)]
            finally:
                service.stop()
        kind = url.split(':')[0]
        print(f'\n| {kind} | {sizes[0]:,} stacks | {sizes[1]:,} stacks | times |\n| --- | --- | --- | --- |')
        for what, small in results[0].items():
            large = results[1][what]
            middle = [figure[0] if isinstance(figure, tuple) else figure for figure in (small, large)]
            times = f'{middle[1] / middle[0]:.1f}' if middle[0] else ''
            print(f'| {what} | {shown(small)} | {shown(large)} | {times} |', flush=True)


if __name__ == '__main__':
    main()
