#!/usr/bin/env python3
"""The HeatStacks scenarios of Rally (rally-openstack from PyPI).

    tests/clients/rally.py [KILN]
"""
import json
import pathlib
import subprocess
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent))
from harness.checks import check, finish  # noqa: E402
from harness.deployment import Deployment  # noqa: E402
from harness.pypi import install  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
NETWORK = str(HERE / 'network.yaml')
FOLDER = install('rally', 'rally-openstack')
SCENARIOS = {
    'create_and_list_stack': {},
    'create_and_delete_stack': {},
    'create_check_delete_stack': {},
    'create_update_delete_stack': {'updated_template_path': NETWORK, 'updated_parameters': {'label': 'two'}},
    'create_suspend_resume_delete_stack': {},
    'create_snapshot_restore_delete_stack': {},
    'create_stack_and_show_output_via_API': {'output_key': 'name'},
    'create_stack_and_show_output': {'output_key': 'name'},
    'create_stack_and_list_output_via_API': {},
    'create_stack_and_list_output': {},
    'create_stack_and_scale': {'template_path': str(HERE / 'scaling.yaml'), 'output_key': 'url', 'delta': 1},
    'list_stacks_and_resources': None,
    'list_stacks_and_events': None,
}
OPTIONS = '\n'.join(f'heat_stack_{action}_{what} = {seconds}' for what, seconds in [('prepoll_delay', 0.1), ('poll_interval', 0.2)]
                    for action in ('create', 'update', 'check', 'delete', 'suspend', 'resume', 'snapshot', 'restore', 'scale'))


def task():
    """Each scenario three times, two at once, in a project with stacks."""
    for name, arguments in SCENARIOS.items():
        workload = {'runner': {'constant': {'times': 3, 'concurrency': 2}}}
        if arguments is None:
            workload['contexts'] = {'stacks': {'stacks_per_tenant': 2, 'resources_per_stack': 3}}
            arguments = {}
        else:
            arguments = {'template_path': NETWORK, **arguments}
        yield {'title': name, 'scenario': {f'HeatStacks.{name}': arguments}, **workload}


def main():
    with Deployment() as kiln:
        database = f'sqlite:///{kiln.folder}/rally.db'
        configuration = kiln.folder / 'rally.conf'
        configuration.write_text(f'[database]\nconnection = {database}\n[openstack]\n{OPTIONS}\n')

        def rally(*words):
            command = [str(FOLDER / 'bin/rally'), '--config-file', str(configuration), *words]
            return subprocess.run(command, capture_output=True, text=True, cwd=kiln.folder, timeout=280)

        domain = {'user_domain_name': 'Default', 'project_domain_name': 'Default'}
        account = {'password': 'password', **domain}
        spec = {'existing@openstack': {
            'auth_url': kiln.auth, 'region_name': 'RegionOne',
            'admin': {'username': 'admin', 'project_name': 'admin', **account},
            'users': [{'username': 'demo', 'project_name': 'demo', **account}]}}
        (kiln.folder / 'spec.json').write_text(json.dumps(spec))
        (kiln.folder / 'task.json').write_text(json.dumps({
            'version': 2, 'title': 'HeatStacks',
            'subtasks': list(task())}))
        for words in (['db', 'create'], ['env', 'create', '--name', 'kiln', '--spec', 'spec.json'],
                      ['task', 'start', 'task.json']):
            ran = rally(*words)
            if not check(' '.join(words[:2]), ran.returncode == 0, ran.stdout[-3000:] + ran.stderr[-3000:]):
                break
        report = rally('task', 'report', '--json')
        results = json.loads(report.stdout) if report.stdout.startswith('{') else {}
        subtasks = {one['title']: one for one in results.get('tasks', [{}])[0].get('subtasks', [])}
        for name in SCENARIOS:
            workloads = subtasks.get(name, {}).get('workloads', [])
            runs = [run for one in workloads for run in one['data']]
            errors = [run['error'][1] if isinstance(run['error'], list) and len(run['error']) > 1 else run['error']
                      for run in runs if run['error']]
            check(name, len(runs) == 3 and not errors, errors or report.stdout[-1500:] + report.stderr[-500:])
    finish()


if __name__ == '__main__':
    main()
