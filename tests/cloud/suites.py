#!/usr/bin/env python3
"""Heat's own black-box tests against Kiln.

    devcloud/devcloud up kiln swift
    tests/cloud/suites.py [--integration FOLDER] [--list] [REGEX]

Runs heat-tempest-plugin from PyPI with its gabbi files, and the tests of heat_integrationtests in FOLDER (a checkout of
Heat, which is not part of this project). `suites.json` has the reason of each test that does not pass, by a piece of its
name. Prints a line for each test that fails without a reason, a line for each reason that no test needs any more, and
`N passed, N failed`. Takes about 20 minutes for everything.
"""
import argparse
import collections
import csv
import json
import os
import pathlib
import re
import subprocess
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent))
from harness.pypi import CLIENTS, install  # noqa: E402

import run as cloud  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
WORK = CLIENTS / 'suites-work'
VENV = install('suites', 'heat-tempest-plugin==3.0.0', 'tempest==47.0.0', 'stestr', 'python-subunit')
NETWORK, SUBNET = 'heat-net', 'heat-subnet'

CONF = """\
[auth]
admin_username = admin
admin_password = {admin_password}
admin_project_name = admin
admin_domain_name = Default
[identity]
uri_v3 = {url}
auth_version = v3
[heat_plugin]
auth_url = {url}
auth_version = 3
username = {user}
password = {password}
project_name = {project}
admin_username = admin
admin_password = {admin_password}
admin_project_name = admin
user_domain_name = Default
project_domain_name = Default
user_domain_id = default
project_domain_id = default
region = {region}
image_ref = cirros
minimal_image_ref = cirros
instance_type = m1.micro
minimal_instance_type = m1.nano
network_for_ssh = {network}
fixed_network_name = {network}
fixed_subnet_name = {subnet}
floating_network_name = public
build_interval = 1
build_timeout = 120
hidden_stack_tag = data-processing-cluster
# devcloud's servers are not real machines: nobody can log in to them.
skip_scenario_tests = true
[heat_features_enabled]
stack_cancel = true
[service_available]
heat = true
"""


def execute(*words, **more):
    return subprocess.run([str(word) for word in words], **more)


def ground(env):
    """The network that the tests expect."""
    def ask(*words):
        return execute(cloud.OPENSTACK, *words, env=env, capture_output=True, text=True)

    if ask('network', 'show', NETWORK).returncode:
        ask('network', 'create', NETWORK).check_returncode()
        ask('subnet', 'create', '--network', NETWORK, '--subnet-range', '10.77.0.0/24', SUBNET).check_returncode()


def configure():
    demo, admin = cloud.credentials('demo'), cloud.credentials('admin')
    WORK.mkdir(parents=True, exist_ok=True)
    (WORK / 'tempest.conf').write_text(CONF.format(
        url=demo['OS_AUTH_URL'], region=demo['OS_REGION_NAME'], user=demo['OS_USERNAME'], password=demo['OS_PASSWORD'],
        project=demo['OS_PROJECT_NAME'], admin_password=admin['OS_PASSWORD'], network=NETWORK, subnet=SUBNET))
    ground(demo)


def outcomes(path, top, regex, only_list):
    """Test name -> success, failure, skip."""
    env = {**os.environ, 'TEMPEST_CONFIG_DIR': str(WORK), 'TEMPEST_CONFIG': 'tempest.conf', 'PYTHONPATH': str(top),
           'PYTHONWARNINGS': 'ignore'}
    stestr = [VENV / 'bin/stestr', '--test-path', path, '--top-dir', top]
    if not (WORK / '.stestr').exists():
        execute(*stestr, 'init', cwd=WORK, env=env, check=True)
    if only_list:
        execute(*stestr, 'list', *regex, cwd=WORK, env=env)
        return {}
    # It fails when a test fails, and prints a text when none matches.
    run = execute(*stestr, 'run', '--subunit', '--concurrency', 2, *regex, cwd=WORK, env=env, stdout=subprocess.PIPE)
    table = execute(VENV / 'bin/subunit2csv', '--no-passthrough', input=run.stdout, stdout=subprocess.PIPE)
    rows = table.stdout.decode()
    return {row['test']: row['status'] for row in csv.DictReader(rows.splitlines()) if row['status'] != 'exists'}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('regex', nargs='*', help='only tests whose name matches')
    parser.add_argument('--integration', metavar='FOLDER', help='a checkout of Heat, for its heat_integrationtests')
    parser.add_argument('--list', action='store_true', help='only list the tests')
    args = parser.parse_args()
    configure()
    site = next((VENV / 'lib').glob('python*/site-packages'))
    found = outcomes(site / 'heat_tempest_plugin/tests', site, args.regex, args.list)
    if args.integration:
        folder = pathlib.Path(args.integration).resolve()
        found.update(outcomes(folder / 'heat_integrationtests', folder, args.regex, args.list))
    if args.list:
        return 0
    reasons = json.loads((HERE / 'suites.json').read_text())
    counts, used, failed = collections.Counter(), set(), 0
    for test, status in sorted(found.items()):
        name = re.sub(r'\[.*', '', test)
        reason = next((piece for piece in reasons if piece in test), None)
        if status == 'failure' and reason:
            used.add(reason)
            counts['explained'] += 1
        elif status == 'failure':
            failed += 1
            print(f'FAILED {name}')
        else:
            counts[{'success': 'passed', 'skip': 'skipped'}.get(status, status)] += 1
    if not args.regex:
        for piece in sorted(set(reasons) - used):
            print(f'suites.json: no failed test needs {piece!r}')
    print(', '.join(f'{count} {word}' for word, count in sorted(counts.items()) if word != 'passed'))
    print(f'{counts["passed"]} passed, {failed} failed')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
