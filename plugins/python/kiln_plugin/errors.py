"""Errors that a type reports to Kiln.

An error says that the call had no effect, except for the object whose `id` is set. After any other exception Kiln does
not know what the call did: it fails the resource, and a later delete calls `find`.
"""


class PluginError(Exception):
    """An error with a text for the user, the name of its class for the user, and seconds until a retry may succeed."""

    kind = 'failed'

    def __init__(self, message, class_name=None, retry_after=None):
        super().__init__(message)
        self.class_name = class_name
        self.retry_after = retry_after


class Failed(PluginError):
    """The operation failed. It is not repeated."""


class NotFound(PluginError):
    """The object does not exist."""

    kind = 'not_found'


class Conflict(PluginError):
    """The object does not permit it in its state. A create or delete is repeated a few times."""

    kind = 'conflict'


class Busy(PluginError):
    """The object is being changed. The call is repeated until the timeout of the stack."""

    kind = 'busy'


class OverLimit(PluginError):
    """Too many requests. The call is repeated later."""

    kind = 'over_limit'


class Refused(PluginError):
    """The properties are wrong, or the user may not do it."""

    kind = 'refused'


class Unauthorized(PluginError):
    """A service rejects the token. The call is repeated once with a new one."""

    kind = 'unauthorized'


class InError(PluginError):
    """The object is in an error state: it is deleted and created again a few times."""

    kind = 'in_error'


class Unavailable(PluginError):
    """The service did not answer. A create may have had an effect: Kiln calls `find` before it repeats it."""

    kind = 'unavailable'


class CannotTell(Exception):
    """`find` cannot tell whether the object exists."""
