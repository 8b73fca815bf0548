#!/usr/bin/env python3
"""The agents in servers with Kiln: os-collect-config, os-apply-config, os-refresh-config, the hooks of heat-agents, and
heat-cfntools.

    tests/cloud/agents.py [KILN]

Starts the simulated cloud and a service on free ports (KILN is the binary; default: target/debug/kiln). The agents are
installed from PyPI in a virtual environment and run on this machine, as a server would run them: each server has a folder,
and the tools with fixed paths run in a mount namespace of their own (this needs root). They complete software deployments
and wait conditions on every transport. Prints one line per failed check, and `N passed, N failed`.
"""
import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

from guest import FIXED, VENV, Server, install, isolated

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TARGET = pathlib.Path(os.environ.get('CARGO_TARGET_DIR', ROOT / 'target'))
KILN = sys.argv[1] if len(sys.argv) > 1 else str(TARGET / 'debug/kiln')

passed, failed = 0, []


def check(what, good, detail=''):
    global passed
    if good:
        passed += 1
    else:
        failed.append(what)
        print(f'FAILED {what}: {detail}', flush=True)
    return good


def equal(what, got, expected):
    return check(what, got == expected, f'{got!r} instead of {expected!r}')


def start(folder, name, args):
    log = open(folder / f'{name}.log', 'w+')
    return subprocess.Popen([KILN, *args], stdout=log, stderr=subprocess.STDOUT, cwd=folder), log


def wait_for(process, log, pattern):
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        found = re.search(pattern, pathlib.Path(log.name).read_text())
        if found:
            return found
        if process.poll() is not None:
            break
        time.sleep(0.1)
    sys.exit(f'{log.name} has no {pattern}:\n{pathlib.Path(log.name).read_text()}')


def free_port():
    with socket.socket() as listener:
        listener.bind(('127.0.0.1', 0))
        return listener.getsockname()[1]


def send(method, url, body=None, token=None):
    headers = {'Content-Type': 'application/json', **({'X-Auth-Token': token} if token else {})}
    data = None if body is None else json.dumps(body).encode()
    return urllib.request.urlopen(urllib.request.Request(url, data, headers, method=method), timeout=30)


class Keystone:
    """A user of the simulated cloud."""

    def __init__(self, url, user):
        self.url = url
        domain = {'id': 'default'}
        identity = {'methods': ['password'],
                    'password': {'user': {'name': user, 'password': 'password', 'domain': domain}}}
        answer = send('POST', url + '/auth/tokens', {'auth': {
            'identity': identity, 'scope': {'project': {'name': user, 'domain': domain}}}})
        self.token = answer.headers['X-Subject-Token']
        self.project = json.load(answer)['token']['project']['id']

    def add_service(self, kind, url):
        service = json.load(send('POST', self.url + '/services', {'service': {'type': kind, 'name': kind}}, self.token))
        endpoint = {'service_id': service['service']['id'], 'interface': 'public', 'region_id': 'RegionOne', 'url': url}
        send('POST', self.url + '/endpoints', {'endpoint': endpoint}, self.token)


class Heat:
    """Requests to Kiln."""

    def __init__(self, url, keystone):
        self.url, self.keystone = f'{url}/v1/{keystone.project}', keystone

    def call(self, method, path, body=None):
        answer = send(method, self.url + path, body, self.keystone.token).read()
        return json.loads(answer) if answer[:1] in (b'{', b'[') else None

    def create(self, name, template, timeout=10, **parameters):
        body = {'stack_name': name, 'template': template, 'parameters': parameters, 'timeout_mins': timeout}
        return self.call('POST', '/stacks', body)['stack']['id']

    def update(self, name, id, template, **parameters):
        self.call('PUT', f'/stacks/{name}/{id}', {'template': template, 'parameters': parameters})

    def stack(self, name):
        return self.call('GET', f'/stacks/{name}')['stack']

    def outputs(self, name):
        return {output['output_key']: output.get('output_value') for output in self.stack(name)['outputs']}

    def resource(self, name, id, resource):
        return self.call('GET', f'/stacks/{name}/{id}/resources/{resource}')['resource']

    def settled(self, name, work=None, seconds=40):
        """The stack when it is not in progress any more; `work` is done meanwhile."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            stack = self.stack(name)
            if not stack['stack_status'].endswith('IN_PROGRESS'):
                return stack
            if work:
                work()
            time.sleep(0.3)
        return stack

    def delete(self, name, id):
        self.call('DELETE', f'/stacks/{name}/{id}')
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            status = self.stack(id)['stack_status']
            if status != 'DELETE_IN_PROGRESS':
                return status
            time.sleep(0.3)
        return status


SCRIPT = '''#!/bin/sh
echo "size is $size"
echo "a warning" >&2
printf '%s' "$size" > "$heat_outputs_path.result"
exit $code
'''


def deployment(collect, report, group='script', config=SCRIPT):
    return {
        'heat_template_version': '2018-08-31',
        'parameters': {'size': {'type': 'string', 'default': '1'}, 'code': {'type': 'string', 'default': '0'}},
        'resources': {
            'config': {'type': 'OS::Heat::SoftwareConfig' if isinstance(config, str) else 'OS::Heat::StructuredConfig',
                       'properties': {'group': group, 'config': config, 'outputs': [{'name': 'result'}],
                                      'inputs': [{'name': 'size'}, {'name': 'code'}]}},
            'server': {'type': 'OS::Heat::DeployedServer', 'properties': {'software_config_transport': collect}},
            'deployment': {
                'type': f'OS::Heat::{"Software" if isinstance(config, str) else "Structured"}Deployment',
                'properties': {'config': {'get_resource': 'config'}, 'server': {'get_resource': 'server'},
                               'signal_transport': report,
                               'input_values': {'size': {'get_param': 'size'}, 'code': {'get_param': 'code'}}}},
        },
        'outputs': {'collect': {'value': {'get_attr': ['server', 'os_collect_config']}},
                    'server': {'value': {'get_resource': 'server'}},
                    'deployment': {'value': {'get_resource': 'deployment'}},
                    **{name: {'value': {'get_attr': ['deployment', name]}}
                       for name in ('result', 'deploy_stdout', 'deploy_stderr', 'deploy_status_code')}},
    }


def agent_of(heat, folder, name):
    """The server of a stack, as soon as the agent can be started."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        collect = heat.outputs(name).get('collect') if heat.stack(name)['outputs'] else None
        if collect:
            return Server(folder / name, collect)
        time.sleep(0.3)
    sys.exit(f'{name} has no server: {heat.stack(name)}')


def deployments(heat, folder, collect, report):
    """A deployment that succeeds, fails, and succeeds again."""
    name, what = 'by-' + report.lower().replace('_', '-'), f'{collect} {report}'
    template = deployment(collect, report)
    id = heat.create(name, template)
    server = agent_of(heat, folder, name)
    stack = heat.settled(name, server.work)
    if not equal(f'{what}: the create', stack['stack_status'], 'CREATE_COMPLETE'):
        print(stack['stack_status_reason'], server.log())
        return
    out = heat.outputs(name)
    if report != 'NO_SIGNAL':
        got = [out[key] for key in ('result', 'deploy_stdout', 'deploy_stderr', 'deploy_status_code')]
        equal(f'{what}: the outputs', got, ['1', 'size is 1\n', 'a warning\n', 0])
    else:
        server.work()
        equal(f'{what}: no outputs', out['deploy_stdout'], None)
        check(f'{what}: it ran', list((server.folder / 'deployed').glob('*.notify.json')), server.log())
    equal(f'{what}: os-apply-config wrote the same configuration', settings(server.config.read_text()),
          settings(server.first))
    if report != 'NO_SIGNAL':
        heat.update(name, id, template, size='2', code='3')
        stack = heat.settled(name, server.work)
        equal(f'{what}: a failure', stack['stack_status'], 'UPDATE_FAILED')
        check(f'{what}: its reason', 'Deployment exited with non-zero status code: 3' in stack['stack_status_reason'],
              stack['stack_status_reason'])
        heat.update(name, id, template, size='3', code='0')
        stack = heat.settled(name, server.work)
        equal(f'{what}: an update', (stack['stack_status'], heat.outputs(name)['result']), ('UPDATE_COMPLETE', '3'))
    equal(f'{what}: the delete', heat.delete(name, id), 'DELETE_COMPLETE')


def settings(text):
    """The options of a configuration file that are set."""
    lines = [line.replace(' ', '') for line in text.splitlines()]
    return sorted(line for line in lines if re.match(r'\w+=.', line) and not line.startswith('command='))


def hooks(heat, folder):
    """The other hooks whose tools are installed."""
    file = folder / 'written.json'
    json_file = {str(file): {'size': {'get_input': 'size'}}}
    made = folder / 'made-by-cfn-init'
    init = {'config': {'commands': {'1': {'command': f'echo done > {made}'}}}}
    for group, config, result in [('json-file', json_file, file), ('apply-config', {'own': {'a': 1}}, None),
                                  ('cfn-init', init, made)]:
        id = heat.create(group, deployment('POLL_SERVER_CFN', 'CFN_SIGNAL', group, config))
        server = agent_of(heat, folder, group)
        stack = heat.settled(group, server.work)
        good = equal(f'hook {group}', stack['stack_status'], 'CREATE_COMPLETE')
        if not good:
            print(stack['stack_status_reason'], server.log())
        elif result:
            check(f'hook {group}: the file', result.exists(), server.log())
        heat.delete(group, id)
    check('hook json-file: the input', file.exists() and json.loads(file.read_text()) == {'size': '1'},
          file.read_text() if file.exists() else 'no file')


def users(heat, folder):
    """A deployment that a user creates with the command, and whose result the service looks for in Swift."""
    name = 'commanded'
    template = deployment('POLL_TEMP_URL', 'NO_SIGNAL')
    id = heat.create(name, template)
    server = agent_of(heat, folder, name)
    heat.settled(name, server.work)
    target = heat.outputs(name)['server']
    (folder / 'run.sh').write_text(SCRIPT)
    (folder / 'inputs.yaml').write_text('inputs: [{name: size}, {name: code}]\noutputs: [{name: result}]\n')
    env = {**os.environ, 'OS_AUTH_URL': heat.keystone.url, 'OS_USERNAME': 'demo', 'OS_PASSWORD': 'password',
           'OS_PROJECT_NAME': 'demo', 'OS_USER_DOMAIN_ID': 'default', 'OS_PROJECT_DOMAIN_ID': 'default'}

    def kiln(*args):
        ran = subprocess.run([KILN, 'software', *args, '-f', 'json'], env=env, cwd=folder, capture_output=True, text=True)
        check(f'kiln software {args[0]} {args[1]}', ran.returncode == 0, ran.stderr)
        return json.loads(ran.stdout or '{}')

    time.sleep(1.1)  # os-collect-config does not notice a second change of the object within a second.
    config = kiln('config', 'create', '--group', 'script', '--config-file', 'run.sh', '--definition-file', 'inputs.yaml',
                  'by-hand')
    made = kiln('deployment', 'create', '--config', config['id'], '--server', target, '--input-value', 'size=7',
                '--input-value', 'code=0', 'by-hand')
    equal('a deployment of a user', made['status'], 'IN_PROGRESS')
    deadline = time.monotonic() + 30
    while made['status'] == 'IN_PROGRESS' and time.monotonic() < deadline:
        server.work()
        made = kiln('deployment', 'show', made['id'], '--long')
    equal('its result', (made['status'], made.get('output_values', {}).get('result')), ('COMPLETE', '7'))
    heat.call('DELETE', f'/software_deployments/{made["id"]}')
    heat.call('DELETE', f'/software_configs/{config["id"]}')
    equal('the delete after it', heat.delete(name, id), 'DELETE_COMPLETE')


def waits(heat, folder):
    """Wait conditions, completed by the tools that servers have."""
    def template(handle, wait, properties):
        prefix = 'AWS::CloudFormation' if handle.startswith('AWS') else 'OS::Heat'
        names = ('Handle', 'Timeout') if prefix.startswith('AWS') else ('handle', 'timeout')
        attributes = {} if prefix.startswith('AWS') else {
            name: {'value': {'get_attr': ['handle', name]}} for name in ('signal', 'curl_cli')
            if not (handle.endswith('SwiftSignalHandle') and name == 'signal')}
        return {'heat_template_version': '2018-08-31',
                'resources': {'handle': {'type': handle, 'properties': properties},
                              'wait': {'type': wait, 'properties': {names[0]: {'get_resource': 'handle'}, names[1]: 60}}},
                'outputs': {'ref': {'value': {'get_resource': 'handle'}}, **attributes}}

    tool = {'PATH': f'{VENV}/bin:/usr/bin:/bin', 'LC_ALL': 'C', 'PYTHONUTF8': '1'}

    def cfn_signal(*args):
        return lambda out: isolated(folder, [VENV / 'bin/cfn-signal', '-i', 'one', *args, out['ref']], tool)

    def curl(body):
        return lambda out: subprocess.run(['sh', '-c', f"{out['curl_cli']} --data-binary '{body}'"], capture_output=True)

    def heat_signal(out):
        given = json.loads(out['signal'])
        scope = {'project': {'id': given['project_id']}}
        identity = {'methods': ['password'], 'password': {'user': {'id': given['user_id'], 'password': given['password']}}}
        token = send('POST', given['auth_url'] + '/auth/tokens', {'auth': {'identity': identity, 'scope': scope}})
        send('POST', given['alarm_url'], {'status': 'SUCCESS'}, token.headers['X-Subject-Token'])

    aws = ('AWS::CloudFormation::WaitConditionHandle', 'AWS::CloudFormation::WaitCondition')
    own = ('OS::Heat::WaitConditionHandle', 'OS::Heat::WaitCondition')
    swift = ('OS::Heat::SwiftSignalHandle', 'OS::Heat::SwiftSignal')
    cases = [
        ('cfn-signal', aws, {}, cfn_signal('-e', '0'), 'CREATE_COMPLETE'),
        ('cfn-signal-failure', aws, {}, cfn_signal('-e', '4', '-r', 'broken disk'), 'CREATE_FAILED'),
        ('token-signal', own, {'signal_transport': 'TOKEN_SIGNAL'}, curl('{"status": "SUCCESS"}'), 'CREATE_COMPLETE'),
        ('token-signal-failure', own, {'signal_transport': 'TOKEN_SIGNAL'},
         curl('{"status": "FAILURE", "reason": "broken disk"}'), 'CREATE_FAILED'),
        ('heat-signal', own, {'signal_transport': 'HEAT_SIGNAL'}, heat_signal, 'CREATE_COMPLETE'),
        ('swift-signal', swift, {}, curl('{"status": "SUCCESS"}'), 'CREATE_COMPLETE'),
        ('swift-signal-failure', swift, {}, curl('{"status": "FAILURE", "reason": "broken disk"}'), 'CREATE_FAILED'),
    ]
    for name, (handle, wait), properties, signal, status in cases:
        id = heat.create(name, template(handle, wait, properties))
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            if heat.resource(name, id, 'handle')['resource_status'] == 'CREATE_COMPLETE':
                break
            time.sleep(0.2)
        signal(heat.outputs(name))
        stack = heat.settled(name)
        equal(name, stack['stack_status'], status)
        if status.endswith('FAILED'):
            check(f'{name}: the reason', 'broken disk' in stack['stack_status_reason'], stack['stack_status_reason'])
        heat.delete(name, id)


def cfntools(heat, folder, cfn_port):
    """cfn-init and cfn-hup, with the metadata of a resource and the key of a user of the stack."""
    made, hooked = folder / 'by-init', folder / 'by-hup'

    def template(text):
        files = {str(made): {'content': text, 'mode': '000644', 'owner': 'root', 'group': 'root'}}
        return {'heat_template_version': '2018-08-31', 'resources': {
            'user': {'type': 'AWS::IAM::User'},
            'key': {'type': 'AWS::IAM::AccessKey', 'properties': {'UserName': {'get_resource': 'user'}}},
            'box': {'type': 'OS::Heat::DeployedServer',
                    'metadata': {'AWS::CloudFormation::Init': {'config': {'files': files}}}},
        }, 'outputs': {'access': {'value': {'get_resource': 'key'}},
                       'secret': {'value': {'get_attr': ['key', 'SecretAccessKey']}}}}

    id = heat.create('tools', template('first'))
    equal('a stack for the tools', heat.settled('tools')['stack_status'], 'CREATE_COMPLETE')
    out = heat.outputs('tools')
    fixed = folder / 'fixed'
    for path in FIXED:
        (fixed / path.split('/')[1] / 'upper' / path.split('/', 2)[2]).mkdir(parents=True, exist_ok=True)
    lib, etc = fixed / 'var/upper/lib/heat-cfntools', fixed / 'etc/upper/cfn'
    (lib / 'cfn-metadata-server').write_text(f'http://127.0.0.1:{cfn_port}')
    (lib / 'cfn-boto-cfg').write_text('[Boto]\nis_secure = 0\ncfn_region_name = heat\ncfn_region_endpoint = 127.0.0.1\n')
    tool = {'PATH': f'{VENV}/bin:/usr/bin:/bin:/usr/sbin:/sbin', 'LC_ALL': 'C', 'PYTHONUTF8': '1'}
    ran = isolated(folder, [VENV / 'bin/cfn-init', '-s', 'tools', '-r', 'box', '--access-key', out['access'],
                            '--secret-key', out['secret'], '--region', 'heat'], tool)
    log = fixed / 'var/upper/log/cfn-init.log'
    check('cfn-init', ran.returncode == 0 and made.exists() and made.read_text() == 'first',
          ran.stdout + ran.stderr + (log.read_text() if log.exists() else ''))
    (etc / 'cfn-credentials').write_text(f'AWSAccessKeyId={out["access"]}\nAWSSecretKey={out["secret"]}\n')
    (etc / 'cfn-credentials').chmod(0o400)
    (etc / 'cfn-hup.conf').write_text('[main]\nstack=tools\ncredential-file=/etc/cfn/cfn-credentials\nregion=heat\n')
    (etc / 'hooks.conf').write_text(f'[changed]\ntriggers=post.update\npath=Resources.box.Metadata\n'
                                    f'action=touch {hooked}\nrunas=root\n')
    hup = [VENV / 'bin/cfn-hup', '-f']
    isolated(folder, hup, tool)
    hooked.unlink(missing_ok=True)
    isolated(folder, hup, tool)
    check('cfn-hup does nothing without a change', not hooked.exists())
    heat.update('tools', id, template('second'))
    heat.settled('tools')
    ran = isolated(folder, hup, tool)
    log = fixed / 'var/upper/log/cfn-hup.log'
    check('cfn-hup runs its hook', hooked.exists(), ran.stderr + (log.read_text()[-2000:] if log.exists() else ''))
    heat.delete('tools', id)


def secrets(heat, folder):
    """The database holds no secret in clear: not what agents and users know, and no hidden value."""
    found, stacks = {'a hidden parameter': 'planted-in-a-parameter'}, []
    for collect, report in [('POLL_SERVER_CFN', 'CFN_SIGNAL'), ('POLL_TEMP_URL', 'TEMP_URL_SIGNAL'),
                            ('ZAQAR_MESSAGE', 'ZAQAR_SIGNAL')]:
        name = 'secret-' + report.lower().replace('_', '-')
        template = deployment(collect, report)
        template['parameters']['size']['hidden'] = True
        template['resources']['keep'] = {'type': 'OS::Heat::RandomString', 'properties': {'salt': {'get_param': 'size'}}}
        template['outputs']['random'] = {'value': {'get_attr': ['keep', 'value']}}
        stacks.append((name, heat.create(name, template, size=found['a hidden parameter'])))
        agent_of(heat, folder, name)
        deadline, inputs, out = time.monotonic() + 30, {}, {}
        while 'deploy_signal_transport' not in inputs and time.monotonic() < deadline:
            out = heat.outputs(name)
            for config in heat.call('GET', f'/software_deployments/metadata/{out["server"]}')['metadata']:
                inputs = {one['name']: one['value'] for one in config['inputs']}
            time.sleep(0.2)
        for section in out['collect'].values():
            for key in ('password', 'secret_access_key', 'metadata_url'):
                if isinstance(section, dict) and section.get(key):
                    found[f'{collect} {key}'] = section[key]
        found[f'{report} random'] = out['random']
        for key in ('deploy_password', 'deploy_signal_id'):
            if key in inputs:
                found[f'{report} {key}'] = inputs[key]
    stored = b''.join(path.read_bytes() for path in folder.glob('kiln.db*'))
    check('the database is not empty', b'secret-cfn-signal' in stored)
    for what, secret in found.items():
        signature = re.search(r'(?:Signature|temp_url_sig)=([^&]+)', secret)
        secret = signature.group(1) if signature else secret
        check(f'{what} is not in the database', secret.encode() not in stored, 'it is there in clear')
    check('enough secrets were looked for', len(found) >= 9, found.keys())
    for name, id in stacks:
        heat.delete(name, id)


def signatures(heat, folder):
    """Signatures that are forged, expired, or of a user who is gone are refused and logged."""
    import base64
    import hashlib
    import hmac
    from urllib.parse import parse_qsl, quote, unquote, urlsplit
    template = {'heat_template_version': '2018-08-31',
                'resources': {name: {'type': 'AWS::CloudFormation::WaitConditionHandle'} for name in ('one', 'other')},
                'outputs': {name: {'value': {'get_resource': name}} for name in ('one', 'other')}}
    id = heat.create('signed', template)
    heat.settled('signed')
    out = heat.outputs('signed')
    body = {'Status': 'SUCCESS', 'UniqueId': '1', 'Data': 'd', 'Reason': 'r'}
    refusals = []

    def put(url):
        request = urllib.request.Request(url, json.dumps(body).encode(), {'Content-Type': ''}, method='PUT')
        try:
            return urllib.request.urlopen(request).status
        except urllib.error.HTTPError as error:
            refusals.append(error.code)
            return error.code

    def signed(url, secret, **changed):
        """The URL with other parameters, signed again."""
        parts = urlsplit(url)
        params = {**{key: value for key, value in parse_qsl(parts.query) if key != 'Signature'}, **changed}
        query = '&'.join(f'{key}={quote(params[key], safe="-_~")}' for key in sorted(params))
        text = f'PUT\n{parts.netloc}\n{unquote(parts.path)}\n{query}'
        mac = base64.b64encode(hmac.new(secret.encode(), text.encode(), hashlib.sha256).digest()).decode()
        return f'{parts.scheme}://{parts.netloc}{parts.path}?{query}&Signature={quote(mac, safe="")}'

    equal('a signature', put(out['one']), 200)
    equal('a forged one', put(signed(out['one'], 'another secret')), 403)
    own, foreign = (dict(parse_qsl(urlsplit(out[name]).query)) for name in ('one', 'other'))
    equal('the signature of another key', put(out['one'].replace(quote(own['Signature'], safe=''),
                                                                quote(foreign['Signature'], safe=''))), 403)
    equal('the key of another resource', put(out['one'].replace(own['AWSAccessKeyId'], foreign['AWSAccessKeyId'])), 403)
    equal('a URL of another resource', put(out['one'].replace('/one?', '/other?')), 403)
    heat.delete('signed', id)
    check('a replay after the delete', put(out['one']) in (400, 403, 404), refusals)
    log = (folder / 'kiln.log').read_text()
    logged = len(re.findall(r'"path":"/v1/waitcondition/[^}]*"status":40[034]', log))
    check('refused signatures are logged', logged >= len(refusals) >= 5, f'{logged} of {refusals}')


def timed_out(heat, id):
    """A deployment without an agent."""
    stack = heat.settled('silent', seconds=90)
    equal('no signal', (stack['stack_status'], stack['stack_status_reason']), ('CREATE_FAILED', 'Timed out'))
    one = heat.call('GET', f'/software_deployments/{heat.outputs("silent")["deployment"]}')['software_deployment']
    equal('its deployment', (one['status'], one['status_reason']), ('FAILED', 'Deployment cancelled.'))
    equal('its delete', heat.delete('silent', id), 'DELETE_COMPLETE')


def main():
    install()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        running = []
        try:
            cloud, log = start(folder, 'cloud', ['testcloud', '--port', '0'])
            running.append(cloud)
            auth = wait_for(cloud, log, r'OS_AUTH_URL=(\S+)').group(1).rstrip('/')
            auth = auth if auth.endswith('/v3') else auth + '/v3'
            port, cfn_port = free_port(), free_port()
            admin = Keystone(auth, 'admin')
            admin.add_service('orchestration', f'http://127.0.0.1:{port}/v1/%(project_id)s')
            admin.add_service('cloudformation', f'http://127.0.0.1:{cfn_port}/v1')
            (folder / 'kiln.conf').write_text(
                f'[database]\nconnection = sqlite://{folder}/kiln.db?mode=rwc\n'
                f'[DEFAULT]\nauth_encryption_key = 0123456789abcdef0123456789abcdef\nstack_user_domain_id = heat\n'
                f'encrypt_parameters_and_properties = true\n'
                f'stack_domain_admin = heat_domain_admin\nstack_domain_admin_password = password\n'
                f'[keystone_authtoken]\nauth_url = {auth}\nusername = heat\npassword = password\n'
                f'project_name = service\n[heat_api]\nbind_host = 127.0.0.1\nbind_port = {port}\n'
                f'[heat_api_cfn]\nbind_host = 127.0.0.1\nbind_port = {cfn_port}\n')
            service, log = start(folder, 'kiln', ['serve', '--log-format', 'json', '--config-file', 'kiln.conf'])
            running.append(service)
            wait_for(service, log, r'"cfn":"([^"]+)"')
            heat = Heat(f'http://127.0.0.1:{port}', Keystone(auth, 'demo'))
            silent = heat.create('silent', deployment('POLL_SERVER_CFN', 'CFN_SIGNAL'), timeout=1)
            cases = [lambda pair=pair: deployments(heat, folder, *pair) for pair in [
                ('POLL_SERVER_CFN', 'CFN_SIGNAL'), ('POLL_SERVER_HEAT', 'HEAT_SIGNAL'), ('POLL_TEMP_URL', 'TEMP_URL_SIGNAL'),
                ('ZAQAR_MESSAGE', 'ZAQAR_SIGNAL'), ('POLL_SERVER_CFN', 'NO_SIGNAL')]]
            cases += [lambda: hooks(heat, folder), lambda: users(heat, folder), lambda: waits(heat, folder),
                      lambda: cfntools(heat, folder, cfn_port), lambda: secrets(heat, folder),
                      lambda: signatures(heat, folder), lambda: timed_out(heat, silent)]
            for case in cases:
                try:
                    case()
                except Exception as error:
                    body = error.read().decode() if isinstance(error, urllib.error.HTTPError) else ''
                    check(f'line {error.__traceback__.tb_next.tb_lineno}', False, f'{type(error).__name__} {error} {body}')
            if failed:
                print(pathlib.Path(log.name).read_text()[-4000:])
        finally:
            for process in running:
                process.terminate()
                process.wait()
    print(f'{passed} passed, {len(failed)} failed')
    sys.exit(bool(failed))


if __name__ == '__main__':
    main()
