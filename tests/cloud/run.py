#!/usr/bin/env python3
"""Stacks on a real OpenStack with the standard clients.

    devcloud/devcloud up kiln && tests/cloud/run.py [CASE...]

The cloud is devcloud with Kiln as its orchestration service; the clients are python-openstackclient and
python-heatclient from PyPI. Each case creates a stack from a public template, compares it with the lists of the cloud,
updates it, deletes it, and checks that nothing is left. Everything runs in a temporary project. Prints one line per failed
check, and `N passed, N failed`.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import uuid

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent))
from harness.checks import case, check, finish  # noqa: E402
from harness.pypi import ROOT, openstack_client  # noqa: E402
from harness.request import call  # noqa: E402

from devcloud import Devcloud, credentials  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
HOT = ROOT / 'tests/data/heat-templates/hot'
OPENSTACK = openstack_client()
IMAGE, FLAVOR, OTHER_FLAVOR, PUBLIC = 'cirros', 'm1.nano', 'm1.micro', 'public'


class Client:
    """The openstack command as one user of one project."""

    def __init__(self, env):
        self.env = env

    def run(self, *words, expect=0):
        done = subprocess.run([OPENSTACK, *words], env=self.env, capture_output=True, text=True, timeout=600)
        if expect is not None and done.returncode != expect:
            raise RuntimeError(f'openstack {" ".join(words)}: {done.stderr.strip() or done.stdout.strip()}')
        return done.stdout

    def json(self, *words):
        return json.loads(self.run(*words, '-f', 'json') or 'null')

    def many(self, commands):
        """Runs several lists in one process, because its start is slow; returns the JSON results in order."""
        lines = ''.join(' '.join(words) + ' -f json\n' for words in commands)
        done = subprocess.run([OPENSTACK], env=self.env, input=lines, capture_output=True, text=True, timeout=600)
        decoder, answers, rest = json.JSONDecoder(), [], done.stdout
        while (start := min((at for at in (rest.find('['), rest.find('{')) if at >= 0), default=-1)) >= 0:
            try:
                answer, end = decoder.raw_decode(rest, start)
            except ValueError:
                end = start + 1
            else:
                answers.append(answer)
            rest = rest[end:]
        if len(answers) != len(commands):
            raise RuntimeError(f'openstack: {lines}: {done.stderr.strip() or done.stdout.strip()}')
        return answers


class Project:
    """A project with one network behind a router, and a key pair."""

    def __enter__(self):
        self.admin = Client(credentials('admin'))
        self.name = 'kiln-' + uuid.uuid4().hex[:8]
        self.id = self.admin.json('project', 'create', self.name)['id']
        for role in ('member', 'heat_stack_owner'):
            self.admin.run('role', 'add', '--project', self.id, '--user', 'demo', role)
        self.user = Client(dict(credentials('demo'), OS_PROJECT_NAME=self.name))
        self.net = self.user.json('network', 'create', 'private')['id']
        self.subnet = self.user.json('subnet', 'create', '--network', self.net, '--subnet-range', '10.88.0.0/24',
                                     'private-subnet')['id']
        self.router = self.user.json('router', 'create', 'router')['id']
        self.user.run('router', 'set', '--external-gateway', PUBLIC, self.router)
        self.user.run('router', 'add', 'subnet', self.router, self.subnet)
        key = HERE / 'key.pub'
        self.user.run('keypair', 'create', '--public-key', str(key), self.name)
        return self

    def __exit__(self, *error):
        for words in (('keypair', 'delete', self.name), ('router', 'remove', 'subnet', self.router, self.subnet),
                      ('router', 'delete', self.router), ('network', 'delete', self.net)):
            self.user.run(*words, expect=None)
        self.admin.run('project', 'delete', self.id, expect=None)

    def inventory(self):
        """All objects of the project in the lists of the services: kind -> IDs."""
        lists = {
            'server': ('server', 'list'),
            'port': ('port', 'list', '--project', self.id),
            'volume': ('volume', 'list'),
            'network': ('network', 'list', '--project', self.id),
            'router': ('router', 'list', '--project', self.id),
            'floating ip': ('floating', 'ip', 'list', '--project', self.id),
            'security group': ('security', 'group', 'list', '--project', self.id),
            'server group': ('server', 'group', 'list'),
        }
        answers = self.user.many(lists.values())
        return {kind: {row['ID'] for row in rows} for kind, rows in zip(lists, answers)}


KIND = {
    'OS::Nova::Server': 'server',
    'OS::Nova::ServerGroup': 'server group',
    'OS::Neutron::Port': 'port',
    'OS::Neutron::Net': 'network',
    'OS::Neutron::Router': 'router',
    'OS::Neutron::FloatingIP': 'floating ip',
    'OS::Neutron::SecurityGroup': 'security group',
    'OS::Cinder::Volume': 'volume',
}


def cases(project):
    common = {'key_name': project.name, 'image': IMAGE, 'flavor': FLAVOR}
    return {
        'three-tier': (ROOT / 'examples/three-tier.yaml', {'web_flavor': FLAVOR, 'database_flavor': FLAVOR},
                       {'web_flavor': OTHER_FLAVOR}),
        'hello_world': (HOT / 'hello_world.yaml', dict(common, admin_pass='Kiln1234'), {'flavor': OTHER_FLAVOR}),
        'servers_in_new_neutron_net': (
            HOT / 'servers_in_new_neutron_net.yaml',
            dict(common, public_net=PUBLIC, private_net_name='kiln-new-net', private_net_cidr='10.99.0.0/24',
                 private_net_gateway='10.99.0.1', private_net_pool_start='10.99.0.10',
                 private_net_pool_end='10.99.0.50'),
            {'private_net_name': 'kiln-renamed-net'}),
        'servers_in_existing_neutron_net': (
            HOT / 'servers_in_existing_neutron_net.yaml',
            dict(common, public_net_id=PUBLIC, private_net_id=project.net, private_subnet_id=project.subnet),
            {'flavor': OTHER_FLAVOR}),
        'vm_with_cinder': (HOT / 'vm_with_cinder.yaml', dict(common, network='private'), {'flavor': OTHER_FLAVOR}),
        'resource_group': (HOT / 'resource_group/resource_group.yaml', {}, {}),
        'resource_group_index_lookup': (HOT / 'resource_group/resource_group_index_lookup.yaml', {},
                                        {'random_lengths': '4,5,9'}),
        'server_with_volumes': (
            HOT / 'resource_group/server_with_volumes.yaml',
            {'key_name': project.name, 'image_id': IMAGE, 'instance_type': FLAVOR}, {'num_volumes': '1'}),
    }


def parameters(values):
    return [word for name, value in values.items() for word in ('--parameter', f'{name}={value}')]


def compare(project, stack, before, step):
    """Compares the resources of the stack with the lists of the cloud."""
    rows = project.user.json('stack', 'resource', 'list', '-n', '5', stack)
    bad = [f"{row['resource_name']} {row['resource_status']}" for row in rows
           if not row['resource_status'].endswith('COMPLETE')]
    check(f'{stack} {step}: every resource complete', rows and not bad, bad)
    now = project.inventory()
    for kind in sorted(set(KIND.values())):
        mine = {row['physical_resource_id'] for row in rows if KIND.get(row['resource_type']) == kind}
        there = now[kind] - before[kind]
        # Ports that Nova and Neutron create do not belong to the stack.
        good = mine <= there if kind == 'port' else mine == there
        check(f'{stack} {step}: {kind}s as the cloud lists them', good, f'stack {mine}, cloud {there}')
    return rows


def run_case(project, name, template, values, changes):
    user, stack = project.user, name.replace('_', '-')
    before = project.inventory()
    start = time.time()
    user.run('stack', 'create', '-t', str(template), *parameters(values), '--wait', stack)
    seconds = time.time() - start
    shown = user.json('stack', 'show', stack)
    check(f'{name}: create', shown['stack_status'] == 'CREATE_COMPLETE', shown['stack_status_reason'])
    compare(project, stack, before, 'create')
    events = user.json('stack', 'event', 'list', '--nested-depth', '2', stack)
    check(f'{name}: events', any(event['resource_status'] == 'CREATE_COMPLETE' for event in events), events)
    outputs = user.json('stack', 'output', 'show', '--all', stack)
    texts = json.dumps(outputs)
    check(f'{name}: outputs', 'output_error' not in texts, texts)
    listed = [row['Stack Name'] for row in user.json('stack', 'list')]
    check(f'{name}: listed', stack in listed, listed)

    user.run('stack', 'update', '--existing', *parameters(changes), '--wait', stack)
    shown = user.json('stack', 'show', stack)
    check(f'{name}: update', shown['stack_status'] == 'UPDATE_COMPLETE', shown['stack_status_reason'])
    compare(project, stack, before, 'update')

    user.run('stack', 'delete', '--yes', '--wait', stack)
    gone = user.run('stack', 'show', stack, expect=None)
    check(f'{name}: delete', not gone.strip(), gone)
    left = {kind: ids - before[kind] for kind, ids in project.inventory().items()}
    check(f'{name}: nothing left', not any(left.values()), left)
    print(f'{name}: created in {seconds:.1f} s', flush=True)


LOCKED = f"""\
heat_template_version: 2018-08-31
resources:
  server: {{type: OS::Nova::Server, properties: {{image: {IMAGE}, flavor: {FLAVOR}, networks: [{{network: private}}]}}}}
  image:
    type: OS::Glance::WebImage
    properties: {{name: kiln-locked, disk_format: raw, container_format: bare, location: 'http://127.0.0.1:1/none.raw'}}
"""


def locked(project):
    """A guard with `lock`: Nova and Glance refuse the deletes of others, until it is lifted."""
    user = project.user
    with tempfile.NamedTemporaryFile('w', suffix='.yaml') as template:
        template.write(LOCKED)
        template.flush()
        # Nothing is to be downloaded: the import fails, and the image stays.
        user.run('stack', 'create', '-t', template.name, '--wait', 'locked', expect=None)
    ids = {row['resource_name']: row['physical_resource_id'] for row in user.json('stack', 'resource', 'list', 'locked')}
    token = user.json('token', 'issue')['id']

    def ask(method, path='', body=None):
        status, _, answer = call(method, f'{Devcloud().url}/{project.id}/guards{path}', body, token)
        check(f'locked: {method} of the guard', status in (200, 204), answer)
        return answer

    added = ask('PUT', body={'stack': 'locked', 'protect': ['delete'], 'resources': '*', 'lock': True})
    check('locked: the objects', added['locked'] == ['image', 'server'], added)
    for kind in ('server', 'image'):
        user.run(kind, 'delete', ids[kind], expect=None)
    check('locked: the server', user.json('server', 'show', ids['server'])['id'] == ids['server'], ids)
    check('locked: the image', user.json('image', 'show', ids['image'])['protected'] is True, ids)
    ask('DELETE', '/' + added['guard']['id'])
    check('locked: the image is free', user.json('image', 'show', ids['image'])['protected'] is False, ids)
    user.run('stack', 'delete', '--yes', '--wait', 'locked')
    listed = [row['ID'] for row in user.json('server', 'list')]
    check('locked: the server is deleted', ids['server'] not in listed, listed)


def commands(name, user, folder):
    """Runs commands of Kiln in a folder, as a user, and checks their exit codes."""
    binary = os.environ.get('KILN', str(ROOT / 'target/release/kiln'))

    def kiln(*words, expect=0):
        done = subprocess.run([binary, *words], env=user.env, cwd=folder, capture_output=True, text=True, timeout=600)
        check(f'{name}: kiln {" ".join(words)}', done.returncode == expect, done.stdout + done.stderr)
        return done.stdout + done.stderr

    return kiln


def imported(project):
    """What a person made by hand becomes a stack as it is; the stack is then one as any other."""
    user = project.user
    rule = ('security', 'group', 'rule', 'create')
    answers = user.many([
        ('network', 'create', 'hand-net'),
        ('subnet', 'create', '--network', 'hand-net', '--subnet-range', '10.66.0.0/24', 'hand-subnet'),
        ('security', 'group', 'create', 'hand-doors'),
        ('router', 'create', '--external-gateway', PUBLIC, 'hand-router'),
        (*rule, '--protocol', 'tcp', '--dst-port', '22', '--remote-ip', '10.0.0.0/8', 'hand-doors'),
        (*rule, '--protocol', 'icmp', 'hand-doors'),
        ('port', 'create', '--network', 'hand-net', '--security-group', 'hand-doors', 'hand-port'),
        ('volume', 'create', '--size', '1', '--description', 'kept', 'hand-volume'),
    ])
    user.run('router', 'add', 'subnet', 'hand-router', 'hand-subnet')
    kinds = ('network', 'subnet', 'security group', 'router', None, None, 'port', 'volume')
    made = {kind: one for kind, one in zip(kinds, answers) if kind}
    made['floating ip'], made['server'] = user.many([
        ('floating', 'ip', 'create', '--port', 'hand-port', PUBLIC),
        ('server', 'create', '--image', IMAGE, '--flavor', FLAVOR, '--key-name', project.name, '--port',
         made['port']['id'], '--property', 'role=web', '--wait', 'hand-server'),
    ])
    user.run('server', 'add', 'volume', 'hand-server', 'hand-volume')
    with tempfile.TemporaryDirectory() as folder:
        kiln = commands('imported', user, folder)

        def shown():
            """The objects, with the numbers that grow with each change."""
            return user.many([(*kind.split(), 'show', one['id']) for kind, one in made.items()])

        there = {row['physical_resource_id'] for row in json.loads(kiln('import', 'scan', '--unmanaged', '-f', 'json')
                                                                  .rpartition(']')[0] + ']')}
        missing = {kind for kind, one in made.items() if one['id'] not in there}
        check('imported: everything is found', not missing, missing)
        before = shown()
        kiln('import', 'write', '--name', 'hand-*', '--related', '-t', 'hand.yaml')
        kiln('template', 'lint', 'hand.yaml')
        kiln('import', 'commit', '-t', 'hand.yaml', '--dry-run', 'hand')
        kiln('import', 'commit', '-t', 'hand.yaml', '--wait', 'hand')
        changed = [(old, new) for old, new in zip(before, shown()) if old != new]
        check('imported: nothing was changed', not changed, changed)
        kiln('stack', 'plan', '--existing', '--converge', '--detailed-exitcode', 'hand')
        again = kiln('import', 'commit', '-t', 'hand.yaml', 'second', expect=1)
        check('imported: once', 'of the stack hand' in again, again)
        rows = {row['physical_resource_id'] for row in user.json('stack', 'resource', 'list', 'hand')}
        check('imported: the objects of the stack', all(one['id'] in rows for one in made.values()), rows)
        kiln('stack', 'delete', '--yes', '--wait', 'hand')
        left = json.loads(kiln('import', 'scan', '-f', 'json').rpartition(']')[0] + ']')
        ours = {one['id'] for one in made.values()} & {row['physical_resource_id'] for row in left}
        check('imported: nothing left', not ours, ours)


WHOLE = f'''heat_template_version: 2018-08-31
resources:
  net: {{type: OS::Neutron::Net}}
  subnet: {{type: OS::Neutron::Subnet, properties: {{network: {{get_resource: net}}, cidr: 10.67.0.0/24}}}}
  port: {{type: OS::Neutron::Port, properties: {{network: {{get_resource: net}}}}, depends_on: subnet}}
  server:
    type: OS::Nova::Server
    properties: {{image: {IMAGE}, flavor: {FLAVOR}, networks: [{{port: {{get_resource: port}}}}]}}
'''
APART = f'''heat_template_version: 2018-08-31
parameters: {{network: {{type: string}}}}
resources:
  port: {{type: OS::Neutron::Port, properties: {{network: {{get_param: network}}}}}}
  server:
    type: OS::Nova::Server
    properties: {{image: {IMAGE}, flavor: {FLAVOR}, networks: [{{port: {{get_resource: port}}}}]}}
'''
BASE = '''heat_template_version: 2018-08-31
resources:
  backend: {type: OS::Neutron::Net}
  subnet: {type: OS::Neutron::Subnet, properties: {network: {get_resource: backend}, cidr: 10.67.0.0/24}}
'''


def refactored(project):
    """A stack is split in two; no object changes, and both are deleted."""
    user = project.user
    with tempfile.TemporaryDirectory() as folder:
        place = pathlib.Path(folder)
        kiln = commands('refactored', user, folder)
        for name, text in (('whole', WHOLE), ('apart', APART), ('base', BASE), ('empty', 'heat_template_version: 2018-08-31\n')):
            (place / f'{name}.yaml').write_text(text)
        kiln('stack', 'create', '-t', 'empty.yaml', '--wait', 'base')
        kiln('stack', 'create', '-t', 'whole.yaml', '--wait', 'whole')
        ids = {row['resource_name']: row['physical_resource_id'] for row in user.json('stack', 'resource', 'list', 'whole')}

        def shown():
            kinds = {'net': 'network', 'subnet': 'subnet', 'port': 'port', 'server': 'server'}
            return user.many([(kind, 'show', ids[name]) for name, kind in kinds.items()])

        before = shown()
        (place / 'moves.yaml').write_text(
            f"stacks:\n  whole: {{template: apart.yaml, parameters: {{network: {ids['net']}}}}}\n  base: {{template: base.yaml}}\n"
            'moves:\n  - {from: whole/net, to: base/backend}\n')
        kiln('stack', 'refactor', '--moves', 'moves.yaml', '--plan')
        kiln('stack', 'refactor', '--moves', 'moves.yaml')
        changed = [(old, new) for old, new in zip(before, shown()) if old != new]
        check('refactored: nothing was changed', not changed, changed)
        for stack in ('whole', 'base'):
            kiln('stack', 'plan', '--existing', '--converge', '--detailed-exitcode', stack)
        moved = {row['resource_name']: row['physical_resource_id'] for row in user.json('stack', 'resource', 'list', 'base')}
        check('refactored: what has moved', moved == {'backend': ids['net'], 'subnet': ids['subnet']}, moved)
        for stack in ('whole', 'base'):
            kiln('stack', 'delete', '--yes', '--wait', stack)
        left = {row['ID'] for kind in ('network', 'port') for row in user.json(kind, 'list')} & set(ids.values())
        check('refactored: nothing left', not left, left)


def main():
    with Project() as project:
        chosen = cases(project)
        others = {'locked': locked, 'imported': imported, 'refactored': refactored}
        for name in sys.argv[1:] or [*chosen, *others]:
            if name in others:
                case(others[name], project)
            else:
                case(run_case, project, name, *chosen[name], name=name)
    finish()


if __name__ == '__main__':
    main()
