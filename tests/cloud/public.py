#!/usr/bin/env python3
"""The public templates on a real OpenStack, compared with the results of the Python Heat.

    devcloud/devcloud up kiln && tests/cloud/public.py [--short] [WORD...]

Each run in tests/data/corpus/runs.jsonl (see its README) is executed by the orchestration service of the cloud with
python-heatclient: preview, create, list and delete, with the parameters and edits of the reference. Runs all templates,
or those with a WORD in their path, except those with types that have no driver in Kiln, or without a result of the
reference. With --short, stacks are only made of templates with a type that no earlier one has. Prints one line per
difference, and `N passed, N failed`.
"""
import collections
import copy
import json
import pathlib
import re
import shutil
import sys
import tempfile
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent))
from harness.pypi import OPENSTACK, ROOT, virtual_environment  # noqa: E402

virtual_environment('openstack', *OPENSTACK)

import openstack  # noqa: E402
from heatclient import client as heat  # noqa: E402
from heatclient import exc  # noqa: E402
from heatclient.common import template_format, template_utils  # noqa: E402

import run as cloud  # noqa: E402

CORPUS = ROOT / 'tests/data/corpus'
TYPES = ROOT / 'resource-types'
# Explained differences: path -> difference.
EXPLAINED = {
    # Kiln completes running operations before a stack is FAILED.
    'heat-templates/cfn/F17/Neutron_floating.template': {'resources'},
    # The volume may fail before the names in the server are found. Then the server is not created and has no address.
    'heat-templates/hot/server_with_encrpyted_volume.yaml': {'resources', 'output instance_ip'},
    # Heat calls Nova without networks, which its client refuses; Kiln lets Nova choose the only network. A preview shows
    # the group before its launch configuration is known.
    'heat-templates/cfn/F17/InstanceGroup.template': {'preview', 'output ServerGroupAddresses', 'reason'},
    'heat-templates/hot/instance_group.yaml': {'preview', 'output server_group_addresses', 'reason'},
    'heat-templates/cfn/aws_asg.template': {'preview'},
    # Keystone deletes only domains that are disabled: Kiln disables them first.
    'heat-templates/hot/keystone/keystone_domain.yaml': {'delete'},
    # A missing region is detected when the stack in it is created.
    'heat-templates/hot/multi_region_hello_world.yaml': {'preview', 'create'},
}
# How many checks of pre-flights had which verdict.
VERDICTS = collections.Counter()
OLD_IMAGE = re.compile(r'\b(?:F\d\d|U10|RHEL65|centos-6\.5|fedora-\d\d)[-.]\w+(?:-cfntools|-gold|-node|-broker|\b)')
UUID = re.compile(r'[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{32}')


def connect(user):
    env = cloud.credentials(user)
    return openstack.connect(
        auth_url=env['OS_AUTH_URL'], username=env['OS_USERNAME'], password=env['OS_PASSWORD'],
        project_name=env['OS_PROJECT_NAME'], user_domain_name=env.get('OS_USER_DOMAIN_NAME', 'Default'),
        project_domain_name=env.get('OS_PROJECT_DOMAIN_NAME', 'Default'), region_name=env.get('OS_REGION_NAME'))


class Fixtures:
    """Objects that the templates require: a key pair, a network behind a router, images with old names."""

    def __init__(self, user, admin, images):
        self.user, self.admin = user, admin
        self.delete_leftovers()
        key = (cloud.HERE / 'key.pub').read_text()
        self.keys = [side.compute.create_keypair(name='corpus-key', public_key=key) for side in (user, admin)]
        self.net = user.network.create_network(name='corpus-net')
        self.subnet = user.network.create_subnet(
            name='corpus-subnet', network_id=self.net.id, ip_version=4, cidr='10.77.0.0/24')
        public = user.network.find_network('public')
        self.router = user.network.create_router(
            name='corpus-router', external_gateway_info={'network_id': public.id})
        user.network.add_interface_to_router(self.router, subnet_id=self.subnet.id)
        self.images = [
            admin.create_image(name, data=b'\0' * 4096, disk_format='raw', container_format='bare', visibility='public',
                               wait=True)
            for name in sorted(images) if not admin.image.find_image(name)]

    def delete_leftovers(self):
        """Deletes what a run that was killed left."""
        for side in (self.user, self.admin):
            for stack in [stack for stack in side.orchestration.stacks() if re.fullmatch(r'public-\d+', stack.name)]:
                side.delete_stack(stack.id, wait=True)
            side.compute.delete_keypair('corpus-key')
        for router in self.user.network.routers(name='corpus-router'):
            for port in self.user.network.ports(device_id=router.id, device_owner='network:router_interface'):
                self.user.network.remove_interface_from_router(router, port_id=port.id)
            self.user.network.delete_router(router)
        for network in self.user.network.networks(name='corpus-net'):
            self.user.network.delete_network(network)

    def __enter__(self):
        return {'@net': self.net.id, '@subnet': self.subnet.id, '@router': self.router.id}

    def __exit__(self, *error):
        for side, key in zip((self.user, self.admin), self.keys):
            side.compute.delete_keypair(key)
        # Nova may still be deleting the ports of a server that is gone.
        when_free(lambda: self.user.network.remove_interface_from_router(self.router, subnet_id=self.subnet.id))
        when_free(lambda: self.user.network.delete_router(self.router))
        when_free(lambda: self.user.network.delete_network(self.net))
        for image in self.images:
            self.admin.image.delete_image(image)


def when_free(delete):
    """Deletes what may be in use for some more seconds."""
    for _ in range(60):
        try:
            return delete()
        except openstack.exceptions.ConflictException:
            time.sleep(1)
    return delete()


def drivers():
    """The types that can be created."""
    texts = [path.read_text() for path in TYPES.rglob('*.yaml')]
    return {re.search(r'^type: (\S+)', text, re.M)[1] for text in texts if not re.search(r'^driver: none', text, re.M)}


def edited(folder, asked):
    """The template with its edits, in a temporary folder."""
    for file, path, value in asked['edits']:
        target = folder / (file or asked['path']).removeprefix('file:///corpus/')
        whole = template_format.parse(target.read_text())
        part = whole
        for step in path[:-1]:
            part = part.setdefault(step, {}) if isinstance(part, dict) else part[step]
        part[path[-1]] = value
        target.write_text(json.dumps(whole))
    files, template = template_utils.get_template_contents(str(folder / asked['path']))
    env_files, environment = template_utils.process_multiple_environments_and_files(
        [str(folder / file) for file in asked['environment_files']])
    return template, {**files, **env_files}, environment


def plain(text, folder=None):
    """Removes parts that differ between runs; the reference puts colons around places without a name."""
    text = UUID.sub('<uuid>', text or '').replace(': : ', ': ')
    return text.replace(f'file://{folder}/', 'file:///corpus/') if folder else text


def unnamed(value):
    """Lists without the generated names of the members of scaling groups, sorted."""
    if isinstance(value, dict):
        return {key: unnamed(item) for key, item in value.items()}
    if isinstance(value, list):
        return sorted((unnamed(item) for item in value), key=json.dumps)
    is_generated = isinstance(value, str) and re.fullmatch('[a-z0-9]{12}', value)
    return '<member>' if is_generated else value


def error(failure):
    body = json.loads(str(getattr(failure, 'error', None) and json.dumps(failure.error) or '{}'))
    detail = body.get('error', {})
    return {'status': failure.code, 'type': detail.get('type'), 'message': plain(detail.get('message'))}


class Asked:
    def __init__(self, client, name, asked):
        self.client, self.name, self.asked = client, name, asked

    def differences(self, folder):
        self.folder = folder
        template, files, environment = edited(folder, self.asked)
        fields = dict(stack_name=self.name, template=template, files=files, environment=environment,
                      parameters=self.asked['parameters'], disable_rollback=True)
        if 'preview' in self.asked:
            yield from self.compare('preview', self.asked['preview'], self.preview(copy.deepcopy(fields)))
        if not self.asked['run']:
            return
        wanted = self.asked['create']
        if self.asked.get('stack_status') == 'CREATE_COMPLETE' and wanted['status'] == 201:
            yield from self.preflight(copy.deepcopy(fields))
        made = self.create(fields)
        yield from self.compare('create', wanted, made)
        if made['status'] != 201:
            return
        if wanted['status'] != 201:
            self.client.stacks.delete(self.name)
            self.settled()
            return
        stack = self.settled()
        yield from self.compare('status', self.asked['stack_status'], stack.stack_status)
        yield from self.compare('resources', self.asked.get('resources'), self.resources())
        outputs = {output['output_key']: output for output in stack.outputs}
        yield from self.compare('outputs', sorted(self.asked.get('outputs', {})), sorted(outputs))
        for name, answer in self.asked.get('outputs', {}).items():
            if name in outputs and 'type' in answer:
                kind = type(outputs[name].get('output_value')).__name__
                yield from self.compare(f'output {name}', answer['type'], kind)
        if self.asked['stack_status'] == 'CREATE_FAILED' == stack.stack_status:
            yield from self.compare('reason', without_request(self.asked.get('stack_status_reason')),
                                    without_request(plain(stack.stack_status_reason)))
        self.client.stacks.delete(self.name)
        gone = self.settled()
        yield from self.compare('delete', self.asked['delete_status'], gone and gone.stack_status or 'DELETE_COMPLETE')

    def compare(self, what, wanted, found):
        # Results of services that are not running here cannot be compared.
        if isinstance(found, dict) and 'HEAT-E99001' in found.get('message', ''):
            return
        if isinstance(wanted, dict) and 'message' in wanted:
            wanted = wanted | {'message': plain(wanted['message'])}
        if unnamed(wanted) != unnamed(found) and what not in EXPLAINED.get(self.asked['path'], ()):
            yield f'{what}: expected {json.dumps(wanted)[:400]}, got {json.dumps(found)[:400]}'

    def preview(self, fields):
        try:
            shown = self.client.stacks.preview(**fields)
        except exc.HTTPException as failure:
            return error(failure) | {'title': self.asked['preview'].get('title')}
        resources = sorted([name, plain(kind, self.folder)] for name, kind in flat(shown.resources))
        return {'status': 200, 'resources': resources}

    def preflight(self, fields):
        """The pre-flight of a stack that can be created fails in no check."""
        try:
            plan = self.client.http_client.post('/stacks/preview?plan=true', data=fields).json()['plan']
        except exc.HTTPException:
            return   # the create says why
        for check in plan.get('preflight', []):
            VERDICTS[check['verdict']] += 1
            if check['verdict'] == 'fail':
                yield f'pre-flight: {check["check"]}: {check["message"]}'

    def create(self, fields):
        try:
            self.client.stacks.create(**fields)
        except exc.HTTPException as failure:
            return error(failure) | {'title': self.asked['create'].get('title')}
        return {'status': 201}

    def settled(self):
        for _ in range(600):
            try:
                stack = self.client.stacks.get(self.name)
            except exc.HTTPNotFound:
                return None
            if not stack.stack_status.endswith('IN_PROGRESS'):
                return stack
            time.sleep(0.5)
        raise RuntimeError(f'{self.name}: {stack.stack_status}')

    def resources(self):
        listed = self.client.resources.list(self.name, nested_depth=5)
        return sorted([getattr(one, 'parent_resource', None) or '', one.resource_name,
                       plain(one.resource_type, self.folder), one.resource_status] for one in listed)


def flat(resources):
    for one in resources:
        if isinstance(one, list):
            yield from flat(one)
        else:
            yield [one['resource_name'], one['resource_type']]


def without_request(text):
    """Removes the request IDs in texts of services."""
    return re.sub(r"\s*(Neutron server returns request_ids: \[.*?\]|\(Request-ID: \S+\))", '', text or '')


def each(runs, differences):
    """Prints what `differences(number, asked, folder, side)` yields for each run; returns whether there was any.

    `folder` has the templates, and `side` is the connection of the user who runs it.
    """
    admin, user = connect('admin'), connect('demo')
    images = {name for run in runs for name in OLD_IMAGE.findall((CORPUS / run['path']).read_text())}
    passed = failed = 0
    with tempfile.TemporaryDirectory() as scratch, Fixtures(user, admin, images) as values:
        for number, asked in enumerate(runs):
            for placeholder, value in values.items():
                asked = json.loads(json.dumps(asked).replace(f'"{placeholder}"', f'"{value}"'))
            folder = pathlib.Path(scratch) / str(number)
            shutil.copytree(CORPUS / 'heat-templates', folder / 'heat-templates')
            try:
                found = list(differences(number, asked, folder, admin if asked['as'] == 'admin' else user))
            except Exception as failure:
                found = [f'{type(failure).__name__}: {failure}']
            shutil.rmtree(folder)
            passed, failed = passed + (not found), failed + bool(found)
            for difference in found:
                print(f'FAILED {asked["path"]}: {difference}', flush=True)
    print(f'{passed} passed, {failed} failed')
    return bool(failed)


def chosen(words):
    """The runs with types that all have drivers, and with a word in their path if there are words."""
    runs = [json.loads(line) for line in (CORPUS / 'runs.jsonl').open()]
    can = drivers()
    return [run for run in runs if 'types' in run and can.issuperset(run['types'])
            and (not words or any(word in run['path'] for word in words))]


def short(runs):
    """The previews, and the runs with a type that no run before them has."""
    seen = set()
    for run in runs:
        if not run['run'] or not seen.issuperset(run['types']):
            yield run
        if run['run']:
            seen.update(run['types'])


def main():
    words = [word for word in sys.argv[1:] if word != '--short']
    # Without a result of the reference there is nothing to compare.
    runs = [run for run in chosen(words) if run['run'] or 'preview' in run]
    if '--short' in sys.argv:
        runs = list(short(runs))

    def differences(number, asked, folder, side):
        client = heat.Client('1', session=side.session)
        return Asked(client, f'public-{number}', asked).differences(folder)

    has_failed = each(runs, differences)
    print(f'checks of pre-flights: {dict(VERDICTS)}')
    sys.exit(has_failed)


if __name__ == '__main__':
    main()
