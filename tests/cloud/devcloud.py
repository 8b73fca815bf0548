"""The users of devcloud, and its Kiln with the attributes of `harness.deployment.Deployment`."""
import os
import pathlib
import shutil
import subprocess
import tempfile

from harness.pypi import ROOT
from harness.request import Keystone


def credentials(user):
    """The variables of the clients."""
    rc = subprocess.run([str(ROOT / 'devcloud/devcloud'), 'rc', user], check=True, capture_output=True, text=True)
    env = {k: v for k, v in os.environ.items() if not k.startswith('OS_')}
    for line in rc.stdout.splitlines():
        name, _, value = line.removeprefix('export ').partition('=')
        env[name] = value
    return env


class Devcloud:
    """`devcloud up all` must have been run. The ports are those of devcloud/README.md."""

    def __init__(self):
        self.auth = 'http://127.0.0.1:5000/v3'
        self.port, self.cfn_port = 8014, 8010
        self.url, self.cfn = f'http://127.0.0.1:{self.port}/v1', f'http://127.0.0.1:{self.cfn_port}/v1'

    def __enter__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix='kiln-devcloud-'))
        return self

    def __exit__(self, kind, error, trace):
        shutil.rmtree(self.folder, ignore_errors=True)

    def keystone(self, user='demo'):
        return Keystone(self.auth, user, password='devcloud')

    def environment(self, user='demo'):
        return credentials(user)
