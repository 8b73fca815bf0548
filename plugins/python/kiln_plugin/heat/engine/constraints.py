"""Stand-in of heat.engine.constraints: what Kiln checks, in the form of a definition."""
from kiln_plugin.heat.errors import refusing

__getattr__ = refusing('heat.engine.constraints')


class Constraint:
    """A constraint; `key` and `defined` are those of a definition of Kiln."""

    key = None

    def __init__(self, description=None):
        self.description = description

    def defined(self):
        raise NotImplementedError


class Range(Constraint):
    """Limits of a number."""

    key = 'range'

    def __init__(self, min=None, max=None, description=None):
        super().__init__(description)
        self.min, self.max = min, max

    def defined(self):
        return {name: limit for name, limit in (('min', self.min), ('max', self.max)) if limit is not None}


class Length(Range):
    """Limits of the length of a string, list or map."""

    key = 'length'


class Modulo(Constraint):
    """A multiple of a step after an offset."""

    key = 'modulo'

    def __init__(self, step=None, offset=None, description=None):
        super().__init__(description)
        self.step, self.offset = step, offset

    def defined(self):
        return {'step': self.step, 'offset': self.offset}


class AllowedValues(Constraint):
    """One of some values."""

    key = 'allowed'

    def __init__(self, allowed, description=None):
        super().__init__(description)
        self.allowed = tuple(allowed)

    def defined(self):
        return list(self.allowed)


class AllowedPattern(Constraint):
    """A regular expression."""

    key = 'pattern'

    def __init__(self, pattern, description=None):
        super().__init__(description)
        self.pattern = pattern

    def defined(self):
        return self.pattern


class CustomConstraint(Constraint):
    """A named constraint."""

    key = 'is'

    def __init__(self, name, description=None, environment=None):
        super().__init__(description)
        self.name = name

    def defined(self):
        return self.name


class BaseCustomConstraint:
    """The base of a named constraint: `validate(value, context)`, or `validate_with_client(clients, value)`."""

    expected_exceptions = (Exception,)
    _error_message = None

    def error(self, value):
        return self._error_message

    def validate(self, value, context):
        try:
            self.validate_with_client(context.clients, value)
        except self.expected_exceptions as error:
            self._error_message = str(error)
            return False
        return True

    def validate_with_client(self, client, value):
        raise NotImplementedError(f'{type(self).__name__} has no validate_with_client')
