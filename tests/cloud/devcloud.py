"""The Kiln of devcloud, with the attributes of `harness.deployment.Deployment` (for agents.py)."""
import os
import pathlib
import shutil
import subprocess
import tempfile

from harness.request import Keystone

PROGRAM = str(pathlib.Path(__file__).resolve().parents[2] / 'devcloud/devcloud')


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
        """The variables of the clients."""
        lines = subprocess.run([PROGRAM, 'rc', user], capture_output=True, text=True, check=True).stdout.splitlines()
        kept = {key: value for key, value in os.environ.items() if not key.startswith('OS_')}
        return kept | dict(line.removeprefix('export ').split('=', 1) for line in lines)
