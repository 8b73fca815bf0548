#!/usr/bin/env python3
"""Values of hidden parameters, tokens and keys are looked for in every response and webhook, in the log and in the database.

    tests/clients/hidden_values.py [KILN]

The service logs at level debug and stores values encrypted (`encrypt_parameters_and_properties`). Every GET of the OpenAPI
document is asked, previews and validations too, and some requests that fail because of a hidden value.
"""
import http.server
import json
import os
import pathlib
import re
import secrets
import sys
import threading
import urllib.parse

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent))
from harness.checks import case, check, equal, finish, until  # noqa: E402
from harness.deployment import Deployment  # noqa: E402
from harness.request import call  # noqa: E402

# Distinct values, by how they come into the stack.
PLANTED = {name: f'planted-{name}-{secrets.token_hex(8)}' for name in ('parameter', 'default', 'file', 'nested', 'update')}
CHILD = '''heat_template_version: 2018-08-31
parameters:
  inner: {type: string, hidden: true}
  passed: {type: string, hidden: true}
resources:
  server:
    type: OS::Nova::Server
    properties: {image: cirros, flavor: m1.tiny, networks: [{allocate_network: none}], admin_pass: {get_param: inner}}
'''
TEMPLATE = '''heat_template_version: 2018-08-31
parameters:
  by_parameter: {type: string, hidden: true, constraints: [{length: {max: 60}}]}
  by_default: {type: string, hidden: true}
  by_file: {type: string, hidden: true}
  by_nested: {type: string, hidden: true}
  plain: {type: string, default: visible}
resources:
  server:
    type: OS::Nova::Server
    properties: {image: cirros, flavor: m1.tiny, networks: [{allocate_network: none}], admin_pass: {get_param: by_parameter}}
  child:
    type: child.yaml
    properties: {inner: {get_param: by_nested}, passed: {get_param: by_file}}
outputs:
  plain: {value: {get_param: plain}}
'''


def found(text):
    return [name for name, value in PLANTED.items() if value in text or urllib.parse.quote(value) in text]


def content(**parameters):
    return {'template': TEMPLATE, 'files': {
        'child.yaml': CHILD,
        'env.yaml': f"parameters: {{by_file: {PLANTED['file']}}}\nparameter_defaults: {{by_default: {PLANTED['default']}}}\n"},
        'environment_files': ['env.yaml'],
        'parameters': {'by_parameter': PLANTED['parameter'], 'by_nested': PLANTED['nested'], **parameters}}


class Receiver(http.server.BaseHTTPRequestHandler):
    """Keeps what webhooks send."""
    got = []

    def do_POST(self):
        self.got.append(f"{self.headers}{self.rfile.read(int(self.headers['Content-Length'])).decode()}")
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_):
        pass


class Prober:
    def __init__(self, kiln):
        self.token, self.project = kiln.token()
        self.base = f'{kiln.url}/{self.project}'
        self.asked = 0

    def ask(self, method, path, body=None, expected=None, quiet=False):
        url = path if path.startswith('http') else self.base + path
        status, headers, answer = call(method, url, body, self.token)
        text = answer if isinstance(answer, str) else json.dumps(answer)
        self.asked += 1
        leaks = found(text + str(headers))
        if not quiet:
            check(f'{method} {url.removeprefix(self.base)} hides values', not leaks, f'{leaks} in {text[:1500]}')
        if expected:
            check(f'the status of {method} {path}', status == expected, f'{status} {text[:500]}')
        return answer, headers


def everywhere(kiln, probe):
    server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Receiver)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    webhook = {'url': f'http://127.0.0.1:{server.server_port}', 'events': ['*'], 'handshake': False}
    webhook = probe.ask('POST', '/webhooks', webhook, 201)[0]['webhook']['id']
    made, headers = probe.ask('POST', '/stacks', {'stack_name': 'hiding', **content()}, 201)
    stack = headers['Location'].removeprefix(probe.base)
    shown = until(lambda: probe.ask('GET', stack, quiet=True)[0]['stack'],
                  lambda stack: not stack['stack_status'].endswith('IN_PROGRESS'))
    equal('created', (shown['stack_status'], shown['parameters']['by_default'], shown['parameters']['plain']),
          ('CREATE_COMPLETE', '******', 'visible'))
    probe.ask('PUT', f'{stack}/preview', content(by_parameter=PLANTED['update']), 200)
    probe.ask('PATCH', stack, {'parameters': {'by_parameter': PLANTED['update']}}, 202)
    until(lambda: probe.ask('GET', stack, quiet=True)[0]['stack'], lambda stack: stack['stack_status'] == 'UPDATE_COMPLETE')
    snapshot = probe.ask('POST', f'{stack}/snapshots', {}, 200, quiet=True)[0]['id']
    until(lambda: probe.ask('GET', stack, quiet=True)[0]['stack'],
          lambda stack: not stack['stack_status'].endswith('IN_PROGRESS'))
    events = probe.ask('GET', f'{stack}/events?nested_depth=3')[0]['events']
    resources = probe.ask('GET', f'{stack}/resources?nested_depth=3&with_detail=true')[0]['resources']
    check('resources of the nested stack', len(resources) == 3, resources)
    operations = probe.ask('GET', f'{stack}/operations', expected=200)[0]['operations']
    plan = probe.ask('POST', '/plans', {'action': 'update', 'stack': 'hiding', **content(by_parameter=PLANTED['update'])}, 201)
    plan = plan[0]['plan']['id']
    for verb in ('repair', 'accept'):
        probe.ask('POST', f'{stack}/drift/{verb}', {}, 200)
    probe.ask('POST', f'/plans/{plan}/execute', {'digest': 'another'}, 409)
    renamed = {'stack': 'hiding', **content(by_parameter=PLANTED['parameter']), 'template': TEMPLATE.replace('  server:', '  front:', 1)}
    moves = [{'from': 'hiding/server', 'to': 'hiding/front'}]
    probe.ask('POST', '/refactors?dry_run=true', {'stacks': [renamed], 'moves': moves}, 200)
    probe.ask('POST', '/refactors', {'stacks': [renamed], 'moves': moves}, 409)
    probe.ask('PUT', '/drift_schedules', {'stack': 'hiding', 'every': 3600, 'repair': True}, 200)
    watched = until(lambda: probe.ask('GET', '/drift')[0]['drift'], lambda found: found and found[0]['status'])
    check('compared', watched and watched[0]['status'], watched)
    guard = {'stack': 'hiding', 'protect': ['delete'], 'resources': '*', 'until': '2099-01-01T00:00:00Z'}
    guard = probe.ask('PUT', '/guards', guard, 200)[0]['guard']['id']
    probe.ask('DELETE', stack, None, 409)
    probe.ask('PUT', f'{stack}/preview?plan=true', content(by_parameter=PLANTED['update']), 200)
    document = call('GET', kiln.url.removesuffix('/v1') + '/openapi.json')[2]
    names = {'tenant_id': probe.project, 'stack_name': 'hiding', 'stack_id': stack.rsplit('/', 1)[1], 'resource_name': 'server',
             'output_key': 'plain', 'snapshot_id': snapshot, 'type_name': 'OS::Nova::Server',
             'template_version': 'heat_template_version.2018-08-31', 'server_id': 'none', 'config_id': 'none',
             'deployment_id': 'none', 'event_id': 'none', 'operation_id': operations[0]['id'], 'revision': '1',
             'plan_id': plan, 'guard_id': guard, 'webhook_id': webhook, 'project_id': probe.project}
    for path, operations in document['paths'].items():
        # The data of a snapshot and of an export is for adoption and complete, as in Heat.
        if 'get' in operations and not path.endswith(('/export', '/snapshots/{snapshot_id}', '/snapshots')):
            filled = re.sub(r'\{(\w+)\}', lambda part: names[part[1]], path)
            probe.ask('GET', kiln.url.removesuffix('/v1') + filled)
    for event in events:
        link = next(one['href'] for one in event['links'] if one['rel'] == 'self')
        probe.ask('GET', link)
    for resource in resources:
        for one in resource['links']:
            if one['rel'] in ('self', 'stack', 'nested'):
                probe.ask('GET', one['href'])
        child = next((one['href'] for one in resource['links'] if one['rel'] == 'nested'), None)
        if child:
            for part in ('environment', 'files', 'template', 'events', 'outputs', 'resources/server'):
                probe.ask('GET', f'{child}/{part}')
    probe.ask('GET', f'{stack}/drift', expected=200)
    probe.ask('POST', '/stacks/preview', {'stack_name': 'other', **content()}, 200)
    # It shows the values of the request to who sent it, as in Heat; what is stored must not be shown.
    probe.ask('POST', '/validate?show_nested=true', content(), 200, quiet=True)
    probe.ask('PATCH', f'{stack}/preview', {'parameters': {'plain': 'else'}}, 200)
    probe.ask('POST', '/stacks', {'stack_name': 'long', **content(by_parameter=PLANTED['parameter'] * 3)}, 400)
    probe.ask('PUT', stack, {**content(), 'template': TEMPLATE.replace('hidden: true', 'hidden: false', 1)})
    probe.ask('DELETE', f'/guards/{guard}', None, 204)
    failing = {**content(), 'template': TEMPLATE.replace('image: cirros', 'image: {get_param: by_parameter}', 1)}
    probe.ask('PUT', stack, {**failing, 'parameters': {**failing['parameters'], 'plain': 'failing'}})
    until(lambda: '"orchestration.guard.lifted"' in ''.join(Receiver.got), bool)
    text = ''.join(Receiver.got)
    check('webhooks have told much', len(Receiver.got) > 15 and 'orchestration.resource.update.end' in text, len(Receiver.got))
    check('webhooks hide values', not found(text), found(text))
    return stack


def stored(kiln, probe):
    """What is left in the files of the database and in the log."""
    texts = {name: (kiln.folder / name).read_bytes().decode('latin-1')
             for name in os.listdir(kiln.folder) if name.startswith('kiln.db')}
    check('there is a database', sum(map(len, texts.values())) > 100_000, {name: len(text) for name, text in texts.items()})
    texts['the log'] = kiln.log('kiln')
    check('the log is detailed', '"DEBUG"' in texts['the log'])
    for name, text in texts.items():
        leaks = found(text)
        at = min((text.find(PLANTED[leak]) for leak in leaks), default=0)
        check(f'no hidden value in {name}', not leaks, f'{leaks}: {text[max(0, at - 300):at + 100]!r}')
        check(f'no token in {name}', probe.token not in text, name)
        check(f'no key in {name}', '0123456789abcdef0123456789abcdef' not in text, name)


def main():
    os.environ['RUST_LOG'] = 'debug'
    webhooks = {'enabled': 'true', 'networks': '127.0.0.1', 'handshake': 'optional'}
    with Deployment(DEFAULT={'encrypt_parameters_and_properties': 'true'}, webhooks=webhooks) as kiln:
        probe = Prober(kiln)
        stack = case(everywhere, kiln, probe)
        check('many requests', probe.asked > 60, probe.asked)
        case(stored, kiln, probe)
        if stack:
            probe.ask('DELETE', stack, expected=204)
            until(lambda: probe.ask('GET', stack, quiet=True)[0]['stack']['stack_status'],
                  lambda status: status == 'DELETE_COMPLETE')
            case(stored, kiln, probe)
    finish()


if __name__ == '__main__':
    main()
