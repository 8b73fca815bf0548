"""Requests to Kiln as a client of Heat (for agents.py)."""
import json
import time

from harness.checks import until
from harness.request import send


class Heat:
    """The stacks of the project of a user. `url` ends with `/v1`."""

    def __init__(self, url, keystone):
        self.url, self.keystone = f'{url}/{keystone.project}', keystone

    def call(self, method, path, body=None):
        answer = send(method, self.url + path, body, self.keystone.token).read()
        return json.loads(answer) if answer[:1] in (b'{', b'[') else None

    def create(self, name, template, timeout=10, files=None, **parameters):
        body = {'stack_name': name, 'template': template, 'parameters': parameters, 'timeout_mins': timeout,
                'files': files or {}}
        return self.call('POST', '/stacks', body)['stack']['id']

    def update(self, name, id, template, **parameters):
        self.call('PUT', f'/stacks/{name}/{id}', {'template': template, 'parameters': parameters})

    def stack(self, name):
        return self.call('GET', f'/stacks/{name}')['stack']

    def outputs(self, name):
        return {output['output_key']: output.get('output_value') for output in self.stack(name)['outputs']}

    def resource(self, name, id, resource):
        return self.call('GET', f'/stacks/{name}/{id}/resources/{resource}')['resource']

    def settled(self, name, work=None, seconds=40):
        """The stack when it is not in progress any more; `work` is done meanwhile."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            stack = self.stack(name)
            if not stack['stack_status'].endswith('IN_PROGRESS'):
                return stack
            if work:
                work()
            time.sleep(0.3)
        return stack

    def delete(self, name, id):
        self.call('DELETE', f'/stacks/{name}/{id}')
        return until(lambda: self.stack(id)['stack_status'], lambda status: status != 'DELETE_IN_PROGRESS')
