#!/usr/bin/env python3
"""The orchestration service of fog-openstack, as Debian packages it (ruby-fog-openstack).

    tests/clients/fog.py [KILN]
"""
import pathlib
import shutil
import subprocess
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent))
from harness.checks import finish, program, skip  # noqa: E402
from harness.deployment import Deployment  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent


def main():
    require = ['ruby', '-e', "require 'fog/openstack'"]
    if not shutil.which('ruby') or subprocess.run(require, capture_output=True).returncode:
        skip('ruby-fog-openstack is not installed')
    with Deployment() as kiln:
        program('fog', ['ruby', '-W0', str(HERE / 'fog.rb'), str(HERE / 'network.yaml')],
                env=kiln.environment())
    finish()


if __name__ == '__main__':
    main()
