"""Stand-in of heat.engine.resource: the base class of Heat's resources."""
import contextlib

from kiln_plugin.heat.common import exception
from kiln_plugin.heat.engine import attributes, properties, support
from kiln_plugin.heat.errors import NotCovered, refusing

__getattr__ = refusing('heat.engine.resource')

UpdateReplace = exception.UpdateReplace
# The entry of the data of a resource whose class sets no ID.
WITHOUT_ID = 'heat_without_id'


class NoActionRequired(Exception):
    """An action has nothing to do."""

    def __init__(self, res_name='Unknown', reason=''):
        super().__init__(f'The resource action of {res_name} is not needed: {reason}')


class PollDelay(Exception):
    """Raised by a check: the seconds until the next one."""

    def __init__(self, period):
        super().__init__(period)
        self.period = period


class Context:
    """The credentials of the stack."""

    def __init__(self, access, clients=None):
        self.auth_url, self.auth_token = access.auth_url, access.token
        self.project_id = self.tenant_id = access.project_id
        self.user_id, self.region_name, self.service_catalog = access.user_id, access.region, access.catalog
        self.clients = Clients(self, clients)

    def __getattr__(self, name):
        raise NotCovered(f'context.{name}')


class Clients:
    """The clients of services that the operator's function makes."""

    def __init__(self, context, make):
        self._context, self._make = context, make

    def client(self, name, version=None):
        if self._make is None:
            raise NotCovered(f'client({name!r}) without --clients')
        return self._make(name, self._context)

    def client_plugin(self, name):
        return ClientPlugin(self, name)

    def __getattr__(self, name):
        raise NotCovered(f'clients.{name}')


class ClientPlugin:
    """Tells what the errors of a client mean, by their HTTP status or the name of their class."""

    def __init__(self, clients, name):
        self._clients, self._name = clients, name

    def client(self, version=None):
        return self._clients.client(self._name)

    def is_not_found(self, error):
        return _status(error) == 404 or type(error).__name__ in ('NotFound', 'NotFoundException', 'EntityNotFound')

    def is_conflict(self, error):
        return _status(error) == 409 or type(error).__name__ in ('Conflict', 'ConflictException')

    def is_over_limit(self, error):
        return _status(error) in (413, 429)

    @property
    @contextlib.contextmanager
    def ignore_not_found(self):
        try:
            yield
        except Exception as error:
            if not self.is_not_found(error):
                raise

    @property
    @contextlib.contextmanager
    def ignore_conflict_and_not_found(self):
        try:
            yield
        except Exception as error:
            if not self.is_not_found(error) and not self.is_conflict(error):
                raise

    def __getattr__(self, name):
        raise NotCovered(f'client_plugin({self._name!r}).{name}')


def _status(error):
    for name in ('http_status', 'status_code', 'code', 'http_code'):
        if isinstance(getattr(error, name, None), int):
            return getattr(error, name)
    return None


class Stack:
    """The stack of a resource."""

    def __init__(self, given, context):
        self.id, self.name, self.context = given.id, given.name, context

    def __getattr__(self, name):
        raise NotCovered(f'stack.{name}')


class Definition:
    """The definition of a resource in its template: only its properties, and the call that it is from."""

    def __init__(self, call, values):
        self.call, self.values = call, values

    def properties(self, schema, context=None):
        return properties.Properties(schema, self.values, context)

    def freeze(self, properties=None):
        """The same definition with other properties."""
        return Definition(self.call, self.values if properties is None else dict(properties))

    def __getattr__(self, name):
        raise NotCovered(f'the {name} of a definition')


class Resource:
    """The base class of Heat's resources, as far as docs/plugins.md says."""

    ACTIONS = (INIT, CREATE, DELETE, UPDATE, ROLLBACK, SUSPEND, RESUME, ADOPT, SNAPSHOT, CHECK) = (
        'INIT', 'CREATE', 'DELETE', 'UPDATE', 'ROLLBACK', 'SUSPEND', 'RESUME', 'ADOPT', 'SNAPSHOT', 'CHECK')
    STATUSES = (IN_PROGRESS, FAILED, COMPLETE) = ('IN_PROGRESS', 'FAILED', 'COMPLETE')
    BASE_ATTRIBUTES = (SHOW,) = (attributes.SHOW_ATTR,)

    properties_schema = {}
    attributes_schema = {}
    update_policy_schema = {}
    update_allowed_properties = ()
    entity = None
    default_client_name = None
    required_service_extension = None
    physical_resource_name_limit = 255
    support_status = support.SupportStatus()
    no_signal_actions = (SUSPEND, DELETE)
    always_replace_on_check_failed = True
    requires_deferred_auth = False
    strict_dependency = True

    def __init__(self, name, definition, stack):
        self._call = definition.call
        self.name, self.stack, self.context, self.t = name, stack, stack.context, definition
        self.properties = definition.properties(self.properties_schema, self.context)
        self.resource_id = None if WITHOUT_ID in self._call.data else self._call.id
        self.uuid = self._call.mark

    def __getattr__(self, name):
        if name == '_call' or (name.startswith('__') and name.endswith('__')):
            raise AttributeError(name)
        raise NotCovered(f'Resource.{name}')

    def type(self):
        return type(self._call).type

    def resource_id_set(self, inst):
        self.resource_id = self._call.id = inst

    def physical_resource_name(self):
        return self._call.physical_name

    def physical_resource_name_or_FnGetRefId(self):
        return self.resource_id or self._call.physical_name

    def get_reference_id(self):
        return self.resource_id or self.name

    def FnGetRefId(self):
        return self.get_reference_id()

    def data(self):
        return {key: value for key, value in self._call.data.items() if key != WITHOUT_ID}

    def data_set(self, key, value, redact=False):
        self._call.data[key] = value

    def data_delete(self, key):
        return self._call.data.pop(key, None) is not None

    def metadata_get(self, refresh=False):
        return self._call.metadata

    def client(self, name=None, version=None):
        return self.context.clients.client(name or self.default_client_name, version)

    def client_plugin(self, name=None):
        return self.context.clients.client_plugin(name or self.default_client_name)

    def validate(self):
        pass

    def needs_replace(self, after_props):
        return False

    def needs_replace_with_prop_diff(self, changed_properties_set, after_props, before_props):
        return False

    def needs_replace_failed(self):
        return True

    def handle_delete(self):
        if self.entity and self.resource_id is not None:
            with self.client_plugin().ignore_not_found:
                getattr(self.client(), self.entity).delete(self.resource_id)
                return self.resource_id
        return None

    def _show_resource(self):
        if not self.entity or self.default_client_name is None:
            return None
        found = getattr(self.client(), self.entity).get(self.resource_id)
        return found if isinstance(found, dict) else found.to_dict()

    def _resolve_attribute(self, name):
        return None

    def get_live_resource_data(self):
        try:
            return self._show_resource()
        except Exception as error:
            if self.client_plugin().is_not_found(error):
                raise exception.EntityNotFound(entity='Resource', name=self.name) from error
            raise

    def parse_live_resource_data(self, resource_properties, resource_data):
        allowed = [name for name, schema in self.properties_schema.items() if schema.update_allowed]
        without_name = resource_properties.get('name') is None if 'name' in resource_properties else False
        return {name: resource_data[name] for name in allowed
                if name in resource_data and not (name == 'name' and without_name)}

    def get_live_state(self, resource_properties):
        data = self.get_live_resource_data()
        return {} if data is None else self.parse_live_resource_data(resource_properties, data)

    def _verify_check_conditions(self, checks):
        wrong = []
        for check in checks:
            expected, found = check['expected'], check['current']
            if found not in (expected if isinstance(expected, list) else [expected]):
                wrong.append(f"'{check['attr']}': expected '{expected}', got '{found}'")
        if wrong:
            raise exception.Error(message='; '.join(wrong))
