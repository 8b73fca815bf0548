#!/usr/bin/env python3
"""Stacks that the Python Heat has made from public templates come under Kiln.

    devcloud/devcloud up heat kiln && tests/cloud/foreign.py BINARY [WORD...]

Heat creates each stack of tests/data/corpus/runs.jsonl that the reference could create, or those with a WORD in their path,
and abandons it. `kiln --local` writes a template for its objects, takes them over, compares them (the plan with `--converge`
must be empty) and deletes them. A resource that is not imported must be of a type without an object that can be imported.
Prints the numbers of resources, one line per failure, and `N passed, N failed`.
"""
import collections
import functools
import json
import pathlib
import subprocess
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent))
from harness.pypi import OPENSTACK, virtual_environment  # noqa: E402

virtual_environment('openstack', *OPENSTACK)

from heatclient import client as heat  # noqa: E402

from devcloud import credentials  # noqa: E402
from public import Asked, chosen, each, edited  # noqa: E402

HEAT = 'http://127.0.0.1:8004/v1'
# Types whose objects are imported by the template that is written.
SCANNED = {
    'OS::Nova::Server', 'OS::Nova::KeyPair', 'OS::Nova::ServerGroup', 'OS::Neutron::Net', 'OS::Neutron::Subnet',
    'OS::Neutron::Port', 'OS::Neutron::Router', 'OS::Neutron::RouterInterface', 'OS::Neutron::FloatingIP',
    'OS::Neutron::SecurityGroup', 'OS::Neutron::Trunk', 'OS::Cinder::Volume', 'OS::Cinder::VolumeAttachment',
    'AWS::EC2::Instance',
    'AWS::EC2::SecurityGroup', 'AWS::EC2::Volume', 'AWS::EC2::VolumeAttachment',
}
NUMBERS = collections.Counter()


class Kiln:
    """`kiln --local` with a database of its own."""

    def __init__(self, binary, folder, user):
        self.binary, self.folder = binary, folder
        self.env = dict(credentials(user), KILN_DATABASE=str(folder / 'stacks.db'))

    def run(self, *words, codes=(0,)):
        done = subprocess.run([self.binary, '--local', *words], env=self.env, cwd=self.folder, capture_output=True,
                              text=True, timeout=600)
        if done.returncode not in codes:
            raise RuntimeError(f'kiln {" ".join(words)}: {done.returncode}: {(done.stdout + done.stderr)[-1500:]}')
        return done.stdout + done.stderr


def exported(resources):
    for resource in resources.values():
        if resource.get('resources'):
            yield from exported(resource['resources'])
        elif resource.get('resource_id'):
            yield resource['type'], resource['resource_id']


def taken_over(kiln, data):
    """Imports the objects of an abandoned stack. Returns the objects that it could have imported, and has not."""
    (kiln.folder / 'export.json').write_text(json.dumps(data))
    wanted = {(kind, id) for kind, id in exported(data['resources']) if kind in SCANNED}
    NUMBERS['resources'] += len(list(exported(data['resources'])))
    NUMBERS['importable'] += len(wanted)
    if not wanted:
        return set()
    kiln.run('import', 'write', '--export', 'export.json', '-t', 'web.yaml')
    kiln.run('template', 'lint', 'web.yaml')
    kiln.run('import', 'commit', '-t', 'web.yaml', 'web')
    kiln.run('stack', 'plan', '--existing', '--converge', '--detailed-exitcode', 'web')
    mapped = json.loads((kiln.folder / 'web.import.json').read_text())
    ids = {one['resource_id'] for one in mapped['objects'].values()}
    NUMBERS['imported'] += sum(id in ids for _, id in wanted)
    NUMBERS['confirmed properties'] += len(mapped['confirmed'])
    kiln.run('stack', 'delete', '--yes', 'web')
    return {(kind, id) for kind, id in wanted if id not in ids}


def round_trip(binary, number, asked, folder, side):
    """Makes a stack with Heat, abandons it there, and yields what does not come under Kiln."""
    client = heat.Client('1', session=side.session, endpoint_override=f'{HEAT}/{side.session.get_project_id()}')
    kiln = Kiln(binary, folder, 'admin' if asked['as'] == 'admin' else 'demo')
    peer = Asked(client, f'foreign-{number}', asked)
    template, files, environment = edited(folder, asked)
    client.stacks.create(stack_name=peer.name, template=template, files=files, environment=environment,
                         parameters=asked['parameters'], disable_rollback=True)
    stack = peer.settled()
    if stack.stack_status != 'CREATE_COMPLETE':
        client.stacks.delete(peer.name)
        peer.settled()
        yield f'not made: {stack.stack_status_reason[:200]}'
        return
    data = client.stacks.abandon(f'{peer.name}/{stack.id}')
    try:
        yield from (f'not imported: {missing}' for missing in sorted(taken_over(kiln, data)))
    finally:
        # What is left is adopted, and deleted.
        (folder / 'rest.json').write_text(json.dumps(data))
        kiln.run('stack', 'delete', '--yes', 'web', codes=(0, 1, 3))
        kiln.run('stack', 'adopt', '--adopt-file', 'rest.json', 'rest', codes=(0, 1, 3))
        kiln.run('stack', 'delete', '--yes', 'rest', codes=(0, 1, 3))


def main():
    binary, words = sys.argv[1], sys.argv[2:]
    runs = [run for run in chosen(words)
            if run.get('stack_status') == 'CREATE_COMPLETE' and SCANNED.intersection(run['types'])]
    has_failed = each(runs, functools.partial(round_trip, binary))
    print(dict(NUMBERS))
    sys.exit(has_failed)


if __name__ == '__main__':
    main()
