#!/usr/bin/env python3
"""Runs the commands of the manual that are not commands of `kiln`, and compares what the README shows: tests/book.py KILN

Blocks are read from the pages: `crates/kiln/tests/kiln/blocks.rs` has the list of blocks that are run here. Replaced are only
addresses, names of files, and numbers that would take hours. Needs a Rust toolchain, npm, curl and promtool (Debian's package
prometheus). With a KILN of another profile than release, cargo uses that profile; the simulation
always runs in that of the tests. Prints one line a page, and `N passed, N failed`.
"""
import os
import pathlib
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.parse
import zipfile

sys.path.append(str(pathlib.Path(__file__).resolve().parent))
from harness import request  # noqa: E402
from harness.checks import case, check, equal, finish, until  # noqa: E402
from harness.deployment import KILN, Deployment  # noqa: E402
from harness.pypi import ROOT, TARGET, openstack_client  # noqa: E402

IS_RELEASE = pathlib.Path(KILN).parent.name == 'release'


def block(page, begin):
    """The block of a page that begins with a text: between fences, or indented."""
    text = (ROOT / page).read_text()
    found = re.findall(r'^```\w*\n(.*?)^```', text, re.M | re.S)
    found += [re.sub('^    ', '', part, flags=re.M) for part in re.findall(r'(?:^    .*\n)+', text, re.M)]
    [only] = [part for part in found if part.startswith(begin)]
    return only


def lines(page, begin):
    return [line for line in block(page, begin).splitlines() if line.strip()]


def shell(line, folder, ok=(0,), **variables):
    ran = subprocess.run(['sh', '-c', line], cwd=folder, capture_output=True, text=True, env={**os.environ, **variables})
    check(line, ran.returncode in ok, f'exit {ran.returncode}: {ran.stdout[-1500:]}{ran.stderr[-1500:]}')
    return ran.stdout


def cargo(line):
    """A command of cargo, with the profile of the binary that is there already."""
    return line if IS_RELEASE else line.replace(' --release', '')


class Terminal:
    """A command in a terminal that is wide enough for its progress."""

    def __init__(self, line):
        self.text = ''
        self.child, self.screen = pty.fork()
        if self.child == 0:
            os.chdir(ROOT)
            os.environ.update(TERM='xterm-256color', COLUMNS='160', LINES='50')
            os.execvp('sh', ['sh', '-c', f'stty rows 50 cols 160; exec {line}'])

    def read_until(self, pattern, seconds):
        """Reads until a pattern is in the text; without it, what came until then."""
        end = time.monotonic() + seconds
        while not re.search(pattern, self.text) and time.monotonic() < end:
            if not select.select([self.screen], [], [], 1)[0]:
                continue
            try:
                more = os.read(self.screen, 65536).decode(errors='replace')
            except OSError:   # the command has ended
                break
            self.text += re.sub(r'\x1b\[[0-9;?]*[A-Za-z]', '', more).replace('\r', '')
        return self.text

    def interrupt(self):
        """Ctrl-C; the exit code."""
        os.kill(self.child, signal.SIGINT)
        end = time.monotonic() + 20
        while time.monotonic() < end:
            pid, status = os.waitpid(self.child, os.WNOHANG)
            if pid:
                os.close(self.screen)
                return os.waitstatus_to_exitcode(status)
            if select.select([self.screen], [], [], 0.1)[0]:
                try:
                    os.read(self.screen, 65536)
                except OSError:
                    time.sleep(0.1)
        os.kill(self.child, signal.SIGKILL)
        return os.waitstatus_to_exitcode(os.waitpid(self.child, 0)[1])


def recorded():
    """The rows of resources in the last frame of the recorded picture: branch, name, type, state."""
    picture = (ROOT / 'docs/create.svg').read_text()
    rows = dict(re.findall(r'<text id="(r\d+)">(.*)</text>', picture))
    last = re.findall(r'<g transform="translate\(\d+\)">(.*)</g>', picture)[-1]
    _, *resources = re.findall(r'#(r\d+)', last)
    found = [re.findall(r'>([^<]+)</tspan>', rows[name]) for name in resources]
    equal('the recorded resources', len(found), 14)
    return [(words[0], *words[2:5]) for words in found]


def demo():
    """`cargo run --release -- demo`, what the README shows of it, and the commands that it prints."""
    page = 'README.md'
    [command] = lines(page, 'cargo run --release -- demo')
    terminal = Terminal(cargo(command))
    try:
        text = terminal.read_until(r'Press Ctrl-C to stop', 1800)
        if not check('the demo runs', 'Press Ctrl-C to stop' in text, text[-2000:]):
            return
        for branch, name, kind, state in recorded():
            form = rf'{branch} \S {name} +{kind} +{state}'
            check(f'the progress has {name} {state}', re.search(form, text), form)
        for line in lines(page, 'Outputs:'):
            form = re.sub(r'[0-9a-f]{8}-[-0-9a-f]{27}', '[-0-9a-f]{36}', re.escape(line).replace(r'\-', '-'))
            check(f'the demo prints {line.strip()}', line.strip() == '…' or re.search(form, text), form)
        last = text[text.index('Kiln is still running'):]
        commands = re.findall(r'^  ((?:export|kiln|openstack|curl) .*)$', last, re.M)
        check('the demo prints commands', len(commands) == 8, last)
        exports = '; '.join(line for line in commands if line.startswith('export'))
        path = f'{pathlib.Path(openstack_client()).parent}:{pathlib.Path(KILN).resolve().parent}:{os.environ["PATH"]}'
        for line in commands:
            if not line.startswith('export'):
                said = shell(f'{exports}; {line}', ROOT, PATH=path)
                check(f'{line[:40]} shows something', re.search('three-tier|CREATE_COMPLETE|ACTIVE', said), said)
    finally:
        code = terminal.interrupt()
    check('Ctrl-C ends the demo', code in (0, 130), code)
    print(f'{page}: the demo, {len(commands)} commands that it prints')


def upload():
    """The requests that send a package."""
    page = 'docs/topology.md'
    with Deployment() as kiln:
        with zipfile.ZipFile(kiln.folder / 'app.csar', 'w') as package:
            package.writestr('TOSCA-Metadata/TOSCA.meta', 'TOSCA-Meta-File-Version: 1.0\nCSAR-Version: 1.1\n'
                             'Created-By: test\nEntry-Definitions: app.yaml\n')
            package.write(ROOT / 'examples/tosca.yaml', 'app.yaml')
        keystone = request.Keystone(kiln.auth, 'demo')
        stacks = f'{kiln.url}/{keystone.project}/stacks'

        def settled(state):
            found = until(lambda: request.call('GET', f'{stacks}?show_deleted=true', token=keystone.token)[2]['stacks'],
                          lambda found: found and found[0]['stack_status'] == state)
            check(f'{page}: {state}', found and found[0]['stack_status'] == state, found)
            return f"{stacks}/web/{found[0]['id']}"

        [command] = lines(page, 'curl -F template=@app.csar')
        command = command.replace('…/v1/{project}/stacks', stacks).replace('curl ', 'curl -sSf -H "X-Auth-Token: $TOKEN" ')
        shell(command, kiln.folder, TOKEN=keystone.token)
        made = settled('CREATE_COMPLETE')
        original = request.send('GET', f'{made}/original', token=keystone.token).read()
        equal(f'{page}: the original', original, (kiln.folder / 'app.csar').read_bytes())
        request.send('DELETE', made, token=keystone.token)
        settled('DELETE_COMPLETE')
        head, *fields = lines(page, 'POST /v1/{project}/stacks')
        method, path = head.split(' ', 1)
        target, query = path.replace('/v1/{project}/stacks', stacks).split('?')
        query = '&'.join(urllib.parse.quote(part, safe='=') for part in query.split('&'))
        headers = dict(field.split(': ', 1) for field in fields)
        status, _, body = request.call(method, f'{target}?{query}', original, keystone.token, **headers)
        equal(f'{page}: {head}', (status, list(body)), (201, ['stack']))
    print(f'{page}: uploads')


def simulation():
    page = 'docs/simulation.md'
    with tempfile.TemporaryDirectory() as work:
        file = pathlib.Path(work) / 'scenario.json'
        for line in lines(page, 'cargo sim'):
            command = line.split('  #')[0].strip().replace('FILE', str(file))
            # With sabotage, there are as many runs as defects.
            # The tests of the simulation run many seeds; here the commands are tested, with an unoptimized program.
            command = re.sub(r'\b0\.\.(\d+)', '0..2' if 'sabotage' in command else '0..20', command)
            # In the profile of the tests; they have built it, if they ran.
            built = TARGET / 'debug/sim'
            command = command.replace('cargo sim', str(built) if built.exists() else 'cargo run -q --locked -p kiln-sim --')
            # In few seeds not every defect is found: exit 1.
            said = shell(command, ROOT, ok=(0, 1) if command.endswith('--sabotage all') else (0,))
            if command.endswith('--sabotage all'):
                found = re.search(r'^(\d+) found, ', said, re.M)
                check('defects are found', found and int(found.group(1)) >= 5, said)
            if command.endswith('--show'):
                file.write_text(said)
    print(f'{page}: commands of the simulation')


def scrape():
    page = 'docs/monitoring/README.md'
    with tempfile.TemporaryDirectory() as work:
        (pathlib.Path(work) / 'prometheus.yml').write_text(block(page, 'scrape_configs:'))
        shell('promtool check config prometheus.yml', work)
    print(f'{page}: the configuration of Prometheus')


def editor():
    """The extension for VS Code is packaged. VS Code is not in Debian: a stand-in reads the package."""
    page = 'editors/README.md'
    with tempfile.TemporaryDirectory() as work:
        work = pathlib.Path(work)
        shutil.copytree(ROOT / 'editors/vscode', work / 'editors/vscode', ignore=shutil.ignore_patterns('node_modules', '*.vsix'))
        shutil.copy(ROOT / 'LICENSE', work)
        code = work / 'bin/code'
        code.parent.mkdir()
        code.write_text('#!/bin/sh\n[ "$1" = --install-extension ] && python3 -m zipfile -l "$2" | grep -q extension/package.json\n')
        code.chmod(0o755)
        shell('set -e\n' + block(page, 'cd editors/vscode'), work, PATH=f'{code.parent}:{os.environ["PATH"]}')
    print(f'{page}: the extension for VS Code')


for part in [scrape, upload, demo, simulation, editor]:
    case(part)
finish()
