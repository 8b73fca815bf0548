#!/usr/bin/env python3
"""Compares a stack with the same calls to the cloud without Kiln.

    devcloud/devcloud up kiln
    bench/bare.py [LOAD...]                # all loads, or those whose name contains a word
    bench/bare.py --testcloud 0.1          # on the simulated cloud, which takes 0.1 s for each request

For each load, a program creates the objects by the APIs of Neutron, Nova and Cinder, 16 at a time, and waits for them with
lists, twice a second; for the stack of three tiers, it creates each object as soon as those that it needs exist. Then Kiln
creates a stack of the same objects. Both are repeated in turns, on devcloud each when the machine is idle. Printed are the shortest time
of each, Kiln's as a multiple, and the multiples of the rounds; on devcloud also the requests that change something, deletes
included, as the logs of the services have them. The program has its token before; so has Kiln, because another
stack of the user exists. Everything is deleted again. Only the standard library is needed. Nothing is asserted: the machine is
shared.
"""
import argparse
import base64
import concurrent.futures
import os
import pathlib
import re
import sys
import tempfile
import time

import run
import scale

FLAVOR = 'm1.nano'


class Cloud:
    """A user of a cloud, with the endpoints of the services."""

    def __init__(self, env):
        self.token, self.project = run.token(env)
        catalog = run.call('GET', env['OS_AUTH_URL'] + '/auth/catalog', self.token)['catalog']
        self.urls = {service['type']: next(one['url'] for one in service['endpoints'] if one['interface'] == 'public')
                     for service in catalog if service['endpoints']}

    def call(self, service, method, path, body=None):
        url = self.urls[service].rstrip('/') + path
        return run.call(method, url, self.token, body, **{'X-OpenStack-Nova-API-Version': '2.67'})

    def wait(self, service, path, key, ids, status):
        """Until all are in a state; with None, until none is left."""
        while True:
            found = {one['id']: one['status'] for one in self.call(service, 'GET', path)[key] if one['id'] in ids}
            if any(state.lower() == 'error' for state in found.values()):
                sys.exit(f'{key}: {found}')
            if (not found) if status is None else all(found.get(one, '').lower() == status for one in ids):
                return
            time.sleep(0.5)


def idle():
    """Waits until the machine is idle: the cloud goes on for seconds after its last response."""
    def spent():
        times = [int(one) for one in pathlib.Path('/proc/stat').read_text().split('\n')[0].split()[1:]]
        return sum(times), times[3] + times[4]

    for _ in range(60):
        total, free = spent()
        time.sleep(1)
        later, still_free = spent()
        if still_free - free > 0.9 * (later - total):
            return


def changes(project):
    """The requests of a project so far that change something."""
    logs = pathlib.Path(os.environ.get('DEVCLOUD_DIR', '/var/tmp/devcloud')) / 'log'
    change = re.compile(rf'\b{project}\b.*"(?:POST|PUT|PATCH|DELETE) /')
    return sum(len(change.findall((logs / name).read_text()))
               for name in ('neutron-server.log', 'nova-api.log', 'cinder-api.log'))


def all_of(items, work):
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        return list(pool.map(work, items))


class Load:
    """Objects of one kind, with names as in most templates."""

    parameters = None

    def __init__(self, name, count, kind, properties, service, path, key, body, status):
        self.name, self.count, self.status = name, count, status
        named = {f'r{i}': {'type': kind, 'properties': {**properties, 'name': f'named-{i}'}} for i in range(count)}
        self.template = run.hot(named)
        self.service, self.path, self.key, self.body = service, path, key, body

    def bare(self, cloud):
        start = time.time()
        one = self.key[:-1]

        def make(number):
            body = {one: {**self.body, 'name': f'bare-{number}'}}
            return cloud.call(self.service, 'POST', self.path, body)[one]['id']

        ids = set(all_of(range(self.count), make))
        lists = self.path + ('' if self.service == 'network' else '/detail')
        if self.status:
            cloud.wait(self.service, lists, self.key, ids, self.status)
        seconds = time.time() - start
        all_of(ids, lambda one: cloud.call(self.service, 'DELETE', f'{self.path}/{one}'))
        cloud.wait(self.service, lists, self.key, ids, None)
        return seconds


class ThreeTier:
    """The objects of examples/three-tier.yaml, each as soon as those that it needs exist."""

    name, parameters = 'three-tier stack', {'web_flavor': FLAVOR, 'database_flavor': FLAVOR}

    def __init__(self, image, flavor, volumes):
        self.template = (run.ROOT / 'examples/three-tier.yaml').read_text()
        self.image, self.flavor, self.volumes = image, flavor, volumes

    def bare(self, cloud):
        start = time.time()
        pool, made = concurrent.futures.ThreadPoolExecutor(16), {}

        def make(name, work, *needs):
            made[name] = pool.submit(lambda: work(*[made[need].result() for need in needs]))

        def post(service, path, key, **body):
            return cloud.call(service, 'POST', path, {key: body})[key]

        def net(path, key, **body):
            return post('network', f'/v2.0/{path}', key, **body)

        def group(name, rules):
            group = net('security-groups', 'security_group', name=name)
            all_of(rules, lambda rule: net('security-group-rules', 'security_group_rule', direction='ingress',
                                           security_group_id=group['id'], **rule))
            return group

        def port(network, subnet, group):
            return net('ports', 'port', network_id=network['id'], security_groups=[group['id']],
                       fixed_ips=[{'subnet_id': subnet['id']}])

        def server(name, port, apart, data=''):
            body = {'server': {'name': name, 'imageRef': self.image, 'flavorRef': self.flavor,
                               'networks': [{'port': port['id']}], 'user_data': base64.b64encode(data.encode()).decode()},
                    'os:scheduler_hints': {'group': apart['id']}}
            one = cloud.call('compute', 'POST', '/servers', body)['server']
            cloud.wait('compute', '/servers/detail', 'servers', {one['id']}, 'active')
            return one

        def data():
            volume = post(self.volumes, '/volumes', 'volume', name='bare-data', size=1)
            cloud.wait(self.volumes, '/volumes/detail', 'volumes', {volume['id']}, 'available')
            return volume

        def attach(server, volume):
            post('compute', f"/servers/{server['id']}/os-volume_attachments", 'volumeAttachment', volumeId=volume['id'])
            cloud.wait(self.volumes, '/volumes/detail', 'volumes', {volume['id']}, 'in-use')

        public = next(one['id'] for one in cloud.call('network', 'GET', '/v2.0/networks?name=public')['networks'])
        web = [{'protocol': 'icmp'}, *({'protocol': 'tcp', 'port_range_min': at, 'port_range_max': at} for at in (80, 443))]
        make('network', lambda: net('networks', 'network', name='bare'))
        make('subnet', lambda network: net('subnets', 'subnet', network_id=network['id'], cidr='192.168.77.0/24',
                                           ip_version=4), 'network')
        make('router', lambda: net('routers', 'router', name='bare', external_gateway_info={'network_id': public}))
        make('interface', lambda router, subnet: cloud.call(
            'network', 'PUT', f"/v2.0/routers/{router['id']}/add_router_interface", {'subnet_id': subnet['id']}),
            'router', 'subnet')
        make('web access', lambda: group('bare-web', web))
        make('database access', lambda access: group('bare-database', [{
            'protocol': 'tcp', 'port_range_min': 5432, 'port_range_max': 5432, 'remote_group_id': access['id']}]),
            'web access')
        make('apart', lambda: post('compute', '/os-server-groups', 'server_group', name='bare',
                                   policy='soft-anti-affinity'))
        make('web port', port, 'network', 'subnet', 'web access')
        make('database port', port, 'network', 'subnet', 'database access')
        make('web', lambda own, apart, other: server('bare-web', own, apart, other['fixed_ips'][0]['ip_address']),
             'web port', 'apart', 'database port')
        make('database', lambda own, apart: server('bare-database', own, apart), 'database port', 'apart')
        make('data', data)
        make('attachment', attach, 'database', 'data')
        make('address', lambda own, _: net('floatingips', 'floatingip', floating_network_id=public, port_id=own['id']),
             'web port', 'interface')
        made = {name: future.result() for name, future in made.items()}
        seconds = time.time() - start
        self.delete(cloud, made)
        return seconds

    def delete(self, cloud, made):
        def delete(service, path, *names):
            all_of(names, lambda name: cloud.call(service, 'DELETE', f"{path}/{made[name]['id']}"))

        servers = {made[name]['id'] for name in ('web', 'database')}
        delete('network', '/v2.0/floatingips', 'address')
        delete('compute', '/servers', 'web', 'database')
        cloud.wait('compute', '/servers/detail', 'servers', servers, None)
        cloud.wait(self.volumes, '/volumes/detail', 'volumes', {made['data']['id']}, 'available')
        delete(self.volumes, '/volumes', 'data')
        delete('compute', '/os-server-groups', 'apart')
        delete('network', '/v2.0/ports', 'web port', 'database port')
        cloud.call('network', 'PUT', f"/v2.0/routers/{made['router']['id']}/remove_router_interface",
                   {'subnet_id': made['subnet']['id']})
        delete('network', '/v2.0/routers', 'router')
        delete('network', '/v2.0/networks', 'network')
        delete('network', '/v2.0/security-groups', 'database access')
        delete('network', '/v2.0/security-groups', 'web access')
        cloud.wait(self.volumes, '/volumes/detail', 'volumes', {made['data']['id']}, None)


def loads(cloud):
    images = cloud.call('image', 'GET', '/v2/images')['images']
    flavors = cloud.call('compute', 'GET', '/flavors')['flavors']
    volume = next(name for name in ('block-storage', 'volumev3') if name in cloud.urls)
    image, flavor = images[0], next(one for one in flavors if one['name'] == FLAVOR)
    server = {'imageRef': image['id'], 'flavorRef': flavor['id'], 'networks': 'none'}
    return [
        Load('50 networks', 50, 'OS::Neutron::Net', {}, 'network', '/v2.0/networks', 'networks', {}, None),
        Load('20 servers', 20, 'OS::Nova::Server',
             {'image': image['id'], 'flavor': FLAVOR, 'networks': [{'allocate_network': 'none'}]},
             'compute', '/servers', 'servers', server, 'active'),
        Load('20 volumes', 20, 'OS::Cinder::Volume', {'size': 1}, volume, '/volumes', 'volumes', {'size': 1}, 'available'),
        ThreeTier(image['id'], flavor['id'], volume),
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('load', nargs='*', help='words of the loads to run')
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--user', default='demo', help='a user of devcloud (default: %(default)s)')
    parser.add_argument('--busy', action='store_true', help='do not wait until the machine is idle')
    parser.add_argument('--kiln-port', default='8014')
    parser.add_argument('--testcloud', metavar='SECONDS', help='use the simulated cloud, with this response time')
    parser.add_argument('--binary', default=scale.TARGET / 'release/kiln', help='the binary for it (default: %(default)s)')
    options = parser.parse_args()
    if not options.testcloud:
        env = run.account(options.user)
        cloud, kiln = Cloud(env), run.Service('Kiln', options.kiln_port, ['kiln'], env)
        compare(options, cloud, kiln, (lambda: None) if options.busy else idle, lambda: changes(cloud.project))
        return
    with tempfile.TemporaryDirectory(prefix='kiln-bare') as folder:
        words = ['--latency', options.testcloud, '--build-time', '1']
        cluster = scale.Cluster(options.binary, pathlib.Path(folder), None, 1, words)
        try:
            compare(options, Cloud(cluster.rc), run.Service('Kiln', cluster.port, [], cluster.rc), lambda: None, lambda: 0)
        finally:
            cluster.stop()


def compare(options, cloud, kiln, settle, count):
    print(f'{"load":20} {"bare":>9} {"Kiln":>9}  times')
    _, other = kiln.create(run.hot({'other': {'type': 'OS::Heat::Value', 'properties': {'value': 'x'}}}))
    for load in loads(cloud):
        if options.load and not any(word in load.name for word in options.load):
            continue
        bare, made, counts = [], [], []
        for _ in range(options.rounds):
            settle()
            before = count()
            bare.append(load.bare(cloud))
            settle()
            between = count()
            seconds, path = kiln.create(load.template, parameters=load.parameters, pause=0.1)
            made.append(seconds)
            kiln.delete(path)
            counts.append((between - before, count() - between))
        rounds = ', '.join(f'{ours / theirs:.2f}' for theirs, ours in zip(bare, made))
        changed = ', '.join(f'{theirs} and {ours}' for theirs, ours in counts if theirs)
        print(f'{load.name:20} {min(bare):7.2f} s {min(made):7.2f} s  {min(made) / min(bare):.2f}  ({rounds})'
              + (f'  changes: {changed}' if changed else ''), flush=True)
    kiln.delete(other)


if __name__ == '__main__':
    main()
