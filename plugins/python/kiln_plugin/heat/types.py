"""Turns a class of Heat into a type of Kiln."""
import contextlib
import json
import time

from kiln_plugin.errors import Failed, InError, NotFound, PluginError, Refused
from kiln_plugin.heat.common import exception
from kiln_plugin.heat.engine import properties, resource
from kiln_plugin.heat.errors import NotCovered
from kiln_plugin.resource import Replace, Resource, Wait

# Methods of Heat's class that Kiln does not call: a class that overrides one would behave differently.
UNCALLED = (
    'translation_rules', 'signal', 'handle_snapshot_delete', 'handle_adopt', 'adopt', 'child_template', 'child_params', 'get_reference_id', 'FnGetRefId',
    'add_dependencies', 'add_explicit_dependencies', 'metadata_update', 'prepare_for_replace', 'restore_prev_rsrc',
    'regenerate_info_schema', 'is_service_available', 'get_attribute', 'FnGetAtt', 'create', 'update', 'delete', 'check',
    'suspend', 'resume', 'needs_replace_with_tmpl_diff', 'handle_metadata_reset', 'preview', 'handle_create_cancel',
    'handle_update_cancel', 'handle_delete_cancel', 'handle_preempt', 'check_is_substituted', 'has_nested',
)
# Errors of Heat that mean something to Kiln.
KINDS = (
    (exception.ResourceInError, InError),
    (exception.EntityNotFound, NotFound),
    (exception.NotFound, NotFound),
    (exception.StackValidationFailed, Refused),
)


def adapted(type_name, heat_class, clients=None):
    """The type of a class of Heat. `clients` makes what `self.client(name)` is.

    Raises NotCovered if the class overrides a method that Kiln does not call.
    """
    for name in UNCALLED:
        if _overrides(heat_class, name):
            raise NotCovered(f'{type_name}: {heat_class.__name__}.{name}')
    if heat_class.update_policy_schema:
        raise NotCovered(f'{type_name}: {heat_class.__name__}.update_policy_schema')
    schema = heat_class.properties_schema
    definition = {'class': heat_class.__name__, 'name_limit': heat_class.physical_resource_name_limit,
                  **heat_class.support_status.defined()}
    if not heat_class.always_replace_on_check_failed:
        definition['replace_on_check_failed'] = False
    if heat_class.requires_deferred_auth:
        definition['deferred_auth'] = True
    content = {
        '__doc__': heat_class.__doc__,
        'type': type_name,
        'heat_class': heat_class,
        'clients': staticmethod(clients) if clients else None,
        'definition': definition,
        'properties': {name: each.defined(f'{type_name}.{name}') for name, each in schema.items()},
        'attributes': {name: each.defined() for name, each in heat_class.attributes_schema.items()},
    }
    for name, needs in OPTIONAL.items():
        if any(_overrides(heat_class, need) for need in needs):
            content[name] = getattr(_Optional, name)
    if any(each.update_allowed for each in schema.values()):
        content['update'] = _Optional.update
    return type(heat_class.__name__, (HeatType,), content)


def constraint(heat_class, clients=None):
    """A check of values by a constraint class of Heat."""
    def check(value, access):
        judge = heat_class()
        if judge.validate(value, resource.Context(access, clients)):
            return None
        error = getattr(judge, 'error', None)
        return (error(value) if error else None) or 'the value is not valid'
    return check


def _overrides(heat_class, name):
    found = getattr(heat_class, name, None)
    return found is not None and found is not getattr(resource.Resource, name, None)


def _translated(error):
    """The error of Kiln for one of Heat or of a client: its text, and the name of its class for the user."""
    if isinstance(error, PluginError):
        return error
    for heat_class, kind in KINDS:
        if isinstance(error, heat_class):
            return kind(str(error), type(error).__name__)
    return Failed(str(error) or type(error).__name__, type(error).__name__)


@contextlib.contextmanager
def _translating(*passing):
    """Errors of a class of Heat become those of Kiln, except `passing`."""
    try:
        yield
    except (NotCovered, *passing):
        raise
    except Exception as error:
        raise _translated(error) from error


class HeatType(Resource):
    """A type of Kiln that runs a class of Heat."""

    heat_class = None
    clients = None

    def heat(self, values=None):
        """An instance of the class with these values of properties."""
        context = resource.Context(self.access, self.clients)
        definition = resource.Definition(self, self.properties if values is None else values)
        return self.heat_class(self.name, definition, resource.Stack(self.stack, context))

    def run(self, action, call):
        """Calls a handler. If the class has a check, the next poll calls it with what the handler returned."""
        try:
            with _translating(resource.NoActionRequired, exception.UpdateReplace):
                cookie = call()
        except resource.NoActionRequired:
            return None
        except exception.UpdateReplace:
            raise Replace from None
        if not hasattr(self.heat_class, f'check_{action}_complete'):
            return None
        return Wait({'cookie': self.stored(action, cookie)}, after=0)

    def stored(self, action, cookie):
        """What a handler returned, as JSON: another process may call the check."""
        try:
            return json.loads(json.dumps(cookie))
        except (TypeError, ValueError):
            what = f'{self.heat_class.__name__}.handle_{action}: a result that is not JSON ({type(cookie).__name__})'
            raise NotCovered(what) from None

    def create(self):
        instance = self.heat()
        wait = self.run('create', getattr(instance, 'handle_create', lambda: None))
        if wait is None:
            self.complete()
        return wait

    def complete(self):
        """The end of a create: an object of Kiln needs an ID, one of Heat does not."""
        if self.id is None:
            self.id = self.mark
            self.data[resource.WITHOUT_ID] = True

    def delete(self):
        return self.run('delete', self.heat().handle_delete)

    def poll(self, operation, state):
        instance = self.heat(self.before if operation == 'update' else None)
        cookie = state['cookie']
        try:
            with _translating(resource.PollDelay, exception.UpdateReplace):
                is_complete = getattr(instance, f'check_{operation}_complete')(cookie)
        except resource.PollDelay as delay:
            return Wait({'cookie': self.stored(operation, cookie)}, after=delay.period)
        except exception.UpdateReplace:
            raise Replace from None
        if not is_complete:
            return Wait({'cookie': self.stored(operation, cookie)}, after=1)
        if operation == 'create':
            self.complete()
        if operation == 'snapshot':
            self.restorable()
        return None

    def restorable(self):
        """The end of a snapshot: what handle_restore would make of it."""
        if not _overrides(self.heat_class, 'handle_restore'):
            return
        instance = self.heat()
        data = {'name': self.name, 'resource_id': instance.resource_id, 'resource_data': instance.data()}
        with _translating():
            made = instance.handle_restore(instance.t, data)
        self.restored = {name: made.values.get(name) for name in self.properties
                         if made.values.get(name) != self.properties[name]}

    def read(self):
        instance = self.heat()
        found = {}
        for name in self.names:
            found[name] = None
            with instance.client_plugin().ignore_not_found:
                found[name] = instance._show_resource() if name == 'show' else instance._resolve_attribute(name)
        return found


class _Optional:
    """Methods that a type has if its class has what they call."""

    def find(self):
        return self.heat().find_by_mark(self.mark)

    def update(self, changed):
        instance = self.heat(self.before)
        after = properties.Properties(self.heat_class.properties_schema, self.properties, instance.context)
        if instance.needs_replace(after):
            raise Replace
        if instance.needs_replace_with_prop_diff(set(changed), after, instance.properties):
            raise Replace
        difference = {name: after[name] for name in changed}
        handle = getattr(instance, 'handle_update', None)
        if not _overrides(self.heat_class, 'handle_update'):
            raise Replace
        definition = resource.Definition(self, self.properties)
        return self.run('update', lambda: handle(definition, {'Properties': difference}, difference))

    def check(self):
        return self.run('check', self.heat().handle_check)

    def suspend(self):
        return self.run('suspend', self.heat().handle_suspend)

    def resume(self):
        return self.run('resume', self.heat().handle_resume)

    def signal(self, details):
        try:
            with _translating(resource.NoActionRequired):
                told = self.heat().handle_signal(details)
        except resource.NoActionRequired:
            return False
        return None if told is None else str(told)

    def snapshot(self):
        wait = self.run('snapshot', self.heat().handle_snapshot)
        if wait is None:
            self.restorable()
        return wait

    def delete_snapshot(self):
        """Kiln keeps no state between the calls, so the check runs here."""
        instance = self.heat()
        with _translating():
            cookie = instance.handle_delete_snapshot({'resource_data': instance.data()})
            check = getattr(instance, 'check_delete_snapshot_complete', lambda cookie: True)
            while not check(cookie):
                time.sleep(1)

    def validate(self):
        try:
            self.heat().validate()
        except NotCovered:
            raise
        except Exception as error:
            raise Refused(str(error), type(error).__name__) from error

    def live(self):
        instance = self.heat()
        with _translating():
            return instance.get_live_state(instance.properties)

    def needs_replace_failed(self):
        return self.heat().needs_replace_failed()


OPTIONAL = {
    'find': ['find_by_mark'],
    'check': ['handle_check'],
    'suspend': ['handle_suspend'],
    'resume': ['handle_resume'],
    'signal': ['handle_signal'],
    'snapshot': ['handle_snapshot'],
    'delete_snapshot': ['handle_delete_snapshot'],
    'validate': ['validate'],
    'live': ['get_live_state', 'get_live_resource_data', 'parse_live_resource_data'],
    'needs_replace_failed': ['needs_replace_failed'],
}
