#!/usr/bin/env python3
"""The clients of Heat in Tacker (from PyPI): that of its v2 API, and that of its older drivers.

    tests/clients/tacker.py [KILN]

The parts of Tacker that need a database and a message bus are not run: only what it asks Heat, with nested stacks as its
drivers make them.
"""
import pathlib
import sys
import types

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent))
from harness.checks import case, check, equal, finish, until  # noqa: E402
from harness.deployment import Deployment  # noqa: E402
from harness.pypi import virtual_environment  # noqa: E402

virtual_environment('tacker', 'tacker')
# The script must not be found in place of the package.
sys.path = [one for one in sys.path if pathlib.Path(one or '.').resolve() != pathlib.Path(__file__).resolve().parent]
from tacker.sol_refactored.common import exceptions  # noqa: E402
from tacker.sol_refactored.infra_drivers.openstack import heat_utils  # noqa: E402
from tacker.vnfm.infra_drivers.openstack import heat_client  # noqa: E402

heat_utils.CHECK_INTERVAL = 0.3
UNIT = 'heat_template_version: 2018-08-31\nresources:\n  net: {type: OS::Neutron::Net, properties: {name: unit}}\n'
GROUP = '''heat_template_version: 2018-08-31
parameters:
  count: {type: number, default: 1}
resources:
  VDU:
    type: OS::Heat::AutoScalingGroup
    properties:
      min_size: 1
      max_size: 3
      desired_capacity: {get_param: count}
      resource: {type: VDU.yaml}
  VL: {type: OS::Neutron::Net, properties: {name: link}}
'''


def refused(what, kind, call, *arguments):
    try:
        got = call(*arguments)
    except kind as error:
        check(what, True)
        return error
    check(what, False, f'accepted: {got}')


def version_2(kiln):
    """Instantiate, scale, heal, terminate."""
    heat = heat_utils.HeatClient(types.SimpleNamespace(
        interfaceInfo={'endpoint': kiln.auth},
        accessInfo={'username': 'demo', 'password': 'password', 'project': 'demo', 'userDomain': 'Default',
                    'projectDomain': 'Default'}))
    equal('no stack', (heat.get_status('vnf-1'), heat.get_stack_id('vnf-1')), ((None, None), None))
    fields = {'stack_name': 'vnf-1', 'template': GROUP, 'files': {'VDU.yaml': UNIT}, 'parameters': {}, 'timeout_mins': 5}
    stack = heat.create_stack(dict(fields))
    name = f'vnf-1/{stack}'
    equal('created', (heat.get_status(name), heat.get_stack_id('vnf-1')),
          (('CREATE_COMPLETE', 'Stack CREATE completed successfully'), stack))
    resources = heat.get_resources(name)
    links = heat_utils.get_network_reses(resources)
    equal('resources at all depths', sorted(one['resource_name'] for one in resources if one['resource_name'] in ('VDU', 'VL', 'net')),
          ['VDU', 'VL', 'net'])
    unit = next(one for one in links if one['resource_name'] == 'net')
    parent = heat_utils.get_parent_resource(unit, resources)
    equal('the parent of a unit', parent['resource_type'], 'VDU.yaml')
    inner = heat_utils.get_resource_stack_id(unit)
    equal('a nested stack by its link', heat.get_resource_info(inner, 'net')['physical_resource_id'],
          unit['physical_resource_id'])
    equal('a resource that does not exist', heat.get_resource_info(name, 'nothing'), None)
    equal('parameters', heat.get_parameters(name)['count'], '1')
    equal('the template', sorted(heat.get_template(name)['resources']), ['VDU', 'VL'])
    equal('the files', heat.get_files(name), {'VDU.yaml': UNIT})
    heat.update_stack(name, {'parameters': {'count': 2}})
    units = [one for one in heat.get_resources(name) if one['resource_type'] == 'VDU.yaml']
    equal('scaled out', (len(units), heat.get_status(name)[0]), (2, 'UPDATE_COMPLETE'))
    heat.mark_unhealthy(name, 'VL')
    before = next(one for one in heat.get_resources(name) if one['resource_name'] == 'VL')
    heat.update_stack(name, {'parameters': {'count': 2}})
    after = next(one for one in heat.get_resources(name) if one['resource_name'] == 'VL')
    check('healed', before['physical_resource_id'] != after['physical_resource_id'], after)
    heat.update_stack(name, {**fields, 'parameters': {'count': 1}, 'existing': False})
    units = [one for one in heat.get_resources(name) if one['resource_type'] == 'VDU.yaml']
    equal('scaled in by a whole update', len(units), 1)
    broken = GROUP.replace('properties: {name: link}', 'properties: {name: link, qos_policy: nothing}')
    refused('an update that fails', Exception, heat.update_stack, name, {'template': broken})
    heat.delete_stack(name)
    equal('terminated', heat.get_status('vnf-1'), (None, None))
    heat.delete_stack('vnf-1', wait=False)
    check('deleted twice', True)
    failing = {'heat_template_version': '2018-08-31',
               'resources': {'x': {'type': 'OS::Heat::TestResource', 'properties': {'fail': True}}}}
    error = refused('a stack that fails', exceptions.StackOperationFailed, heat.create_stack,
                    {'stack_name': 'vnf-2', 'template': failing})
    check('its reason', 'x' in str(getattr(error, 'detail', error)), error)
    failed = f"vnf-2/{heat.get_stack_id('vnf-2')}"
    reason = heat.get_original_failed_reason(failed)
    check('the reason in its events', 'Resource CREATE failed' in reason, reason)
    heat.delete_stack(failed)


def older(kiln):
    """The client of the older drivers, which uses python-heatclient."""
    heat = heat_client.HeatClient({
        'auth_url': kiln.auth, 'username': 'demo', 'password': 'password', 'project_name': 'demo',
        'user_domain_name': 'Default', 'project_domain_name': 'Default', 'cert_verify': 'False'}, 'RegionOne')
    made = heat.create({'stack_name': 'old', 'template': GROUP, 'files': {'VDU.yaml': UNIT}, 'parameters': {'count': 1}})
    identity = made['stack']['id']

    def settled(status):
        return until(lambda: heat.get(identity), lambda stack: stack.stack_status == status).stack_status

    equal('created', settled('CREATE_COMPLETE'), 'CREATE_COMPLETE')
    equal('found', heat.find_stack(stack_name='old').id, identity)
    nested = list(heat._stack_ids(identity))
    equal('nested stacks', len(nested), 2)
    equal('resources', sorted(one.resource_name for one in heat.resource_get_list(identity)), ['VDU', 'VL'])
    equal('a resource', heat.resource_get(identity, 'VL').resource_status, 'CREATE_COMPLETE')
    equal('metadata', heat.resource_metadata(identity, 'VL'), {})
    check('a type', heat.resource_attr_support('OS::Nova::Server', 'first_address') in (True, False))
    heat.update(identity, existing=True, parameters={'count': 2})
    equal('updated', settled('UPDATE_COMPLETE'), 'UPDATE_COMPLETE')
    events = heat.resource_event_list(identity, 'VL')
    check('events of a resource', {one.resource_status for one in events} >= {'CREATE_COMPLETE'}, events)
    heat.delete(identity)
    equal('deleted', settled('DELETE_COMPLETE'), 'DELETE_COMPLETE')
    heat.delete('nobody')
    check('a stack that does not exist', True)


def main():
    with Deployment() as kiln:
        for part in (version_2, older):
            case(part, kiln)
    finish()


if __name__ == '__main__':
    main()
