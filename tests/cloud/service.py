"""Requests to Kiln and to the Keystone of its cloud (for agents.py)."""
import json
import time
import urllib.request


def send(method, url, body=None, token=None):
    headers = {'Content-Type': 'application/json', **({'X-Auth-Token': token} if token else {})}
    data = None if body is None else json.dumps(body).encode()
    return urllib.request.urlopen(urllib.request.Request(url, data, headers, method=method), timeout=30)


class Keystone:
    """A user of the simulated cloud."""

    def __init__(self, url, user, project=None):
        self.url = url
        domain = {'id': 'default'}
        identity = {'methods': ['password'],
                    'password': {'user': {'name': user, 'password': 'password', 'domain': domain}}}
        answer = send('POST', url + '/auth/tokens', {'auth': {
            'identity': identity, 'scope': {'project': {'name': project or user, 'domain': domain}}}})
        self.token = answer.headers['X-Subject-Token']
        token = json.load(answer)['token']
        self.project, self.user = token['project']['id'], token['user']['id']
        self.roles = [{'id': role['id']} for role in token['roles']]

    def trust_to(self, name):
        """The ID of a trust with all roles to another user, who acts as this one: Aodh creates them so."""
        trust = {'trustor_user_id': self.user, 'trustee_user_id': Keystone(self.url, name, 'service').user,
                 'project_id': self.project, 'impersonation': True, 'roles': self.roles}
        answer = send('POST', self.url + '/OS-TRUST/trusts', {'trust': trust}, self.token)
        return json.load(answer)['trust']['id']

    def add_service(self, kind, url):
        service = json.load(send('POST', self.url + '/services', {'service': {'type': kind, 'name': kind}}, self.token))
        endpoint = {'service_id': service['service']['id'], 'interface': 'public', 'region_id': 'RegionOne', 'url': url}
        send('POST', self.url + '/endpoints', {'endpoint': endpoint}, self.token)


class Heat:
    """Requests to Kiln."""

    def __init__(self, url, keystone):
        self.url, self.keystone = f'{url}/v1/{keystone.project}', keystone

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
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            status = self.stack(id)['stack_status']
            if status != 'DELETE_IN_PROGRESS':
                return status
            time.sleep(0.3)
        return status
