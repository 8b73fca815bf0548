"""Answers the calls of Kiln: JSON-RPC 2.0, one message a line. Each call runs in a thread."""
import json
import os
import signal
import sys
import threading
import traceback
from types import SimpleNamespace

from kiln_plugin.access import Access
from kiln_plugin.errors import CannotTell, PluginError
from kiln_plugin.resource import Replace, Wait

PROTOCOL = 1
INTERNAL_ERROR = -32603
REPORTED = 1
# The state of an operation that failed after its object was known: the error is reported by the poll, so that Kiln
# stores the ID first.
FAILED = 'kiln_plugin_failed'


def serve(name, types=(), constraints=None, scheduler_hints=None):
    """Answers calls until the standard input ends, then ends the process.

    `name`: the name of the plug-in in messages; `types`: classes derived from Resource; `constraints`: functions by the
    name of the custom constraint, called with the value and the Access, which return why a value is refused, or
    nothing; `scheduler_hints`: a function that changes the hints of servers and volumes, called with the hints (a
    dict) and the resource (type, name, physical_name, properties, stack, access), which returns the hints.
    What the types print goes to Kiln's log.
    """
    output = os.fdopen(os.dup(1), 'w', encoding='utf-8')
    os.dup2(2, 1)
    sys.stdout.reconfigure(line_buffering=True)
    # Kiln ends a process by closing its input, after the calls in progress.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    server = Server(name, types, constraints or {}, scheduler_hints)
    writing = threading.Lock()

    def work(line):
        answer = json.dumps(server.answer(line)) + '\n'
        with writing:
            output.write(answer)
            output.flush()

    for line in sys.stdin:
        threading.Thread(target=work, args=[line], daemon=True).start()
    os._exit(0)


class Server:
    """The types, constraints and scheduler hints of a plug-in."""

    def __init__(self, name, types, constraints, scheduler_hints=None):
        self.name = name
        self.types = {each.type: each for each in types}
        self.constraints = constraints
        self.scheduler_hints = scheduler_hints

    def answer(self, line):
        """The response to a request."""
        request = json.loads(line)
        response = {'jsonrpc': '2.0', 'id': request.get('id')}
        try:
            result = self.result(request['method'], request.get('params') or {})
            json.dumps(result)
            response['result'] = result
        except PluginError as error:
            response['error'] = reported(error)
        except Exception as error:
            traceback.print_exc()
            response['error'] = {'code': INTERNAL_ERROR, 'message': described(error)}
        return response

    def result(self, method, params):
        if method == 'describe':
            return {
                'protocol': PROTOCOL,
                'name': self.name,
                'resource_types': [each.described() for each in self.types.values()],
                'constraints': sorted(self.constraints),
                'scheduler_hints': self.scheduler_hints is not None,
            }
        if method == 'validate_constraint':
            why = self.constraints[params['constraint']](params['value'], Access(params['access']))
            return {'valid': not why, 'why': str(why or '')}
        if method == 'scheduler_hints':
            resource = SimpleNamespace(
                type=params['type'], stack=params['stack'], access=Access(params['access']), **params['resource'])
            return {'hints': self.scheduler_hints(params['hints'], resource)}
        resource = self.types[params['type']](params)
        call = CALLS.get(method)
        if call is None:
            raise ValueError(f'there is no method {method}')
        return call(resource, params)


def described(error):
    """An exception that is no PluginError, for a message."""
    text = str(error)
    return f'{type(error).__name__}: {text}' if text else type(error).__name__


def reported(error):
    """The error object of a PluginError."""
    data = {'kind': error.kind}
    if error.class_name:
        data['class'] = error.class_name
    if error.retry_after is not None:
        data['retry_after'] = error.retry_after
    return {'code': REPORTED, 'message': str(error) or type(error).__name__, 'data': data}


def step(resource, call):
    """The step of an operation. An ID that was set before a failure is reported, and the failure by the next poll."""
    old_id, old_data = resource.id, dict(resource.data)
    result = {}
    try:
        wait = call()
    except Wait as raised:
        wait = raised
    except Replace:
        return {'replace': True}
    except PluginError as error:
        if resource.id == old_id:
            raise
        wait = Wait({FAILED: reported(error)}, after=0)
    except Exception as error:
        if resource.id == old_id:
            raise
        traceback.print_exc()
        wait = Wait({FAILED: {'code': INTERNAL_ERROR, 'message': described(error)}}, after=0)
    if isinstance(wait, Wait):
        result['wait'] = {'state': wait.state, 'after': wait.after}
    elif wait is not None:
        raise TypeError(f'a method returned {wait!r}, expected nothing or Wait')
    if resource.id != old_id:
        result['id'] = resource.id
    data = {key: value for key, value in resource.data.items() if key not in old_data or old_data[key] != value}
    data.update({key: None for key in old_data if key not in resource.data})
    if data:
        result['data'] = data
    return result


def create(resource, params):
    def call():
        made = resource.create()
        if isinstance(made, str):
            resource.id = made
            return None
        return made
    return step(resource, call)


class Deferred(PluginError):
    """A failure of an earlier call."""

    def __init__(self, error):
        data = error.get('data') or {}
        super().__init__(error['message'], data.get('class'), data.get('retry_after'))
        self.kind = data.get('kind', 'failed')


def poll(resource, params):
    state = params['state']
    if isinstance(state, dict) and FAILED in state:
        raise Deferred(state[FAILED])
    kind = snapshot if params['operation'] == 'snapshot' else step
    return kind(resource, lambda: resource.poll(params['operation'], state))


def find(resource, params):
    old_data = dict(resource.data)
    try:
        found = resource.find()
    except CannotTell as error:
        return {'found': None, 'why': str(error)}
    if found is None:
        return {'found': False}
    if isinstance(found, Wait):
        return {'found': True, **step(resource, lambda: found), 'id': resource.id}
    data = {key: value for key, value in resource.data.items() if old_data.get(key) != value}
    return {'found': True, 'id': found, 'data': data}


def signal_result(resource, params):
    old_metadata = json.dumps(resource.metadata)
    told = []

    def call():
        told.append(resource.signal(params['signal']))
    result = step(resource, call)
    if 'wait' in result:
        raise TypeError('signal cannot wait')
    event = told[0] if told else None
    if event not in (None, False) and not isinstance(event, str):
        raise TypeError(f'signal returned {event!r}, expected nothing, a text or False')
    if event is not None:
        result['event'] = event
    if json.dumps(resource.metadata) != old_metadata:
        result['metadata'] = resource.metadata
    return result


def snapshot(resource, call):
    """The step of a snapshot, with the properties that restore the object at its end."""
    result = step(resource, call)
    if 'wait' not in result and resource.restored is not None:
        result['restored'] = resource.restored
    return result


def delete_snapshot(resource, params):
    try:
        wait = resource.delete_snapshot()
    except Wait as raised:
        wait = raised
    if wait is None:
        return None
    if not isinstance(wait, Wait):
        raise TypeError(f'delete_snapshot returned {wait!r}, expected nothing or Wait')
    return {'after': wait.after}


CALLS = {
    'create': create,
    'poll': poll,
    'find': find,
    'update': lambda resource, params: step(resource, lambda: resource.update(params['changed'])),
    'delete': lambda resource, params: step(resource, resource.delete),
    'check': lambda resource, params: step(resource, resource.check),
    'suspend': lambda resource, params: step(resource, resource.suspend),
    'resume': lambda resource, params: step(resource, resource.resume),
    'signal': signal_result,
    'snapshot': lambda resource, params: snapshot(resource, resource.snapshot),
    'delete_snapshot': delete_snapshot,
    'attributes': lambda resource, params: resource.read(),
    'live': lambda resource, params: resource.live(),
    'validate': lambda resource, params: resource.validate(),
    'needs_replace_failed': lambda resource, params: bool(resource.needs_replace_failed()),
}
