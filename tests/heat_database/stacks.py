"""Makes stacks with the code of Heat itself, in its own virtual environment (make.py starts it there).

    stacks.py DATABASE WAY PROJECT make|mend|use

Runs the engine in this process, without a cloud: the resource types need none. WAY has the words `convergence` or `legacy`,
`encrypted`, and `small` for three stacks only. `mend` works with the stacks before a Kiln takes them over, `use` after it has
given them back (back.py).
"""
import contextlib
import json
import logging
import os
import sys
import threading
import time
import traceback
from unittest import mock

EMPTY = (('inputs', []), ('outputs', []), ('options', {}))
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
GROUPS = '''
heat_template_version: 2016-10-14
parameters: {size: {type: number, default: 2}}
conditions: {large: {equals: [{get_param: size}, 3]}}
resources:
  scaled:
    type: OS::Heat::AutoScalingGroup
    properties:
      min_size: 1
      max_size: 5
      desired_capacity: {get_param: size}
      resource: {type: OS::Heat::RandomString, properties: {length: 8}}
  chained:
    type: OS::Heat::ResourceChain
    properties:
      resources: ['OS::Heat::RandomString', 'OS::Heat::None']
  extra: {type: OS::Heat::RandomString, condition: large}
outputs:
  members: {value: {get_attr: [scaled, outputs_list, value]}}
'''
CONFIGS = '''
heat_template_version: 2013-05-23
description: Zażółć gęślą jaźń
resources:
  script:
    type: OS::Heat::SoftwareConfig
    properties: {group: script, config: echo config-planted, inputs: [{name: in, default: 1}], outputs: [{name: out}]}
  structured:
    type: OS::Heat::StructuredConfig
    properties: {group: os-apply-config, config: {a: [1, 2.5, null, true, {get_input: in}]}}
  init:
    type: OS::Heat::CloudConfig
    properties: {cloud_config: {write_files: [{path: /tmp/one, content: "ł config-planted"}]}}
  parts:
    type: OS::Heat::MultipartMime
    properties: {parts: [{config: {get_resource: script}}, {config: {get_resource: init}, type: multipart}]}
'''
REPLACED = '''
heat_template_version: 2015-10-15
parameters:
  value: {type: string, default: first}
  fail: {type: boolean, default: false}
resources:
  one:
    type: OS::Heat::TestResource
    properties: {value: {get_param: value}, fail: {get_param: fail}, update_replace: true}
  reader: {type: OS::Heat::TestResource, properties: {value: {get_attr: [one, output]}}}
'''
NEW = '''
heat_template_version: 2018-08-31
parameters: {secret: {type: string, hidden: true, default: parameter-planted}}
resources:
  word: {type: OS::Heat::RandomString, properties: {length: 9}}
  value: {type: OS::Heat::TestResource, properties: {value: first}}
  group:
    type: OS::Heat::ResourceGroup
    properties: {count: 2, resource_def: {type: OS::Heat::RandomString, properties: {salt: {get_attr: [word, value]}}}}
outputs: {all: {value: {get_attr: [group, value]}}}
'''
AWS = '''
AWSTemplateFormatVersion: '2010-09-09'
Parameters:
  Word: {Type: String, Default: word, NoEcho: 'true'}
Resources:
  One: {Type: OS::Heat::RandomString, Metadata: {Fn: {'Fn::Join': ['-', [a, b]]}}, Properties: {length: 5}}
  Two: {Type: OS::Heat::TestResource, DependsOn: One, Properties: {value: {'Fn::Select': [0, [{Ref: Word}, b]]}}}
Outputs:
  Out: {Value: {'Fn::GetAtt': [Two, output]}}
'''


# One thread works at a time, as Heat's green threads do; one that sleeps lets the others work.
TURN = threading.RLock()


def sleep(seconds):
    TURN.release()
    time.sleep(seconds)
    TURN.acquire()


class Threads:
    """The threads of an engine."""

    def run(self, work, *arguments, **named):
        def run():
            with TURN:
                try:
                    work(*arguments, **named)
                except BaseException:
                    traceback.print_exc()
        threading.Thread(target=run, daemon=True).start()
        return mock.Mock()

    def start(self, _, work, *arguments, **named):
        return self.run(work, *arguments, **named)

    def start_with_lock(self, _context, stack, _engine, work, *arguments, **named):
        return self.start_with_acquired_lock(stack, None, work, *arguments, **named)

    def start_with_acquired_lock(self, stack, _lock, work, *arguments, **named):
        def run():
            work(*arguments, **named)
            # The state of a legacy stack is written when its lock is released.
            stack._persist_state()
        return self.run(run)

    def __getattr__(self, _):
        return mock.Mock()


class Heat:
    """The engine of Heat in this process, for one user."""

    def __init__(self, database, way, project):
        from heat.common import config, context, messaging
        from heat.engine import resource, resources, scheduler, service, stack, worker
        from heat.engine.resources import stack_resource
        from heat.rpc import worker_client
        from oslo_config import cfg
        config.set_config_defaults()
        cfg.CONF([], project='heat', default_config_files=[])
        cfg.CONF.set_override('connection', database, 'database')
        cfg.CONF.set_override('deferred_auth_method', 'password')
        cfg.CONF.set_override('encrypt_parameters_and_properties', 'encrypted' in way)
        cfg.CONF.set_override('convergence_engine', 'convergence' in way)
        try:
            from heat.db import migration
            migration.db_sync()
        except ImportError:
            from heat.db.sqlalchemy import api
            api.db_sync(api.get_engine())
        resources.initialise()
        messaging.setup('fake:/')
        messaging.NOTIFIER = mock.Mock()
        self.context, self.project = context.RequestContext, project
        self.engine = service.EngineService('host', 'topic')
        self.engine.engine_id, self.engine.thread_group_mgr = 'e', Threads()
        workers = worker.WorkerService('host', 'topic', 'e', self.engine.thread_group_mgr)

        def check(_, _context, row, traversal, data, is_update, adopted, converge=False, **more):
            data = json.loads(json.dumps(data))
            self.engine.thread_group_mgr.run(
                workers.check_resource, self.user(), row, traversal, data, is_update, adopted, converge, **more)

        worker_client.WorkerClient.check_resource = check
        service.NotifyEvent = mock.Mock
        scheduler.TaskRunner._sleep = lambda _, seconds: sleep(min(seconds, 0.1))
        resource.Resource.is_service_available = classmethod(lambda *_: (True, None))
        resource.Resource.rpc_client = stack_resource.StackResource.rpc_client = lambda _: Client(self)
        self.stack = stack.Stack

    def user(self):
        """Each call has a context of its own, and so a session of the database."""
        return self.context(
            project_id=self.project, user_id='b' * 32, username='demo', password='user-password-planted',
            project_name='demo', auth_url='http://keystone/v3', roles=['member'], is_admin=False)

    def call(self, rpc, *words, **named):
        return getattr(self.engine, rpc)(self.user(), *words, **named)

    def show(self, name, **more):
        return self.call('show_stack', self.call('identify_stack', name), **more)[0]

    def outputs(self, name):
        return {output['output_key']: output['output_value'] for output in self.show(name, resolve_outputs=True)['outputs']}

    def wait_for(self, name, expected='COMPLETE'):
        # The work begins in another thread.
        sleep(0.5)
        for _ in range(600):
            sleep(0.1)
            stack = self.show(name, resolve_outputs=False)
            if stack['stack_action'] and stack['stack_status'] != 'IN_PROGRESS':
                break
        assert stack['stack_status'] == expected, (name, stack['stack_status'], stack['stack_status_reason'])

    def send(self, name, who, template, **parameters):
        from heat.common import template_format
        self.call(name, who, template_format.parse(template), {'parameters': parameters}, {'http://server/nested.yaml': NESTED},
                  {'timeout_mins': 60, 'tags': ['blue', 'green'], 'disable_rollback': True})

    def create(self, name, template, expected='COMPLETE', **parameters):
        self.send('create_stack', name, template, **parameters)
        self.wait_for(name, expected)

    def update(self, name, template, expected='COMPLETE', **parameters):
        self.send('update_stack', self.call('identify_stack', name), template, **parameters)
        self.wait_for(name, expected)

    def act(self, call, name, *words):
        self.call(call, self.call('identify_stack', name), *words)
        self.wait_for(name)


class Client:
    """The client of the engine, which is in this process."""

    def __init__(self, heat):
        self.heat = heat

    def ignore_error_by_name(self, _):
        return contextlib.suppress(Exception)

    def create_software_config(self, _, **named):
        named.update({key: named.get(key) or empty for key, empty in EMPTY})
        return self.heat.call('create_software_config', **named)

    def delete_stack(self, _, stack, **_more):
        return self.heat.call('delete_stack', stack)

    def __getattr__(self, name):
        from oslo_serialization import jsonutils

        def call(_, *words, **named):
            words, named = json.loads(jsonutils.dumps([words, named]))
            return self.heat.call(name.lstrip('_'), *words, **named)
        return call


def make(heat, way):
    """Makes the stacks in a new database."""
    heat.create('web', WEB, secret='parameter-planted')
    heat.create('failed', FAILED, 'FAILED')
    heat.update('web', WEB, secret='parameter-planted', count=3)
    heat.create('gone', FAILED.replace('fail: true', 'fail: false'))
    # With convergence this fails, because the engine has no worker.
    heat.call('delete_stack', heat.call('identify_stack', 'gone'))
    heat.call('create_software_config', 'Heat::Ungrouped', 'script', 'echo config-planted', [], [], {})
    if 'small' in way:
        sleep(3)
        return

    heat.create('groups', GROUPS)
    heat.update('groups', GROUPS, size=3)
    heat.create('configs', CONFIGS)
    heat.create('replaced', REPLACED)
    heat.update('replaced', REPLACED, 'FAILED', value='second', fail=True)
    heat.create('paused', AWS)
    heat.act('stack_suspend', 'paused')
    heat.create('checked', AWS, Word='w' * 3000)
    heat.act('stack_check', 'checked')
    heat.act('stack_snapshot', 'groups', 'before')
    config = heat.call(
        'create_software_config', 'script', 'shared', 'echo config-planted', [{'name': 'in', 'type': 'String'}],
        [{'name': 'out'}], {})
    heat.call('create_software_deployment', 'f' * 32, config['id'], {'in': 'config-planted'}, 'CREATE', 'IN_PROGRESS',
              'waits', None)
    sleep(3)


def mend(heat, _):
    """Updates the stack `replaced` once more, as the inventory asks if its backup stack has objects."""
    heat.update('replaced', REPLACED, value='third', fail=False)


def use(heat, _):
    """Reads, updates and deletes the stacks that Kiln has changed and given back (back.py)."""
    heat.engine.worker_service = mock.Mock()
    # Kiln's trusts are those of a Keystone that is not here.
    heat.stack._delete_credentials = lambda _, status, reason, *_more: (status, reason)
    names = sorted(stack['stack_name'] for stack in heat.call('list_stacks'))
    assert names == ['checked', 'configs', 'failed', 'groups', 'new', 'paused', 'replaced', 'web'], names
    for name in names:
        heat.show(name, resolve_outputs=True)
        for row in heat.call('list_stack_resources', heat.call('identify_stack', name)):
            heat.call('describe_stack_resource', heat.call('identify_stack', name), row['resource_name'], None)
        heat.call('list_events', heat.call('identify_stack', name))
    before = heat.outputs('web')['members']
    assert len(before) == 4, before
    heat.update('web', WEB, secret='parameter-planted', count=5)
    after = heat.outputs('web')['members']
    assert after[:4] == before and len(after) == 5, (before, after, heat.show('web', resolve_outputs=False))
    heat.update('groups', GROUPS, size=2)
    heat.update('new', NEW.replace('first', 'second'))
    heat.act('stack_suspend', 'paused')
    for name in names:
        heat.call('delete_stack', heat.call('identify_stack', name))
    for _ in range(300):
        sleep(0.1)
        left = [(one['stack_name'], one['stack_action'], one['stack_status'], one['stack_status_reason'])
                for one in heat.call('list_stacks')]
        if not left:
            return
    raise AssertionError(left)


if __name__ == '__main__':
    database, way, project, work = sys.argv[1:]
    # Warnings of types that are deprecated.
    logging.disable(logging.WARNING)
    with TURN:
        {'make': make, 'mend': mend, 'use': use}[work](Heat(database, way, project), way)
    # The threads of the engine do not end.
    sys.stdout.flush()
    os._exit(0)
