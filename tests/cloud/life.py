"""The life of a template with one orchestration service: what it says, what it sends, and what is in the cloud."""
import copy
import dataclasses
import json
import re
import time
import urllib.parse

from harness import request
from recorder import SERVICES

# Seconds until an operation of a stack must have ended.
PATIENCE = 120
# Requests that are not for a resource: each service obtains its tokens and trusts in its own way.
OWN = re.compile('/v3/(auth|OS-TRUST)/')


@dataclasses.dataclass
class Case:
    """A file of `types/`: `resources`, and what changes in each step. See `every_type.py`."""
    type: str
    resources: dict
    steps: dict
    outputs: dict
    failing: list
    before: list

    def template(self, changes=None):
        resources = copy.deepcopy(self.resources)
        for name, properties in (changes or {}).items():
            if properties is None:
                del resources[name]
                continue
            kept = resources.setdefault(name, {})
            if '::' in str(properties.get('type')):
                resources[name] = properties
                continue
            kept['properties'] = {key: value for key, value in (kept.get('properties', {}) | properties).items()
                                  if value is not None}
        outputs = {f'{name} id': {'value': {'get_resource': name}}
                   for name in self.tested() if name in resources} | self.outputs
        return {'heat_template_version': '2018-08-31', 'resources': resources, 'outputs': outputs}

    def tested(self):
        return [name for name, resource in self.resources.items() if resource['type'] == self.type]


@dataclasses.dataclass
class Side:
    """An orchestration service and the recorder behind it."""
    name: str
    url: str
    recorder: object


@dataclasses.dataclass
class Record:
    """What was seen in a life. `phases`: label -> part -> values; `physical`: logical names and IDs, oldest first; `drift`:
    label -> resource -> how its object differs although nobody has changed it (only of Kiln, which can compare them)."""
    case: Case
    stack: str
    project: str
    id: str
    physical: list
    phases: dict
    drift: dict


class Life:
    def __init__(self, side, case, stack, token, project):
        """`stack` is the name for the stack; `token` is one of an administrator, for the project."""
        self.side, self.case, self.stack, self.token, self.project = side, case, stack, token, project
        self.base = f'{side.url}/{project}/stacks'
        self.seen = len(side.recorder.requests)
        self.ids, self.objects, self.phases, self.physical, self.id, self.drift = set(), {}, {}, [], '', {}

    def run(self):
        """Runs all phases."""
        self.create()
        return Record(self.case, self.stack, self.project, self.id, self.physical, self.phases, self.drift)

    def create(self):
        body = {'stack_name': self.stack, 'template': self.case.template(), 'disable_rollback': True,
                'timeout_mins': 5}
        status, _, answer = self.call('POST', self.base, body)
        if status != 201:
            self.phases['create'] = {'refused': refusal(answer)}
            return
        self.id = answer['stack']['id']
        try:
            self.observe('create', 'CREATE')
            for label, changes in self.case.steps.items():
                word = label.split()[0]
                if word in ('check', 'suspend', 'resume'):
                    status, _, answer = self.call('POST', f'{self.path()}/actions', {word: None})
                else:
                    body = {'template': self.case.template(changes), 'timeout_mins': 5}
                    word = 'update'
                    status, _, answer = self.call('PUT', self.path(), body)
                if status >= 400:
                    self.phases[label] = {'refused': refusal(answer)}
                    continue
                self.observe(label, word.upper())
            self.remember_ids()
        finally:
            self.call('DELETE', self.path())
            self.observe('delete', 'DELETE')

    def path(self):
        return f'{self.base}/{self.stack}/{self.id}'

    def call(self, method, url, body=None):
        return request.call(method, url, body, self.token)

    def observe(self, label, action):
        stack = self.settled(action)
        observed = self.phases[label] = {}
        observed['stack'] = {'status': stack['stack_status'], 'reason': stack.get('stack_status_reason')}
        if action != 'DELETE' or stack['stack_status'] != 'DELETE_COMPLETE':
            listed = self.call('GET', f'{self.path()}/resources')[2].get('resources', [])
            observed['resources'] = {
                row['resource_name']: {'status': row['resource_status'], 'reason': row['resource_status_reason'],
                                       'id': row['physical_resource_id']} for row in listed}
            names = {row['resource_name'] for row in listed}
            observed['attributes'] = {name: self.attributes(name) for name in self.case.tested() if name in names}
            observed['outputs'] = {output['output_key']: output.get('output_value', output.get('output_error'))
                                   for output in stack.get('outputs', [])}
        observed['requests'] = self.sent()
        observed['objects'] = {path: self.object(path) for path in sorted(self.objects)}
        if self.side.name == 'kiln' and stack['stack_status'] in ('CREATE_COMPLETE', 'UPDATE_COMPLETE'):
            compared = self.call('GET', f'{self.path()}/drift')[2]['drift']['resources']
            self.drift[label] = {one['resource_name']: one['differences'] or one['drift_status'] for one in compared
                                 if one['drift_status'] in ('MODIFIED', 'DELETED')}
            # Its requests are not those of the step.
            self.seen = len(self.side.recorder.requests)

    def attributes(self, name):
        shown = self.call('GET', f'{self.path()}/resources/{urllib.parse.quote(name)}')[2]
        return shown.get('resource', {}).get('attributes')

    def settled(self, action):
        deadline = time.monotonic() + PATIENCE
        pause = 0.3
        while True:
            status, _, answer = self.call('GET', self.path())
            if status == 404:
                return {'stack_status': 'DELETE_COMPLETE'}
            stack = answer.get('stack', {}) if isinstance(answer, dict) else {}
            word, _, end = stack.get('stack_status', '').rpartition('_')
            if stack and word == action and end != 'PROGRESS':
                return stack
            if time.monotonic() > deadline:
                return {'stack_status': f'{stack.get("stack_status")} after {PATIENCE} s'}
            time.sleep(pause)
            pause = min(pause * 1.3, 1.5)

    def remember_ids(self):
        """The IDs of resources, in the order of their creation: also of those that were replaced."""
        events = self.call('GET', f'{self.path()}/events?nested_depth=5&limit=1000')[2].get('events', [])
        events.sort(key=lambda event: event['event_time'])
        for event in events:
            one = (event['resource_name'], event.get('physical_resource_id'))
            if one[1] and one not in self.physical:
                self.physical.append(one)

    def sent(self):
        """The new requests for this stack that succeeded; remembers the objects that they made."""
        recorded = self.side.recorder.requests
        new, self.seen = recorded[self.seen:], len(recorded)
        mine = [one for one in new if self.is_mine(one)]
        for one in mine:
            self.remember(one)
        return [one for one in mine if one.status < 400]

    def is_mine(self, one):
        if OWN.search(one.path):
            return False
        if one.project == self.project:
            return True
        text = one.path + json.dumps(one.body)
        return re.search(rf'{re.escape(self.stack)}(?![A-Za-z])', text) or any(key in one.path for key in self.ids)

    def remember(self, one):
        path = one.path.split('?')[0]
        if one.status >= 400 or one.method not in ('POST', 'PUT') or path.endswith('/action'):
            return
        made = inner(one.answer)
        own = next((made[key] for key in ('id', 'uuid', 'alarm_id', 'subscription_id') if made.get(key)), None)
        if isinstance(own, str) and len(own) > 20:
            self.ids.add(own)
        reference = next((value for key, value in made.items() if key.endswith('_ref') and isinstance(value, str)), None)
        if one.method == 'POST' and reference:
            path = urllib.parse.urlparse(reference).path
            self.ids.add(path.rstrip('/').rsplit('/', 1)[-1])
        elif one.method == 'POST' and own:
            path = f'{path.rstrip("/")}/{own}'
        elif one.method == 'POST' and 'os-keypairs' in path:
            path = f'{path}/{made.get("name")}'
        self.objects.setdefault(f'{one.service} {path}')

    def object(self, name):
        """The object as its service shows it, or the status of the response."""
        service, _, path = name.partition(' ')
        port = next(port for port, known in self.side.recorder.services.items() if known == service)
        versions = {'OpenStack-API-Version': 'compute 2.90', 'X-OpenStack-Manila-API-Version': '2.65',
                    'X-OpenStack-Ironic-API-Version': '1.78'} if service != 'volumev3' else {}
        if service == 'messaging':
            versions['Client-ID'] = '5c9e1a2b-7a1c-4bd4-93d4-8d7a7c1b1f00'
        method = 'HEAD' if service == 'object-store' else 'GET'
        status, headers, body = request.call(method, f'http://{SERVICES}:{port}{path}', None, self.token, **versions)
        if status >= 300:
            return status
        if service == 'object-store':
            return {key.lower(): value for key, value in headers.items()
                    if key.lower().startswith(('x-container-meta', 'x-container-read', 'x-container-write'))}
        return body


def inner(answer):
    """The object in an answer."""
    if isinstance(answer, dict) and len(answer) == 1:
        only = next(iter(answer.values()))
        if isinstance(only, list) and len(only) == 1:
            only = only[0]
        if isinstance(only, dict):
            return only
    return answer if isinstance(answer, dict) else {}


def refusal(answer):
    detail = answer.get('error', {}) if isinstance(answer, dict) else {}
    return {'code': answer.get('code'), 'type': detail.get('type'), 'message': detail.get('message')} \
        if detail else answer
