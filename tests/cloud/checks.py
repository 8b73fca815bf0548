"""Checks that are counted (for agents.py). A failed check is printed at once."""
passed, failed = [], []


def check(what, good, detail=''):
    (passed if good else failed).append(what)
    if not good:
        print(f'FAILED {what}: {detail}', flush=True)
    return good


def equal(what, got, expected):
    return check(what, got == expected, f'{got!r} instead of {expected!r}')
