"""Requests with a token, and users of the simulated cloud."""
import json
import urllib.error
import urllib.request

DOMAIN = {'id': 'default'}


class NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None


def build(method, url, body, token, headers):
    headers = {'Content-Type': 'application/json', 'Accept': 'application/json', **headers}
    if token:
        headers['X-Auth-Token'] = token
    data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    return urllib.request.Request(url, data, headers, method=method)


def send(method, url, body=None, token=None, **headers):
    """A request with a body of JSON, or of bytes; the response after redirects, or urllib.error.HTTPError."""
    return urllib.request.urlopen(build(method, url, body, token, headers), timeout=60)


def call(method, url, body=None, token=None, **headers):
    """A request without redirects: status, headers and the body, which is a text if it is not JSON."""
    opener = urllib.request.build_opener(NoRedirect)
    try:
        answer = opener.open(build(method, url, body, token, headers), timeout=60)
    except urllib.error.HTTPError as error:
        answer = error
    text = answer.read().decode()
    try:
        return answer.status, answer.headers, json.loads(text)
    except ValueError:
        return answer.status, answer.headers, text


class Keystone:
    """A user of the simulated cloud, in a project of the same name or in another one."""

    def __init__(self, url, user, project=None, password='password'):
        """`url` ends with `/v3`."""
        self.url = url
        identity = {'methods': ['password'],
                    'password': {'user': {'name': user, 'password': password, 'domain': DOMAIN}}}
        scope = {'project': {'name': project or user, 'domain': DOMAIN}}
        answer = send('POST', f'{url}/auth/tokens', {'auth': {'identity': identity, 'scope': scope}})
        self.token = answer.headers['X-Subject-Token']
        token = json.load(answer)['token']
        self.project, self.user, self.catalog = token['project']['id'], token['user']['id'], token['catalog']
        self.roles = [{'id': role['id']} for role in token['roles']]

    def post(self, path, body):
        return json.load(send('POST', self.url + path, body, self.token))

    def key(self):
        """A new EC2 key: its ID and its secret."""
        made = self.post(f'/users/{self.user}/credentials/OS-EC2', {'tenant_id': self.project})['credential']
        return made['access'], made['secret']

    def trust_to(self, name):
        """The ID of a trust with all roles to another user, who acts as this one: Aodh creates them so."""
        trust = {'trustor_user_id': self.user, 'trustee_user_id': Keystone(self.url, name, 'service').user,
                 'project_id': self.project, 'impersonation': True, 'roles': self.roles}
        return self.post('/OS-TRUST/trusts', {'trust': trust})['trust']['id']

    def endpoint(self, kind):
        """The public URL of a service."""
        return next(one['url'].rstrip('/') for service in self.catalog if service['type'] == kind
                    for one in service['endpoints'] if one['interface'] == 'public')

    def add_service(self, kind, url):
        service = self.post('/services', {'service': {'type': kind, 'name': kind}})['service']
        endpoint = {'service_id': service['id'], 'interface': 'public', 'region_id': 'RegionOne', 'url': url}
        self.post('/endpoints', {'endpoint': endpoint})
