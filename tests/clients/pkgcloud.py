#!/usr/bin/env python3
"""The orchestration client of pkgcloud, from npm.

    tests/clients/pkgcloud.py [KILN]
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent))
from harness.checks import finish, program, skip  # noqa: E402
from harness.deployment import Deployment  # noqa: E402
from harness.pypi import CLIENTS, virtual_environment  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent

virtual_environment('yaml', 'pyyaml')
import yaml  # noqa: E402


def main():
    folder = CLIENTS / 'node'
    if not shutil.which('node') or not shutil.which('npm'):
        skip('node and npm are not installed')
    if not (folder / 'node_modules/pkgcloud').exists():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / 'package.json').write_text('{"private": true}')
        if subprocess.run(['npm', 'install', '--no-audit', '--no-fund', '--silent', 'pkgcloud'], cwd=folder).returncode:
            skip('npm cannot install pkgcloud')
    with Deployment() as kiln:
        # Templates are objects there.
        template = kiln.folder / 'network.json'
        template.write_text(json.dumps(yaml.safe_load((HERE / 'network.yaml').read_text()), default=str))
        program('pkgcloud', ['node', '--no-deprecation', str(HERE / 'pkgcloud.js'), str(template)],
                env={**kiln.environment(), 'NODE_PATH': str(folder / 'node_modules'), 'HOME': os.environ['HOME']})
    finish()


if __name__ == '__main__':
    main()
