"""A Kiln to test clients with: the simulated cloud and a service on free ports, in a temporary folder.

    with Deployment() as kiln:
        kiln.url, kiln.cfn, kiln.auth, kiln.environment()

The binary is the first argument of the script (default: target/debug/kiln).
"""
import os
import pathlib
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import time

from harness import request
from harness.checks import failed
from harness.pypi import TARGET

KILN = str(pathlib.Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else TARGET / 'debug/kiln')


def free_port():
    """A port that nothing listens on, and below those that the system gives to outgoing connections."""
    while True:
        port = random.randint(10_000, 32_000)
        with socket.socket() as listener:
            try:
                listener.bind(('127.0.0.1', port))
                return port
            except OSError:
                pass


def listens(port):
    with socket.socket() as one:
        return one.connect_ex(('127.0.0.1', port)) == 0


class Deployment:
    """A simulated cloud and `kiln serve`, which is in its catalog."""

    def __init__(self, **sections):
        """`sections`: options of the configuration by their section, in addition to those here."""
        self.cloud_port, self.port, self.cfn_port = free_port(), free_port(), free_port()
        self.auth = f'http://127.0.0.1:{self.cloud_port}/identity/v3'
        self.url = f'http://127.0.0.1:{self.port}/v1'
        self.cfn = f'http://127.0.0.1:{self.cfn_port}/v1'
        self.sections = {
            'database': {},
            'DEFAULT': {
                'auth_encryption_key': '0123456789abcdef0123456789abcdef', 'stack_user_domain_id': 'heat',
                'stack_domain_admin': 'heat_domain_admin', 'stack_domain_admin_password': 'password',
                'enable_stack_adopt': 'true', 'enable_stack_abandon': 'true',
                'heat_waitcondition_server_url': f'{self.cfn}/waitcondition'},
            'keystone_authtoken': {
                'auth_url': self.auth, 'username': 'heat', 'password': 'password', 'project_name': 'service'},
            'heat_api': {'bind_host': '127.0.0.1', 'bind_port': self.port},
            'heat_api_cfn': {'bind_host': '127.0.0.1', 'bind_port': self.cfn_port}}
        for section, options in sections.items():
            self.set(section, **options)
        self.running = []

    def set(self, section, **options):
        """Sets options before the service is started; None removes one."""
        self.sections.setdefault(section, {}).update(options)

    def __enter__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix='kiln-clients-'))
        try:
            self.launch()
        except BaseException:
            self.stop()
            raise
        return self

    def launch(self):
        entry = f'http://127.0.0.1:{self.port}'
        self.start('cloud', 'testcloud', '--port', self.cloud_port, '--build-time', '0.3', '--orchestration', entry)
        self.wait_for('cloud', self.cloud_port)
        self.database = self.folder / 'kiln.db'
        self.set('database', connection=f'sqlite://{self.database}?mode=rwc')
        (self.folder / 'kiln.conf').write_text(''.join(
            f'[{section}]\n' + ''.join(f'{name} = {value}\n' for name, value in options.items() if value is not None)
            for section, options in self.sections.items()))
        self.start_service()
        self.wait_for('kiln', self.port, self.cfn_port)

    def start_service(self):
        self.start('kiln', 'serve', '--log-format', 'json', '--config-file', 'kiln.conf')

    def __exit__(self, kind, error, trace):
        if failed or error:
            lines = self.log('kiln').splitlines()
            print('\n'.join([line for line in lines if '"INFO"' not in line][-30:]))
        self.stop()

    def stop(self):
        for process in reversed(self.running):
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def processor_seconds(self):
        """What the service, which was started last, has had of the processor."""
        fields = pathlib.Path(f'/proc/{self.running[-1].pid}/stat').read_text().rpartition(')')[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')

    def log(self, name):
        return (self.folder / f'{name}.log').read_text()

    def start(self, name, *args):
        """Starts Kiln; its output is in a file."""
        with open(self.folder / f'{name}.log', 'w') as log:
            process = subprocess.Popen([KILN, *map(str, args)], stdout=log, stderr=subprocess.STDOUT, cwd=self.folder)
        self.running.append(process)

    def wait_for(self, name, *ports):
        """Waits until the process that was started last listens on its ports."""
        deadline, process = time.monotonic() + 60, self.running[-1]
        for port in ports:
            while not listens(port):
                if process.poll() is not None or time.monotonic() > deadline:
                    sys.exit(f'{name} did not start:\n{self.log(name)}')
                time.sleep(0.05)

    def environment(self, user='demo', **more):
        """The variables of the clients."""
        kept = {key: value for key, value in os.environ.items() if not key.startswith('OS_')}
        return {**kept, 'OS_AUTH_URL': self.auth, 'OS_USERNAME': user, 'OS_PASSWORD': 'password',
                'OS_PROJECT_NAME': user, 'OS_USER_DOMAIN_ID': 'default', 'OS_PROJECT_DOMAIN_ID': 'default',
                'OS_IDENTITY_API_VERSION': '3', 'OS_REGION_NAME': 'RegionOne', **more}

    def keystone(self, user='demo'):
        return request.Keystone(self.auth, user)

    def token(self, user='demo'):
        """A token and the ID of its project."""
        one = self.keystone(user)
        return one.token, one.project
