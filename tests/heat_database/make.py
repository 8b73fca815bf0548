#!/usr/bin/env python3
"""Makes databases with the code of Heat itself, and writes their rows as JSON.

    crates/store/tests/databases.sh tests/heat_database/make.py DIRECTORY [RELEASE...]

Installs each release of Heat from PyPI with the packages of its time, lets it make the stacks of stacks.py on MariaDB, and writes
`DIRECTORY/releases/RELEASE-WAY.json.gz`, and for the newest release also `DIRECTORY/27-WAY.json` with fewer stacks:
`{table: {columns: {name: type}, rows: [[value, ...], ...]}}`, the form that crates/kiln/tests/kiln/take_over.rs reads.
An old release needs an old Python; without it, it is left out by name. `make.py --install VERSION` only installs a release, and
prints the folder of its virtual environment.
"""
import concurrent.futures
import contextlib
import gzip
import json
import os
import pathlib
import shutil
import subprocess
import sys
import urllib.parse

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))
from harness.pypi import CLIENTS, virtual_environment  # noqa: E402

virtual_environment('heat-database', 'uv', 'PyMySQL')

import pymysql  # noqa: E402

# The packages of a release are the newest of this day; PyPI does not change them afterwards.
RELEASES = {
    # version: (day, Python, more packages)
    '11.0.3': ('2020-07-01', '3.6', ()),
    '12.0.0': ('2019-05-15', '3.6', ()),
    '13.0.0': ('2019-10-25', '3.6', ()),
    '14.0.0': ('2020-06-01', '3.6', ()),
    '15.0.0': ('2020-11-01', '3.8', ()),
    '16.0.0': ('2021-05-01', '3.8', ('SQLAlchemy<1.4',)),
    '17.0.0': ('2021-11-01', '3.8', ('SQLAlchemy<1.4',)),
    '18.0.0': ('2022-04-15', '3.8', ()),
    '19.0.0': ('2022-10-20', '3.8', ()),
    '20.0.0': ('2023-04-10', '3.10', ('SQLAlchemy<2',)),
    '21.0.0': ('2023-10-20', '3.10', ('SQLAlchemy<2',)),
    '22.0.0': ('2024-04-20', '3.10', ()),
    '23.0.0': ('2024-10-20', '3.11', ()),
    '24.0.0': ('2025-04-20', '3.11', ()),
    '25.0.0': ('2025-10-20', '3.11', ()),
    '26.0.0': ('2026-05-01', '3.11', ()),
    '27.0.1': ('2026-11-01', '3.11', ()),
}
# All releases are filled the first way, some the second way too, and some in all ways.
WAYS = ('convergence-encrypted', 'legacy-encrypted', 'convergence', 'legacy')
NUMBER = {'13': 2, '16': 2, '19': 4, '23': 4, '27': 4}
SMALL = ('convergence', 'convergence-encrypted')


def installed(version):
    """The Python of the virtual environment of a release, or None without the Python that it needs."""
    day, python, more = RELEASES[version]
    folder = CLIENTS / f'heat-{version}'
    uv = str(pathlib.Path(sys.prefix) / 'bin/uv')
    pyenv = pathlib.Path(os.environ.get('PYENV_ROOT', pathlib.Path.home() / '.pyenv'))
    found = [*sorted(pyenv.glob(f'versions/{python}.*/bin/python')), *filter(None, [shutil.which(f'python{python}')])]
    if not found:
        return None
    if not (folder / 'ready').exists():
        subprocess.run([uv, 'venv', '-q', '--clear', '--python', str(found[0]), str(folder)], check=True)
        wanted = [f'openstack-heat=={version}', 'PyMySQL', 'setuptools<81', *more]
        command = [uv, 'pip', 'install', '-q', '--python', str(folder / 'bin/python'), '--exclude-newer', day, *wanted]
        subprocess.run(command, check=True)
        (folder / 'ready').touch()
    return str(folder / 'bin/python')


def rows(cursor):
    """All tables."""
    tables = {}
    cursor.execute('SHOW TABLES')
    for name, in cursor.fetchall():
        cursor.execute('SELECT column_name, data_type FROM information_schema.columns WHERE table_schema = DATABASE() AND '
                       f"table_name = '{name}' ORDER BY ordinal_position")
        columns = dict(cursor.fetchall())
        cursor.execute(f'SELECT * FROM `{name}` ORDER BY 1')
        found = cursor.fetchall()
        assert not any(isinstance(value, bytes) for row in found for value in row), f'{name} has bytes'
        found = [[value if isinstance(value, (int, str, type(None))) else str(value) for value in row] for row in found]
        tables[name] = {'columns': columns, 'rows': found}
    return tables


def run_stacks(python, *words):
    """Runs stacks.py with a release."""
    done = subprocess.run([python, str(HERE / 'stacks.py'), *words], capture_output=True, text=True, timeout=300)
    if done.returncode:
        raise RuntimeError(f'{python} stacks.py {" ".join(words)}:\n{done.stderr[-9000:]}')


def made(server, version, way):
    """The text of a database that a release has filled; None without the Python that it needs."""
    python = installed(version)
    if python is None:
        return None
    with server.database(f'{version}_{way}') as (cursor, database):
        run_stacks(python, database, way, 'a' * 32, 'make')
        return json.dumps(rows(cursor), separators=(',', ':')).replace('],[', '],\n[') + '\n'


class Server:
    """MariaDB."""

    def __init__(self):
        url = next(url for url in os.environ['KILN_TEST_DATABASES'].split() if url.startswith('mysql:'))
        self.where = urllib.parse.urlsplit(url)

    @contextlib.contextmanager
    def database(self, name):
        """A new database: a cursor, and its URL for SQLAlchemy."""
        name, where = f'heat_{name}'.replace('-', '_').replace('.', '_'), self.where
        with pymysql.connect(host=where.hostname, port=where.port, user=where.username, password=where.password or '',
                             autocommit=True) as connection, connection.cursor() as cursor:
            cursor.execute(f'CREATE DATABASE {name} CHARACTER SET utf8mb3')
            cursor.execute(f'USE {name}')
            try:
                yield cursor, where._replace(scheme='mysql+pymysql', path=f'/{name}', query='charset=utf8').geturl()
            finally:
                cursor.execute(f'DROP DATABASE {name}')


def main():
    if sys.argv[1:2] == ['--install']:
        python = installed(sys.argv[2])
        if python is None:
            sys.exit(f'Heat {sys.argv[2]} needs Python {RELEASES[sys.argv[2]][1]}')
        print(pathlib.Path(python).parent.parent)
        return
    folder, server = pathlib.Path(sys.argv[1]), Server()
    (folder / 'releases').mkdir(exist_ok=True)
    wanted = [version for version in RELEASES if version.split('.')[0] in (sys.argv[2:] or version.split('.')[0])]
    work = []
    for version in wanted:
        release = version.split('.')[0]
        ways = WAYS[:NUMBER.get(release, 1)]
        work += [(version, way, folder / f'releases/{release}-{way}.json.gz') for way in ways]
        work += [(version, f'small-{way}', folder / f'27-{way}.json') for way in SMALL if release == '27']
    for version in wanted:
        if installed(version) is None:
            print(f'left out: Heat {version} needs Python {RELEASES[version][1]}')
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        texts = pool.map(lambda item: made(server, *item[:2]), work)
        for (version, _, file), text in zip(work, texts):
            if text is not None:
                content = text.encode()
                file.write_bytes(gzip.compress(content, 9, mtime=0) if file.suffix == '.gz' else content)
                print(f'{file.name}: {file.stat().st_size} bytes', flush=True)


if __name__ == '__main__':
    main()
