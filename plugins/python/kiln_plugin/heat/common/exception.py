"""Stand-in of heat.common.exception: the errors that resources raise, with the texts that users of Heat see."""
from kiln_plugin.heat.errors import refusing

__getattr__ = refusing('heat.common.exception')


class HeatException(Exception):
    """An error whose text is `msg_fmt` with the arguments."""

    msg_fmt = 'An unknown exception occurred.'
    error_code = None

    def __init__(self, **arguments):
        self.kwargs = arguments
        try:
            self.message = self.msg_fmt % arguments
        except KeyError:
            self.message = self.msg_fmt
        if self.error_code:
            self.message = f'HEAT-E{self.error_code} {self.message}'
        super().__init__(self.message)

    def __str__(self):
        return self.message


def _error(name, text, base=HeatException):
    """A class of errors with this text."""
    return type(name, (base,), {'msg_fmt': text, '__module__': __name__})


Error = _error('Error', '%(message)s')
Invalid = _error('Invalid', 'Data supplied was not valid: %(reason)s')
InvalidSchemaError = _error('InvalidSchemaError', '%(message)s')
Forbidden = _error('Forbidden', 'You are not authorized to use %(action)s.')
AuthorizationFailure = _error('AuthorizationFailure', 'Authorization failed.%(failure_reason)s')
EntityNotFound = _error('EntityNotFound', 'The %(entity)s (%(name)s) could not be found.')
ResourceNotFound = _error(
    'ResourceNotFound', 'The Resource (%(resource_name)s) could not be found in Stack %(stack_name)s.', EntityNotFound)
PhysicalResourceNameAmbiguity = _error(
    'PhysicalResourceNameAmbiguity', 'Multiple physical resources were found with name (%(name)s).')
InvalidTemplateAttribute = _error(
    'InvalidTemplateAttribute', 'The Referenced Attribute (%(resource)s %(key)s) is incorrect.')
ResourceNotAvailable = _error('ResourceNotAvailable', 'The Resource (%(resource_name)s) is not available.')
ClientNotAvailable = _error('ClientNotAvailable', 'The client (%(client_name)s) is not available.')
NotSupported = _error('NotSupported', '%(feature)s is not supported.')
ResourceActionNotSupported = _error('ResourceActionNotSupported', '%(action)s is not supported for resource.')
ResourcePropertyConflict = _error(
    'ResourcePropertyConflict', 'Cannot define the following properties at the same time: %(props)s.')
ResourcePropertyDependency = _error('ResourcePropertyDependency', '%(prop1)s cannot be specified without %(prop2)s.')
ResourcePropertyValueDependency = _error(
    'ResourcePropertyValueDependency',
    '%(prop1)s property should only be specified for %(prop2)s with value %(value)s.')
PropertyUnspecifiedError = _error(
    'PropertyUnspecifiedError', 'At least one of the following properties must be specified: %(props)s.')
ResourceUnknownStatus = _error(
    'ResourceUnknownStatus', '%(result)s - Unknown status %(resource_status)s due to "%(status_reason)s"')
ResourceInError = _error('ResourceInError', 'Went to status %(resource_status)s due to "%(status_reason)s"')


def _joined(cls):
    """Errors that take the names of properties as arguments."""
    def begin(self, *names, **arguments):
        if names:
            arguments['props'] = ', '.join(names)
        HeatException.__init__(self, **arguments)
    cls.__init__ = begin


_joined(ResourcePropertyConflict)
_joined(PropertyUnspecifiedError)


def _status_defaults(cls, **defaults):
    def begin(self, **arguments):
        HeatException.__init__(self, **{**defaults, **arguments})
    cls.__init__ = begin


_status_defaults(ResourceInError, status_reason='Unknown')
_status_defaults(ResourceUnknownStatus, result='Resource failed', status_reason='Unknown')


class NotFound(HeatException):
    """An error with a text of its own."""

    def __init__(self, msg_fmt='Not found'):
        self.msg_fmt = msg_fmt
        super().__init__()


class StackValidationFailed(HeatException):
    """Properties that do not fit together."""

    def __init__(self, error=None, path=None, message=None, resource=None):
        self.error, self.path, self.error_message = error, path or [], message
        super().__init__()
        self.message = ': '.join(str(part) for part in (error, '.'.join(map(str, self.path)), message) if part)


class UpdateReplace(Exception):
    """An update needs another object."""

    def __init__(self, resource_name='Unknown'):
        super().__init__(f'The Resource {resource_name} requires replacement.')
