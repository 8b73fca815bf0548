"""A plug-in process as Kiln runs it."""
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).parent.parent


class Process:
    """A program that answers calls."""

    def __init__(self, *arguments, **variables):
        self.child = subprocess.Popen(
            [sys.executable, *map(str, arguments)], cwd=ROOT, text=True, env={'PYTHONPATH': str(ROOT), **variables},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.last = 0

    def send(self, method, params):
        self.last += 1
        request = {'jsonrpc': '2.0', 'id': self.last, 'method': method, 'params': params}
        self.child.stdin.write(json.dumps(request) + '\n')
        self.child.stdin.flush()
        return self.last

    def answer(self):
        """The next response: its ID, and the result or the error."""
        response = json.loads(self.child.stdout.readline())
        return response['id'], response.get('result', response.get('error'))

    def call(self, method, params):
        number = self.send(method, params)
        answered, result = self.answer()
        assert answered == number
        return result

    def end(self):
        """Closes the input and waits for the end: the standard error."""
        _, said = self.child.communicate(timeout=10)
        assert self.child.returncode == 0, said
        return said


def resource(type_name, properties=None, id=None, mark='m1', **more):
    """The parameters of a call."""
    return {
        'type': type_name,
        'mark': mark,
        'resource': {'id': id, 'name': 'it', 'physical_name': 'stack-it-1', 'properties': properties or {},
                     'given': list(properties or {}), 'metadata': {}, 'data': more.pop('data', {})},
        'stack': {'id': 's1', 'name': 'stack', 'project_id': 'p1', 'root_id': 's1'},
        'access': {'auth_url': 'http://k/v3', 'token': 't1', 'project_id': 'p1', 'user_id': 'u1', 'region': None,
                   'catalog': more.pop('catalog', [])},
        **more,
    }
