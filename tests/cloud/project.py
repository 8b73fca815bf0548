"""A project of devcloud with a network, and what the services list in it (for topology.py)."""
import json
import uuid

from harness.request import Keystone, call, send

from devcloud import credentials

KEYSTONE = 'http://127.0.0.1:5000/v3'
ROLES = ('member', 'heat_stack_owner', 'load-balancer_member', 'creator')
# Kind -> service, path of the list.
LISTS = {
    'server': ('compute', '/servers'),
    'server group': ('compute', '/os-server-groups'),
    'network': ('network', '/v2.0/networks?project_id={project}'),
    'subnet': ('network', '/v2.0/subnets?project_id={project}'),
    'port': ('network', '/v2.0/ports?project_id={project}'),
    'security group': ('network', '/v2.0/security-groups?project_id={project}'),
    'floating ip': ('network', '/v2.0/floatingips?project_id={project}'),
    'QoS policy': ('network', '/v2.0/qos/policies?project_id={project}'),
    'volume': ('volumev3', '/volumes'),
    'load balancer': ('load-balancer', '/v2/lbaas/loadbalancers?project_id={project}'),
    'listener': ('load-balancer', '/v2/lbaas/listeners?project_id={project}'),
    'pool': ('load-balancer', '/v2/lbaas/pools?project_id={project}'),
    'zone': ('dns', '/v2/zones'),
    'record set': ('dns', '/v2/recordsets'),
}


class Side:
    """A user in the project."""

    def __init__(self, user, project):
        self.keystone = Keystone(KEYSTONE, user, project, 'devcloud')
        self.environment = credentials(user) | {'OS_PROJECT_NAME': project}

    def call(self, service, method, path, body=None, **headers):
        """The body of a response, which must be a success."""
        url = self.keystone.endpoint(service) + path.replace('{project}', self.keystone.project)
        versions = {'OpenStack-API-Version': 'compute 2.79'} if service == 'compute' else {}
        status, _, answer = call(method, url, body, self.keystone.token, **versions, **headers)
        if status >= 300:
            raise RuntimeError(f'{method} {url}: {status} {answer}')
        return answer

    def list(self, service, path):
        answer = self.call(service, 'GET', path)
        rows = answer if isinstance(answer, list) else next(v for v in answer.values() if isinstance(v, list))
        return rows


class Project:
    """A new project of the user `demo` and of an administrator, with a network behind no router."""

    def __enter__(self):
        admin = Keystone(KEYSTONE, 'admin', password='devcloud')
        self.name = 'topology-' + uuid.uuid4().hex[:8]
        self.cloud, self.id = admin, admin.post('/projects', {'project': {'name': self.name}})['project']['id']
        roles = json.load(send('GET', f'{KEYSTONE}/roles', None, admin.token))['roles']
        of_demo = Keystone(KEYSTONE, 'demo', password='devcloud').user
        for user, wanted in ((of_demo, ROLES), (admin.user, ('admin', *ROLES))):
            for role in roles:
                if role['name'] in wanted:
                    send('PUT', f'{KEYSTONE}/projects/{self.id}/users/{user}/roles/{role["id"]}', None, admin.token)
        self.user, self.admin = Side('demo', self.name), Side('admin', self.name)
        network = self.user.call('network', 'POST', '/v2.0/networks', {'network': {'name': 'private'}})['network']
        self.network = network['id']
        subnet = {'name': 'private', 'network_id': self.network, 'ip_version': 4, 'cidr': '10.88.0.0/24'}
        self.subnet = self.user.call('network', 'POST', '/v2.0/subnets', {'subnet': subnet})['subnet']['id']
        self.made = [('network', f'/v2.0/networks/{self.network}')]
        return self

    def __exit__(self, *error):
        for service, path in reversed(self.made):
            self.user.call(service, 'DELETE', path)
        send('DELETE', f'{KEYSTONE}/projects/{self.id}', None, self.cloud.token)

    def image(self, name, **properties):
        """An image that only this project sees."""
        body = {'name': name, 'disk_format': 'raw', 'container_format': 'bare', **properties}
        made = self.user.call('image', 'POST', '/v2/images', body)
        self.user.call('image', 'PUT', f'/v2/images/{made["id"]}/file', b'\0' * 4096,
                       **{'Content-Type': 'application/octet-stream'})
        self.made.append(('image', f'/v2/images/{made["id"]}'))

    def zone(self, name):
        made = self.user.call('dns', 'POST', '/v2/zones', {'name': name, 'email': 'a@' + name.rstrip('.')})
        self.made.append(('dns', f'/v2/zones/{made["id"]}'))
        return made['id']

    def servers(self):
        """The servers as Nova shows them to an administrator: with their user data."""
        return self.admin.list('compute', '/servers/detail?project_id={project}&all_tenants=1')

    def inventory(self):
        """All objects of the project in the lists of the services: kind -> IDs. Containers by name; flavors, and the
        users and projects of stacks, are those of the cloud."""
        found = {kind: {row['id'] for row in self.user.list(service, path)}
                 for kind, (service, path) in LISTS.items()}
        found['container'] = {row['name'] for row in self.user.call('object-store', 'GET', '?format=json')}
        found['flavor'] = {row['id'] for row in self.admin.list('compute', '/flavors?is_public=none')}
        domain = json.load(send('GET', f'{KEYSTONE}/domains?name=heat', None, self.cloud.token))['domains'][0]['id']
        for kind in ('users', 'projects'):
            rows = json.load(send('GET', f'{KEYSTONE}/{kind}?domain_id={domain}', None, self.cloud.token))[kind]
            found[f'{kind} of stacks'] = {row['id'] for row in rows}
        for side in (self.user, self.admin):
            trusts = send('GET', f'{KEYSTONE}/OS-TRUST/trusts?trustor_user_id={side.keystone.user}', None,
                          side.keystone.token)
            rows = json.load(trusts)['trusts']
            found[f'trust of {side.keystone.user}'] = {row['id'] for row in rows if row['project_id'] == self.id}
        return found
