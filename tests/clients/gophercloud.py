#!/usr/bin/env python3
"""The orchestration package of gophercloud, as Debian packages it (golang-github-gophercloud-gophercloud-dev).

    tests/clients/gophercloud.py [KILN]
"""
import os
import pathlib
import shutil
import subprocess
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent))
from harness.checks import check, finish, program, skip  # noqa: E402
from harness.deployment import Deployment  # noqa: E402
from harness.pypi import CLIENTS  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
PACKAGE = pathlib.Path('/usr/share/gocode/src/github.com/gophercloud/gophercloud')


def main():
    if not shutil.which('go') or not PACKAGE.exists():
        skip('golang-go and golang-github-gophercloud-gophercloud-dev are not installed')
    CLIENTS.mkdir(parents=True, exist_ok=True)
    binary = CLIENTS / 'gophercloud'
    environment = {**os.environ, 'GO111MODULE': 'off', 'GOPATH': '/usr/share/gocode', 'GOFLAGS': '',
                   'GOCACHE': str(CLIENTS / 'go-cache')}
    built = subprocess.run(['go', 'build', '-o', str(binary), str(HERE / 'gophercloud/main.go')], env=environment,
                           capture_output=True, text=True)
    if check('the program is built', built.returncode == 0, built.stderr):
        with Deployment() as kiln:
            variables = kiln.environment()
            variables.update(OS_DOMAIN_ID='default', OS_USERDOMAIN_ID='default', OS_TENANT_NAME='demo')
            program('gophercloud', [str(binary), str(HERE / 'network.yaml')], env=variables)
    finish()


if __name__ == '__main__':
    main()
