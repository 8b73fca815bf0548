#!/usr/bin/env python3
"""The `openstack` command with python-heatclient: the one of Debian, if it is installed, and the newest one from PyPI.

    tests/clients/command_line.py [KILN]

The commands run in one process per client, because its start takes most of the time.
"""
import contextlib
import io
import json
import os
import pathlib
import shutil
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent))
from harness.checks import case, check, equal, finish, program, until  # noqa: E402
from harness.deployment import Deployment  # noqa: E402
from harness.pypi import CLIENTS, OPENSTACK, virtual_environment  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
NETWORK = str(HERE / 'network.yaml')
FOLDER = pathlib.Path(tempfile.gettempdir())


def run(*words):
    """A command: exit code, output, errors."""
    from openstackclient import shell
    output, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
        try:
            code = shell.OpenStackShell().run(list(words))
        except SystemExit as error:
            code = error.code
        except Exception as error:
            code = 1
            errors.write(str(error))
    return code, output.getvalue(), errors.getvalue()


def data(*words):
    code, output, errors = run(*words, '-f', 'json')
    # Progress is printed before the data.
    starts = [at for at in (output.find('\n{'), output.find('\n[')) if at >= 0]
    text = output if output[:1] in ('{', '[') else output[min(starts):] if starts else output
    if not check(' '.join(words), code == 0, f'exit {code}: {output}{errors}'):
        return None
    return json.loads(text)


def done(*words):
    code, output, errors = run(*words)
    check(' '.join(words), code == 0, f'exit {code}: {output}{errors}')
    return output


def refused(text, *words):
    code, output, errors = run(*words)
    check(f"{' '.join(words)} is refused", code != 0 and text in output + errors, f'exit {code}: {output}{errors}')


def life():
    preview = data('stack', 'create', '--dry-run', '-t', NETWORK, '--parameter', 'label=a', 'app')
    resources = preview['resources']
    # The old client prints a text.
    resources = json.loads(resources) if isinstance(resources, str) else resources
    equal('a preview', (preview['stack_name'], [one['resource_name'] for one in resources]),
          ('app', ['net', 'word']))
    made = data('stack', 'create', '-t', NETWORK, '--parameter', 'label=a', '--tags', 'red,green', '--timeout', '5',
                '--wait', 'app')
    equal('created', (made['stack_name'], made['stack_status']), ('app', 'CREATE_COMPLETE'))
    shown = data('stack', 'show', 'app')
    equal('shown', (shown['id'], shown['stack_status'], shown['parameters']['label'], shown['parameters']['pin'],
                    shown['tags'], shown['timeout_mins']),
          (made['id'], 'CREATE_COMPLETE', 'a', '******', ['red', 'green'], 5))
    listed = data('stack', 'list', '--tags', 'red')
    equal('listed', [(one['ID'], one['Stack Name'], one['Stack Status']) for one in listed],
          [(made['id'], 'app', 'CREATE_COMPLETE')])
    equal('a list without it', data('stack', 'list', '--tags', 'green', '--tag-mode', 'not'), [])
    equal('filtered', len(data('stack', 'list', '--property', 'status=COMPLETE', '--sort', 'stack_name:asc', '--limit', '5')), 1)
    outputs = {one['output_key']: one for one in data('stack', 'output', 'list', 'app')}
    equal('outputs', sorted(outputs), ['name', 'network', 'word'])
    equal('an output', data('stack', 'output', 'show', 'app', 'name')['output_value'], 'a')
    check('all outputs', 'word' in done('stack', 'output', 'show', '--all', 'app'))
    resources = {one['resource_name']: one for one in data('stack', 'resource', 'list', 'app')}
    equal('resources', {name: one['resource_type'] for name, one in resources.items()},
          {'net': 'OS::Neutron::Net', 'word': 'OS::Heat::RandomString'})
    net = data('stack', 'resource', 'show', 'app', 'net')
    equal('a resource', (net['resource_status'], net['attributes']['name'], net['physical_resource_id']),
          ('CREATE_COMPLETE', 'a', resources['net']['physical_resource_id']))
    equal('its metadata', data('stack', 'resource', 'metadata', 'app', 'net'), {})
    events = data('stack', 'event', 'list', 'app')
    equal('events', len(events), 6)
    event = next(one for one in events if one['resource_name'] == 'net')
    equal('an event', data('stack', 'event', 'show', 'app', 'net', event['id'])['id'], event['id'])
    equal('the template', sorted(data('stack', 'template', 'show', 'app')['resources']), ['net', 'word'])
    equal('the environment', data('stack', 'environment', 'show', 'app')['parameters'], {'label': 'a'})
    equal('the files', data('stack', 'file', 'list', 'app')['files'], {})
    changes = done('stack', 'update', '--dry-run', '-t', NETWORK, '--parameter', 'label=b', 'app')
    check('the update of a preview', 'updated' in changes and 'net' in changes, changes)
    updated = data('stack', 'update', '--existing', '--parameter', 'label=b', '--wait', 'app')
    equal('updated', updated['stack_status'], 'UPDATE_COMPLETE')
    equal('its output', data('stack', 'output', 'show', 'app', 'name')['output_value'], 'b')
    for action in ('check', 'suspend', 'resume'):
        listed = data('stack', action, '--wait', 'app')
        equal(action, listed[0]['Stack Status'], f'{action.upper()}_COMPLETE')
    marked = run('stack', 'resource', 'mark', 'unhealthy', 'app', 'word', 'broken')
    equal('marked', marked[0], 0)
    # The engine does it, a moment later.
    shown = until(lambda: data('stack', 'resource', 'show', 'app', 'word'),
                  lambda shown: shown['resource_status'] == 'CHECK_FAILED')
    equal('a mark', (shown['resource_status'], shown['resource_status_reason']), ('CHECK_FAILED', 'broken'))
    done('stack', 'resource', 'mark', 'unhealthy', '--reset', 'app', 'word')
    snapshot = data('stack', 'snapshot', 'create', '--name', 'one', 'app')
    until(lambda: data('stack', 'snapshot', 'show', 'app', snapshot['ID' if 'ID' in snapshot else 'id']),
          lambda shown: shown['snapshot']['status'] != 'IN_PROGRESS')
    equal('snapshots', [(one['name'], one['status']) for one in data('stack', 'snapshot', 'list', 'app')],
          [('one', 'COMPLETE')])
    done('stack', 'snapshot', 'restore', 'app', snapshot['ID' if 'ID' in snapshot else 'id'])
    until(lambda: data('stack', 'show', 'app'), lambda shown: shown['stack_status'] == 'RESTORE_COMPLETE')
    done('stack', 'snapshot', 'delete', 'app', snapshot['ID' if 'ID' in snapshot else 'id'])
    refused('already exists', 'stack', 'create', '-t', NETWORK, 'app')
    done('stack', 'delete', '-y', '--wait', 'app')
    refused('Stack not found', 'stack', 'show', 'app')


def moved():
    made = data('stack', 'create', '-t', NETWORK, '--wait', 'moved')
    exported = data('stack', 'export', 'moved')
    equal('exported', (exported['name'], sorted(exported['resources'])), ('moved', ['net', 'word']))
    file = FOLDER / f'kiln-abandoned-{os.getpid()}.json'
    done('stack', 'abandon', '--output-file', str(file), 'moved')
    abandoned = json.loads(file.read_text())
    equal('abandoned', abandoned['id'], made['id'])
    adopted = data('stack', 'adopt', '--adopt-file', str(file), '--wait', 'adopted')
    equal('adopted', adopted['stack_status'], 'ADOPT_COMPLETE')
    file.unlink()
    equal('the same object', data('stack', 'resource', 'show', 'adopted', 'net')['physical_resource_id'],
          abandoned['resources']['net']['resource_id'])
    done('stack', 'delete', '-y', '--wait', 'adopted')


def orchestration():
    """Types, versions, functions, services, validation."""
    check('build info', 'api' in data('orchestration', 'build', 'info'))
    types = [one['Resource Type'] for one in data('orchestration', 'resource', 'type', 'list')]
    check('types', 'OS::Nova::Server' in types and len(types) > 50, len(types))
    equal('a type', data('orchestration', 'resource', 'type', 'show', 'OS::Heat::Value')['resource_type'], 'OS::Heat::Value')
    versions = [one.get('Version') for one in data('orchestration', 'template', 'version', 'list')]
    check('versions', 'heat_template_version.2018-08-31' in versions, versions)
    functions = data('orchestration', 'template', 'function', 'list', 'heat_template_version.2018-08-31')
    check('functions', any(one['Functions'] == 'get_param' for one in functions), functions)
    equal('validated', sorted(data('orchestration', 'template', 'validate', '-t', NETWORK)['Parameters']), ['label', 'pin'])
    # Heat's policy lists engines for administrators only.
    refused('You are not authorized to use service:index.', 'orchestration', 'service', 'list')


def software():
    config = data('software', 'config', 'create', '--group', 'script', 'one')
    equal('configs', [one['id'] for one in data('software', 'config', 'list')], [config['id']])
    made = data('software', 'deployment', 'create', '--config', config['id'], '--server',
                '00000000-0000-4000-8000-000000000001', '--signal-transport', 'NO_SIGNAL', 'deployed')
    shown = data('software', 'deployment', 'show', made['id'])
    equal('a deployment', shown['status'], 'IN_PROGRESS')
    equal('deployments', len(data('software', 'deployment', 'list')), 1)
    done('software', 'deployment', 'delete', made['id'])
    done('software', 'config', 'delete', config['id'])
    equal('nothing is left', data('software', 'config', 'list'), [])


def errors():
    refused('Stack not found', 'stack', 'show', 'nobody')
    refused('Stack not found', 'stack', 'output', 'list', 'nobody')
    refused('No such file', 'stack', 'create', '-t', '/nowhere.yaml', 'bad')
    bad = FOLDER / f'kiln-bad-{os.getpid()}.yaml'
    bad.write_text('heat_template_version: 2018-08-31\nresources: {x: {type: OS::Nova::Sever}}\n')
    refused('The Resource Type (OS::Nova::Sever) could not be found.', 'stack', 'create', '-t', str(bad), 'bad')
    bad.unlink()


def main():
    if os.environ.get('KILN_CLIENT'):
        for part in (life, moved, orchestration, software, errors):
            case(part)
        finish()
    virtual_environment('openstack', *OPENSTACK)
    interpreters = {'new': CLIENTS / 'openstack/bin/python3'}
    debian = '/usr/bin/python3'
    if shutil.which('/usr/bin/openstack') and pathlib.Path('/usr/lib/python3/dist-packages/heatclient').exists():
        interpreters['Debian'] = debian
    else:
        print('without the client of Debian: python3-openstackclient and python3-heatclient are not installed')
    with Deployment() as kiln:
        for name, interpreter in interpreters.items():
            environment = {**kiln.environment(), 'KILN_CLIENT': name}
            program(name, [str(interpreter), __file__, sys.argv[1] if len(sys.argv) > 1 else ''],
                    env=environment, cwd=kiln.folder)
    finish()


if __name__ == '__main__':
    main()
