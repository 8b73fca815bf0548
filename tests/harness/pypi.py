"""Packages from PyPI in virtual environments in the target folder, which are made once."""
import fcntl
import os
import pathlib
import shutil
import subprocess
import sys

from harness.checks import skip

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TARGET = pathlib.Path(os.environ.get('CARGO_TARGET_DIR', ROOT / 'target')).resolve()
CLIENTS = TARGET / 'clients'
# The newest clients of OpenStack, in the environment `openstack`.
OPENSTACK = ('python-openstackclient', 'python-heatclient', 'openstacksdk')


def install(name, *packages):
    """The folder of a virtual environment with packages. Another script may want the same at the same time."""
    folder = CLIENTS / name
    CLIENTS.mkdir(parents=True, exist_ok=True)
    marker, wanted = folder / 'installed', ' '.join(packages)
    with open(CLIENTS / f'{name}.lock', 'w') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not marker.exists() or marker.read_text() != wanted:
            shutil.rmtree(folder, ignore_errors=True)
            subprocess.run(['/usr/bin/env', 'python3', '-m', 'venv', str(folder)], check=True)
            if subprocess.run([str(folder / 'bin/pip'), 'install', '-q', *packages]).returncode != 0:
                skip(f'pip cannot install {wanted}')
            marker.write_text(wanted)
    return folder


def openstack_client():
    """The path of the `openstack` command."""
    return str(install('openstack', *OPENSTACK) / 'bin/openstack')


def virtual_environment(name, *packages):
    """Restarts the script in a virtual environment with packages."""
    if pathlib.Path(sys.prefix).resolve() == (CLIENTS / name).resolve():
        return
    python = str(install(name, *packages) / 'bin/python3')
    os.execv(python, [python, *sys.argv])
