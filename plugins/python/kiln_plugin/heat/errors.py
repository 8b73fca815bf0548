"""What the stand-ins do not cover."""


class NotCovered(AttributeError):
    """Something of Heat that there is no stand-in for."""

    def __init__(self, what):
        super().__init__(f'kiln_plugin.heat does not cover {what}')


def refusing(module):
    """A `__getattr__` of a stand-in module for what it does not have."""
    def refuse(name):
        # Names with underscores are asked for by Python itself.
        raise AttributeError(name) if name.startswith('__') else NotCovered(f'{module}.{name}')
    return refuse
