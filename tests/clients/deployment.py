"""A Kiln to test clients with: the simulated cloud and a service on free ports, in a temporary folder.

    with deployment.Deployment() as kiln:
        kiln.url, kiln.auth, kiln.environment
    deployment.finish()

The binary is the first argument of the script (default: target/debug/kiln). Clients from PyPI are installed in virtual
environments in the target folder.
"""
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import traceback
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TARGET = pathlib.Path(os.environ.get('CARGO_TARGET_DIR', ROOT / 'target')).resolve()
CLIENTS = TARGET / 'clients'
KILN = str(pathlib.Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else TARGET / 'debug/kiln')

passed, failed = 0, []


def check(what, good, detail=''):
    global passed
    if good:
        passed += 1
    else:
        failed.append(what)
        print(f'FAILED {what}: {detail}', flush=True)
    return good


def equal(what, got, expected):
    return check(what, got == expected, f'{got!r} instead of {expected!r}')


def case(function, *arguments):
    """Runs a part of a script; an exception is a failed check."""
    try:
        return function(*arguments)
    except Exception as error:
        line = traceback.extract_tb(error.__traceback__)[1].lineno
        check(f'{function.__name__}, line {line}', False, f'{type(error).__name__}: {error}')


def until(read, good, seconds=60):
    """Reads until the result is good, and returns the last one."""
    deadline = time.monotonic() + seconds
    while not good(result := read()) and time.monotonic() < deadline:
        time.sleep(0.2)
    return result


def program(what, command, **options):
    """Runs a program that prints `FAILED what: detail` and, at the end, `N passed, N failed`, as scripts here do."""
    global passed
    ran = subprocess.run(command, capture_output=True, text=True, timeout=280, **options)
    lines = ran.stdout.splitlines()
    counted = lines and re.fullmatch(r'(\d+) passed, (\d+) failed', lines[-1])
    if not counted:
        return check(what, False, f'exit {ran.returncode}: {ran.stdout[-3000:]}{ran.stderr[-3000:]}')
    passed += int(counted.group(1))
    for line in lines[:-1]:
        if line.startswith('FAILED '):
            failed.append(line)
        print(f'{what}: {line}', flush=True)
    return check(f'{what} ends well', len(ran.stdout) > 0 and (ran.returncode == 0) == (counted.group(2) == '0'), ran.stderr[-3000:])


def skip(reason):
    """Ends a script whose client cannot be installed."""
    print(f'skipped: {reason}\n0 passed, 0 failed')
    sys.exit(77)


def finish():
    print(f'{passed} passed, {len(failed)} failed')
    sys.exit(bool(failed))


def install(name, *packages):
    """A virtual environment with packages from PyPI; it is made once."""
    folder = CLIENTS / name
    marker, wanted = folder / 'installed', ' '.join(packages)
    if not marker.exists() or marker.read_text() != wanted:
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run(['/usr/bin/env', 'python3', '-m', 'venv', str(folder)], check=True)
        if subprocess.run([str(folder / 'bin/pip'), 'install', '-q', *packages]).returncode != 0:
            skip(f'pip cannot install {wanted}')
        marker.write_text(wanted)
    return folder


def virtual_environment(name, *packages):
    """Restarts the script in a virtual environment with packages from PyPI."""
    if pathlib.Path(sys.prefix).resolve() == (CLIENTS / name).resolve():
        return
    folder = install(name, *packages)
    os.execv(folder / 'bin/python3', [str(folder / 'bin/python3'), *sys.argv])


def free_port():
    with socket.socket() as listener:
        listener.bind(('127.0.0.1', 0))
        return listener.getsockname()[1]


class Deployment:
    """A simulated cloud and `kiln serve`, which is in its catalog."""

    def __init__(self, options='', sections='', catalog=True):
        """`options`: lines of [DEFAULT]; `sections`: other sections of the configuration."""
        self.options, self.sections, self.catalog = options, sections, catalog
        self.running = []

    def __enter__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix='kiln-clients-'))
        try:
            self.launch()
        except BaseException:
            self.stop()
            raise
        return self

    def launch(self):
        port, cfn = free_port(), free_port()
        self.url = f'http://127.0.0.1:{port}/v1'
        entry = ['--orchestration', f'http://127.0.0.1:{port}'] if self.catalog else []
        log = self.start('cloud', ['testcloud', '--port', '0', '--build-time', '0.3', *entry])
        auth = self.wait_for('cloud', r'OS_AUTH_URL=(\S+)').rstrip('/')
        self.auth = auth if auth.endswith('/v3') else auth + '/v3'
        self.database = self.folder / 'kiln.db'
        (self.folder / 'kiln.conf').write_text(
            f'[database]\nconnection = sqlite://{self.database}?mode=rwc\n'
            '[DEFAULT]\nauth_encryption_key = 0123456789abcdef0123456789abcdef\n'
            'stack_user_domain_id = heat\nstack_domain_admin = heat_domain_admin\n'
            'stack_domain_admin_password = password\nenable_stack_adopt = true\nenable_stack_abandon = true\n'
            f'heat_waitcondition_server_url = http://127.0.0.1:{cfn}/v1/waitcondition\n{self.options}'
            f'[keystone_authtoken]\nauth_url = {self.auth}\nusername = heat\npassword = password\n'
            f'project_name = service\n[heat_api]\nbind_host = 127.0.0.1\nbind_port = {port}\n'
            f'[heat_api_cfn]\nbind_port = {cfn}\n{self.sections}')
        self.start('kiln', ['serve', '--log-format', 'json', '--config-file', 'kiln.conf'])
        self.wait_for('kiln', f'(127.0.0.1:{port})')
        return log

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

    def log(self, name):
        return (self.folder / f'{name}.log').read_text()

    def start(self, name, args):
        """Starts a process; its output is in a file."""
        with open(self.folder / f'{name}.log', 'w') as log:
            process = subprocess.Popen([KILN, *args], stdout=log, stderr=subprocess.STDOUT, cwd=self.folder)
        self.running.append(process)
        return process

    def wait_for(self, name, pattern):
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            found = re.search(pattern, self.log(name))
            if found:
                return found.group(1)
            if self.running[-1].poll() is not None:
                break
            time.sleep(0.05)
        sys.exit(f'{name} did not start:\n{self.log(name)}')

    def environment(self, user='demo', **more):
        """The variables of the clients."""
        kept = {key: value for key, value in os.environ.items() if not key.startswith('OS_')}
        return {**kept, 'OS_AUTH_URL': self.auth, 'OS_USERNAME': user, 'OS_PASSWORD': 'password',
                'OS_PROJECT_NAME': user, 'OS_USER_DOMAIN_ID': 'default', 'OS_PROJECT_DOMAIN_ID': 'default',
                'OS_IDENTITY_API_VERSION': '3', 'OS_REGION_NAME': 'RegionOne', **more}

    def token(self, user='demo'):
        """A token and the ID of its project."""
        domain = {'id': 'default'}
        identity = {'methods': ['password'],
                    'password': {'user': {'name': user, 'password': 'password', 'domain': domain}}}
        scope = {'project': {'name': user, 'domain': domain}}
        status, headers, body = self.call('POST', f'{self.auth}/auth/tokens',
                                          {'auth': {'identity': identity, 'scope': scope}})
        if status != 201:
            sys.exit(f'no token: {status} {body}')
        return headers['X-Subject-Token'], body['token']['project']['id']

    def call(self, method, url, body=None, token=None, **headers):
        """A request; returns status, headers and the body, which is a text if it is not JSON."""
        headers = {'Content-Type': 'application/json', 'Accept': 'application/json', **headers}
        if token:
            headers['X-Auth-Token'] = token
        data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        request = urllib.request.Request(url, data, headers, method=method)
        try:
            answer = urllib.request.build_opener(NoRedirect).open(request, timeout=60)
        except urllib.error.HTTPError as error:
            answer = error
        text = answer.read().decode()
        try:
            return answer.status, answer.headers, json.loads(text)
        except ValueError:
            return answer.status, answer.headers, text


class NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None
