#!/usr/bin/env python3
"""Compares a stack with the same calls to the cloud without Kiln.

    devcloud/devcloud up kiln
    bench/bare.py [LOAD...]                # all loads, or those whose name contains a word

For each load, a program creates the objects by the APIs of Neutron, Nova and Cinder, 16 at a time, and waits for them with
lists, twice a second; then Kiln creates a stack of the same objects. Both are repeated in turns, and the shortest time of each
is printed, with Kiln's time as a multiple. Everything is deleted again. Only the standard library is needed. Nothing is
asserted: the machine is shared.
"""
import argparse
import concurrent.futures
import sys
import time

import run

FLAVOR = 'm1.nano'


class Cloud:
    """The user demo of devcloud, with the endpoints of the services."""

    def __init__(self):
        self.token, _ = run.token()
        catalog = run.call('GET', run.account()['OS_AUTH_URL'] + '/auth/catalog', self.token)['catalog']
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


def all_of(items, work):
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        return list(pool.map(work, items))


class Load:
    """Objects of one kind."""

    def __init__(self, name, count, kind, properties, service, path, key, body, status):
        self.name, self.count, self.status = name, count, status
        self.template = run.hot({f'r{i}': {'type': kind, 'properties': properties} for i in range(count)})
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
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('load', nargs='*', help='words of the loads to run')
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--kiln-port', default='8014')
    options = parser.parse_args()
    cloud, kiln = Cloud(), run.Service('Kiln', options.kiln_port, ['kiln'])
    print(f'{"load":20} {"bare":>9} {"Kiln":>9}  times')
    for load in loads(cloud):
        if options.load and not any(word in load.name for word in options.load):
            continue
        bare, made = [], []
        for _ in range(options.rounds):
            bare.append(load.bare(cloud))
            seconds, path = kiln.create(load.template, pause=0.1)
            made.append(seconds)
            kiln.delete(path)
        print(f'{load.name:20} {min(bare):7.2f} s {min(made):7.2f} s  {min(made) / min(bare):.2f}', flush=True)


if __name__ == '__main__':
    main()
