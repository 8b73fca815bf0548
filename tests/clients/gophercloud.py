#!/usr/bin/env python3
"""The orchestration package of gophercloud, as Debian packages it (golang-github-gophercloud-gophercloud-dev).

    tests/clients/gophercloud.py [KILN]
"""
import os
import pathlib
import shutil
import subprocess

import deployment
from deployment import CLIENTS, Deployment, check

HERE = pathlib.Path(__file__).resolve().parent
PACKAGE = pathlib.Path('/usr/share/gocode/src/github.com/gophercloud/gophercloud')


def main():
    if not shutil.which('go') or not PACKAGE.exists():
        deployment.skip('golang-go and golang-github-gophercloud-gophercloud-dev are not installed')
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
            deployment.program('gophercloud', [str(binary), str(HERE / 'network.yaml')], env=variables)
    deployment.finish()


if __name__ == '__main__':
    main()
