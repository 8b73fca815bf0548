#!/usr/bin/env python3
"""openstack.cloud.stack and stack_info of Ansible: the collection in PyPI's ansible and, if it is installed, Debian's.

    tests/clients/ansible.py [KILN]

The tasks are in playbook.yaml. Those of docs/saved-plans.md run too, which decide by the exit code of a plan. The collection of Debian 12 is for older versions of openstacksdk.
"""
import pathlib
import re
import subprocess
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent))
from harness.checks import check, count, finish  # noqa: E402
from harness.deployment import KILN, Deployment  # noqa: E402
from harness.pypi import CLIENTS, install, virtual_environment  # noqa: E402

virtual_environment('ansible-old', 'openstacksdk<0.99', 'setuptools<81')
HERE = pathlib.Path(__file__).resolve().parent


def play(kiln, name, command, interpreter):
    (kiln.folder / 'environment.yaml').write_text('parameters: {pin: "99"}\n')
    (kiln.folder / 'bad.yaml').write_text('heat_template_version: 2018-08-31\nresources: {x: {type: OS::Nova::Sever}}\n')
    ran = subprocess.run(
        [command, '-i', 'localhost,', '-c', 'local', '-e', f'ansible_python_interpreter={interpreter}', '-e',
         f'environment_file={kiln.folder}/environment.yaml', '-e', f'bad={kiln.folder}/bad.yaml', HERE / 'playbook.yaml'],
        env=kiln.environment(ANSIBLE_LOCALHOST_WARNING='False', ANSIBLE_NOCOLOR='1', LC_ALL='C.UTF-8',
                             ANSIBLE_HOME=str(kiln.folder / 'ansible')),
        capture_output=True, text=True, cwd=kiln.folder, timeout=280)
    tasks = re.findall(r'^TASK \[(.*?)\]', ran.stdout, re.M)
    good = len(re.findall('^(?:ok|changed): ', ran.stdout, re.M))
    if check(f'the playbook with {name}', ran.returncode == 0, ran.stdout[-4000:] + ran.stderr[-2000:]):
        # One task is expected to fail.
        check(f'all tasks of {name}', good == len(tasks) - 1 > 20, f'{good} of {len(tasks)}')
        count(f'tasks of {name}', good - 2)


def saved_plans(kiln, command, interpreter):
    """The tasks of the manual: they create a stack, find nothing to do, and stop before data is lost."""
    page = (HERE.parent.parent / 'docs/saved-plans.md').read_text()
    tasks = '- name: plan\n' + page.split('```yaml\n- name: plan\n', 1)[1].split('```', 1)[0]
    indented = ''.join(f'    {line}' for line in tasks.splitlines(keepends=True))
    (kiln.folder / 'plan.yaml').write_text(f'- hosts: localhost\n  gather_facts: false\n  tasks:\n{indented}')
    (kiln.folder / 'bin').mkdir()
    (kiln.folder / 'bin/kiln').symlink_to(KILN)
    environment = kiln.environment(ANSIBLE_LOCALHOST_WARNING='False', ANSIBLE_NOCOLOR='1', LC_ALL='C.UTF-8',
                                   ANSIBLE_HOME=str(kiln.folder / 'ansible'))
    environment['PATH'] = f"{kiln.folder}/bin:{environment['PATH']}"
    empty = 'heat_template_version: 2018-08-31\n'
    volume = empty + 'resources: {data: {type: OS::Cinder::Volume, properties: {size: 1}}}\n'
    for template, code, changed, said in (
            (volume, 0, 2, 'changed: [localhost]'),
            (volume, 0, 0, 'ok: [localhost]'),
            (empty, 2, 0, "lost: the volume's data")):
        (kiln.folder / 'web.yaml').write_text(template)
        ran = subprocess.run([command, '-i', 'localhost,', '-c', 'local', '-e', f'ansible_python_interpreter={interpreter}',
                              'plan.yaml'],
                             env=environment, capture_output=True, text=True, cwd=kiln.folder, timeout=280)
        told = ran.stdout + ran.stderr
        if check('the tasks of the manual', ran.returncode == code and said in told, told[-4000:]):
            check('what they changed', f'changed={changed} ' in told, told[-1000:])


def main():
    python = CLIENTS / 'ansible/bin/python3'
    # With openstacksdk 4.22 the modules of the collection 2.5 do not start: it has no `openstack.version`.
    install('ansible', 'ansible', 'openstacksdk<4.6')
    with Deployment() as kiln:
        play(kiln, 'PyPI', python.parent / 'ansible-playbook', python)
        if pathlib.Path('/usr/lib/python3/dist-packages/ansible_collections/openstack/cloud').exists():
            play(kiln, 'Debian', '/usr/bin/ansible-playbook', CLIENTS / 'ansible-old/bin/python3')
        else:
            print('without the collection of Debian: ansible is not installed')
        # Last: it leaves a stack.
        saved_plans(kiln, python.parent / 'ansible-playbook', python)
    finish()


if __name__ == '__main__':
    main()
