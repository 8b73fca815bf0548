#!/usr/bin/env python3
"""Presses Tab in bash, zsh and fish with the scripts of `kiln completion`: tests/completion.py KILN

With the Debian packages zsh and fish. Each shell runs on a terminal of its own. Prints one line per failed check, and
`N passed, N failed`.
"""
import os
import pathlib
import pty
import select
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / 'tests'))
from harness.checks import check, finish  # noqa: E402

# What is typed before the key, and what the line becomes.
LINES = [('kiln stack cre', 'kiln stack create '), ('kiln stack list --os-clo', 'kiln stack list --os-cloud '),
         ('kiln template lint we', 'kiln template lint web.yaml'), ('kiln completion fi', 'kiln completion fish')]

# How a shell starts, with the script.
STARTS = {
    'bash': (['bash', '--norc', '--noprofile'], 'PS1="READY>"; bind "set enable-bracketed-paste off"; source {script}\n'),
    'zsh': (['zsh', '-f'], 'PS1="READY>"; fpath=({folder} $fpath); autoload -U compinit; compinit -u -D\n'),
    'fish': (['fish', '--no-config'], 'function fish_prompt; echo -n "READY>"; end; source {script}\n'),
}


def read(terminal, until, seconds=20):
    """What the shell writes, up to a text, or to the end of the time."""
    text, end = '', time.monotonic() + seconds
    while until not in text and time.monotonic() < end:
        if select.select([terminal], [], [], 0.2)[0]:
            text += os.read(terminal, 65536).decode(errors='replace')
    return text


def settled(terminal, quiet=2):
    """Waits until the shell has written nothing for a while."""
    while select.select([terminal], [], [], quiet)[0]:
        os.read(terminal, 65536)


def press(shell, folder, environment):
    command, start = STARTS[shell]
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(folder)
        os.execvpe(command[0], command, environment)
    try:
        os.write(terminal, start.format(script=folder / f'kiln.{shell}', folder=folder).encode())
        os.write(terminal, b"printf 'U%s\\n' P2\n")
        read(terminal, 'UP2')
        for typed, expected in LINES:
            # The line is printed by the shell itself after the key.
            os.write(terminal, f'{typed}\t'.encode())
            settled(terminal)
            os.write(terminal, b'\x01echo "LINE<\x05>"\n')
            text = read(terminal, 'LINE<kiln')
            check(f'{shell}: {typed}', f'LINE<{expected.rstrip()}' in text, text[-400:])
    finally:
        os.close(terminal)
        os.kill(child, 9)
        os.waitpid(child, 0)


def main():
    kiln = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / 'web.yaml').write_text('')
        environment = {'PATH': f'{kiln.parent}:{os.environ["PATH"]}', 'HOME': name, 'TERM': 'dumb', 'LANG': 'C.UTF-8'}
        for shell in STARTS:
            if not shutil.which(shell):
                check(shell, False, 'is not installed')
                continue
            script = subprocess.run([kiln, 'completion', shell], capture_output=True, check=True).stdout
            check(f'{shell}: size', len(script) < 100_000, len(script))
            (folder / f'kiln.{shell}').write_bytes(script)
            (folder / '_kiln').write_bytes(subprocess.run([kiln, 'completion', 'zsh'], capture_output=True).stdout)
            press(shell, folder, environment)
    finish()


main()
