#!/usr/bin/env python3
"""Makes a database with the code of Heat itself, and writes its rows as JSON.

    crates/store/tests/databases.sh tests/heat_database/make.py DIRECTORY

Runs the engine of the newest Heat from PyPI in this process, on MariaDB, without a cloud: the resource types need none. It makes
stacks with convergence, encrypted and not. Writes `DIRECTORY/27-WAY.json`:
`{table: {columns: {name: type}, rows: [[value, ...], ...]}}`, the form that crates/kiln/tests/kiln/take_over.rs reads.
"""
import json
import os
import pathlib
import subprocess
import sys
import threading
import time
import traceback
import urllib.parse
from unittest import mock

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))
from harness.pypi import virtual_environment  # noqa: E402

virtual_environment('heat-database', 'openstack-heat==27.0.1', 'SQLAlchemy<2.1', 'setuptools<81', 'PyMySQL')

import pymysql  # noqa: E402

WAYS = ('convergence', 'convergence-encrypted')
NESTED = '''
heat_template_version: 2018-08-31
parameters: {p: {type: string}}
resources:
  inner: {type: OS::Heat::TestResource, properties: {value: {get_param: p}}}
outputs: {out: {value: {get_attr: [inner, output]}}}
'''
WEB = '''
heat_template_version: 2018-08-31
parameters:
  secret: {type: string, hidden: true, default: hush}
  count: {type: number, default: 2}
resources:
  random: {type: OS::Heat::RandomString, properties: {length: 12}}
  hidden: {type: OS::Heat::Value, properties: {value: {get_param: secret}}}
  test:
    type: OS::Heat::TestResource
    depends_on: hidden
    deletion_policy: Retain
    properties: {value: {get_attr: [random, value]}}
    metadata: {made: {get_attr: [random, value]}}
  group:
    type: OS::Heat::ResourceGroup
    properties:
      count: {get_param: count}
      resource_def: {type: OS::Heat::RandomString, properties: {length: 8}}
  nested:
    type: http://server/nested.yaml
    properties: {p: {get_attr: [random, value]}}
outputs:
  members: {value: {get_attr: [group, value]}}
  inner: {value: {get_attr: [nested, out]}}
'''
FAILED = '''
heat_template_version: 2018-08-31
resources:
  good: {type: OS::Heat::RandomString}
  bad: {type: OS::Heat::TestResource, depends_on: good, properties: {fail: true}}
'''


class Threads:
    """The threads of an engine."""

    def run(self, work, *arguments, **named):
        def run():
            try:
                work(*arguments, **named)
            except BaseException:
                traceback.print_exc()
        threading.Thread(target=run, daemon=True).start()
        return mock.Mock()

    def start(self, _, work, *arguments, **named):
        return self.run(work, *arguments, **named)

    def start_with_lock(self, _context, _stack, _engine, work, *arguments, **named):
        return self.run(work, *arguments, **named)

    def start_with_acquired_lock(self, _stack, _lock, work, *arguments, **named):
        return self.run(work, *arguments, **named)

    def __getattr__(self, _):
        return mock.Mock()


def make(database, way):
    """Makes the stacks in a new database."""
    from heat.common import config, context, messaging, template_format
    from heat.db import migration
    from heat.engine import resources, service, worker
    from heat.engine.resources import stack_resource
    from heat.rpc import worker_client
    from oslo_config import cfg
    config.set_config_defaults()
    cfg.CONF([], project='heat', default_config_files=[])
    cfg.CONF.set_override('connection', database.replace('mysql:', 'mysql+pymysql:'), 'database')
    cfg.CONF.set_override('deferred_auth_method', 'password')
    cfg.CONF.set_override('encrypt_parameters_and_properties', 'encrypted' in way)
    cfg.CONF.set_override('convergence_engine', 'convergence' in way)
    migration.db_sync()
    resources.initialise()
    messaging.setup('fake:/')
    messaging.NOTIFIER = mock.Mock()

    def user():
        """Each call has a context of its own, and so a session of the database."""
        return context.RequestContext(
            project_id='a' * 32, user_id='b' * 32, username='demo', password='user-password-planted', project_name='demo',
            auth_url='http://keystone/v3', roles=['member'], is_admin=False)

    engine = service.EngineService('host', 'topic')
    engine.engine_id, engine.thread_group_mgr = 'e', Threads()
    workers = worker.WorkerService('host', 'topic', 'e', engine.thread_group_mgr)

    class Here:
        """The clients of the engine, which is in this process."""

        def __getattr__(self, name):
            return lambda _context, *words, **named: getattr(engine, name.lstrip('_'))(user(), *words, **named)

    def check(_, _context, resource, traversal, data, is_update, adopted, converge=False, **more):
        data = json.loads(json.dumps(data))
        engine.thread_group_mgr.run(
            workers.check_resource, user(), resource, traversal, data, is_update, adopted, converge, **more)

    worker_client.WorkerClient.check_resource = check
    stack_resource.StackResource.rpc_client = lambda _: Here()

    def settled(name):
        for _ in range(600):
            time.sleep(0.1)
            stack = engine.show_stack(user(), engine.identify_stack(user(), name), resolve_outputs=False)[0]
            if stack['stack_action'] and stack['stack_status'] != 'IN_PROGRESS':
                return stack['stack_status']
        raise TimeoutError(name)

    def ask(call, name, template, expected, **parameters):
        who = name if call == engine.create_stack else engine.identify_stack(user(), name)
        files = {'http://server/nested.yaml': NESTED}
        call(user(), who, template_format.parse(template), {'parameters': parameters}, files,
             {'timeout_mins': 60, 'tags': ['blue', 'green'], 'disable_rollback': True})
        time.sleep(0.5)
        found = settled(name)
        assert found == expected, (name, found)

    ask(engine.create_stack, 'web', WEB, 'COMPLETE', secret='parameter-planted')
    ask(engine.create_stack, 'failed', FAILED, 'FAILED')
    ask(engine.update_stack, 'web', WEB, 'COMPLETE', secret='parameter-planted', count=3)
    ask(engine.create_stack, 'gone', FAILED.replace('fail: true', 'fail: false'), 'COMPLETE')
    # This fails, because there is no Keystone.
    engine.delete_stack(user(), engine.identify_stack(user(), 'gone'))
    engine.create_software_config(user(), 'Heat::Ungrouped', 'script', 'echo config-planted', [], [], {})
    time.sleep(3)


def rows(cursor):
    """All tables."""
    tables = {}
    cursor.execute('SHOW TABLES')
    for name, in cursor.fetchall():
        cursor.execute('SELECT column_name, data_type FROM information_schema.columns WHERE table_schema = DATABASE() AND '
                       f"table_name = '{name}' ORDER BY ordinal_position")
        columns = dict(cursor.fetchall())
        cursor.execute(f'SELECT * FROM `{name}` ORDER BY 1')
        # Pickled properties of old releases are bytes; this one writes none.
        found = [[value if isinstance(value, (int, str, type(None))) else str(value) for value in row]
                 for row in cursor.fetchall()]
        tables[name] = {'columns': columns, 'rows': found}
    return tables


def main():
    if sys.argv[1] in WAYS:
        make(sys.argv[2], sys.argv[1])
        return
    url = next(url for url in os.environ['KILN_TEST_DATABASES'].split() if url.startswith('mysql:'))
    where = urllib.parse.urlsplit(url)
    server = pymysql.connect(host=where.hostname, port=where.port, user=where.username, password=where.password or '')
    for way in WAYS:
        name = f'heat_{way.replace("-", "_")}'
        with server.cursor() as cursor:
            cursor.execute(f'CREATE DATABASE {name} CHARACTER SET utf8mb3')
        database = where._replace(path=f'/{name}', query='charset=utf8').geturl()
        done = subprocess.run([sys.executable, __file__, way, database], capture_output=True, text=True)
        if done.returncode:
            sys.exit(done.stderr[-3000:])
        with server.cursor() as cursor:
            server.select_db(name)
            server.commit()
            text = json.dumps(rows(cursor), separators=(',', ':')).replace('],[', '],\n[')
        (pathlib.Path(sys.argv[1]) / f'27-{way}.json').write_text(text + '\n')
        print(f'27-{way}.json: {len(text)} bytes')


if __name__ == '__main__':
    main()
