#!/usr/bin/env python3
"""Runs the commands for backup and restore in docs/deploy/README.md and docs/local-state.md, on SQLite and the databases in
KILN_TEST_DATABASES, and creates databases as docs/databases.md says:

    crates/store/tests/databases.sh tests/upgrade/backup.py KILN

The backup is made while a service runs and a stack is in progress. After that another stack is created, and one is deleted;
the restore brings back the stacks of the backup, and a service continues with them. Only names of files and databases are
replaced in the commands. Prints one line a database, and `N passed, N failed`.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import run
from harness.checks import check, failed, finish, until
from harness.deployment import free_port

GUIDE = (run.ROOT / 'docs/deploy/README.md').read_text()


def commands(title):
    """The commands of a section of the guide: indented lines, `backup` and `restore` separated by a paragraph."""
    section = GUIDE.split(f'### {title}\n')[1].split('\n#')[0]
    blocks = re.findall(r'(?:^    .*\n)+', section, re.M)
    assert len(blocks) == 2, (title, blocks)
    return [[line.strip() for line in block.splitlines()] for block in blocks]


def shell(lines, names, work):
    for line in lines:
        for old, new in names:
            line = line.replace(old, new)
        ran = subprocess.run(['sh', '-c', line], cwd=work, capture_output=True, text=True)
        check(line, ran.returncode == 0, ran.stderr)


def stacks(balancer):
    _, body = balancer.call('GET', '/stacks', expected=(200,))
    return {stack['stack_name']: stack['stack_status'] for stack in body['stacks']}


def settled(balancer, name, state):
    found = until(lambda: stacks(balancer), lambda found: found.get(name) == state)
    check(f'{name} is {state}', found.get(name) == state, found)


def backup(server, kiln):
    kind = server.split(':')[0]
    work = pathlib.Path(tempfile.mkdtemp(prefix='kiln-backup.'))
    processes, service = [], None
    before = len(failed)
    try:
        cloud = free_port()
        log = open(work / 'cloud.log', 'w')
        processes.append(subprocess.Popen([kiln, 'testcloud', '--port', str(cloud), '--build-time', '3'], stdout=log,
                                          stderr=log))
        run.await_port(cloud, processes[0], work / 'cloud.log')
        (work / 'backups').mkdir()
        names = [('/var/backups/', f'{work}/backups/')]
        if kind == 'sqlite':
            title, database = 'SQLite', f'sqlite://{work}/kiln.db?mode=rwc'
            names.append(('/var/lib/kiln/', f'{work}/'))
        else:
            title, database = ('PostgreSQL' if kind.startswith('postgres') else 'MariaDB'), run.created(server)
            host, port = server.split('@')[1].split('/')[0].split(':')
            name = database.rsplit('/', 1)[1]
            if title == 'PostgreSQL':
                names += [('-d kiln', f'-h {host} -p {port} -U kiln -d {name}')]
            else:
                options = f'--no-defaults -h {host} -P {port} -u kiln -pkiln'
                names += [('mariadb-dump --single-transaction kiln', f'mariadb-dump {options} --single-transaction {name}'),
                          ('mariadb kiln', f'mariadb {options} {name}')]
        run.configure(work, cloud, database)
        keystone = run.Keystone(f'http://127.0.0.1:{cloud}/identity/v3', 'demo')
        service = run.Service(work, 'service', kiln)
        balancer = run.Balancer([service], keystone)
        made = {}
        def create(name, slow):
            request = {'stack_name': name, **run.template(1, slow)}
            made[name] = balancer.call('POST', '/stacks', request, expected=(201,))[1]['stack']['id']
        create('kept', False)
        create('deleted', False)
        settled(balancer, 'kept', 'CREATE_COMPLETE')
        settled(balancer, 'deleted', 'CREATE_COMPLETE')
        create('running', True)
        save, restore = commands(title)
        shell(save, names, work)
        settled(balancer, 'running', 'CREATE_COMPLETE')
        create('later', False)
        balancer.call('DELETE', f"/stacks/later/{made['later']}", expected=(204,))
        create('newer', False)
        settled(balancer, 'newer', 'CREATE_COMPLETE')
        service.stop()
        shell(restore, names, work)
        service.start(kiln)
        found = stacks(balancer)
        check(f'{title}: the stacks of the backup are there', set(found) == {'kept', 'deleted', 'running'}, found)
        # What was in progress continues: its objects are found again.
        settled(balancer, 'running', 'CREATE_COMPLETE')
        balancer.call('PUT', f"/stacks/kept/{made['kept']}", run.template(2, False), expected=(202,))
        settled(balancer, 'kept', 'UPDATE_COMPLETE')
        for name in ['kept', 'running']:
            balancer.call('DELETE', f'/stacks/{name}/{made[name]}', expected=(204,))
        found = until(lambda: stacks(balancer), lambda found: set(found) == {'deleted'})
        check(f'{title}: stacks are deleted', set(found) == {'deleted'}, found)
        check(f'{title}: requests', not balancer.errors, balancer.errors[:3])
        doctor = subprocess.run([kiln, 'manage', 'doctor', '--config-file', work / 'kiln.conf'], capture_output=True, text=True)
        check(f'{title}: doctor', doctor.returncode == 0, doctor.stdout)
        print(f'{title}: backup and restore, {len(failed) - before} checks failed', flush=True)
    finally:
        for process in processes + [one.process for one in [service] if one]:
            if process.poll() is None:
                process.kill()
                process.wait()
        shutil.rmtree(work, ignore_errors=True)


WORD = 'heat_template_version: 2018-08-31\nresources: {word: {type: OS::Heat::RandomString, properties: {length: %d}}}\n'


def stack_of_user(kiln, work, **variables):
    """Creates, updates and deletes a stack with `--local`; a function that runs a command of `kiln --local`."""
    (work / 'word.yaml').write_text(WORD % 8)
    (work / 'longer.yaml').write_text(WORD % 9)

    def local(*words):
        environment = {'HOME': str(work), 'PATH': os.environ['PATH'], **variables}
        return subprocess.run([kiln, '--local', *words], cwd=work, env=environment, capture_output=True, text=True)
    for words in ['create -t word.yaml', 'update --yes -t longer.yaml', 'delete --yes --wait', 'create -t word.yaml']:
        ran = local('stack', *words.split(), 'word')
        check(f'kiln --local stack {words}', ran.returncode == 0, ran.stderr)
    return local


def created_as_described(server, kiln):
    """The SQL of docs/databases.md makes a database and a user with the rights that Kiln needs."""
    title = 'PostgreSQL' if server.startswith('postgres') else 'MariaDB'
    page = (run.ROOT / 'docs/databases.md').read_text()
    sql = re.search(rf'^{title}:[^\n]*\n\n```\n(.*?)```', page, re.M | re.S)[1]
    sql = re.sub(r'\bkiln\b', 'described', sql)
    host, port = server.split('@')[1].split('/')[0].split(':')
    if title == 'PostgreSQL':
        client, scheme = ['psql', '-q', '-v', 'ON_ERROR_STOP=1', '-h', host, '-p', port, '-U', 'kiln', 'postgres'], 'postgresql'
    else:
        client, scheme = ['mariadb', '--no-defaults', '-h', host, '-P', port, '-u', 'kiln', '-pkiln'], 'mysql'
    ran = subprocess.run(client, input=sql, capture_output=True, text=True)
    check(f'{title}: the SQL of docs/databases.md', ran.returncode == 0, ran.stderr)
    with tempfile.TemporaryDirectory(prefix='kiln-described.') as work:
        url = f'{scheme}://described:secret@{host}:{port}/described'
        stack_of_user(kiln, pathlib.Path(work), KILN_DATABASE=url)
    print(f'{title}: created as docs/databases.md says', flush=True)


def local_backup(kiln):
    """The commands of docs/local-state.md save the stacks of `--local`."""
    page = (run.ROOT / 'docs/local-state.md').read_text()
    lines = re.search(r'```\n(sqlite3 .*?)```', page, re.S)[1].replace('~', '$HOME').splitlines()
    with tempfile.TemporaryDirectory(prefix='kiln-local.') as folder:
        work = pathlib.Path(folder)
        local = stack_of_user(kiln, work)
        shell(lines, [('$HOME', str(work))], work)
        ran = local('--database', 'stacks-backup.db', 'stack', 'show', 'word', '-f', 'value', '-c', 'stack_status')
        check('the backup has the stack of --local', ran.stdout.strip() == 'CREATE_COMPLETE', ran.stdout + ran.stderr)
    print('SQLite: backup of --local', flush=True)


if __name__ == '__main__':
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    for server in ['sqlite', *os.environ.get('KILN_TEST_DATABASES', '').split()]:
        kiln = pathlib.Path(sys.argv[1]).resolve()
        backup(server, kiln)
        if server == 'sqlite':
            local_backup(kiln)
        else:
            created_as_described(server, kiln)
    finish()
