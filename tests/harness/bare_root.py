"""Root file systems of Debian, with the sources of apt of this machine. As root, with mmdebstrap."""
import pathlib
import shutil
import subprocess

from .pypi import TARGET

# Made once; what a system has before anything is installed.
BASE = TARGET / 'bare-root.tar'


def bare_root(root, *packages):
    """Makes the folder `root` with a minimal Debian and these packages."""
    if not BASE.exists():
        made = BASE.with_suffix('.new.tar')   # tar: mmdebstrap goes by the end of the name
        run('mmdebstrap', '--variant=minbase', '--include=adduser', 'bookworm', made)
        made.rename(BASE)
    root.mkdir()
    run('tar', '--extract', '--numeric-owner', f'--file={BASE}', f'--directory={root}')
    for part in ['apt.conf.d', 'sources.list.d', 'sources.list']:
        source, place = pathlib.Path('/etc/apt') / part, root / 'etc/apt' / part
        if source.is_dir():
            shutil.copytree(source, place, dirs_exist_ok=True)
        elif source.exists():
            shutil.copy(source, place)
        else:
            place.unlink(missing_ok=True)
    if packages:
        shutil.copy('/etc/resolv.conf', root / 'etc/resolv.conf')
        run('chroot', root, 'apt-get', '-o', 'Acquire::Retries=3', 'update')
        run('chroot', root, 'apt-get', '-o', 'Acquire::Retries=3', '-qy', '--no-install-recommends', 'install', *packages)
        run('chroot', root, 'apt-get', 'clean')


def run(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f'{" ".join(map(str, command))}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}')
