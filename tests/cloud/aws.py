#!/usr/bin/env python3
"""The CloudFormation API with clients of AWS: boto3 and the AWS command line.

    tests/cloud/aws.py [KILN]

Starts the simulated cloud and a service (KILN is the binary; default: target/debug/kiln), creates an EC2 key in
Keystone, and signs requests with it (versions 2 and 4). The clients are from PyPI. Prints one line per failed check, and
`N passed, N failed`.
"""
import base64
import hashlib
import hmac
import json
import os
import pathlib
import re
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent))
from harness.checks import case, check, equal, finish  # noqa: E402
from harness.deployment import Deployment  # noqa: E402
from harness.pypi import CLIENTS, virtual_environment  # noqa: E402
from harness.request import send  # noqa: E402

virtual_environment('aws', 'boto3', 'awscli')

import boto3  # noqa: E402
import botocore.exceptions  # noqa: E402
from botocore.config import Config  # noqa: E402


def refused(what, code, call, **params):
    try:
        got = call(**params)
    except botocore.exceptions.ClientError as error:
        equal(what, error.response['Error']['Code'], code)
        return error
    check(what, False, f'accepted: {got}')


TEMPLATE = json.dumps({
    'HeatTemplateFormatVersion': '2012-12-12',
    'Description': 'a network',
    'Parameters': {'Label': {'Type': 'String', 'Default': 'one'}, 'Other': {'Type': 'String', 'Default': 'x'}},
    'Resources': {'net': {'Type': 'OS::Neutron::Net', 'Metadata': {'a': [1, {'b': '<&>'}]},
                          'Properties': {'name': {'Fn::Join': ['-', [{'Ref': 'Label'}, {'Ref': 'AWS::StackName'}]]}}}},
    'Outputs': {'Id': {'Value': {'Ref': 'net'}, 'Description': 'the network'}},
})
WAIT = json.dumps({
    'HeatTemplateFormatVersion': '2012-12-12',
    'Resources': {'handle': {'Type': 'AWS::CloudFormation::WaitConditionHandle'},
                  'other': {'Type': 'AWS::CloudFormation::WaitConditionHandle'},
                  'wait': {'Type': 'AWS::CloudFormation::WaitCondition',
                           'Properties': {'Handle': {'Ref': 'handle'}, 'Timeout': '60', 'Count': '1'}}},
    'Outputs': {'Url': {'Value': {'Ref': 'handle'}}, 'Data': {'Value': {'Fn::GetAtt': ['wait', 'Data']}}},
})
SLOW = json.dumps({
    'HeatTemplateFormatVersion': '2012-12-12',
    'Resources': {'wait': {'Type': 'OS::Heat::TestResource', 'Properties': {'wait_secs': 4}}},
})


def neutron(keystone, method, path, body=None):
    url = keystone.endpoint('network').removesuffix('/v2.0') + '/v2.0/'
    answer = send(method, url + path, body, keystone.token).read()
    return json.loads(answer) if answer else None


def rename(keystone, name, new):
    """Renames a network, as another user of the project does."""
    listed = neutron(keystone, 'GET', f'networks?name={name}')['networks']
    neutron(keystone, 'PUT', f'networks/{listed[0]["id"]}', {'network': {'name': new}})


def client(url, key):
    config = Config(retries={'max_attempts': 0}, region_name='RegionOne')
    return boto3.client('cloudformation', endpoint_url=url, aws_access_key_id=key[0], aws_secret_access_key=key[1],
                        config=config)


def settled(cfn, name, seconds=60):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        stack = cfn.describe_stacks(StackName=name)['Stacks'][0]
        if not stack['StackStatus'].endswith('IN_PROGRESS'):
            return stack
        time.sleep(0.2)
    return stack


def life(cfn):
    """A stack from its creation to its end."""
    arn = cfn.create_stack(
        StackName='app', TemplateBody=TEMPLATE, TimeoutInMinutes=9, OnFailure='ROLLBACK',
        Parameters=[{'ParameterKey': 'Label', 'ParameterValue': 'a & b'}],
        Tags=[{'Key': 'team', 'Value': 'red'}])['StackId']
    check('the ID is an ARN', arn.startswith('arn:openstack:heat::'), arn)
    cfn.get_waiter('stack_create_complete').wait(StackName=arn, WaiterConfig={'Delay': 1, 'MaxAttempts': 60})
    stack = cfn.describe_stacks(StackName='app')['Stacks'][0]
    equal('the status', stack['StackStatus'], 'CREATE_COMPLETE')
    equal('rollback is on', stack['DisableRollback'], False)
    equal('the timeout', stack['TimeoutInMinutes'], 9)
    equal('tags', stack['Tags'], [{'Key': 'team', 'Value': 'red'}])
    check('no time of an update', 'LastUpdatedTime' not in stack, stack)
    check('the parameter', {'ParameterKey': 'Label', 'ParameterValue': 'a & b'} in stack['Parameters'], stack)
    equal('the output', stack['Outputs'][0]['OutputKey'], 'Id')

    resource = cfn.describe_stack_resource(StackName=arn, LogicalResourceId='net')['StackResourceDetail']
    equal('metadata is JSON', json.loads(resource['Metadata']), {'a': [1, {'b': '<&>'}]})
    equal('the physical ID', resource['PhysicalResourceId'], stack['Outputs'][0]['OutputValue'])
    by_id = cfn.describe_stack_resources(PhysicalResourceId=resource['PhysicalResourceId'])['StackResources']
    equal('by physical ID', [(r['LogicalResourceId'], r['StackName']) for r in by_id], [('net', 'app')])
    listed = cfn.list_stack_resources(StackName='app')['StackResourceSummaries']
    equal('resources', [r['ResourceStatus'] for r in listed], ['CREATE_COMPLETE'])
    events = cfn.describe_stack_events(StackName='app')['StackEvents']
    check('events of the stack and the resource', {e['LogicalResourceId'] for e in events} == {'app', 'net'}, events)
    check('newest first', events[0]['ResourceStatus'] == 'CREATE_COMPLETE', events[0])
    equal('the template', cfn.get_template(StackName='app')['TemplateBody'], json.loads(TEMPLATE))

    cfn.update_stack(StackName='app', UsePreviousTemplate=True, Parameters=[
        {'ParameterKey': 'Label', 'UsePreviousValue': True}, {'ParameterKey': 'Other', 'ParameterValue': 'y'}])
    cfn.get_waiter('stack_update_complete').wait(StackName='app', WaiterConfig={'Delay': 1, 'MaxAttempts': 60})
    stack = cfn.describe_stacks(StackName='app')['Stacks'][0]
    values = {p['ParameterKey']: p['ParameterValue'] for p in stack['Parameters']}
    equal('kept and changed parameters', (values['Label'], values['Other']), ('a & b', 'y'))
    check('the time of the update', 'LastUpdatedTime' in stack, stack)

    cfn.delete_stack(StackName='app')
    cfn.get_waiter('stack_delete_complete').wait(StackName='app', WaiterConfig={'Delay': 1, 'MaxAttempts': 60})
    gone = cfn.describe_stacks(StackName=arn)['Stacks'][0]
    equal('a deleted stack by its ARN', gone['StackStatus'], 'DELETE_COMPLETE')
    missing = refused('a deleted stack by its name', 'ValidationError', cfn.describe_stacks, StackName='app')
    check('the text of AWS', 'Stack with id app does not exist' in str(missing), missing)
    deleted = cfn.list_stacks(StackStatusFilter=['DELETE_COMPLETE'])['StackSummaries']
    check('deleted stacks are listed on request', 'app' in [s['StackName'] for s in deleted], deleted)


def cancelled(cfn):
    """An update that is cancelled."""
    cfn.create_stack(StackName='slow', TemplateBody='heat_template_version: 2021-04-16\nresources: {}\n')
    settled(cfn, 'slow')
    cfn.update_stack(StackName='slow', TemplateBody=SLOW)
    cfn.cancel_update_stack(StackName='slow')
    stack = settled(cfn, 'slow')
    equal('a cancelled update', stack['StackStatus'], 'UPDATE_ROLLBACK_COMPLETE')
    refused('nothing to cancel', 'InvalidParameterValue', cfn.cancel_update_stack, StackName='slow')
    cfn.delete_stack(StackName='slow')


def protected(cfn):
    """A stack with termination protection and a stack policy."""
    empty = 'heat_template_version: 2021-04-16\nresources: {}\n'
    allow = {'Effect': 'Allow', 'Action': 'Update:*', 'Principal': '*', 'Resource': '*'}
    keep = {'Effect': 'Deny', 'Action': ['Update:Replace', 'Update:Delete'], 'Principal': '*',
            'Resource': 'LogicalResourceId/net'}
    policy = json.dumps({'Statement': [allow, keep]})
    cfn.create_stack(StackName='kept', TemplateBody=TEMPLATE, EnableTerminationProtection=True, StackPolicyBody=policy)
    settled(cfn, 'kept')
    equal('termination protection', cfn.describe_stacks(StackName='kept')['Stacks'][0]['EnableTerminationProtection'], True)
    equal('the policy', cfn.get_stack_policy(StackName='kept')['StackPolicyBody'], policy)
    error = refused('a protected stack', 'ValidationError', cfn.delete_stack, StackName='kept')
    equal('the text of AWS', error.response['Error']['Message'],
          'Stack [kept] cannot be deleted while TerminationProtection is enabled')
    refused('a resource that the policy keeps', 'ValidationError', cfn.update_stack, StackName='kept', TemplateBody=empty)
    refused('no policy during an update', 'ValidationError', cfn.update_stack, StackName='kept', TemplateBody=empty,
            StackPolicyDuringUpdateBody='{}')
    refused('a policy during an update that keeps it', 'ValidationError', cfn.update_stack, StackName='kept',
            TemplateBody=empty, StackPolicyDuringUpdateBody=json.dumps({'Statement': [allow, keep], 'Id': 'two'}))
    cfn.update_stack(StackName='kept', UsePreviousTemplate=True, Parameters=[
        {'ParameterKey': 'Label', 'ParameterValue': 'new'}])
    equal('what it allows', settled(cfn, 'kept')['StackStatus'], 'UPDATE_COMPLETE')
    cfn.update_stack(StackName='kept', TemplateBody=empty,
                     StackPolicyDuringUpdateBody=json.dumps({'Statement': [allow]}))
    equal('what a policy allows during an update', settled(cfn, 'kept')['StackStatus'], 'UPDATE_COMPLETE')
    equal('the policy afterwards', cfn.get_stack_policy(StackName='kept')['StackPolicyBody'], policy)
    cfn.update_stack(StackName='kept', TemplateBody=TEMPLATE)
    equal('the resource again', settled(cfn, 'kept')['StackStatus'], 'UPDATE_COMPLETE')
    refused('a resource that the policy keeps again', 'ValidationError', cfn.update_stack, StackName='kept',
            TemplateBody=empty)
    refused('no policy', 'ValidationError', cfn.set_stack_policy, StackName='kept', StackPolicyBody='{"Statement": 1}')
    cfn.set_stack_policy(StackName='kept', StackPolicyBody=json.dumps({'Statement': [allow]}))
    cfn.update_stack(StackName='kept', TemplateBody=empty)
    equal('another policy', settled(cfn, 'kept')['StackStatus'], 'UPDATE_COMPLETE')
    cfn.update_termination_protection(StackName='kept', EnableTerminationProtection=False)
    equal('no protection', cfn.describe_stacks(StackName='kept')['Stacks'][0]['EnableTerminationProtection'], False)
    cfn.delete_stack(StackName='kept')


def rolled_back(cfn):
    """A failed update that is rolled back later."""
    good = 'heat_template_version: 2021-04-16\nresources: {}\n'
    bad = 'heat_template_version: 2021-04-16\nresources: {bad: {type: OS::Heat::TestResource, properties: {fail: true}}}\n'
    cfn.create_stack(StackName='back', TemplateBody=good)
    settled(cfn, 'back')
    refused('nothing has failed', 'InvalidParameterValue', cfn.rollback_stack, StackName='back')
    refused('no rollback has failed', 'ValidationError', cfn.continue_update_rollback, StackName='back')
    cfn.update_stack(StackName='back', TemplateBody=bad, DisableRollback=True)
    equal('a failed update', settled(cfn, 'back')['StackStatus'], 'UPDATE_FAILED')
    cfn.rollback_stack(StackName='back')
    equal('its rollback', settled(cfn, 'back')['StackStatus'], 'UPDATE_ROLLBACK_COMPLETE')
    cfn.delete_stack(StackName='back')


def others(cfn):
    """Actions without a stack, and errors."""
    valid = cfn.validate_template(TemplateBody=TEMPLATE)
    parameters = [(p['ParameterKey'], p['DefaultValue'], p['NoEcho']) for p in valid['Parameters']]
    equal('parameters of a template', parameters,
          [('Label', 'one', False), ('Other', 'x', False)])
    check('an estimate', cfn.estimate_template_cost(TemplateBody=TEMPLATE)['Url'].startswith('http'))
    refused('no template', 'InvalidParameterValue', cfn.validate_template, TemplateBody='just text')
    refused('an unknown type', 'InvalidParameterValue', cfn.create_stack, StackName='x',
            TemplateBody=TEMPLATE.replace('OS::Neutron::Net', 'OS::Neutron::Nothing'))
    refused('an unknown resource', 'ValidationError', cfn.describe_stack_resource, StackName='x', LogicalResourceId='y')
    refused('notifications', 'InvalidParameterValue', cfn.create_stack, StackName='x', TemplateBody=TEMPLATE,
            NotificationARNs=['arn'])
    refused('an action of AWS that Kiln does not have', 'InvalidAction', cfn.describe_account_limits)
    error = refused('a request ID', 'ValidationError', cfn.describe_stacks, StackName='none')
    check('errors have a request ID', error.response['ResponseMetadata'].get('RequestId', '').startswith('req-'), error)


def pages(cfn):
    """Lists of more than one page: the service has pages of 2."""
    names = ['p1', 'p2', 'p3', 'p4', 'p5']
    for name in names:
        cfn.create_stack(StackName=name, TemplateBody='heat_template_version: 2021-04-16\nresources: {}\n')
    for operation, key in [('list_stacks', 'StackSummaries'), ('describe_stacks', 'Stacks')]:
        listed = [s['StackName'] for page in cfn.get_paginator(operation).paginate() for s in page[key]]
        equal(operation, sorted(n for n in listed if n in names), names)
    for name in names:
        settled(cfn, name)
    events = [e['EventId'] for p in cfn.get_paginator('describe_stack_events').paginate(StackName='p1')
              for e in p['StackEvents']]
    equal('events in pages', len(set(events)), 2)
    for name in names:
        cfn.delete_stack(StackName=name)


def drift(cfn, keystone):
    """Objects that others have changed."""
    cfn.create_stack(StackName='drifting', TemplateBody=TEMPLATE)
    settled(cfn, 'drifting')

    def detected(**params):
        made = cfn.detect_stack_drift(StackName='drifting', **params)['StackDriftDetectionId']
        seen = cfn.describe_stack_drift_detection_status(StackDriftDetectionId=made)
        equal('a detection', (seen['DetectionStatus'], seen['StackDriftDetectionId']), ('DETECTION_COMPLETE', made))
        return seen['StackDriftStatus'], seen['DriftedStackResourceCount']

    equal('nothing has changed', detected(), ('IN_SYNC', 0))
    rename(keystone, 'one-drifting', 'theirs')
    equal('a renamed network', detected(LogicalResourceIds=['net']), ('DRIFTED', 1))
    listed = cfn.describe_stack_resource_drifts(StackName='drifting', StackResourceDriftStatusFilters=['MODIFIED'])
    one = listed['StackResourceDrifts'][0]
    equal('the difference', one['PropertyDifferences'], [
        {'PropertyPath': '/name', 'ExpectedValue': 'one-drifting', 'ActualValue': 'theirs',
         'DifferenceType': 'NOT_EQUAL'}])
    equal('all properties', [json.loads(one[key])['name'] for key in ('ExpectedProperties', 'ActualProperties')],
          ['one-drifting', 'theirs'])
    single = cfn.detect_stack_resource_drift(StackName='drifting', LogicalResourceId='net')['StackResourceDrift']
    equal('one resource', (single['StackResourceDriftStatus'], single['PropertyDifferences']),
          ('MODIFIED', one['PropertyDifferences']))
    equal('no other status', cfn.describe_stack_resource_drifts(
        StackName='drifting', StackResourceDriftStatusFilters=['DELETED'])['StackResourceDrifts'], [])
    made = cfn.create_change_set(StackName='drifting', ChangeSetName='revert', UsePreviousTemplate=True,
                                 DeploymentMode='REVERT_DRIFT')
    seen = cfn.describe_change_set(ChangeSetName=made['Id'])
    equal('what a revert changes', (seen['DeploymentMode'], [change['ResourceChange']['LogicalResourceId']
                                                             for change in seen['Changes']]), ('REVERT_DRIFT', ['net']))
    cfn.execute_change_set(ChangeSetName=made['Id'])
    settled(cfn, 'drifting')
    equal('drift is reverted', detected(), ('IN_SYNC', 0))
    cfn.delete_stack(StackName='drifting')


def change_sets(cfn):
    """Changes that are prepared before they are executed."""
    made = cfn.create_change_set(StackName='set', ChangeSetName='first', ChangeSetType='CREATE', TemplateBody=TEMPLATE,
                                 Description='all of it', Tags=[{'Key': 'team', 'Value': 'red'}])
    cfn.get_waiter('change_set_create_complete').wait(ChangeSetName=made['Id'])
    seen = cfn.describe_change_set(ChangeSetName='first', StackName='set')
    equal('a new stack', [(c['ResourceChange']['Action'], c['ResourceChange']['LogicalResourceId'])
                          for c in seen['Changes']], [('Add', 'net')])
    equal('the status of a change set', (seen['Status'], seen['ExecutionStatus']), ('CREATE_COMPLETE', 'AVAILABLE'))
    refused('no stack before its execution', 'ValidationError', cfn.describe_stacks, StackName='set')
    cfn.execute_change_set(ChangeSetName='first', StackName='set', DisableRollback=True)
    stack = settled(cfn, 'set')
    equal('an executed change set', (stack['StackStatus'], stack['StackId'], stack['DisableRollback']),
          ('CREATE_COMPLETE', made['StackId'], True))
    equal('the status of its execution', cfn.describe_change_set(ChangeSetName=made['Id'])['ExecutionStatus'],
          'EXECUTE_COMPLETE')
    refused('executed twice', 'InvalidChangeSetStatus', cfn.execute_change_set, ChangeSetName=made['Id'])

    def prepare(name, template=TEMPLATE, **params):
        cfn.create_change_set(StackName='set', ChangeSetName=name, TemplateBody=template, **params)
        return cfn.describe_change_set(ChangeSetName=name, StackName='set')

    nothing = prepare('nothing')
    equal('no change', (nothing['Status'], nothing['ExecutionStatus']), ('FAILED', 'UNAVAILABLE'))
    check('the reason', "The submitted information didn't contain changes." in nothing['StatusReason'], nothing)
    label = {'Parameters': [{'ParameterKey': 'Label', 'ParameterValue': 'two'}]}
    update, late = prepare('update', **label), prepare('late', **label)
    change = update['Changes'][0]['ResourceChange']
    equal('an update', (change['Action'], change['Replacement'], change['Scope'],
                        [d['Target']['Name'] for d in change['Details']]),
          ('Modify', 'False', ['Properties'], ['name']))
    far = json.loads(TEMPLATE)
    far['Resources']['far'] = {'Type': 'OS::Nova::Server', 'Properties': {
        'image': 'cirros', 'flavor': 'm1.tiny', 'availability_zone': 'far-away', 'networks': [{'network': 'private'}]}}
    far = prepare('far', json.dumps(far))
    equal('a change set that would fail', (far['Status'], far['StatusReason']),
          ('FAILED', 'Pre-flight: zones: compute has no availability zone far-away'))
    second = json.loads(TEMPLATE)
    second['Resources'] = {'other': second['Resources'].pop('net')}
    second['Outputs'] = {}
    swap = prepare('swap', json.dumps(second))
    equal('removed and added', sorted((c['ResourceChange']['Action'], c['ResourceChange']['LogicalResourceId'])
                                      for c in swap['Changes']), [('Add', 'other'), ('Remove', 'net')])
    outputs = json.loads(TEMPLATE)
    outputs['Outputs'] = {}
    equal('a change of outputs only', prepare('outputs', json.dumps(outputs))['ExecutionStatus'], 'AVAILABLE')
    names = [s['ChangeSetName'] for page in cfn.get_paginator('list_change_sets').paginate(StackName='set')
             for s in page['Summaries']]
    equal('the list', names, ['first', 'nothing', 'update', 'late', 'far', 'swap', 'outputs'])
    refused('the name of a change set', 'AlreadyExistsException', cfn.create_change_set, StackName='set',
            ChangeSetName='late', TemplateBody=TEMPLATE)
    cfn.delete_change_set(ChangeSetName='swap', StackName='set')
    cfn.delete_change_set(ChangeSetName='swap', StackName='set')
    refused('a deleted change set', 'ChangeSetNotFound', cfn.describe_change_set, ChangeSetName='swap', StackName='set')
    cfn.update_stack(StackName='set', UsePreviousTemplate=True, Tags=[{'Key': 'x', 'Value': 'y'}])
    settled(cfn, 'set')
    equal('after another update', cfn.describe_change_set(ChangeSetName='late', StackName='set')['ExecutionStatus'],
          'OBSOLETE')
    refused('an obsolete change set', 'InvalidChangeSetStatus', cfn.execute_change_set, ChangeSetName='late',
            StackName='set')
    prepare('last', **label)
    cfn.execute_change_set(ChangeSetName='last', StackName='set')
    stack = settled(cfn, 'set')
    equal('an update by a change set', stack['StackStatus'], 'UPDATE_COMPLETE')
    names = [s['ChangeSetName'] for s in cfn.list_change_sets(StackName='set')['Summaries']]
    equal('others are deleted', names, ['last'])
    cfn.delete_stack(StackName='set')
    refused('a change set of nothing', 'ValidationError', cfn.create_change_set, StackName='none', ChangeSetName='x',
            TemplateBody=TEMPLATE)


def imports(cfn, keystone):
    """Existing objects become resources of a new stack, and of one that exists."""
    net = neutron(keystone, 'POST', 'networks', {'network': {'name': 'theirs'}})['network']['id']
    subnet = neutron(keystone, 'POST', 'subnets', {
        'subnet': {'network_id': net, 'cidr': '10.9.0.0/24', 'ip_version': 4}})['subnet']['id']
    resources = {
        'net': {'Type': 'OS::Neutron::Net', 'DeletionPolicy': 'Delete', 'Properties': {'name': 'theirs'}},
        'subnet': {'Type': 'OS::Neutron::Subnet', 'DeletionPolicy': 'Delete',
                   'Properties': {'network': {'Ref': 'net'}, 'cidr': '10.9.0.0/24'}},
        'port': {'Type': 'OS::Neutron::Port', 'Properties': {'network': {'Ref': 'net'}}},
    }

    def template(*names):
        return json.dumps({'HeatTemplateFormatVersion': '2012-12-12',
                           'Resources': {name: resources[name] for name in names}})

    def entry(name, id):
        return {'LogicalResourceId': name, 'ResourceType': resources[name]['Type'],
                'ResourceIdentifier': {'PhysicalResourceId': id}}

    def prepare(name, names, *objects):
        made = cfn.create_change_set(StackName='taken', ChangeSetName=name, ChangeSetType='IMPORT',
                                     TemplateBody=template(*names), ResourcesToImport=list(objects))
        return cfn.describe_change_set(ChangeSetName=made['Id'])

    def states():
        listed = cfn.list_stack_resources(StackName='taken')['StackResourceSummaries']
        return {one['LogicalResourceId']: (one['PhysicalResourceId'], one['ResourceStatus']) for one in listed}

    summaries = cfn.get_template_summary(TemplateBody=template('net', 'port'))['ResourceIdentifierSummaries']
    equal('what can be imported', [(one['ResourceType'], one['LogicalResourceIds'], one['ResourceIdentifiers'])
                                   for one in summaries],
          [('OS::Neutron::Net', ['net'], ['PhysicalResourceId']),
           ('OS::Neutron::Port', ['port'], ['PhysicalResourceId'])])
    for what, object in [('an object that does not exist', entry('net', '00000000-0000-4000-8000-000000000000')),
                         ('an object of another type', {**entry('net', net), 'ResourceType': 'OS::Nova::Server'})]:
        refused(what, 'ValidationError', cfn.create_change_set, StackName='taken', ChangeSetName='bad',
                ChangeSetType='IMPORT', TemplateBody=template('net'), ResourcesToImport=[object])
    refused('no object', 'MissingParameter', cfn.create_change_set, StackName='taken', ChangeSetName='bad',
            ChangeSetType='IMPORT', TemplateBody=template('net'))
    mixed = prepare('mixed', ['net', 'port'], entry('net', net))
    equal('an import that also creates', (mixed['Status'], mixed['ExecutionStatus']), ('FAILED', 'UNAVAILABLE'))
    check('its reason', mixed['StatusReason'].endswith(': port'), mixed['StatusReason'])
    first = prepare('first', ['net'], entry('net', net))
    change = first['Changes'][0]['ResourceChange']
    equal('an import', (change['Action'], change['LogicalResourceId'], change['PhysicalResourceId']),
          ('Import', 'net', net))
    cfn.execute_change_set(ChangeSetName=first['ChangeSetId'])
    cfn.get_waiter('stack_import_complete').wait(StackName='taken', WaiterConfig={'Delay': 1, 'MaxAttempts': 60})
    equal('imported into a new stack', states(), {'net': (net, 'IMPORT_COMPLETE')})
    equal('the end of its execution', cfn.describe_change_set(ChangeSetName=first['ChangeSetId'])['ExecutionStatus'],
          'EXECUTE_COMPLETE')
    second = prepare('second', ['net', 'subnet'], entry('subnet', subnet))
    equal('an import into a stack', [(one['ResourceChange']['Action'], one['ResourceChange']['LogicalResourceId'])
                                     for one in second['Changes']], [('Import', 'subnet')])
    cfn.execute_change_set(ChangeSetName=second['ChangeSetId'])
    cfn.get_waiter('stack_import_complete').wait(StackName='taken', WaiterConfig={'Delay': 1, 'MaxAttempts': 60})
    equal('imported into a stack', states(), {'net': (net, 'IMPORT_COMPLETE'), 'subnet': (subnet, 'IMPORT_COMPLETE')})
    listed = neutron(keystone, 'GET', 'networks?name=theirs')['networks']
    equal('nothing was created', [one['id'] for one in listed], [net])
    taken = prepare('again', ['net', 'subnet'], entry('subnet', subnet))
    equal('an object that the stack has', taken['ExecutionStatus'], 'UNAVAILABLE')
    made = cfn.detect_stack_drift(StackName='taken')['StackDriftDetectionId']
    seen = cfn.describe_stack_drift_detection_status(StackDriftDetectionId=made)
    equal('the objects are as the template says', seen['StackDriftStatus'], 'IN_SYNC')
    cfn.update_stack(StackName='taken', TemplateBody=template('net', 'subnet').replace('theirs', 'ours'))
    equal('an update of imported objects', settled(cfn, 'taken')['StackStatus'], 'UPDATE_COMPLETE')
    equal('their names', neutron(keystone, 'GET', f'networks/{net}')['network']['name'], 'ours')
    cfn.delete_stack(StackName='taken')
    cfn.get_waiter('stack_delete_complete').wait(StackName='taken', WaiterConfig={'Delay': 1, 'MaxAttempts': 60})
    equal('and deleted with the stack', neutron(keystone, 'GET', 'networks?name=ours')['networks'], [])


def imports_by_name(cfn, keystone):
    """New resources take over the objects that have their names."""
    def made(name):
        return neutron(keystone, 'POST', 'networks', {'network': {'name': name}})['network']['id']

    def prepare(change_set, *names, kind='CREATE'):
        template = json.dumps({'HeatTemplateFormatVersion': '2012-12-12', 'Resources': {
            f'net{number}': {'Type': 'OS::Neutron::Net', 'DeletionPolicy': 'Delete', 'Properties': {'name': name}}
            for number, name in enumerate(names)}})
        made = cfn.create_change_set(StackName='named', ChangeSetName=change_set, ChangeSetType=kind, TemplateBody=template,
                                     ImportExistingResources=True)
        seen = cfn.describe_change_set(ChangeSetName=made['Id'])
        return seen, [(one['ResourceChange']['Action'], one['ResourceChange'].get('PhysicalResourceId'))
                      for page in cfn.get_paginator('describe_change_set').paginate(ChangeSetName=made['Id'])
                      for one in page['Changes']]

    one, two, twins = made('by-name'), made('other-name'), [made('twin') for _ in range(2)]
    seen, changes = prepare('nothing', 'nowhere')
    equal('no object has the name', (seen['Status'], changes), ('CREATE_COMPLETE', [('Add', None)]))
    seen, changes = prepare('mixed', 'by-name', 'nowhere')
    equal('an import that also creates', (seen['Status'], changes), ('FAILED', [('Import', one), ('Add', None)]))
    error = refused('a name of two objects', 'ValidationError', lambda: prepare('twins', 'twin'))
    check('their number', '2 objects of the type OS::Neutron::Net have its name' in str(error), error)
    refused('with ResourcesToImport', 'InvalidParameterCombination', cfn.create_change_set, StackName='named',
            ChangeSetName='x', ChangeSetType='IMPORT', TemplateBody=TEMPLATE, ImportExistingResources=True)
    seen, changes = prepare('first', 'by-name')
    equal('by its name', changes, [('Import', one)])
    cfn.execute_change_set(ChangeSetName=seen['ChangeSetId'])
    equal('imported', settled(cfn, 'named')['StackStatus'], 'IMPORT_COMPLETE')
    seen, changes = prepare('second', 'by-name', 'other-name', kind='UPDATE')
    equal('by its name into a stack', changes, [('Import', two)])
    cfn.execute_change_set(ChangeSetName=seen['ChangeSetId'])
    equal('imported into a stack', settled(cfn, 'named')['StackStatus'], 'IMPORT_COMPLETE')
    cfn.delete_stack(StackName='named')
    cfn.get_waiter('stack_delete_complete').wait(StackName='named', WaiterConfig={'Delay': 1, 'MaxAttempts': 60})
    for twin in twins:
        neutron(keystone, 'DELETE', f'networks/{twin}')


def everything(cfn, operation, **params):
    """All entries of a list, whose pages have two entries."""
    return list(cfn.get_paginator(operation).paginate(**params).result_key_iters()[0])


def refactors(cfn, stranger):
    """Resources move between stacks."""
    def template(*names):
        return json.dumps({'HeatTemplateFormatVersion': '2012-12-12', 'Resources': {
            name: {'Type': 'OS::Neutron::Net', 'Properties': {'admin_state_up': True}} for name in names}})

    def objects(stack):
        listed = everything(cfn, 'list_stack_resources', StackName=stack)
        return {one['LogicalResourceId']: one['PhysicalResourceId'] for one in listed}

    def prepare(*mappings, **templates):
        definitions = [{'StackName': name, 'TemplateBody': body} for name, body in templates.items()]
        places = [[dict(zip(['StackName', 'LogicalResourceId'], place.split('/'))) for place in one] for one in mappings]
        return cfn.create_stack_refactor(
            StackDefinitions=definitions, Description='a & b',
            ResourceMappings=[{'Source': source, 'Destination': to} for source, to in places])['StackRefactorId']

    def described(id):
        seen = cfn.describe_stack_refactor(StackRefactorId=id)
        return seen['Status'], seen['ExecutionStatus']

    old = [cfn.create_stack(StackName='old', TemplateBody=template('one', 'two', 'three'))['StackId'],
           cfn.create_stack(StackName='fresh', TemplateBody=template('four'))['StackId']]
    for name in ('old', 'fresh'):
        settled(cfn, name)
    before = {**objects('old'), **objects('fresh')}
    split = {'old': template('one'), 'fresh': template('four', 'two', 'drei')}
    id = prepare(('old/three', 'fresh/drei'), **split)
    late = prepare(('old/three', 'fresh/drei'), **split)
    cfn.get_waiter('stack_refactor_create_complete').wait(StackRefactorId=id, WaiterConfig={'Delay': 1})
    equal('a refactor', described(id), ('CREATE_COMPLETE', 'AVAILABLE'))
    equal('its stacks', cfn.describe_stack_refactor(StackRefactorId=id)['StackIds'], old)
    actions = everything(cfn, 'list_stack_refactor_actions', StackRefactorId=id)
    places = [tuple(f"{one['ResourceMapping'][side]['StackName']}/{one['ResourceMapping'][side]['LogicalResourceId']}"
                    for side in ('Source', 'Destination')) for one in actions]
    equal('its actions', sorted(zip(places, [(one['Action'], one['Detection'], one['PhysicalResourceId']) for one in actions])),
          [(('old/three', 'fresh/drei'), ('MOVE', 'MANUAL', before['three'])),
           (('old/two', 'fresh/two'), ('MOVE', 'AUTO', before['two']))])
    equal('nothing has moved yet', sorted(objects('old')), ['one', 'three', 'two'])
    refused('a refactor of another project', 'StackRefactorNotFoundException', stranger.describe_stack_refactor, StackRefactorId=id)
    refused('and its execution', 'StackRefactorNotFoundException', stranger.execute_stack_refactor, StackRefactorId=id)
    equal('its list', stranger.list_stack_refactors()['StackRefactorSummaries'], [])
    cfn.execute_stack_refactor(StackRefactorId=id)
    cfn.get_waiter('stack_refactor_execute_complete').wait(StackRefactorId=id, WaiterConfig={'Delay': 1})
    equal('an executed refactor', described(id), ('CREATE_COMPLETE', 'EXECUTE_COMPLETE'))
    equal('the objects are the same', (objects('old'), objects('fresh')),
          ({'one': before['one']}, {'four': before['four'], 'two': before['two'], 'drei': before['three']}))
    equal('the other one', described(late), ('CREATE_COMPLETE', 'OBSOLETE'))
    error = refused('executed twice', 'ValidationError', cfn.execute_stack_refactor, StackRefactorId=id)
    check('the text', 'its status is EXECUTE_COMPLETE' in str(error), error)
    refused('an obsolete refactor', 'ValidationError', cfn.execute_stack_refactor, StackRefactorId=late)
    failed = prepare(old=template(), fresh=template('four', 'two', 'drei', 'one', 'more'))
    equal('a refactor that would create', described(failed), ('CREATE_FAILED', 'UNAVAILABLE'))
    check('the reason', 'fresh/more would be created' in cfn.describe_stack_refactor(StackRefactorId=failed)['StatusReason'])
    refused('a failed refactor', 'ValidationError', cfn.execute_stack_refactor, StackRefactorId=failed)
    listed = everything(cfn, 'list_stack_refactors')
    equal('the list', [(one['StackRefactorId'], one['ExecutionStatus']) for one in listed],
          [(failed, 'UNAVAILABLE'), (late, 'OBSOLETE'), (id, 'EXECUTE_COMPLETE')])
    listed = everything(cfn, 'list_stack_refactors', ExecutionStatusFilter=['EXECUTE_COMPLETE', 'AVAILABLE'])
    equal('some of the list', [one['StackRefactorId'] for one in listed], [id])
    refused('stacks that do not exist', 'InvalidParameterValue', cfn.create_stack_refactor, EnableStackCreation=True,
            StackDefinitions=[{'StackName': 'old', 'TemplateBody': template()}, {'StackName': 'none', 'TemplateBody': template('one')}])
    for name in ('old', 'fresh'):
        cfn.delete_stack(StackName=name)
    settled(cfn, old[0])
    equal('after the stacks', described(id), ('CREATE_COMPLETE', 'EXECUTE_COMPLETE'))


def scans(cfn, keystone, stranger):
    """What exists is scanned, written as a template and imported."""
    net = neutron(keystone, 'POST', 'networks', {'network': {'name': 'hand-made'}})['network']['id']
    neutron(keystone, 'PUT', f'networks/{net}/tags', {'tags': ['team=red']})
    subnet = neutron(keystone, 'POST', 'subnets', {
        'subnet': {'name': 'hand-made', 'network_id': net, 'cidr': '10.19.0.0/24', 'ip_version': 4}})['subnet']['id']
    cfn.create_stack(StackName='owner', TemplateBody=TEMPLATE)
    settled(cfn, 'owner')
    owned = cfn.describe_stack_resource(StackName='owner', LogicalResourceId='net')
    owned = owned['StackResourceDetail']['PhysicalResourceId']

    def named(id, kind='OS::Neutron::Net', name=None):
        more = {'LogicalResourceId': name} if name else {}
        return {'ResourceType': kind, 'ResourceIdentifier': {'PhysicalResourceId': id}, **more}

    scan = cfn.start_resource_scan(ClientRequestToken='one-scan')['ResourceScanId']
    equal('a repeated request', cfn.start_resource_scan(ClientRequestToken='one-scan')['ResourceScanId'], scan)
    some = cfn.start_resource_scan(ScanFilters=[{'Types': ['OS::Neutron::Net', 'OS::Nova::*']}])['ResourceScanId']
    seen = cfn.describe_resource_scan(ResourceScanId=scan)
    equal('a scan', (seen['Status'], seen['PercentageCompleted']), ('COMPLETE', 100))
    found = everything(cfn, 'list_resource_scan_resources', ResourceScanId=scan)
    equal('all objects in pages', (len(found), seen['ResourcesRead']), (seen['ResourcesScanned'],) * 2)
    managed = {one['ResourceIdentifier']['PhysicalResourceId']: one['ManagedByStack'] for one in found}
    equal('what a stack has', (managed[net], managed[subnet], managed[owned]), (False, False, True))
    equal('the types of a filter', everything(cfn, 'list_resource_scan_resources', ResourceScanId=some,
                                              ResourceTypePrefix='OS::Neutron::S'), [])
    equal('the kinds of scans', [one['ScanType'] for one in everything(cfn, 'list_resource_scans')], ['PARTIAL', 'FULL'])
    for what, filter in [('a name', {'ResourceIdentifier': 'hand-made', 'ResourceTypePrefix': 'OS::Neutron::Net'}),
                         ('an ID', {'ResourceIdentifier': net}), ('a tag', {'TagKey': 'team', 'TagValue': 'red'})]:
        listed = everything(cfn, 'list_resource_scan_resources', ResourceScanId=scan, **filter)
        equal(f'by {what}', listed, [{**named(net), 'ManagedByStack': False}])
    equal('not by the name of an object of a stack',
          everything(cfn, 'list_resource_scan_resources', ResourceScanId=scan, ResourceIdentifier='one-owner'), [])
    related = everything(cfn, 'list_resource_scan_related_resources', ResourceScanId=scan, Resources=[named(net)])
    equal('what belongs together', [one['ResourceIdentifier']['PhysicalResourceId'] for one in related], [subnet])
    refused('a scan of another project', 'ResourceScanNotFound', stranger.describe_resource_scan, ResourceScanId=scan)
    equal('the scans of another project', stranger.list_resource_scans()['ResourceScanSummaries'], [])

    error = refused('an object of a stack', 'ValidationError', cfn.create_generated_template, GeneratedTemplateName='bad',
                    Resources=[named(owned)])
    check('its owner', 'it belongs to the resource net of the stack owner' in str(error), error)
    refused('an object of another project', 'ValidationError', stranger.create_generated_template,
            GeneratedTemplateName='bad', Resources=[named(net)])
    keep = {'DeletionPolicy': 'RETAIN', 'UpdateReplacePolicy': 'DELETE'}
    made = cfn.create_generated_template(GeneratedTemplateName='found', Resources=[named(net, name='back')],
                                         TemplateConfiguration=keep)['GeneratedTemplateId']
    refused('the same name', 'AlreadyExistsException', cfn.create_generated_template, GeneratedTemplateName='found')
    cfn.update_generated_template(GeneratedTemplateName=made, NewGeneratedTemplateName='by-hand', AddResources=[
        named(subnet, 'OS::Neutron::Subnet')])
    seen = cfn.describe_generated_template(GeneratedTemplateName='by-hand')
    equal('a generated template', (seen['Status'], seen['TemplateConfiguration'], seen['Progress']['ResourcesSucceeded'],
                                   seen['TotalWarnings']), ('COMPLETE', keep, 2, 0))
    resources = {one['LogicalResourceId']: one['ResourceIdentifier']['PhysicalResourceId'] for one in seen['Resources']}
    equal('its resources', resources, {'back': net, 'hand-made': subnet})
    body = cfn.get_generated_template(GeneratedTemplateName='by-hand')['TemplateBody']
    body = body if isinstance(body, dict) else json.loads(body)
    equal('the template', body['resources']['hand-made']['properties']['network'], {'get_resource': 'back'})
    equal('the objects stay', body['resources']['back']['deletion_policy'], 'Retain')
    text = cfn.get_generated_template(GeneratedTemplateName='by-hand', Format='YAML')['TemplateBody']
    check('as YAML', f'  # hand-made {net}\n  back:\n' in text, text)
    summaries = everything(cfn, 'list_generated_templates')
    equal('the list', [(one['GeneratedTemplateName'], one['NumberOfResources']) for one in summaries], [('by-hand', 2)])
    refused('a template of another project', 'GeneratedTemplateNotFound', stranger.get_generated_template,
            GeneratedTemplateName=made)
    neutron(keystone, 'PUT', f'subnets/{subnet}', {'subnet': {'name': 'later'}})
    cfn.update_generated_template(GeneratedTemplateName='by-hand', RefreshAllResources=True)
    text = cfn.get_generated_template(GeneratedTemplateName='by-hand', Format='YAML')['TemplateBody']
    check('read again', '      name: later\n' in text, text)
    objects = [named(one['ResourceIdentifier']['PhysicalResourceId'], one['ResourceType'], one['LogicalResourceId'])
               for one in cfn.describe_generated_template(GeneratedTemplateName='by-hand')['Resources']]
    change = cfn.create_change_set(StackName='by-hand', ChangeSetName='import', ChangeSetType='IMPORT', TemplateBody=text,
                                   ResourcesToImport=objects)
    cfn.execute_change_set(ChangeSetName=change['Id'])
    equal('imported', settled(cfn, 'by-hand')['StackStatus'], 'IMPORT_COMPLETE')
    made = cfn.detect_stack_drift(StackName='by-hand')['StackDriftDetectionId']
    equal('as the template says', cfn.describe_stack_drift_detection_status(StackDriftDetectionId=made)['StackDriftStatus'],
          'IN_SYNC')
    cfn.delete_stack(StackName='by-hand')
    cfn.get_waiter('stack_delete_complete').wait(StackName='by-hand', WaiterConfig={'Delay': 1, 'MaxAttempts': 60})
    cfn.update_generated_template(GeneratedTemplateName='by-hand', RemoveResources=['hand-made'])
    refused('a resource that it does not have', 'ValidationError', cfn.update_generated_template,
            GeneratedTemplateName='by-hand', RemoveResources=['hand-made'])
    equal('one resource less', cfn.describe_generated_template(GeneratedTemplateName='by-hand')['Progress'], {
        'ResourcesSucceeded': 1, 'ResourcesFailed': 0, 'ResourcesProcessing': 0, 'ResourcesPending': 0})
    cfn.delete_generated_template(GeneratedTemplateName='by-hand')
    refused('a deleted template', 'GeneratedTemplateNotFound', cfn.get_generated_template, GeneratedTemplateName='by-hand')
    for path in (f'subnets/{subnet}', f'networks/{net}'):
        neutron(keystone, 'DELETE', path)
    cfn.delete_stack(StackName='owner')


def signals(cfn):
    """A wait condition, by the signed URL of its handle."""
    cfn.create_stack(StackName='wait', TemplateBody=WAIT)
    deadline, signed = time.monotonic() + 60, ''
    while not signed.startswith('http') and time.monotonic() < deadline:
        time.sleep(0.3)
        outputs = cfn.describe_stacks(StackName='wait')['Stacks'][0].get('Outputs', [])
        signed = next((o.get('OutputValue', '') for o in outputs if o['OutputKey'] == 'Url'), '')
    check('a signed URL', '/v1/waitcondition/arn%3Aopenstack%3Aheat' in signed, signed)

    def put(url, **data):
        request = urllib.request.Request(url, json.dumps(data).encode(), {'Content-Type': ''}, method='PUT')
        try:
            answer = urllib.request.urlopen(request)
            return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, re.sub('.*<Code>(.*)</Code>.*', r'\1', error.read().decode())

    done = {'Status': 'SUCCESS', 'UniqueId': '1', 'Data': 'ready', 'Reason': 'done'}
    equal('a URL for another resource', put(signed.replace('/handle?', '/other?'), **done), (403, 'AccessDenied'))
    equal('a URL without its signature', put(signed.split('&Signature=')[0], **done), (400, 'IncompleteSignature'))
    equal('a signal', put(signed, **done), (200, '<resource>handle</resource>'))
    stack = settled(cfn, 'wait')
    equal('the condition', stack['StackStatus'], 'CREATE_COMPLETE')
    data = next(o['OutputValue'] for o in stack['Outputs'] if o['OutputKey'] == 'Data')
    equal('its data', json.loads(data), {'1': 'ready'})
    cfn.delete_stack(StackName='wait')


def signatures(url, key, other):
    """Wrong keys and signatures, and signatures of version 2."""
    refused('a wrong secret', 'AccessDenied', client(url, (key[0], 'wrong')).list_stacks)
    refused('an unknown key', 'AccessDenied', client(url, ('nobody', key[1])).list_stacks)
    client(url, key).create_stack(StackName='mine', TemplateBody='heat_template_version: 2021-04-16\n')
    refused('a stack of another project', 'ValidationError', client(url, other).describe_stacks, StackName='mine')

    def version_2(verb, params, secret):
        params = {'AWSAccessKeyId': key[0], 'SignatureMethod': 'HmacSHA256', 'SignatureVersion': '2',
                  'Timestamp': time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime()), **params}
        query = urllib.parse.urlencode(sorted(params.items()), quote_via=urllib.parse.quote, safe='-_~')
        address = urllib.parse.urlsplit(url + '/')
        text = f'{verb}\n{address.netloc}\n{address.path}\n{query}'
        signature = base64.b64encode(hmac.new(secret.encode(), text.encode(), hashlib.sha256).digest()).decode()
        query += '&' + urllib.parse.urlencode({'Signature': signature})
        request = urllib.request.Request(url + '/', query.encode()) if verb == 'POST' else f'{url}/?{query}'
        try:
            return json.load(urllib.request.urlopen(request))
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)['ErrorResponse']['Error']['Code']

    params = {'Action': 'DescribeStacks', 'StackName': 'mine', 'ContentType': 'JSON', 'Note': "a b&c=d/e~f'(é)"}
    for verb in ('GET', 'POST'):
        answer = version_2(verb, params, key[1])
        name = isinstance(answer, dict) and answer['DescribeStacksResponse']['DescribeStacksResult']['Stacks'][0]
        equal(f'version 2 by {verb}', name and name['StackName'], 'mine')
        equal(f'a wrong signature of version 2 by {verb}', version_2(verb, params, 'wrong'), (403, 'AccessDenied'))
    presigned = client(url, key).generate_presigned_url('describe_stacks', {'StackName': 'mine'}, HttpMethod='GET')
    check('a presigned URL', b'<StackName>mine</StackName>' in urllib.request.urlopen(presigned).read(), presigned)
    for query, code in [('', 'IncompleteSignature'), ('&Signature=x', 'MissingAuthenticationToken')]:
        try:
            urllib.request.urlopen(f'{url}/?Action=ListStacks{query}')
            check(code, False, 'accepted')
        except urllib.error.HTTPError as error:
            check(code, f'<Code>{code}</Code>' in error.read().decode(), query)
    client(url, key).delete_stack(StackName='mine')


def command_line(folder, url, key, keystone):
    """The AWS command line."""
    env = {**os.environ, 'AWS_ACCESS_KEY_ID': key[0], 'AWS_SECRET_ACCESS_KEY': key[1],
           'AWS_DEFAULT_REGION': 'RegionOne', 'AWS_MAX_ATTEMPTS': '1', 'AWS_PAGER': ''}

    def aws(*args):
        command = [str(CLIENTS / 'aws/bin/aws'), '--endpoint-url', url, '--output', 'json', 'cloudformation', *args]
        ran = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120)
        check('aws ' + ' '.join(args[:2]), ran.returncode == 0, ran.stderr)
        return ran.stdout

    (folder / 'app.json').write_text(TEMPLATE)
    body = f'file://{folder}/app.json'
    aws('validate-template', '--template-body', body)
    aws('create-stack', '--stack-name', 'cli', '--template-body', body)
    settled(client(url, key), 'cli')
    aws('wait', 'stack-create-complete', '--stack-name', 'cli')
    equal('aws describe-stacks', json.loads(aws('describe-stacks', '--stack-name', 'cli'))['Stacks'][0]['StackName'],
          'cli')
    aws('describe-stack-events', '--stack-name', 'cli')
    aws('list-stack-resources', '--stack-name', 'cli')
    aws('get-template', '--stack-name', 'cli')
    aws('update-termination-protection', '--stack-name', 'cli', '--enable-termination-protection')
    aws('set-stack-policy', '--stack-name', 'cli', '--stack-policy-body', json.dumps({'Statement': []}))
    check('aws get-stack-policy', 'Statement' in aws('get-stack-policy', '--stack-name', 'cli'))
    aws('update-termination-protection', '--stack-name', 'cli', '--no-enable-termination-protection')
    aws('delete-stack', '--stack-name', 'cli')

    def deploy(*options):
        time.sleep(1)  # The command names its change sets by the second.
        return aws('deploy', '--template-file', f'{folder}/app.json', '--stack-name', 'deployed', *options)

    check('a stack is deployed', 'Successfully created' in deploy('--parameter-overrides', 'Label=blue'))
    check('and updated', 'Successfully created' in deploy('--parameter-overrides', 'Other=z'))
    stack = json.loads(aws('describe-stacks', '--stack-name', 'deployed'))['Stacks'][0]
    values = {p['ParameterKey']: p['ParameterValue'] for p in stack['Parameters']}
    equal('parameters of a deployed stack', (values['Label'], values['Other']), ('blue', 'z'))
    check('and left alone', 'No changes to deploy' in deploy('--no-fail-on-empty-changeset'))
    network = neutron(keystone, 'POST', 'networks', {'network': {'name': 'existing'}})['network']['id']
    object = {'LogicalResourceId': 'net', 'ResourceType': 'OS::Neutron::Net', 'ResourceIdentifier': {'PhysicalResourceId': network}}
    named = ['--stack-name', 'taken-over', '--change-set-name', 'import']
    aws('create-change-set', *named, '--change-set-type', 'IMPORT', '--template-body', body, '--resources-to-import',
        json.dumps([object]))
    aws('wait', 'change-set-create-complete', *named)
    aws('execute-change-set', *named)
    settled(client(url, key), 'taken-over')
    aws('wait', 'stack-import-complete', '--stack-name', 'taken-over')
    aws('delete-stack', '--stack-name', 'taken-over')
    aws('delete-stack', '--stack-name', 'deployed')
    time.sleep(2)
    aws('wait', 'stack-delete-complete', '--stack-name', 'cli')


def manual(folder, url, key, keystone):
    """The blocks of docs/cloudformation.md."""
    text = (pathlib.Path(__file__).resolve().parents[2] / 'docs/cloudformation.md').read_text()
    cfn, net = client(url, key), {'Type': 'OS::Neutron::Net'}
    (folder / 'web.json').write_text(TEMPLATE)
    for name, before, after in [('library', ['shelf', 'cover'], ['shelf']), ('covers', [], ['cover'])]:
        old, new = [json.dumps({'HeatTemplateFormatVersion': '2012-12-12', 'Resources': dict.fromkeys(names, net)})
                    for names in (before, after)]
        (folder / f'{name}.json').write_text(new)
        cfn.create_stack(StackName=name, TemplateBody=old)
        settled(cfn, name)
    network = neutron(keystone, 'POST', 'networks', {'network': {'name': 'found'}})['network']['id']
    env = {**os.environ, 'AWS_ACCESS_KEY_ID': key[0], 'AWS_SECRET_ACCESS_KEY': key[1], 'AWS_PAGER': '', 'NETWORK': network,
           'AWS_ENDPOINT_URL_CLOUDFORMATION': url, 'AWS_DEFAULT_REGION': 'RegionOne',
           'PATH': f'{CLIENTS / "aws/bin"}:{os.environ["PATH"]}'}
    for language, program, number in [('sh', ['sh', '-e'], 3), ('python', [sys.executable], 1)]:
        blocks = re.findall(rf'```{language}\n(.*?)```', text, re.S)
        equal(f'blocks of {language}', len(blocks), number)
        for block in blocks:
            block = block.replace('http://kiln:8000/v1', url).replace('=ACCESS', f'={key[0]}').replace('=SECRET', f'={key[1]}')
            ran = subprocess.run(program, input=block, env=env, cwd=folder, capture_output=True, text=True, timeout=120)
            check(f'{block[:20]} … of the manual', ran.returncode == 0, ran.stdout + ran.stderr)
    listed = cfn.list_stack_resources(StackName='covers')['StackResourceSummaries']
    equal('what has moved', [one['LogicalResourceId'] for one in listed], ['cover'])
    found = (folder / 'found.yaml').read_text()
    check('the generated template', f'# found {network}' in found, found)


def main():
    with Deployment(kiln={'cfn_page_size': 2}) as kiln:
        demo = kiln.keystone()
        url, key, other = kiln.cfn, demo.key(), kiln.keystone('alt_demo').key()
        cfn = client(url, key)
        for part in (life, cancelled, protected, rolled_back, others, pages, change_sets):
            case(part, cfn)
        case(drift, cfn, demo)
        case(imports, cfn, demo)
        stranger = client(url, other)
        case(imports_by_name, cfn, demo)
        case(refactors, cfn, stranger)
        case(scans, cfn, demo, stranger)
        case(signals, cfn)
        case(signatures, url, key, other)
        case(command_line, kiln.folder, url, key, demo)
        case(manual, kiln.folder, url, key, demo)
    finish()


if __name__ == '__main__':
    main()
