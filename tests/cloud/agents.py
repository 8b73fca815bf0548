#!/usr/bin/env python3
"""The agents in servers with Kiln: os-collect-config, os-apply-config, os-refresh-config, the hooks of heat-agents, and
heat-cfntools.

    tests/cloud/agents.py [--kill] [KILN [PART…]]
    devcloud/devcloud up all && tests/cloud/agents.py --devcloud [PART…]

Starts the simulated cloud and a service (KILN is the binary; default: target/debug/kiln), for all parts or the named
ones (`alarms`, `puppet`; see `cases`). With --kill, the engine is killed every 0.2 to 2 seconds. With --devcloud, the
Kiln of devcloud is used, without the parts that need a cloud or a configuration of their own. The agents are installed from PyPI and run on this machine, as a server would
run them: each server has a folder, and the tools with fixed paths run in a mount namespace of their own (this needs
root). They complete software deployments and wait conditions on every transport. Further parts are in hooks.py,
alarms.py and signatures.py; what is the same for all is in guest.py (the server), deployment.py and heat.py. Prints
one line per failed check, and `N passed, N failed`.
"""
import json
import pathlib
import re
import subprocess
import sys
import time
import uuid
from concurrent.futures import ThreadPoolExecutor

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent))
from harness.pypi import TARGET  # noqa: E402

# The modules below expect the binary in the first argument.
MODE = sys.argv.pop(1) if sys.argv[1:2] in (['--kill'], ['--devcloud']) else None
if MODE == '--devcloud':
    sys.argv.insert(1, str(TARGET / 'release/kiln'))

from harness.checks import case, check, equal, finish, until  # noqa: E402
from harness.deployment import KILN, Deployment  # noqa: E402
from harness.killed import KilledDeployment  # noqa: E402
from harness.request import send  # noqa: E402

import hooks  # noqa: E402
from alarms import alarms  # noqa: E402
from deployment import SCRIPT, deployment  # noqa: E402
from devcloud import Devcloud  # noqa: E402
from guest import FIXED, VENV, agent_of, isolated  # noqa: E402
from heat import Heat  # noqa: E402
from signatures import FrontKeystone, signatures  # noqa: E402


# The parts that were named on the command line.
CHOSEN = sys.argv[2:]


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


def users(heat, kiln):
    """A deployment that a user creates with the command, and whose result the service looks for in Swift."""
    name, folder = 'commanded', kiln.folder
    template = deployment('POLL_TEMP_URL', 'NO_SIGNAL')
    id = heat.create(name, template)
    server = agent_of(heat, folder, name)
    heat.settled(name, server.work)
    target = heat.outputs(name)['server']
    (folder / 'run.sh').write_text(SCRIPT)
    (folder / 'inputs.yaml').write_text('inputs: [{name: size}, {name: code}]\noutputs: [{name: result}]\n')

    def software(*args):
        ran = subprocess.run([KILN, 'software', *args, '-f', 'json'], env=kiln.environment(), cwd=folder,
                             capture_output=True, text=True)
        check(f'kiln software {args[0]} {args[1]}', ran.returncode == 0, ran.stderr)
        return json.loads(ran.stdout or '{}')

    time.sleep(1.1)  # os-collect-config does not notice a second change of the object within a second.
    config = software('config', 'create', '--group', 'script', '--config-file', 'run.sh', '--definition-file',
                      'inputs.yaml', 'by-hand')
    made = software('deployment', 'create', '--config', config['id'], '--server', target, '--input-value', 'size=7',
                    '--input-value', 'code=0', 'by-hand')
    equal('a deployment of a user', made['status'], 'IN_PROGRESS')
    deadline = time.monotonic() + 30
    while made['status'] == 'IN_PROGRESS' and time.monotonic() < deadline:
        server.work()
        made = software('deployment', 'show', made['id'], '--long')
    equal('its result', (made['status'], made.get('output_values', {}).get('result')), ('COMPLETE', '7'))
    heat.call('DELETE', f'/software_deployments/{made["id"]}')
    heat.call('DELETE', f'/software_configs/{config["id"]}')
    equal('the delete after it', heat.delete(name, id), 'DELETE_COMPLETE')


def wait_conditions(heat, folder):
    """The cases of wait conditions, completed by the tools that servers have. Each has fixed paths of its own."""
    def template(handle, wait, properties):
        prefix = 'AWS::CloudFormation' if handle.startswith('AWS') else 'OS::Heat'
        names = ('Handle', 'Timeout') if prefix.startswith('AWS') else ('handle', 'timeout')
        attributes = {} if prefix.startswith('AWS') else {
            name: {'value': {'get_attr': ['handle', name]}} for name in ('signal', 'curl_cli')
            if not (handle.endswith('SwiftSignalHandle') and name == 'signal')}
        waiting = {names[0]: {'get_resource': 'handle'}, names[1]: 60}
        data = 'Data' if prefix.startswith('AWS') else 'data'
        return {'heat_template_version': '2018-08-31',
                'resources': {'handle': {'type': handle, 'properties': properties},
                              'wait': {'type': wait, 'properties': waiting}},
                'outputs': {'ref': {'value': {'get_resource': 'handle'}},
                            'data': {'value': {'get_attr': ['wait', data]}}, **attributes}}

    tool = {'PATH': f'{VENV}/bin:/usr/bin:/bin', 'LC_ALL': 'C', 'PYTHONUTF8': '1'}

    def cfn_signal(*args):
        command = [VENV / 'bin/cfn-signal', '-i', 'one', *args]
        return lambda out: isolated(folder / f'signal{len(args)}', [*command, out['ref']], tool)

    def curl(body):
        return lambda out: subprocess.run(['sh', '-c', f"{out['curl_cli']} --data-binary '{body}'"],
                                          capture_output=True)

    def login(given):
        """The token of the user and the services of the cloud."""
        scope = {'project': {'id': given['project_id']}}
        user = {'id': given['user_id'], 'password': given['password']}
        identity = {'methods': ['password'], 'password': {'user': user}}
        token = send('POST', given['auth_url'] + '/auth/tokens', {'auth': {'identity': identity, 'scope': scope}})
        return token.headers['X-Subject-Token'], json.load(token)['token']['catalog']

    def heat_signal(out):
        given = json.loads(out['signal'])
        send('POST', given['alarm_url'], {'status': 'SUCCESS'}, login(given)[0])

    def temp_url_signal(body):
        return lambda out: subprocess.run(['curl', '-i', '-X', 'PUT', json.loads(out['signal'])['alarm_url'],
                                           '--data-binary', body], capture_output=True)

    def zaqar_signal(out):
        given = json.loads(out['signal'])
        token, catalog = login(given)
        zaqar = next(one['endpoints'][0]['url'] for one in catalog if one['type'] == 'messaging')
        send('POST', f'{zaqar}/v2/queues/{given["queue_id"]}/messages',
             {'messages': [{'ttl': 600, 'body': {'status': 'SUCCESS'}}]}, token, **{'Client-ID': str(uuid.uuid4())})

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
        ('temp-url-signal', own, {'signal_transport': 'TEMP_URL_SIGNAL'}, temp_url_signal('{"status": "SUCCESS"}'),
         'CREATE_COMPLETE'),
        ('temp-url-signal-failure', own, {'signal_transport': 'TEMP_URL_SIGNAL'},
         temp_url_signal('{"status": "FAILURE", "reason": "broken disk"}'), 'CREATE_FAILED'),
        ('zaqar-signal', own, {'signal_transport': 'ZAQAR_SIGNAL'}, zaqar_signal, 'CREATE_COMPLETE'),
        ('no-signal', own, {'signal_transport': 'NO_SIGNAL'}, lambda out: None, 'CREATE_COMPLETE'),
        ('swift-signal', swift, {}, curl('{"status": "SUCCESS"}'), 'CREATE_COMPLETE'),
        ('swift-signal-failure', swift, {}, curl('{"status": "FAILURE", "reason": "broken disk"}'), 'CREATE_FAILED'),
    ]

    def one_case(name, handle, wait, properties, signal, status):
        id = heat.create(name, template(handle, wait, properties))
        until(lambda: heat.resource(name, id, 'handle')['resource_status'],
              lambda status: status == 'CREATE_COMPLETE', 30)
        signal(heat.outputs(name))
        stack = heat.settled(name)
        equal(name, stack['stack_status'], status)
        if status.endswith('FAILED'):
            check(f'{name}: the reason', 'broken disk' in stack['stack_status_reason'], stack['stack_status_reason'])
        else:
            equal(f'{name}: the signals', list(json.loads(heat.outputs(name)['data'])),
                  ['one' if handle.startswith('AWS') else '1'])
        heat.delete(name, id)

    return {one[0]: lambda one=one: one_case(one[0], *one[1], *one[2:]) for one in cases}


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
    (lib / 'cfn-boto-cfg').write_text(
        '[Boto]\nis_secure = 0\ncfn_region_name = heat\ncfn_region_endpoint = 127.0.0.1\n')
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
        template['resources']['keep'] = {
            'type': 'OS::Heat::RandomString', 'properties': {'salt': {'get_param': 'size'}}}
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


def timed_out(heat, id):
    """A deployment without an agent."""
    stack = heat.settled('silent', seconds=90)
    equal('no signal', (stack['stack_status'], stack['stack_status_reason']), ('CREATE_FAILED', 'Timed out'))
    one = heat.call('GET', f'/software_deployments/{heat.outputs("silent")["deployment"]}')['software_deployment']
    equal('its deployment', (one['status'], one['status_reason']), ('FAILED', 'Deployment cancelled.'))
    equal('its delete', heat.delete('silent', id), 'DELETE_COMPLETE')


def main():
    if MODE == '--devcloud':
        with Devcloud() as kiln:
            heat = Heat(kiln.url, kiln.keystone())
            # What a run that failed has left.
            for stack in heat.call('GET', '/stacks')['stacks']:
                heat.delete(stack['stack_name'], stack['id'])
            run({**of_any_cloud(heat, kiln), 'users': lambda: users(heat, kiln)})
        finish()
    # The URL for signals is the one in the catalog.
    kind = KilledDeployment if MODE == '--kill' else Deployment
    kiln = kind(DEFAULT={'encrypt_parameters_and_properties': 'true', 'heat_waitcondition_server_url': None})
    front = FrontKeystone(kiln.auth)
    kiln.set('ec2authtoken', auth_uri=front.url)
    with kiln:
        kiln.keystone('admin').add_service('cloudformation', kiln.cfn)
        heat, folder = Heat(kiln.url, kiln.keystone()), kiln.folder
        if MODE == '--kill':
            kiln.begin()
        run({'alarms': lambda: alarms(heat, folder), 'signatures': lambda: signatures(heat, folder, front),
             'users': lambda: users(heat, kiln), 'secrets': lambda: secrets(heat, folder), **of_any_cloud(heat, kiln)})
        if MODE == '--kill':
            print(f'the engine was killed {kiln.kills} times')
    finish()


def of_any_cloud(heat, kiln):
    """The parts that need no configuration of their own, by name."""
    folder = kiln.folder
    kinds = hooks.all_hooks(folder)
    # They time out while the other parts run.
    slow = {'silent': deployment('POLL_SERVER_CFN', 'CFN_SIGNAL')}
    slow.update({f'late-{group}': hooks.stack_of(group, kinds[group]) for group in ('ansible', 'puppet', 'salt')
                 if group in kinds})
    slow = {name: heat.create(name, stack, timeout=1) for name, stack in slow.items() if name in (CHOSEN or slow)}
    return {
        'cfntools': lambda: cfntools(heat, folder, kiln.cfn_port),
        **{pair[1]: lambda pair=pair: deployments(heat, folder, *pair) for pair in [
            ('POLL_SERVER_CFN', 'CFN_SIGNAL'), ('POLL_SERVER_HEAT', 'HEAT_SIGNAL'),
            ('POLL_TEMP_URL', 'TEMP_URL_SIGNAL'), ('ZAQAR_MESSAGE', 'ZAQAR_SIGNAL'),
            ('POLL_SERVER_CFN', 'NO_SIGNAL')]},
        **{kind[0]: lambda kind=kind: hooks.run(heat, folder, *kind) for kind in kinds.items()},
        **wait_conditions(heat, folder),
        **{name: lambda name=name, id=id: timed_out(heat, id) if name == 'silent' else
           hooks.late(heat, folder, name.removeprefix('late-'), id) for name, id in slow.items()},
    }


def run(cases):
    with ThreadPoolExecutor(6) as pool:
        for part in CHOSEN or cases:
            pool.submit(case, cases[part], name=part)


if __name__ == '__main__':
    main()
