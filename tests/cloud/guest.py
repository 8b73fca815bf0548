"""A server with the agents from PyPI, in a folder of this machine (for agents.py)."""
import pathlib
import shutil
import subprocess
import tarfile
import tempfile
import time

from harness.pypi import install

# heat-config-notify needs version 1 of Zaqar's API, which later clients do not have.
VENV = install('agents', 'os-collect-config', 'os-apply-config', 'os-refresh-config', 'heat-cfntools',
               'python-heatclient', 'python-zaqarclient<3', 'setuptools<81')
# What the hooks call, and Aodh: salt fixes the versions of many packages that the agents have too.
TOOLS = install('agents-tools', 'ansible-core', 'salt', 'aodh', 'python-heatclient')


def hooks_of_agents():
    """The folder with the hooks of heat-agents."""
    unpacked = VENV / 'heat-agents'
    if not unpacked.exists():
        # On the same file system, so that it appears as a whole: another script may do the same now.
        with tempfile.TemporaryDirectory(dir=VENV) as folder:
            # Only the source distribution contains the hooks.
            command = [str(VENV / 'bin/pip'), 'download', '-q', '--no-deps', '--no-binary', 'heat-agents']
            subprocess.run([*command, '-d', folder, 'heat-agents'], check=True)
            archive = next(pathlib.Path(folder).glob('*.tar.gz'))
            with tarfile.open(archive) as tar:
                tar.extractall(folder)
            try:
                next(path for path in pathlib.Path(folder).iterdir() if path.is_dir()).rename(unpacked)
            except OSError:
                assert unpacked.exists()
    return unpacked


HOOKS = hooks_of_agents()
# The folders with fixed paths that the tools write to.
FIXED = ['/etc/cfn', '/var/lib/heat-cfntools', '/var/cache/heat-cfntools', '/var/log']


def isolated(folder, command, env=None):
    """Runs a command that sees folders of the server in the place of the fixed paths."""
    script, upper = '', folder / 'fixed'
    for top in ('etc', 'var'):
        for kind in ('upper', 'work'):
            (upper / top / kind).mkdir(parents=True, exist_ok=True)
        for path in FIXED:
            if path.startswith(f'/{top}/'):
                (upper / top / 'upper' / path.removeprefix(f'/{top}/')).mkdir(parents=True, exist_ok=True)
        script += (f'mount -t overlay overlay -o lowerdir=/{top},upperdir={upper}/{top}/upper,'
                   f'workdir={upper}/{top}/work /{top} && ')
    return subprocess.run(['unshare', '-m', 'sh', '-c', script + 'exec "$@"', 'sh', *map(str, command)], env=env,
                          capture_output=True, text=True, timeout=120)


# In the place of Docker, which needs a daemon: they report what the hooks ask for. The last argument of `docker run`,
# and the label `code` of a service, is the status.
NO_DAEMON = {
    'docker': '#!/bin/sh\n[ "$1" = run ] || exit 1\nfor last; do :; done\necho "$@" >&2\nexit "$last"\n',
    'docker-compose': '#!/bin/sh\ncat docker-compose.yml\n'
                      'exit $(sed -n "s/.*code: .\\([0-9]*\\).$/\\1/p" docker-compose.yml)\n',
}


class Server:
    """A server with the agents, in a folder."""

    def __init__(self, folder, collect):
        self.folder = folder
        self.root = folder / 'root'
        for name in ('root/etc', 'root/var/run/heat-config', 'hooks', 'refresh/configure.d', 'cache', 'backup'):
            (folder / name).mkdir(parents=True)
        shutil.copytree(HOOKS / 'heat-config/os-apply-config', folder / 'templates')
        for hook in ('script', 'json-file', 'apply-config', 'cfn-init', 'hiera', 'ansible', 'puppet', 'docker-cmd',
                     'docker-compose'):
            self.program(f'hooks/{hook}', (HOOKS / f'heat-config-{hook}/install.d/hook-{hook}.py').read_text())
        self.program('hooks/salt', (HOOKS / 'heat-config-salt/install.d/hook-salt.py').read_text(), TOOLS)
        (folder / 'minion').write_text(f'root_dir: {folder}/salt\nid: guest\nenable_fqdns_grains: false\n')
        for name in ('docker', 'docker-compose'):
            self.program(name, NO_DAEMON[name])
        # os-collect-config wants the locale C, and Ansible UTF-8.
        self.program('ansible', f'#!/bin/sh\nLC_ALL=C.UTF-8 exec {TOOLS}/bin/ansible-playbook "$@"\n')
        compose = HOOKS / 'heat-config-docker-compose/os-refresh-config/configure.d/50-heat-config-docker-compose'
        self.program('refresh/configure.d/50-heat-config-docker-compose', compose.read_text())
        apply = f'#!/bin/sh\nexec os-apply-config --output {self.root}\n'
        self.program('refresh/configure.d/20-os-apply-config', apply)
        configure = HOOKS / 'heat-config/os-refresh-config/configure.d/55-heat-config'
        self.program('refresh/configure.d/55-heat-config', configure.read_text())
        self.program('notify', (HOOKS / 'heat-config/bin/heat-config-notify').read_text())
        # What cloud-init or the operator gives the agent at first.
        lines = ['[DEFAULT]', 'command = os-refresh-config']
        lines += [f'collectors = {name}' for name in collect['collectors']]
        for name, section in collect.items():
            if isinstance(section, dict):
                lines += [f'[{name}]', *(f'{key} = {value}' for key, value in section.items() if value is not None)]
        self.config.write_text('\n'.join(lines) + '\n')
        self.first = self.config.read_text()

    @property
    def config(self):
        return self.root / 'etc/os-collect-config.conf'

    def program(self, name, text, venv=VENV):
        (self.folder / name).write_text(text.replace('#!/usr/bin/env python3', f'#!{venv}/bin/python3'))
        (self.folder / name).chmod(0o755)

    def env(self):
        folder = self.folder
        return {
            'PATH': f'{VENV}/bin:/usr/bin:/bin:/usr/sbin:/sbin', 'HOME': str(folder), 'LC_ALL': 'C', 'PYTHONUTF8': '1',
            'OS_CONFIG_APPLIER_TEMPLATES': f'{folder}/templates', 'OS_REFRESH_CONFIG_BASE_DIR': f'{folder}/refresh',
            'HEAT_CONFIG_HOOKS': f'{folder}/hooks', 'HEAT_CONFIG_DEPLOYED': f'{folder}/deployed',
            'HEAT_SHELL_CONFIG': f'{self.root}/var/run/heat-config/heat-config',
            'HEAT_CONFIG_NOTIFY': f'{folder}/notify',
            **{f'HEAT_{hook}_{kind}': f'{folder}/{hook.lower()}-{kind.lower()}'
               for hook in ('SCRIPT', 'ANSIBLE', 'PUPPET', 'SALT', 'DOCKER_COMPOSE')
               for kind in ('WORKING', 'OUTPUTS')},
            'HEAT_ANSIBLE_CMD': f'{folder}/ansible', 'SALT_MINION_CONFIG': f'{folder}/minion',
            'HEAT_PUPPET_LOGDIR': f'{folder}/puppet-log', 'HEAT_PUPPET_HIERA_DATADIR': f'{folder}/hieradata',
            'HEAT_HIERA_CONFIG': f'{folder}/hiera.yaml', 'HEAT_DOCKER_CMD': f'{folder}/docker',
            'HEAT_DOCKER_COMPOSE_CMD': f'{folder}/docker-compose',
        }

    def work(self):
        """One round of the agent."""
        command = [f'{VENV}/bin/os-collect-config', '--config-file', self.config, '--one-time',
                   '--cachedir', self.folder / 'cache', '--backup-cachedir', self.folder / 'backup',
                   '--command', f'os-refresh-config --lockfile {self.folder}/lock']
        ran = isolated(self.folder, command, self.env())
        with open(self.folder / 'agent.log', 'a') as log:
            log.write(ran.stdout + ran.stderr)

    def log(self):
        log = self.folder / 'agent.log'
        lines = log.read_text().splitlines() if log.exists() else ['no log']
        quiet = ('Unavailable', 'Skipping', 'dib-run-parts')
        return '\n'.join(line for line in lines if line and not any(word in line for word in quiet))[-3000:]


def agent_of(heat, folder, name):
    """The server of a stack, as soon as the agent can be started."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        collect = heat.outputs(name).get('collect') if heat.stack(name)['outputs'] else None
        if collect:
            return Server(folder / name, collect)
        time.sleep(0.3)
    stack = heat.stack(name)
    resources = heat.call('GET', f'/stacks/{name}/{stack["id"]}/resources')['resources']
    events = heat.call('GET', f'/stacks/{name}/{stack["id"]}/events')['events']
    raise RuntimeError(f'{name} has no server: {stack} {resources} {events}')
