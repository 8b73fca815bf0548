"""Every hook of heat-agents runs a deployment (for agents.py): inputs to outputs, a failure, and an agent that is late.

The hooks chef and kubelet are not here: Debian 12 has parts of Chef (ruby-chef-config) but not its client, and
kubelet's needs Docker's daemon.
"""
import json
import os
import shutil

from harness.checks import check, equal

from deployment import deployment
from guest import agent_of

PLAYBOOK = '''
- hosts: localhost
  connection: local
  gather_facts: false
  tasks:
    - copy:
        content: "size {{ size }}"
        dest: "{{ heat_outputs_path }}.result"
    - fail:
        msg: "code {{ code }}"
      when: code != "0"
'''
MANIFEST = '''
file { "${heat_outputs_path}.result":
  ensure  => file,
  content => "size ${size}",
}
if $code != '0' {
  exec { "/bin/sh -c 'exit ${code}'": }
}
'''
STATE = '''
tested:
  test.configurable_test_state:
    - changes: true
    - result: {{ opts['code'] == '0' }}
    - comment: size {{ opts['size'] }}
'''
SIZE, CODE = {'get_input': 'size'}, {'get_input': 'code'}


class Hook:
    """A hook with its configuration. `seen(folder, out)` is what the deployment did with its input `size`, and has to
    be `size N`; `fails` is the status of a deployment with the input `code` 3, if the hook can fail."""

    def __init__(self, config, seen=None, fails=None, result='result'):
        self.config, self.seen, self.fails, self.result = config, seen, fails, result


def written(path):
    return path.read_text().strip() if path.exists() else f'no {path}'


def all_hooks(folder):
    """The hooks by their group. `folder` is where some of them write."""
    file, made = folder / 'written.json', folder / 'made-by-cfn-init'
    hooks = {
        'ansible': Hook(PLAYBOOK, lambda _, out: out['result'], 2),
        'puppet': Hook(MANIFEST, lambda _, out: out['result'], 6),
        # The output of the hook is what the minion returns.
        'salt': Hook(STATE, lambda _, out: next(iter(out['return'].values()))['comment'], 2, 'return'),
        'hiera': Hook({'datafiles': {'common': {'size': SIZE}}},
                      lambda server, _: f"size {json.loads(written(server / 'hieradata/common.json'))['size']}"),
        'json-file': Hook({str(file): {'size': SIZE}}, lambda *_: f"size {json.loads(written(file))['size']}"),
        'apply-config': Hook({'own': {'a': SIZE}}),
        'cfn-init': Hook({'config': {'files': {f'{made}': {'content': SIZE}}}}, lambda *_: f'size {written(made)}'),
        'docker-cmd': Hook({'box': {'image': 'demo', 'detach': False, 'command': ['size', SIZE, CODE]}},
                           lambda _, out: ' '.join(out['deploy_stderr'].split()[-3:-1]), 3),
        'docker-compose': Hook({'box': {'image': 'demo', 'command': SIZE, 'labels': {'code': CODE}}},
                               lambda _, out: 'size ' + out['deploy_stdout'].split("command: '")[1][0], 3),
    }
    if not shutil.which('puppet'):
        del hooks['puppet']
        print('the hook puppet is not run: puppet is not installed (Debian: puppet-agent)', flush=True)
        check('puppet is installed in CI', os.environ.get('CI') != 'true', 'it is not')
    return hooks


def stack_of(group, hook):
    return deployment('POLL_SERVER_CFN', 'CFN_SIGNAL', group, hook.config, hook.result)


def run(heat, folder, group, hook):
    """A deployment, and an update that fails (or, if the hook cannot fail, another one)."""
    template = stack_of(group, hook)
    id = heat.create(group, template)
    server = agent_of(heat, folder, group)
    stack = heat.settled(group, server.work, 120)
    if not equal(f'hook {group}', stack['stack_status'], 'CREATE_COMPLETE'):
        print(stack['stack_status_reason'], server.log())
        heat.delete(group, id)
        return
    out = heat.outputs(group)
    equal(f'hook {group}: its status', out['deploy_status_code'], 0)
    if hook.seen:
        equal(f'hook {group}: the input', hook.seen(server.folder, out), 'size 1')
    heat.update(group, id, template, size='2', code='3')
    stack = heat.settled(group, server.work, 120)
    if hook.fails is None:
        equal(f'hook {group}: an update', stack['stack_status'], 'UPDATE_COMPLETE')
    else:
        equal(f'hook {group}: a failure', stack['stack_status'], 'UPDATE_FAILED')
        reason = f'Deployment exited with non-zero status code: {hook.fails}'
        check(f'hook {group}: its reason', reason in stack['stack_status_reason'], stack['stack_status_reason'])
    if hook.seen:
        equal(f'hook {group}: the new input', hook.seen(server.folder, heat.outputs(group)), 'size 2')
    equal(f'hook {group}: the delete', heat.delete(group, id), 'DELETE_COMPLETE')


def late(heat, folder, group, id):
    """The agent of a stack that was created with a timeout of a minute starts after it: its signal changes nothing."""
    name = f'late-{group}'
    stack = heat.settled(name, seconds=90)
    equal(f'{name}: no signal', (stack['stack_status'], stack['stack_status_reason']), ('CREATE_FAILED', 'Timed out'))
    server = agent_of(heat, folder, name)
    server.work()
    ran = list((server.folder / 'deployed').glob('*.notify.json'))
    if check(f'{name}: the hook has run', len(ran) == 1, server.log()):
        equal(f'{name}: what it reports', json.loads(ran[0].read_text())['deploy_status_code'], 0)
    equal(f'{name}: after its signal', heat.stack(name)['stack_status'], 'CREATE_FAILED')
    one = heat.call('GET', f'/software_deployments/{heat.outputs(name)["deployment"]}')['software_deployment']
    equal(f'{name}: its deployment', (one['status'], one['output_values']), ('FAILED', None))
    equal(f'{name}: the delete', heat.delete(name, id), 'DELETE_COMPLETE')
