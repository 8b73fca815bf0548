"""A server with the agents from PyPI, in a folder of this machine (for agents.py)."""
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TARGET = pathlib.Path(os.environ.get('CARGO_TARGET_DIR', ROOT / 'target'))
VENV = TARGET / 'agents'
HOOKS = VENV / 'heat-agents'
# heat-config-notify needs version 1 of Zaqar's API, which later clients do not have.
PACKAGES = ['os-collect-config', 'os-apply-config', 'os-refresh-config', 'heat-cfntools', 'python-heatclient',
            'python-zaqarclient<3', 'setuptools<81']


def install():
    if not (VENV / 'bin/os-collect-config').exists():
        subprocess.run([sys.executable, '-m', 'venv', str(VENV)], check=True)
        subprocess.run([str(VENV / 'bin/pip'), 'install', '-q', *PACKAGES], check=True)
    if not HOOKS.exists():
        with tempfile.TemporaryDirectory() as folder:
            # Only the source distribution contains the hooks.
            command = [str(VENV / 'bin/pip'), 'download', '-q', '--no-deps', '--no-binary', 'heat-agents', '-d', folder]
            subprocess.run([*command, 'heat-agents'], check=True)
            archive = next(pathlib.Path(folder).glob('*.tar.gz'))
            with tarfile.open(archive) as tar:
                tar.extractall(folder)
            shutil.copytree(next(path for path in pathlib.Path(folder).iterdir() if path.is_dir()), HOOKS)


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
        script += (f'mount -t overlay overlay -o lowerdir=/{top},upperdir={upper}/{top}/upper,workdir={upper}/{top}/work'
                   f' /{top} && ')
    return subprocess.run(['unshare', '-m', 'sh', '-c', script + 'exec "$@"', 'sh', *map(str, command)], env=env,
                          capture_output=True, text=True, timeout=120)


class Server:
    """A server with the agents, in a folder."""

    def __init__(self, folder, collect):
        self.folder = folder
        self.root = folder / 'root'
        for name in ('root/etc', 'root/var/run/heat-config', 'hooks', 'refresh/configure.d', 'cache', 'backup'):
            (folder / name).mkdir(parents=True)
        shutil.copytree(HOOKS / 'heat-config/os-apply-config', folder / 'templates')
        for hook in ('script', 'json-file', 'apply-config', 'cfn-init'):
            self.program(f'hooks/{hook}', (HOOKS / f'heat-config-{hook}/install.d/hook-{hook}.py').read_text())
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

    def program(self, name, text):
        (self.folder / name).write_text(text.replace('#!/usr/bin/env python3', f'#!{VENV}/bin/python3'))
        (self.folder / name).chmod(0o755)

    def env(self):
        folder = self.folder
        return {
            'PATH': f'{VENV}/bin:/usr/bin:/bin:/usr/sbin:/sbin', 'HOME': str(folder), 'LC_ALL': 'C', 'PYTHONUTF8': '1',
            'OS_CONFIG_APPLIER_TEMPLATES': f'{folder}/templates', 'OS_REFRESH_CONFIG_BASE_DIR': f'{folder}/refresh',
            'HEAT_CONFIG_HOOKS': f'{folder}/hooks', 'HEAT_CONFIG_DEPLOYED': f'{folder}/deployed',
            'HEAT_SHELL_CONFIG': f'{self.root}/var/run/heat-config/heat-config', 'HEAT_CONFIG_NOTIFY': f'{folder}/notify',
            'HEAT_SCRIPT_WORKING': f'{folder}/working', 'HEAT_SCRIPT_OUTPUTS': f'{folder}/outputs',
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
