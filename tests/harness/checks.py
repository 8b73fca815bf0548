"""Checks that are counted. A failed check is printed at once; `finish` prints the counts and ends the script."""
import re
import subprocess
import sys
import time
import traceback
import urllib.error

# Names of checks. Threads may append to them.
passed, failed = [], []


def check(what, good, detail=''):
    (passed if good else failed).append(what)
    if not good:
        print(f'FAILED {what}: {detail}', flush=True)
    return good


def equal(what, got, expected):
    return check(what, got == expected, f'{got!r} instead of {expected!r}')


def case(function, *arguments, name=None):
    """Runs a part of a script; an exception is a failed check."""
    try:
        return function(*arguments)
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)
        body = error.read().decode() if isinstance(error, urllib.error.HTTPError) else ''
        lines = ' < '.join(f'{frame.name}:{frame.lineno}' for frame in reversed(where[-3:]))
        check(f'{name or function.__name__}, line {where[1 if len(where) > 1 else 0].lineno}', False,
              f'{type(error).__name__}: {error} {body} ({lines})')


def until(read, good, seconds=60, pause=0.2):
    """Reads until the result is good, and returns the last one."""
    deadline = time.monotonic() + seconds
    while not good(result := read()) and time.monotonic() < deadline:
        time.sleep(pause)
    return result


def program(what, command, **options):
    """Runs a program that prints `FAILED what: detail` and, at the end, `N passed, N failed`, as scripts here do."""
    ran = subprocess.run(command, capture_output=True, text=True, timeout=280, **options)
    lines = ran.stdout.splitlines()
    counted = lines and re.fullmatch(r'(\d+) passed, (\d+) failed', lines[-1])
    if not counted:
        return check(what, False, f'exit {ran.returncode}: {ran.stdout[-3000:]}{ran.stderr[-3000:]}')
    count(what, int(counted.group(1)))
    for line in lines[:-1]:
        if line.startswith('FAILED '):
            failed.append(line)
        print(f'{what}: {line}', flush=True)
    good = len(ran.stdout) > 0 and (ran.returncode == 0) == (counted.group(2) == '0')
    return check(f'{what} ends well', good, ran.stderr[-3000:])


def count(what, checks):
    """Counts checks that another program has made."""
    passed.extend([what] * checks)


def skip(reason):
    """Ends a script whose client cannot be installed."""
    print(f'skipped: {reason}\n0 passed, 0 failed')
    sys.exit(77)


def finish():
    print(f'{len(passed)} passed, {len(failed)} failed')
    sys.exit(bool(failed))
