#!/usr/bin/env python3
"""The take-over of a large Heat: seconds and memory of each command.

    cargo build --release -p kiln && bench/take_over.py target/release/kiln [STACKS]

Copies the stack `web` of tests/heat_database/27-convergence.json (a root stack with two nested ones, made by the code of Heat 27)
until there are so many stacks (10,000), each with its nested stacks, in a SQLite database with the indexes that MariaDB makes of
Heat's foreign keys. Kiln's tables are in a second SQLite file. Prints one line per command: seconds, and the largest memory.
"""
import json
import os
import pathlib
import resource
import sqlite3
import sys
import tempfile
import time
import uuid

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROJECTS = 10
# As MariaDB makes for foreign keys.
INDEXES = ['resource(stack_id)', 'event(stack_id)', 'resource_data(resource_id)', 'stack(owner_id)', 'stack_tag(stack_id)',
           'snapshot(stack_id)', 'software_config(tenant)', 'software_deployment(tenant)']
# Columns with the ID of a stack, and those with the number of a row of a table.
STACKS = {'stack': ('id', 'owner_id'), 'resource': ('stack_id', 'root_stack_id'), 'event': ('stack_id',), 'stack_tag': ('stack_id',)}
NUMBERS = {
    'stack': {'raw_template_id': 'raw_template', 'prev_raw_template_id': 'raw_template', 'user_creds_id': 'user_creds'},
    'raw_template': {'files_id': 'raw_template_files'},
    'resource': {'rsrc_prop_data_id': 'resource_properties_data', 'attr_data_id': 'resource_properties_data',
                 'current_template_id': 'raw_template', 'replaces': 'resource', 'replaced_by': 'resource'},
    'resource_data': {'resource_id': 'resource'},
    'event': {'rsrc_prop_data_id': 'resource_properties_data'},
}
NUMBERED = ['raw_template_files', 'raw_template', 'resource_properties_data', 'user_creds', 'resource', 'resource_data', 'event',
            'stack_tag']


def tree(tables):
    """The rows of the stack `web` and what belongs to it, as dictionaries by table."""
    rows = {name: [dict(zip(table['columns'], row)) for row in table['rows']] for name, table in tables.items()}
    live = [row for row in rows['stack'] if not row['deleted_at']]
    root = next(row['id'] for row in live if row['name'] == 'web')
    ids = {root} | {row['id'] for row in live if row['owner_id'] == root}
    rows['stack'] = [row for row in live if row['id'] in ids]
    for name in ('resource', 'event', 'stack_tag'):
        rows[name] = [row for row in rows[name] if row['stack_id'] in ids]
    numbers = {row['id'] for row in rows['resource']}
    rows['resource_data'] = [row for row in rows['resource_data'] if row['resource_id'] in numbers]
    return {name: rows[name] for name in ['stack', *NUMBERED]}


def fill(database, count):
    tables = json.loads((ROOT / 'tests/heat_database/27-convergence.json').read_text())
    for name, table in tables.items():
        columns = ', '.join(f'"{column}" {"INTEGER PRIMARY KEY" if column == "id" and kind == "int" else "TEXT" if kind != "int" else "INTEGER"}'
                            for column, kind in table['columns'].items())
        database.execute(f'CREATE TABLE "{name}" ({columns})')
    database.execute("INSERT INTO alembic_version VALUES (?)", tables['alembic_version']['rows'][0])
    pattern = tree(tables)
    next_id = dict.fromkeys(NUMBERED, 1)
    written = dict.fromkeys(pattern, 0)
    for number in range(count):
        stacks = {row['id']: str(uuid.UUID(int=(number << 32) + index + (4 << 76) + (8 << 60)))
                  for index, row in enumerate(pattern['stack'])}
        ids = {name: {} for name in NUMBERED}
        for name in NUMBERED:
            for row in pattern[name]:
                ids[name][row['id']] = next_id[name]
                next_id[name] += 1
        for name, rows in pattern.items():
            made = []
            for row in rows:
                row = dict(row)
                if name in ids:
                    row['id'] = ids[name][row['id']]
                for column in STACKS.get(name, ()):
                    row[column] = stacks.get(row[column])
                for column, table in NUMBERS.get(name, {}).items():
                    row[column] = ids[table].get(row[column])
                if name == 'stack':
                    row['name'] = row['name'].replace('web', f'web-{number}', 1)
                    row['tenant'] = f'{number % PROJECTS:032x}'
                if name == 'resource':
                    row['requires'] = json.dumps([ids['resource'][one] for one in json.loads(row['requires'] or '[]')])
                    # The IDs of nested stacks.
                    row['nova_instance'] = stacks.get(row['nova_instance'], row['nova_instance'])
                if 'uuid' in row:
                    row['uuid'] = str(uuid.UUID(int=(next_id['event'] << 24) + (hash(row['uuid']) & 0xffffff) + (4 << 76) + (8 << 60)))
                made.append(tuple(row.values()))
            written[name] += len(made)
            if made:
                database.executemany(f'INSERT INTO "{name}" VALUES ({", ".join("?" * len(made[0]))})', made)
    for index, of in enumerate(INDEXES):
        database.execute(f'CREATE INDEX own_{index} ON {of}')
    database.commit()
    return written


def run(binary, words, folder):
    """Seconds, and the largest memory in MB."""
    begun = time.monotonic()
    child = os.fork()
    if child == 0:
        log = os.open(f'{folder}/log', os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.execv(binary, [binary, 'manage', 'take-over', *words])
    _, status, usage = os.wait4(child, 0)
    seconds = time.monotonic() - begun
    if status:
        sys.exit(f'{" ".join(words)}: {pathlib.Path(folder, "log").read_text()[-3000:]}')
    print(f'{words[0] + (" --back" if "--back" in words else ""):<14} {seconds:8.1f} s {usage.ru_maxrss / 1024:8.0f} MB', flush=True)


def main():
    binary, count = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 10_000
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with tempfile.TemporaryDirectory(prefix='kiln-bench-') as folder:
        database = sqlite3.connect(f'{folder}/heat.db')
        database.execute('PRAGMA journal_mode = WAL')
        written = fill(database, count)
        database.close()
        print(f'{count} stacks with nested ones: {written["stack"]}; resources {written["resource"]}, events {written["event"]}',
              flush=True)
        own = pathlib.Path(folder, 'kiln.conf')
        own.write_text(f'[DEFAULT]\nauth_encryption_key = {"0123456789abcdef" * 2}\n'
                       f'[database]\nconnection = sqlite:///{folder}/kiln.db?mode=rwc\n'
                       '[keystone_authtoken]\nauth_url = http://127.0.0.1:1/v3\nusername = heat\npassword = x\nproject_name = service\n')
        heat = pathlib.Path(folder, 'heat.conf')
        heat.write_text(f'[database]\nconnection = sqlite:///{folder}/heat.db\n')
        both = ['--heat-config', str(heat), '--config-file', str(own)]
        projects = [word for number in range(PROJECTS) for word in ('--project', f'{number:032x}')]
        for words in (['inventory', *both], ['import', *both], ['import', *both], ['compare', *both], ['switch', *both, *projects],
                      ['switch', *both, *projects, '--back']):
            run(binary, words, folder)


if __name__ == '__main__':
    main()
