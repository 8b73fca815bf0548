#!/usr/bin/env python3
"""Stacks that the Python Heat has made come under Kiln in place, with Heat's database and configuration.

    devcloud/devcloud up heat && tests/cloud/take_over.py BINARY [--heat VERSION] [WORD...]

Heat creates each stack of tests/data/corpus/runs.jsonl that the reference could create, or those with a WORD in their path, and
one with a scaling group, a wait condition and hidden parameters. Then:

- `inventory` says that nothing is in the way, and which plans would change something,
- `import` writes all of them beside Heat's tables, while Heat runs; a second one finds nothing new,
- `compare --live` says that their trusts, users and keys work for Kiln, that their objects are as stored, and that clients see in
  Kiln what they see in Heat,
- Kiln stands before Heat at other ports: clients list stacks and guests send signals through it, while `switch` and `--back` give
  the projects to Kiln and back twice; every request is answered, and every signal is stored,
- `switch` gives the projects to Kiln: Heat cannot change their stacks any more; `--back` gives them back; they are switched again,
- Heat is stopped and Kiln started with `heat.conf` at the same addresses: all stacks, resources and events have their IDs,
  the alarm URL that Heat has made scales the group, the URL of the wait handle takes a signal, an agent with what Heat has put
  into its server carries out deployments; the server is suspended and resumed, a snapshot is made and deleted,
- each stack is updated with its own template: its objects stay,
- every second stack is deleted, and Kiln makes one,
- `compare` says that the others can go back, and `switch --back` writes what has changed into Heat's tables,
- Heat is started again, with --heat another release of it, which upgrades the schema first: it shows what Kiln has shown, its old
  and Kiln's new alarm URLs scale, the agent carries out a deployment, it updates each stack without a
  change of an object, and deletes each. Afterwards the cloud has no object of theirs.

Prints one line per failure, and `N passed, N failed`. Heat is started again at the end.
"""
import contextlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent))
from harness.pypi import OPENSTACK, virtual_environment  # noqa: E402

virtual_environment('openstack', *OPENSTACK)

import requests  # noqa: E402
from heatclient import client as heat  # noqa: E402

import guest_of_heat  # noqa: E402
from public import Fixtures, CORPUS, OLD_IMAGE, chosen, connect, edited  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
CONFIG = '/var/tmp/devcloud/etc/heat/heat.conf'
API = 'http://127.0.0.1:8004'
CFN = 'http://127.0.0.1:8000'
OWN = '''
heat_template_version: 2018-08-31
parameters:
  secret: {type: string, hidden: true}
resources:
  random: {type: OS::Heat::RandomString, properties: {length: 12}}
  hidden: {type: OS::Heat::Value, properties: {value: {get_param: secret}}}
  net: {type: OS::Neutron::Net, properties: {name: taken-net, tags: [a, b]}}
  subnet: {type: OS::Neutron::Subnet, properties: {network: {get_resource: net}, cidr: 10.78.0.0/24}}
  group:
    type: OS::Heat::AutoScalingGroup
    properties:
      min_size: 1
      max_size: 4
      resource: {type: OS::Neutron::Port, properties: {network: {get_resource: net}}}
    depends_on: subnet
  out:
    type: OS::Heat::ScalingPolicy
    properties:
      adjustment_type: change_in_capacity
      auto_scaling_group_id: {get_resource: group}
      scaling_adjustment: 1
      cooldown: 1
  handle: {type: OS::Heat::WaitConditionHandle}
  members:
    type: OS::Heat::ResourceGroup
    properties: {count: 2, resource_def: {type: OS::Cinder::Volume, properties: {size: 1}}}
  config: {type: OS::Heat::SoftwareConfig, properties: {config: 'true'}}
outputs:
  alarm: {value: {get_attr: [out, alarm_url]}}
  size: {value: {get_attr: [group, current_size]}}
  curl: {value: {get_attr: [handle, curl_cli]}}
  random: {value: {get_attr: [random, value]}}
'''
SIGNAL = '{"status": "SUCCESS", "id": "x", "data": "done"}'
ID_IN_KILN = dict.fromkeys(('AWS::AutoScaling::LaunchConfiguration', 'AWS::EC2::VPCGatewayAttachment',
                            'AWS::EC2::SubnetRouteTableAssociation', 'OS::Keystone::UserRoleAssignment'), 'an ID')
RESULTS = {'passed': 0, 'failed': 0}


def check(what, right, more=''):
    RESULTS['passed' if right else 'failed'] += 1
    if not right:
        print(f'FAILED {what}: {str(more)[:1500]}', flush=True)


class Side:
    """A user, with the client of Heat's API."""

    def __init__(self, name):
        self.name, self.cloud = name, connect(name)
        self.project = self.cloud.session.get_project_id()
        self.client = heat.Client('1', session=self.cloud.session, endpoint_override=f'{API}/v1/{self.project}')

    def stacks(self):
        """The stacks of the project: Heat lists those of all projects to an administrator."""
        own = [stack for stack in self.client.stacks.list() if f'/{self.project}/' in stack.links[0]['href']]
        return {stack.stack_name: stack for stack in own}

    def tree(self):
        """What clients see of all stacks."""
        found = {}
        for name, stack in self.stacks().items():
            rows = self.client.resources.list(stack.id, nested_depth=5)
            events = self.client.events.list(stack.id)
            found[name] = {
                'stack': (stack.id, stack.stack_status, stack.stack_owner, stack.creation_time),
                # Some types have an ID in Kiln only.
                'resources': sorted((row.resource_name, ID_IN_KILN.get(row.resource_type, row.physical_resource_id), row.resource_type, row.resource_status,
                                     sorted(row.required_by)) for row in rows),
                'events': sorted((event.id, event.resource_name, event.resource_status) for event in events),
                'parameters': self.client.stacks.get(stack.id).parameters,
            }
        return found

    def settled(self, name, seconds=180):
        for _ in range(seconds * 2):
            try:
                stack = self.client.stacks.get(name)
            except Exception as missing:  # heatclient has an exception of its own for each status
                if getattr(missing, 'code', 0) == 404:
                    return None
                raise
            # Heat marks a stack as deleted shortly after that.
            if not stack.stack_status.endswith('IN_PROGRESS') and stack.stack_status != 'DELETE_COMPLETE':
                return stack
            time.sleep(0.5)
        raise TimeoutError(name)

    def objects(self):
        net, compute, disks = self.cloud.network, self.cloud.compute, self.cloud.block_storage
        return {
            'networks': {one.id for one in net.networks(project_id=self.project)},
            'ports': {one.id for one in net.ports(project_id=self.project)},
            'routers': {one.id for one in net.routers(project_id=self.project)},
            'addresses': {one.id for one in net.ips(project_id=self.project)},
            'servers': {one.id for one in compute.servers()},
            'volumes': {one.id for one in disks.volumes()},
        }


def devcloud(*words, **variables):
    subprocess.run([str(ROOT / 'devcloud/devcloud'), *words], check=True, stdout=subprocess.DEVNULL,
                   env={**os.environ, **variables})


def start_heat(version):
    """Starts the packaged Heat, or another release, which upgrades the schema first."""
    if version is None:
        devcloud('up', 'heat')
        return
    folder = subprocess.run([str(ROOT / 'tests/heat_database/make.py'), '--install', version], capture_output=True, text=True,
                            check=True).stdout.strip()
    subprocess.run([f'{folder}/bin/heat-manage', '--config-file', CONFIG, 'db_sync'], check=True)
    devcloud('up', 'heat', HEAT_VENV=folder)


def database(statement):
    done = subprocess.run(['mariadb', '-h127.0.0.1', '-P13306', '-udevcloud', '-pdevcloud', 'heat', '-Nse', statement],
                          capture_output=True, text=True)
    return done.returncode, (done.stdout + done.stderr).strip()


class Kiln:
    def __init__(self, binary):
        self.binary = binary

    def take_over(self, word, *words, code=0):
        both = ['--heat-config', CONFIG, '--config-file', CONFIG]
        words = ['manage', 'take-over', word, *(both if word in ('inventory', 'import', 'compare', 'switch') else both[2:]), *words]
        done = subprocess.run([self.binary, *words], capture_output=True, text=True, timeout=600)
        check(f'kiln {" ".join(words)}', done.returncode == code, done.stdout + done.stderr)
        return done.stdout

    @contextlib.contextmanager
    def serving(self, *more, api=API):
        with open('/tmp/kiln-take-over.log', 'w') as log:
            process = subprocess.Popen([self.binary, 'serve', '--config-file', CONFIG, *more], stdout=log, stderr=log)
            try:
                for _ in range(120):
                    with contextlib.suppress(requests.RequestException):
                        if requests.get(f'{api}/healthcheck', timeout=5).ok:
                            break
                    time.sleep(0.5)
                yield
            finally:
                process.terminate()
                process.wait(timeout=60)


def made_by_heat(sides, runs, values, scratch):
    """Creates the stacks; returns template, files, environment and parameters by user and name."""
    made = {}
    for number, asked in enumerate(runs):
        for placeholder, value in values.items():
            asked = json.loads(json.dumps(asked).replace(f'"{placeholder}"', f'"{value}"'))
        side = sides['admin' if asked['as'] == 'admin' else 'demo']
        folder = pathlib.Path(scratch) / str(number)
        subprocess.run(['cp', '-r', str(CORPUS / 'heat-templates'), str(folder.parent / f'{number}-t')], check=True)
        folder.mkdir()
        (folder.parent / f'{number}-t').rename(folder / 'heat-templates')
        template, files, environment = edited(folder, asked)
        name = f'taken-{number}'
        fields = dict(template=template, files=files, environment=environment, parameters=asked['parameters'])
        try:
            side.client.stacks.create(stack_name=name, disable_rollback=True, **fields)
        except Exception as refused:  # a service that this cloud does not have
            print(f'not made by Heat: {asked["path"]}: {refused}'[:300], flush=True)
            continue
        finally:
            subprocess.run(['rm', '-r', str(folder)], check=True)
        stack = side.settled(name)
        if stack.stack_status == 'CREATE_COMPLETE':
            made[side.name, name] = fields
        else:
            print(f'not made by Heat: {asked["path"]}: {stack.stack_status_reason[:200]}', flush=True)
            side.client.stacks.delete(name)
            side.settled(name)
    fields = dict(template=OWN, files={}, environment={}, parameters={'secret': 'swordfish-planted'})
    sides['demo'].client.stacks.create(stack_name='taken-own', disable_rollback=True, **fields)
    stack = sides['demo'].settled('taken-own')
    check('Heat makes the own stack', stack.stack_status == 'CREATE_COMPLETE', stack.stack_status_reason)
    made['demo', 'taken-own'] = fields
    fields = dict(template=guest_of_heat.TEMPLATE, files={}, environment={}, parameters={})
    sides['demo'].client.stacks.create(stack_name='taken-guest', disable_rollback=True, **fields)
    stack = sides['demo'].settled('taken-guest')
    check('Heat makes the stack of the agent', stack.stack_status == 'CREATE_COMPLETE', stack.stack_status_reason)
    made['demo', 'taken-guest'] = fields
    return made


def until(right, seconds=30):
    """Waits until something is true; returns what it is at the end."""
    for _ in range(seconds * 2):
        if found := right():
            return found
        time.sleep(0.5)
    return right()


def output(side, name, key):
    stack = side.client.stacks.get(name)
    return next(one['output_value'] for one in stack.outputs if one['output_key'] == key)


def greeted(side, whom):
    """An update whose deployment the agent carries out."""
    fields = dict(template=guest_of_heat.TEMPLATE, parameters={'greeting': whom})
    side.client.stacks.update('taken-guest', existing=True, **fields)
    stack = side.settled('taken-guest')
    check(f'the agent carries out a deployment: {whom}', stack.stack_status == 'UPDATE_COMPLETE', stack.stack_status_reason)
    check(f'its answer is stored: {whom}', output(side, 'taken-guest', 'answer') == whom)


def slept(side):
    """A suspend, a resume, and a snapshot."""
    for action in ('suspend', 'resume'):
        getattr(side.client.actions, action)('taken-guest')
        stack = side.settled('taken-guest')
        check(f'{action} of the server and its deployment', stack.stack_status == f'{action.upper()}_COMPLETE', stack.stack_status_reason)
    snapshot = side.client.stacks.snapshot('taken-own', name='taken')
    stack = side.settled('taken-own')
    check('a snapshot is made', stack.stack_status == 'SNAPSHOT_COMPLETE', stack.stack_status_reason)
    side.client.stacks.snapshot_delete('taken-own', snapshot['id'])
    check('a snapshot is deleted', until(lambda: not side.client.stacks.snapshot_list('taken-own')['snapshots']))
    # Heat finds no scaling group to scale whose last action was a snapshot.
    larger = OWN.replace('max_size: 4', 'max_size: 5')
    side.client.stacks.update('taken-own', existing=True, template=larger, files={}, environment={}, parameters={})
    stack = side.settled('taken-own')
    check('it is updated after the snapshot', stack.stack_status == 'UPDATE_COMPLETE', stack.stack_status_reason)


def before_heat(kiln, side, projects, scratch):
    """Clients and guests notice nothing of a switch if Kiln stands before Heat."""
    front = pathlib.Path(scratch) / 'front.conf'
    front.write_text(f'[heat_api]\nbind_port = 18004\n[heat_api_cfn]\nbind_port = 18000\n'
                     f'[kiln]\nheat_api_url = {API}\nheat_cfn_url = {CFN}\n')
    client = heat.Client('1', session=side.cloud.session, endpoint_override=f'{API.replace(":8004", ":18004")}/v1/{side.project}')
    curl = output(side, 'taken-own', 'curl').replace(':8004/', ':18004/')
    names, done, sent = set(side.stacks()), threading.Event(), []

    def lists():
        while not done.is_set():
            try:
                listed = {stack.stack_name for stack in client.stacks.list()}
            except Exception as error:  # heatclient has an exception of its own for each status
                listed = error
            if listed != names:
                check('clients see their stacks', False, f'{listed} {names}')
            times.append(time.time())

    def signals():
        while not done.is_set():
            key = f'n{len(sent)}'
            data = json.dumps({'status': 'SUCCESS', 'id': key, 'data': key})
            answer = subprocess.run(f"{curl} --data-binary '{data}' -o /dev/null -w '%{{http_code}}'", shell=True, text=True,
                                    capture_output=True, timeout=120)
            sent.append(key)
            if answer.stdout != '200':
                check(f'signal {key} is taken', False, answer.stdout + answer.stderr)
            time.sleep(0.2)

    times = [time.time()]
    with kiln.serving('--config-file', str(front), api='http://127.0.0.1:18004'):
        threads = [threading.Thread(target=one) for one in (lists, signals)]
        for thread in threads:
            thread.start()
        for back in ((), ('--back',), (), ('--back',)):
            kiln.take_over('switch', *back, *projects)
            time.sleep(2)
        done.set()
        for thread in threads:
            thread.join()
        stored = side.client.resources.metadata('taken-own', 'handle')
        longest = max(after - before for before, after in zip(times, times[1:]))
        print(f'  {len(times)} lists and {len(sent)} signals during four switches, the longest wait {longest:.1f} s', flush=True)
        check('every signal is stored', set(sent) <= set(stored), set(sent) - set(stored))


def under_kiln(sides, made, before):
    demo = sides['demo']
    for name, side in sides.items():
        after = side.tree()
        for stack, seen in before[name].items():
            for part, value in seen.items():
                check(f'{stack}: {part} are as in Heat', after.get(stack, {}).get(part) == value,
                      f'{value} {after.get(stack, {}).get(part)}')
    kept = output(demo, 'taken-own', 'random')
    answer = requests.post(output(demo, 'taken-own', 'alarm'), timeout=30)
    check('the alarm URL of Heat scales', answer.ok, f'{answer.status_code} {answer.text}')
    check('the group has grown', until(lambda: output(demo, 'taken-own', 'size') == 2 and demo.settled('taken-own')))
    curl = output(demo, 'taken-own', 'curl')
    done = subprocess.run(f"{curl} --data-binary '{SIGNAL}' -o /dev/null -w '%{{http_code}}'", shell=True, text=True,
                          capture_output=True, timeout=60)
    check('the wait handle of Heat takes a signal', done.stdout == '200', done.stdout + done.stderr)
    stored = until(lambda: demo.client.resources.metadata('taken-own', 'handle').get('x'))
    check('the signal is stored', stored and stored.get('data') == 'done', stored)
    check('a random string keeps its value', output(demo, 'taken-own', 'random') == kept)
    updated(sides, made)
    greeted(demo, 'Kiln')
    slept(demo)


def updated(sides, made):
    """Every stack is updated with its own template, which changes no object."""
    for (name, stack), fields in made.items():
        side = sides[name]
        ids = {row.resource_name: row.physical_resource_id for row in side.client.resources.list(stack)}
        side.client.stacks.update(stack, existing=True, **fields)
        done = side.settled(stack)
        check(f'{stack} is updated', done.stack_status == 'UPDATE_COMPLETE', done.stack_status_reason)
        now = {row.resource_name: row.physical_resource_id for row in side.client.resources.list(stack)}
        check(f'{stack}: objects stay', ids == now, f'{ids} {now}')


def deleted(sides, stacks):
    for name, stack in stacks:
        sides[name].client.stacks.delete(stack)
    for name, stack in stacks:
        left = sides[name].settled(stack, 300)
        if left and 'Cannot delete a domain that is enabled' in left.stack_status_reason:
            # Heat does not disable it, Kiln does.
            for row in sides[name].client.resources.list(stack, filters={'type': 'OS::Keystone::Domain'}):
                sides[name].cloud.identity.update_domain(row.physical_resource_id, is_enabled=False)
            sides[name].client.stacks.delete(stack)
            left = sides[name].settled(stack, 300)
        check(f'{stack} is deleted', left is None, left and left.stack_status_reason)


def changed_by_kiln(sides, made):
    """Kiln deletes every second stack and makes one of its own; returns the stacks that are left, and what clients see."""
    gone = [one for one in list(made)[::2] if one[1] not in ('taken-own', 'taken-guest')]
    deleted(sides, gone)
    left = {one: fields for one, fields in made.items() if one not in gone}
    fields = dict(template=OWN, files={}, environment={}, parameters={'secret': 'swordfish-planted'})
    sides['demo'].client.stacks.create(stack_name='taken-kiln', disable_rollback=True, tags='red,black', **fields)
    stack = sides['demo'].settled('taken-kiln')
    check('Kiln makes a stack', stack.stack_status == 'CREATE_COMPLETE', stack.stack_status_reason)
    left['demo', 'taken-kiln'] = fields
    return left, {name: side.tree() for name, side in sides.items()}


def under_heat_again(sides, left, before):
    """Heat goes on with what Kiln has left."""
    demo = sides['demo']
    for name, side in sides.items():
        after = side.tree()
        check(f'{name}: Heat has the stacks that Kiln had', set(after) == set(before[name]), set(after) ^ set(before[name]))
        for stack, seen in before[name].items():
            for part, value in seen.items():
                check(f'{stack}: {part} are as in Kiln', after.get(stack, {}).get(part) == value,
                      f'{value} {after.get(stack, {}).get(part)}')
    for stack in ('taken-own', 'taken-kiln'):
        size = output(demo, stack, 'size')
        random = output(demo, stack, 'random')
        answer = requests.post(output(demo, stack, 'alarm'), timeout=30)
        check(f'{stack}: the alarm URL scales in Heat', answer.ok, f'{answer.status_code} {answer.text}')
        check(f'{stack}: the group has grown', until(lambda: output(demo, stack, 'size') == size + 1, 90))
        demo.settled(stack)
        check(f'{stack}: a random string keeps its value', output(demo, stack, 'random') == random)
    greeted(demo, 'Heat')
    updated(sides, left)
    deleted(sides, list(left))


def main():
    binary, words = sys.argv[1], sys.argv[2:]
    version = None
    if words[:1] == ['--heat']:
        version, words = words[1], words[2:]
    runs = [run for run in chosen([word for word in words if word != '--short'])
            if run.get('stack_status') == 'CREATE_COMPLETE']
    kiln = Kiln(binary)
    sides = {name: Side(name) for name in ('demo', 'admin')}
    # Of an earlier run.
    for table in database("SHOW TABLES LIKE 'kiln%'")[1].split():
        database(f'DROP TABLE {table}')
    for trigger in database("SELECT trigger_name FROM information_schema.triggers WHERE trigger_schema = 'heat'")[1].split():
        database(f'DROP TRIGGER {trigger}')
    for side in sides.values():
        for name in [name for name in side.stacks() if name.startswith('taken-')]:
            side.client.stacks.delete(name)
            side.settled(name)
    images = {name for run in runs for name in OLD_IMAGE.findall((CORPUS / run['path']).read_text())}
    with tempfile.TemporaryDirectory() as scratch, \
            Fixtures(sides['demo'].cloud, sides['admin'].cloud, images) as values:
        objects = {name: side.objects() for name, side in sides.items()}
        agent = guest_of_heat.Agent(sides['demo'].client, 'taken-guest', API)
        agent.start()
        made = made_by_heat(sides, runs, values, scratch)
        before = {name: side.tree() for name, side in sides.items()}
        projects = [word for side in sides.values() for word in ('--project', side.project)]
        found = json.loads(kiln.take_over('inventory', '-f', 'json'))
        counts = [found['projects'].get(side.project, {}) for side in sides.values()]
        stacks, ready, unchanged = (sum(one.get(key, 0) for one in counts) for key in ('stacks', 'ready', 'unchanged'))
        print(f'{stacks} stacks, {ready} ready, {unchanged} with an empty plan', flush=True)
        for one in counts:
            for finding in one.get('findings', []):
                print(f'  {finding["grade"]} {finding["stack"]} {finding["place"]}: {finding["what"]}', flush=True)
        check('all stacks can be taken over', ready == stacks)
        kiln.take_over('import')
        again = kiln.take_over('import', '-f', 'value', '-c', 'Result').split()
        check('a second import finds nothing new', set(again) == {'unchanged'}, again)
        views = pathlib.Path(scratch) / 'views.conf'
        views.write_text(f'[kiln]\nheat_api_url = {API}\ndrift_resources_per_second = 1000\n')
        compared = json.loads(kiln.take_over('compare', '--config-file', str(views), '--live', '-f', 'json'))
        for one in compared:
            print(f'  live {one["Stack Name"]}: {"; ".join(one["Live"])}', flush=True)
        told = [said for one in compared for said in one['Live'][1:]]
        check('the cloud gives Kiln what it gives Heat', not any(said.startswith('blocks') for said in told), told)
        check('objects are as Heat has left them', not told, told)
        check('Heat sees what it saw', before == {name: side.tree() for name, side in sides.items()})
        before_heat(kiln, sides['demo'], projects, scratch)
        before = {name: side.tree() for name, side in sides.items()}
        kiln.take_over('switch', *projects)
        code, said = database("UPDATE stack SET status_reason = 'x'")
        check('Heat cannot change the stacks', code != 0 and 'belongs to Kiln' in said, said)
        kiln.take_over('switch', '--back', *projects)
        code, said = database("UPDATE stack SET status_reason = status_reason WHERE deleted_at IS NULL")
        check('Heat can change them again', code == 0, said)
        kiln.take_over('switch', *projects)
        devcloud('down', 'heat')
        try:
            with kiln.serving():
                under_kiln(sides, made, before)
                left, before = changed_by_kiln(sides, made)
            compared = json.loads(kiln.take_over('compare', '-f', 'json'))
            check('every stack can go back', all(one['Can Go Back'] == 'yes' for one in compared), compared)
            kiln.take_over('switch', '--back', *projects)
            compared = json.loads(kiln.take_over('compare', '-f', 'json'))
            check('Heat has what Kiln had', not any(one['Differences'] for one in compared), compared)
        finally:
            database('DELETE FROM kiln_heat_fence')
            start_heat(version)
        under_heat_again(sides, left, before)
        agent.stop()
        check('every signal of the agent is taken', not agent.failures, agent.failures)
        time.sleep(5)
        for name, side in sides.items():
            for kind, ids in side.objects().items():
                more = ids - objects[name][kind]
                check(f'no {kind} of {name} are left', not more, more)
    print(f'{RESULTS["passed"]} passed, {RESULTS["failed"]} failed')
    sys.exit(RESULTS['failed'] > 0)


if __name__ == '__main__':
    main()
