"""A stack of a document or a package, through the requests and the commands of Kiln (for topology.py)."""
import json
import os
import subprocess
import time
import urllib.parse

from harness.pypi import TARGET
from harness.request import call, send

KILN = os.environ.get('KILN', str(TARGET / 'release/kiln'))
# Seconds that an operation may take.
PATIENCE = 180
TYPES = {b'PK': 'application/zip', b'\x1f\x8b': 'application/gzip'}


class Refused(Exception):
    pass


class Stack:
    """`side` is the user (project.Side). Documents are texts, packages are bytes."""

    def __init__(self, side, name):
        self.side, self.name = side, name
        self.url, self.id = side.keystone.endpoint('orchestration') + '/stacks', None

    def call(self, method, path='', body=None, **headers):
        status, _, answer = call(method, self.url + path, body, self.side.keystone.token, **headers)
        if status >= 400:
            raise Refused(answer['error']['message'] if isinstance(answer, dict) else answer)
        return answer

    def shown(self):
        """The stack, or None."""
        found = self.call('GET', f'?name={self.name}')['stacks']
        if not found:
            return None
        stack = self.call('GET', f'/{self.name}/{found[0]["id"]}')['stack']
        # Its delete may end between the two requests.
        return None if stack['stack_status'] == 'DELETE_COMPLETE' else stack

    @property
    def path(self):
        return f'/{self.name}/{self.id}'

    def upload(self, document, software='cloud-init', rollback=False, **parameters):
        """Creates or updates the stack by a request with the document or the package as its body. With `rollback`, the
        operation is expected to fail and to be rolled back."""
        content = document if isinstance(document, bytes) else document.encode()
        kind = TYPES.get(content[:2], 'application/x-yaml')
        query = {'software': software, 'parameters': json.dumps(parameters), 'timeout_mins': 10}
        before = self.shown()
        query['disable_rollback'] = str(not rollback).lower()
        if before is None:
            query['stack_name'] = self.name
        self.call('PUT' if before else 'POST', (self.path if before else '') + '?' + urllib.parse.urlencode(query),
                  content, **{'Content-Type': kind})
        return self.settled('ROLLBACK' if rollback else 'UPDATE' if before else 'CREATE')

    def command(self, *words, **parameters):
        """`kiln stack create` or `update` with these words."""
        action = 'update' if self.shown() else 'create'
        values = [word for name, value in parameters.items() for word in ('--parameter', f'{name}={value}')]
        ran = subprocess.run([KILN, 'stack', action, *map(str, words), *values, '--timeout', '10', self.name],
                             env=self.side.environment, capture_output=True, text=True, timeout=PATIENCE)
        if ran.returncode:
            raise Refused(ran.stdout + ran.stderr)
        return self.settled(action.upper())

    def settled(self, action):
        """The stack after an operation."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            stack = self.shown()
            if stack is None or stack['stack_status'] in (f'{action}_COMPLETE', f'{action}_FAILED'):
                break
            time.sleep(0.5)
        if stack:
            self.id = stack['id']
        return stack

    def signal(self, resource):
        self.call('POST', f'{self.path}/resources/{resource}/signal', {})

    def delete(self):
        self.call('DELETE', self.path if self.id else f'/{self.name}/{self.shown()["id"]}')
        return self.settled('DELETE')

    def resources(self):
        """The resources of the stack and of its nested stacks."""
        return self.call('GET', f'{self.path}/resources?nested_depth=5')['resources']

    def ids(self, kind=None):
        """Name -> ID of the objects, of a type. Those of nested stacks have the name of the stack before theirs."""
        found = {}
        for one in self.resources():
            if kind is None or one['resource_type'] == kind:
                parent = one.get('parent_resource')
                name = f'{parent}/{one["resource_name"]}' if parent else one['resource_name']
                found[name] = one['physical_resource_id']
        return found

    def servers(self):
        return self.ids('OS::Nova::Server')

    def original(self):
        """The content type and the bytes of what was uploaded."""
        answer = send('GET', f'{self.url}{self.path}/original', None, self.side.keystone.token)
        return answer.headers['Content-Type'], answer.read()
