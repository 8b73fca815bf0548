#!/usr/bin/env python3
"""The orchestration proxy of openstacksdk, and the methods of its cloud layer.

    tests/clients/openstacksdk.py [KILN]
"""
import json
import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent))
from harness.checks import case, check, equal, finish, until  # noqa: E402
from harness.deployment import Deployment  # noqa: E402
from harness.pypi import OPENSTACK, virtual_environment  # noqa: E402

virtual_environment('openstack', *OPENSTACK)

import openstack  # noqa: E402
from openstack import exceptions  # noqa: E402

FILE = pathlib.Path(__file__).parent / 'network.yaml'
HANDLE = {'heat_template_version': '2018-08-31', 'resources': {'handle': {'type': 'OS::Heat::WaitConditionHandle'}}}


def refused(what, kind, call, *arguments, **named):
    try:
        got = call(*arguments, **named)
    except kind as error:
        check(what, True)
        return error
    except Exception as error:
        return check(what, False, f'{type(error).__name__}: {error}')
    check(what, False, f'accepted: {got}')


def settled(heat, stack, status):
    return heat.wait_for_status(stack, status, failures=['CREATE_FAILED', 'UPDATE_FAILED'], interval=0.2, wait=60,
                                attribute='status')


def life(cloud):
    """Create, show, list, update, outputs, resources, events, template, delete."""
    heat = cloud.orchestration
    attributes = heat.read_env_and_templates(template_file=str(FILE))
    preview = heat.create_stack(preview=True, name='app', parameters={'label': 'a'}, **attributes)
    equal('preview', (preview.name, preview.parameters['label'], preview.timeout_mins), ('app', 'a', None))
    made = heat.create_stack(name='app', parameters={'label': 'a'}, timeout_mins=5, tags='red,green', **attributes)
    check('an ID', made.id, made)
    stack = settled(heat, heat.get_stack(made.id), 'CREATE_COMPLETE')
    equal('status', (stack.status, stack.name, stack.description, stack.timeout_mins, stack.tags),
          ('CREATE_COMPLETE', 'app', 'a network and a word', 5, ['red', 'green']))
    equal('a hidden parameter', (stack.parameters['label'], stack.parameters['pin']), ('a', '******'))
    check('times', stack.created_at.endswith('Z') and stack.updated_at is None, (stack.created_at, stack.updated_at))
    outputs = {one['output_key']: one['output_value'] for one in stack.outputs}
    network = cloud.network.find_network('a')
    equal('outputs', (outputs['name'], outputs['network'], len(outputs['word'])), ('a', network and network.id, 8))
    equal('found by name', heat.find_stack('app').id, made.id)
    equal('found by ID', heat.find_stack(made.id).name, 'app')
    equal('an unknown name', heat.find_stack('nobody'), None)
    refused('an unknown name that must exist', exceptions.NotFoundException, heat.find_stack, 'nobody', ignore_missing=False)
    refused('an unknown stack', exceptions.NotFoundException, heat.get_stack, 'nobody')
    equal('the list', [one.name for one in heat.stacks()], ['app'])
    equal('a list by tag', [one.name for one in heat.stacks(tags=['red', 'green'])], ['app'])
    equal('a list without a tag', [one.name for one in heat.stacks(not_tags=['red'])], [])
    equal('a list by status', [one.name for one in heat.stacks(status='COMPLETE')], ['app'])
    equal('a list by name', [one.name for one in heat.stacks(name='other')], [])
    resources = {one.name: one for one in heat.resources(stack)}
    equal('resources', sorted(resources), ['net', 'word'])
    net = resources['net']
    equal('a resource', (net.resource_type, net.status, net.physical_resource_id, net.logical_resource_id),
          ('OS::Neutron::Net', 'CREATE_COMPLETE', network.id, 'net'))
    events = list(heat.stack_events(stack))
    check('events', len(events) == 6 and events[0].resource_name == 'app', [one.resource_name for one in events])
    of_net = list(heat.stack_events(stack, 'net'))
    equal('events of a resource', sorted(one.resource_status for one in of_net),
          ['CREATE_COMPLETE', 'CREATE_IN_PROGRESS'])
    template = heat.get_stack_template(stack)
    equal('the template', (template.description, sorted(template.resources), sorted(template.outputs)),
          ('a network and a word', ['net', 'word'], ['name', 'network', 'word']))
    environment = heat.get_stack_environment(stack)
    equal('the environment', environment.parameters['label'], 'a')
    equal('the files', heat.get_stack_files(stack), {})
    changed = heat.update_stack(stack, preview=True, parameters={'label': 'b'}, **attributes)
    check('an update preview', changed is not None)
    heat.update_stack(heat.get_stack(made.id), parameters={'label': 'b'}, **attributes)
    stack = settled(heat, heat.get_stack(made.id), 'UPDATE_COMPLETE')
    outputs = {one['output_key']: one['output_value'] for one in stack.outputs}
    equal('outputs of an update', (outputs['name'], outputs['network']), ('b', network.id))
    equal('the network', cloud.network.get_network(network.id).name, 'b')
    for action, status in [('suspend', 'SUSPEND_COMPLETE'), ('resume', 'RESUME_COMPLETE'), ('check', 'CHECK_COMPLETE')]:
        getattr(heat, f'{action}_stack')(stack)
        stack = settled(heat, heat.get_stack(made.id), status)
        equal(action, stack.status, status)
    refused('a second stack of the name', exceptions.ConflictException, heat.create_stack, name='app', **attributes)
    heat.delete_stack(stack)
    heat.wait_for_delete(stack, interval=0.2, wait=60)
    equal('the network is gone', cloud.network.find_network('b'), None)
    heat.delete_stack('nobody')
    refused('a stack to delete', exceptions.NotFoundException, heat.delete_stack, 'nobody', ignore_missing=False)


def moved(cloud):
    """Export, abandon, adopt."""
    heat = cloud.orchestration
    stack = heat.create_stack(name='moved', **heat.read_env_and_templates(template_file=str(FILE)))
    stack = settled(heat, heat.get_stack(stack.id), 'CREATE_COMPLETE')
    exported = heat.export_stack(stack)
    network = cloud.network.find_network('one')
    equal('exported', (exported['name'], exported['status'], exported['resources']['net']['resource_id']),
          ('moved', 'COMPLETE', network.id))
    data = heat.abandon_stack(stack)
    equal('abandoned', (data['id'], data['resources']['net']['resource_id']), (stack.id, network.id))
    check('the network is kept', cloud.network.find_network('one'))
    # The SDK has no method for adoption.
    answer = heat.post('/stacks', json={'stack_name': 'adopted', 'adopt_stack_data': json.dumps(data)})
    equal('adopted', answer.status_code, 201)
    # And it shows no stack that is ADOPT_COMPLETE: its proxy says that there is none.
    path = f"/stacks/adopted/{answer.json()['stack']['id']}"
    shown = until(lambda: heat.get(path).json()['stack'], lambda stack: stack['stack_status'] != 'ADOPT_IN_PROGRESS')
    outputs = {one['output_key']: one['output_value'] for one in shown['outputs']}
    equal('the network is adopted', (shown['stack_status'], outputs['network']), ('ADOPT_COMPLETE', network.id))
    equal('the list says so too', [one.status for one in heat.stacks(name='adopted')], ['ADOPT_COMPLETE'])
    equal('deleted', heat.delete(path).status_code, 204)
    until(lambda: heat.get(path).json()['stack'], lambda stack: stack['stack_status'] == 'DELETE_COMPLETE')
    equal('and deleted', cloud.network.find_network('one'), None)


def errors(cloud):
    heat = cloud.orchestration
    error = refused('an unknown type', exceptions.BadRequestException, heat.create_stack, name='bad', template={
        'heat_template_version': '2018-08-31', 'resources': {'x': {'type': 'OS::Nova::Sever'}}})
    check('its text', 'The Resource Type (OS::Nova::Sever) could not be found.' in str(error), error)
    refused('no template', exceptions.BadRequestException, heat.create_stack, name='bad')
    refused('a bad name', exceptions.BadRequestException, heat.create_stack, name='1 bad', template=HANDLE)
    refused('an invalid template', exceptions.HttpException, heat.validate_template, {'resources': {}})
    found = heat.validate_template(heat.read_env_and_templates(template_file=str(FILE))['template'])
    equal('validated', (found.description, sorted(found.parameters)), ('a network and a word', ['label', 'pin']))


def software(cloud):
    heat = cloud.orchestration
    config = heat.create_software_config(name='c', group='script', config='#!/bin/sh\n', inputs=[{'name': 'a'}])
    equal('a config', (config.name, config.group, config.config, config.inputs[0]['name']),
          ('c', 'script', '#!/bin/sh\n', 'a'))
    equal('configs', [one.id for one in heat.software_configs()], [config.id])
    equal('a config by ID', heat.get_software_config(config.id).config, '#!/bin/sh\n')
    made = heat.create_software_deployment(config_id=config.id, server_id='s', action='CREATE', status='IN_PROGRESS',
                                           input_values={'a': 'b'})
    equal('a deployment', (made.config_id, made.server_id, made.status, made.input_values),
          (config.id, 's', 'IN_PROGRESS', {'a': 'b'}))
    changed = heat.update_software_deployment(made, status='COMPLETE', output_values={'r': 1})
    equal('an update', (changed.status, changed.output_values), ('COMPLETE', {'r': 1}))
    equal('deployments', [one.id for one in heat.software_deployments()], [made.id])
    heat.delete_software_deployment(made)
    heat.delete_software_config(config)
    refused('a deleted config', exceptions.NotFoundException, heat.get_software_config, config.id)
    equal('no configs', list(heat.software_configs()), [])


def layer(cloud):
    """The methods of the cloud layer, which wait."""
    stack = cloud.create_stack('easy', template_file=str(FILE), wait=True, timeout=60, label='x', rollback=False)
    equal('created', (stack.name, stack.status), ('easy', 'CREATE_COMPLETE'))
    stack = cloud.update_stack('easy', template_file=str(FILE), wait=True, label='y')
    equal('updated', (stack.status, stack.parameters['label']), ('UPDATE_COMPLETE', 'y'))
    equal('listed', [one.name for one in cloud.list_stacks()], ['easy'])
    equal('searched', [one.name for one in cloud.search_stacks('easy')], ['easy'])
    equal('shown', cloud.get_stack('easy').parameters['label'], 'y')
    equal('deleted', cloud.delete_stack('easy', wait=True), True)
    equal('deleted twice', cloud.delete_stack('easy'), False)
    refused('an unknown parameter', exceptions.BadRequestException, cloud.create_stack, 'bad', template_file=str(FILE),
            colour='red')


def main():
    with Deployment() as kiln:
        cloud = openstack.connect(auth_url=kiln.auth, username='demo', password='password', project_name='demo',
                                  user_domain_id='default', project_domain_id='default', region_name='RegionOne')
        for part in (life, moved, errors, software, layer):
            case(part, cloud)
    finish()


if __name__ == '__main__':
    main()
