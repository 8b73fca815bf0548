#!/usr/bin/env python3
"""Measures what the flood of one project does to another: bench/fairness.py KILN

A user lists stacks and shows one, again and again, alone and then while another project sends as many requests as it can from 32
connections. The load generator runs on the same processors. Prints the times of the user in milliseconds (median and 99 %), and
their ratio, with the default budget of a project and without one.
"""
import http.client
import json
import pathlib
import statistics
import subprocess
import sys
import threading
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / 'tests'))
from harness.deployment import Deployment  # noqa: E402

STACKS, CONNECTIONS, SECONDS, REQUESTS = 50, 32, 20, 1500
FLOOD = '''
import http.client, sys, threading, time
port, path, token, connections, end = int(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4]), time.monotonic() + float(sys.argv[5])
answers = {}
def flood():
    connection = http.client.HTTPConnection('127.0.0.1', port)
    while time.monotonic() < end:
        connection.request('GET', path, headers={'X-Auth-Token': token})
        response = connection.getresponse()
        response.read()
        answers[response.status] = answers.get(response.status, 0) + 1
threads = [threading.Thread(target=flood) for _ in range(connections)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(answers)
'''


def times(kiln, project, token, stack):
    connection = http.client.HTTPConnection('127.0.0.1', kiln.port)
    taken = []
    for number in range(REQUESTS):
        path = f'/v1/{project}/stacks' + (f'/{stack}' if number % 2 else '?limit=20')
        start = time.perf_counter()
        connection.request('GET', path, headers={'X-Auth-Token': token})
        response = connection.getresponse()
        response.read()
        taken.append(1000 * (time.perf_counter() - start))
        assert response.status in (200, 302), response.status
        time.sleep(0.01)
    return statistics.median(taken), statistics.quantiles(taken, n=100)[98]


def measure(options):
    with Deployment(kiln=options) as kiln:
        token, project = kiln.token()
        other, other_project = kiln.token('alt_demo')
        template = {'heat_template_version': '2018-08-31', 'resources': {'word': {'type': 'OS::Heat::RandomString'}}}
        for of, where in [(token, project), (other, other_project)]:
            connection = http.client.HTTPConnection('127.0.0.1', kiln.port)
            for number in range(STACKS):
                body = json.dumps({'stack_name': f's{number}', 'template': template})
                connection.request('POST', f'/v1/{where}/stacks', body, {'X-Auth-Token': of, 'Content-Type': 'application/json'})
                response = connection.getresponse()
                response.read()
                assert response.status == 201, response.status
        time.sleep(5)
        alone = times(kiln, project, token, 's1')
        path = f'/v1/{other_project}/stacks'
        flood = subprocess.Popen([sys.executable, '-c', FLOOD, str(kiln.port), path, other, str(CONNECTIONS), str(SECONDS)],
                                 stdout=subprocess.PIPE, text=True)
        time.sleep(2)
        beside = times(kiln, project, token, 's1')
        answers = flood.communicate()[0].strip()
        print(f'{options}: alone median {alone[0]:.1f}, 99 % {alone[1]:.1f}; beside a flood {beside[0]:.1f}, {beside[1]:.1f}; '
              f'ratio of the 99 % {beside[1] / alone[1]:.1f}; the flood got {answers}')


def main():
    for options in ({'request_rate_per_project': '0'}, {}):
        for _ in range(3):
            measure(options)


main()
