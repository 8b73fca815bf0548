#!/usr/bin/env python3
"""Gives stacks that Kiln has changed back to each release of Heat, which reads, updates and deletes them.

    crates/store/tests/databases.sh tests/heat_database/back.py KILN [RELEASE...]

Each release makes the stacks of stacks.py in a database of its own, as for make.py. Kiln takes them over, changes some, creates
and deletes others, and gives them back. Then the release works with them. Prints `N passed, N failed`.
"""
import subprocess
import sys

import make
import stacks
from harness.checks import case, check, failed, finish, until
from harness.deployment import KILN, Deployment

# With legacy stacks too.
LEGACY = ('13', '19', '27')
JOBS = ('db_sync', 'service clean', 'purge_deleted -g seconds 0')


def back(server, version, way):
    release = f'Heat {version}, {way}'
    python = make.installed(version)
    encrypts = str('encrypted' in way).lower()
    with server.database(f'back_{version}_{way}') as (_, database), Deployment(
            DEFAULT={'encrypt_parameters_and_properties': encrypts}) as kiln:
        _, project = kiln.token()
        make.run_stacks(python, database, way, project, 'make')
        (kiln.folder / 'heat.conf').write_text(
            f'[DEFAULT]\nencrypt_parameters_and_properties = {encrypts}\n[database]\nconnection = {database}\n')
        for name, text in [('web.yaml', stacks.WEB), ('new.yaml', stacks.NEW), ('nested.yaml', stacks.NESTED)]:
            (kiln.folder / name).write_text(text.replace('http://server/', ''))

        def ask(*words):
            return subprocess.run([KILN, *words], cwd=kiln.folder, env=kiln.environment(), capture_output=True, text=True)

        def run(*words):
            ran = ask(*words)
            check(f'{release}: {" ".join(words[:4])}', ran.returncode == 0, ran.stdout + ran.stderr)

        def take_over(*words):
            run('manage', 'take-over', *words, '--heat-config', 'heat.conf', '--config-file', 'kiln.conf')

        if way == 'legacy':
            make.run_stacks(python, database, way, project, 'mend')
        take_over('switch', '--project', project)
        # The service looks every few seconds which projects are its own.
        until(lambda: ask('stack', 'list'), lambda listed: listed.returncode == 0)
        run('stack', 'update', 'web', '-t', 'web.yaml', '--parameter', 'secret=parameter-planted', '--parameter', 'count=4',
            '--wait', '--yes')
        run('stack', 'update', 'groups', '--existing', '--parameter', 'size=1', '--wait', '--yes')
        run('stack', 'create', 'new', '-t', 'new.yaml', '--wait')
        run('stack', 'resume', 'paused', '--wait')
        if way != 'legacy':
            run('stack', 'delete', 'gone', '--wait', '--yes')
        # Jobs of kolla and openstack-helm, which nobody has stopped.
        for job in JOBS:
            manage = [make.CLIENTS / f'heat-{version}/bin/heat-manage', '--config-file', 'heat.conf', *job.split()]
            ran = subprocess.run(manage, cwd=kiln.folder, capture_output=True, text=True)
            # Only the legacy engine has left deleted stacks.
            if way == 'legacy' and job.startswith('purge'):
                check(f'{release}: the fence refuses {job}', 'belongs to Kiln' in ran.stdout + ran.stderr, ran.stdout + ran.stderr)
        take_over('verify-back')
        take_over('switch', '--project', project, '--back')
        make.run_stacks(python, database, way, project, 'use')
        check(f'{release} reads, updates and deletes them', True)


def main():
    server = make.Server()
    for version in make.RELEASES:
        release = version.split('.')[0]
        if release not in (sys.argv[2:] or release):
            continue
        if make.installed(version) is None:
            print(f'left out: Heat {version} needs Python {make.RELEASES[version][1]}')
            continue
        for way in ('convergence-encrypted', 'legacy')[:1 + (release in LEGACY)]:
            before = len(failed)
            case(back, server, version, way, name=f'Heat {version}, {way}')
            print(f'Heat {version}, {way}: {len(failed) - before} checks failed', flush=True)
    finish()


if __name__ == '__main__':
    main()
