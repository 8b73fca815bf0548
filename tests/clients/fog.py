#!/usr/bin/env python3
"""The orchestration service of fog-openstack, as Debian packages it (ruby-fog-openstack).

    tests/clients/fog.py [KILN]
"""
import pathlib
import shutil
import subprocess

import deployment
from deployment import Deployment

HERE = pathlib.Path(__file__).resolve().parent


def main():
    if not shutil.which('ruby') or subprocess.run(['ruby', '-e', "require 'fog/openstack'"], capture_output=True).returncode:
        deployment.skip('ruby-fog-openstack is not installed')
    with Deployment() as kiln:
        deployment.program('fog', ['ruby', '-W0', str(HERE / 'fog.rb'), str(HERE / 'network.yaml')],
                           env=kiln.environment())
    deployment.finish()


if __name__ == '__main__':
    main()
