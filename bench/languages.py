#!/usr/bin/env python3
"""Compares the template languages of Kiln and the Python Heat in one run.

    bench/languages.py

Needs cargo and, as /usr/bin/python3, a Python with Heat and yaql (Debian's python3-heat). Each measure is a process of its
own. Of the times the best of the runs of a second counts, of two at least; memory is the most that the process had, with the interpreter
or binary, which is shown for an empty template too. Nothing is asserted: the machine is shared.
"""
import json
import logging
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
PYTHON = '/usr/bin/python3'
KILN = ['cargo', 'run', '--release', '--quiet', '--manifest-path', str(ROOT / 'Cargo.toml'),
        '-p', 'kiln-template', '--example', 'languages', '--']

SERVER = '''\
  server{i}:
    type: OS::Nova::Server
    properties:
      name: {{list_join: ['-', [{{get_param: 'OS::stack_name'}}, server{i}]]}}
      image: {{get_param: image}}
      flavor: m1.small
      networks: [{{port: {{get_resource: port{i}}}}}]
{filling}'''
PORT = '''\
  port{i}:
    type: OS::Neutron::Port
    properties:
      network: {{get_param: net}}
      fixed_ips: [{{subnet: {{get_param: net}}}}]
      value_specs: {{note: "port number {i}"}}
{filling}'''
HEAD = '''\
heat_template_version: 2021-04-16
parameters:
  image: {type: string, default: cirros}
  net: {type: string, default: private}
resources:
'''
EXPRESSIONS = [
    '$.data.n + 1',
    '$.data.people.where($.age > 40).name',
    '$.data.people.orderBy($.age).select({$.name => $.age})',
    "$.data.people.groupBy($.age mod 10, $.name).toDict(str($[0]), $[1].join(','))",
    'range(100).select($ * $).where($ mod 2 = 0).sum()',
    "$.data.people.select($.name.replace('p', 'q').toUpper()).join(' ')",
    'def(fib, switch($ < 2 => $, true => fib($ - 1) + fib($ - 2))) -> fib(8)',
]


def cluster(resources, size):
    """A template with this number of resources and about this number of bytes."""
    plain = HEAD + ''.join(kind.format(i=i, filling='') for i in range(resources // 2) for kind in [PORT, SERVER])
    words = max(0, (size - len(plain)) // resources - len('    metadata: {note: ""}\n'))
    filling = f'    metadata: {{note: "{("kiln " * words)[:words]}"}}\n'
    return HEAD + ''.join(kind.format(i=i, filling=filling) for i in range(resources // 2) for kind in [PORT, SERVER])


def functions(count):
    """A template with this number of calls in its outputs, four in each."""
    outputs = {f'o{i}': {'value': {'str_replace': {
        'template': {'list_join': ['-', [{'get_param': 'net'}, f'a$x{i}']]},
        'params': {'$x': {'get_param': 'net'}, 'b': 1}}}} for i in range(count // 4)}
    return json.dumps({'heat_template_version': '2021-04-16', 'outputs': outputs,
                       'parameters': {'net': {'type': 'string', 'default': 'private'}}})


def best(run):
    """The input for Kiln's part."""
    shortest, runs, began = float('inf'), 0, time.perf_counter()
    while runs < 2 or time.perf_counter() - began < 1:
        runs += 1
        start = time.perf_counter()
        run()
        shortest = min(shortest, time.perf_counter() - start)
    return shortest


def peer(measure, text):
    """Heat's part, in the Python of the peer: seconds."""
    from heat.common import context, template_format
    from heat.engine import function, resources, stack, template
    from oslo_config import cfg
    cfg.CONF([], project='heat', default_config_files=[])
    logging.disable()
    resources.initialise()
    if measure == 'yaql':
        from heat.engine.hot import functions as hot
        given, parse = json.loads(text), hot.Yaql.get_yaql_parser()
        return best(lambda: [parse(expression).evaluate(given['data'], hot.Yaql._context.create_child_context())
                             for expression in given['expressions']])
    if measure == 'validate':
        return best(lambda: template.Template(template_format.simple_parse(text)).validate())
    user = context.RequestContext(project_id='p', user_id='u', username='u', password='p', auth_url='http://peer')
    start = time.perf_counter()
    parsed = template.Template(template_format.simple_parse(text))
    running = stack.Stack(user, 'bench', parsed, stack_id='11111111-2222-4333-8444-555555555555')
    if measure == 'resolve':
        values = [output._value for output in running.outputs.values()]
        return best(lambda: [function.resolve(value) for value in values])
    parsed.resource_definitions(running)
    return time.perf_counter() - start


def asked(command, measure, text, folder):
    """The output of a part: seconds and bytes."""
    file = folder / measure
    file.write_text(text)
    run = subprocess.run([*command, measure, str(file)], stdout=subprocess.PIPE, text=True, check=True)
    seconds, memory = run.stdout.split()[-2:]
    return float(seconds), int(memory)


def main():
    if sys.argv[1:2] == ['--peer']:
        _, _, measure, file = sys.argv
        seconds = peer(measure, pathlib.Path(file).read_text())
        print(seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
        return
    people = [{'name': f'p{i}', 'age': 20 + i * 7 % 50} for i in range(50)]
    data = {'data': {'n': 41, 'people': people}}
    heat = [PYTHON, __file__, '--peer']
    print(f'{"":76} {"Kiln":>10} {"Heat":>10}  times')
    with tempfile.TemporaryDirectory() as folder:
        yaql = [('yaql', json.dumps({'data': data, 'expressions': [one]}), f'{one}, ms') for one in EXPRESSIONS]
        for measure, text, what in [
                ('validate', cluster(2000, 500_000), '2,000 resources, 500 kB: read and validate, ms'),
                ('resolve', functions(10_000), '10,000 functions: resolve, ms'), *yaql]:
            (ours, _), (theirs, _) = (asked(side, measure, text, pathlib.Path(folder)) for side in [KILN, heat])
            print(f'{what:76} {ours * 1e3:10.3f} {theirs * 1e3:10.2f} {theirs / ours:6.1f}', flush=True)
        for text, what in [(HEAD, 'empty template: most memory, MB'),
                           (cluster(16_000, 4_000_000), '16,000 resources, 4 MB: most memory, MB')]:
            (_, ours), (_, theirs) = (asked(side, 'read', text, pathlib.Path(folder)) for side in [KILN, heat])
            print(f'{what:76} {ours / 1e6:10.1f} {theirs / 1e6:10.1f} {theirs / ours:6.1f}', flush=True)


main()
