#!/usr/bin/env python3
"""Webhooks, with the libraries that their receivers use: Standard Webhooks verifies signatures, CloudEvents reads events.

    tests/clients/webhooks.py [KILN]

The engine is killed while events are sent, receivers hang, refuse and redirect. The commands of `kiln webhook` do the rest.
"""
import http.server
import json
import pathlib
import subprocess
import sys
import threading
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent))
from harness.checks import case, check, equal, finish, until  # noqa: E402
from harness.deployment import KILN  # noqa: E402
from harness.killed import KilledDeployment  # noqa: E402
from harness.pypi import virtual_environment  # noqa: E402
from harness.request import call  # noqa: E402

virtual_environment('webhooks', 'standardwebhooks ~= 1.1', 'cloudevents ~= 1.12')

from cloudevents.http import from_http  # noqa: E402
from standardwebhooks import Webhook  # noqa: E402

WORDS = {'heat_template_version': '2018-08-31',
         'resources': {f'word{number}': {'type': 'OS::Heat::RandomString'} for number in range(4)}}


class Receiver:
    """Verifies and keeps events. `mood`: what it does with a request."""

    def __init__(self):
        receiver = self
        self.got, self.key, self.mood, self.allows = [], None, 'take', True

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = 'HTTP/1.1'

            def do_OPTIONS(self):
                receiver.origin = self.headers['WebHook-Request-Origin']
                self.send_response(200)
                if receiver.allows:
                    self.send_header('WebHook-Allowed-Origin', receiver.origin)
                self.send_header('Content-Length', '0')
                self.end_headers()

            def do_POST(self):
                body = self.rfile.read(int(self.headers['Content-Length']))
                status = receiver.take(self.headers, body)
                self.send_response(status)
                if status == 302:
                    self.send_header('Location', 'http://127.0.0.1:1/')
                self.send_header('Content-Length', '0')
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
        self.server.daemon_threads = True
        self.url = f'http://127.0.0.1:{self.server.server_port}/in?token=planted-url-token'
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def take(self, headers, body):
        if self.mood == 'hang':
            time.sleep(60)
        if self.mood in ('redirect', 'refuse'):
            return 302 if self.mood == 'redirect' else 422
        try:
            Webhook(self.key).verify(body, dict(headers))
            event = from_http(dict(headers), body)
        except Exception as error:
            check('an event is signed and readable', False, f'{type(error).__name__}: {error} {headers}')
            return 400
        self.got.append((headers['webhook-id'], event))
        return 204

    def told(self):
        """Types and sequences, each event where it came first."""
        first = {}
        for identity, event in self.got:
            first.setdefault(identity, (event['type'].removeprefix('orchestration.'), int(event['sequence']), event))
        return list(first.values())


class Commands:
    def __init__(self, kiln):
        self.kiln = kiln

    def __call__(self, *arguments, code=0):
        ran = subprocess.run([KILN, 'webhook', *arguments], capture_output=True, text=True, env=self.kiln.environment())
        check(f'exit code of kiln webhook {" ".join(arguments[:1])}', ran.returncode == code,
              f'{ran.returncode}: {ran.stdout} {ran.stderr}')
        return ran

    def json(self, *arguments):
        return json.loads(self(*arguments, '-f', 'json').stdout)


def made(commands, receiver, *options):
    webhook = commands.json('create', receiver.url, *options)
    receiver.key = webhook['key']
    return webhook['id']


def stack(kiln, name, template=WORDS):
    token, project = kiln.token()
    status, headers, body = call('POST', f'{kiln.url}/{project}/stacks', {'stack_name': name, 'template': template}, token)
    equal(f'{name} is accepted', status, 201)
    return token, f"{kiln.url}/{project}/stacks/{name}/{body['stack']['id']}"


def settled(token, url, state):
    shown = until(lambda: call('GET', url, token=token)[2]['stack'], lambda one: one['stack_status'] == state)
    equal('settled', shown['stack_status'], state)


def killed(kiln, commands):
    """At least once and in order, although engines are killed."""
    receiver = Receiver()
    identity = made(commands, receiver, '--event', '*')
    kiln.begin()
    stacks = []
    for number in range(5):
        stacks.append(stack(kiln, f'killed-{number}'))
        time.sleep(1)
    for token, url in stacks:
        settled(token, url, 'CREATE_COMPLETE')
    token, project = kiln.token()
    shown = call('GET', f'{kiln.url}/{project}/stacks/killed-0/events', token=token)
    wanted = 5 * len(call('GET', shown[1]['Location'], token=token)[2]['events'] if shown[0] == 302 else shown[2]['events'])
    until(lambda: len(receiver.told()), lambda count: count >= wanted, 120)
    kiln.ends.set()
    kiln.killer.join()
    check('engines were killed', kiln.kills > 3, kiln.kills)
    told = receiver.told()
    equal('all events have come', len(told), wanted)
    by_stack = {}
    for kind, sequence, event in told:
        by_stack.setdefault(event['source'], []).append((sequence, kind))
    equal('events of five stacks', len(by_stack), 5)
    for source, events in by_stack.items():
        equal(f'{source}: in order', events, sorted(events))
        equal('the first and the last', (events[0][1], events[-1][1]), ('stack.create.start', 'stack.create.end'))
    equal('places without a gap', sorted(sequence for _, sequence, _ in told), list(range(1, wanted + 1)))
    delivered = commands.json('deliveries', identity, '--limit', '1000')
    equal('all are delivered', {one['Outcome'] for one in delivered}, {'delivered'})
    commands('delete', '--yes', identity)
    equal('no webhook', commands.json('list'), [])


def life(kiln, commands):
    """Test, failures, redelivery, a new key, change, disable."""
    receiver = Receiver()
    identity = made(commands, receiver, '--description', 'tests', '--event', 'stack.*', '--event', 'guard.*')
    shown = commands.json('show', identity)
    equal('what it is', (shown['url'], shown['events'], shown['handshake'], shown['enabled'], 'key' in shown),
          (receiver.url, ['stack.*', 'guard.*'], True, True, False))
    equal('the test event arrives', commands.json('test', identity)['outcome'], 'delivered')
    equal('it says so', receiver.told()[-1][0], 'webhook.test')
    check('the receiver was asked', receiver.origin, receiver.origin)

    old, rotated = receiver.key, commands.json('rotate', identity)
    commands('test', identity)   # the old key still verifies
    receiver.key = rotated['key']
    check('another key', old != rotated['key'] and rotated['old_key_until'], rotated)
    commands('test', identity)
    equal('three tests', len(receiver.told()), 3)

    for mood, error in [('redirect', 'status 302'), ('refuse', 'status 422'), ('hang', 'time')]:
        receiver.mood = mood
        said = commands('test', identity, code=1)
        check(f'{mood} is told', error in said.stderr, said.stderr)
        receiver.mood = 'take'
        until(lambda: commands.json('deliveries', identity)[0]['Outcome'], lambda outcome: outcome == 'delivered', 60, 1)
    check('since when it failed is forgotten', commands.json('show', identity)['failing_since'] is None)

    # A receiver that hangs delays neither stacks nor others.
    slow = Receiver()
    made(commands, slow, '--event', '*')
    slow.mood = 'hang'
    before, begun = len(receiver.told()), time.monotonic()
    token, url = stack(kiln, 'beside')
    settled(token, url, 'CREATE_COMPLETE')
    until(lambda: len(receiver.told()), lambda count: count == before + 2, 8)
    equal('others get their events', [kind for kind, *_ in receiver.told()[before:]], ['stack.create.start', 'stack.create.end'])
    check('at once', time.monotonic() - begun < 8, time.monotonic() - begun)

    again = receiver.told()[before][2]['id']
    count = len(receiver.got)
    commands('redeliver', identity, again)
    until(lambda: len(receiver.got), lambda now: now > count)
    equal('sent again with its ID', receiver.got[-1][0], again)

    commands('set', identity, '--disable')
    said = commands('test', identity, code=1)
    check('a disabled one sends nothing', 'disabled' in said.stderr, said.stderr)
    changed = commands.json('set', identity, '--enable', '--event', '*', '--stack', 'beside')
    equal('changed', (changed['enabled'], changed['events'], changed['stack_id']), (True, ['*'], url.rsplit('/', 1)[1]))

    receiver.allows = False
    commands('set', identity, '--description', 'asked again')
    said = commands('test', identity, code=1)
    check('a receiver must allow it', 'must answer OPTIONS' in said.stderr, said.stderr)


def documented(kiln, commands):
    """An event has the attributes that the manual shows."""
    page = (pathlib.Path(__file__).parent.parent.parent / 'docs/webhooks.md').read_text()
    shown = json.loads(page[page.index('```json') + 7:].split('```')[0])
    receiver = Receiver()
    made(commands, receiver, '--event', 'stack.create.error')
    stack(kiln, 'failing', {'heat_template_version': '2018-08-31', 'resources': {
        'server': {'type': 'OS::Heat::TestResource', 'properties': {'fail': True}}}})
    until(lambda: receiver.got, bool)
    attributes = set(receiver.got[0][1].get_attributes()) | {'data'}
    equal('the attributes', attributes, set(shown))
    data = receiver.got[0][1].data
    equal('the data', set(data), set(shown['data']))
    equal('what happened', (receiver.got[0][1]['type'], data['action'], data['status']),
          (shown['type'], shown['data']['action'], shown['data']['status']))


def refusals(kiln, commands):
    token, project = kiln.token()
    webhooks = f'{kiln.url}/{project}/webhooks'
    for body, text in [
            ({}, "needs a 'url'"), ({'url': 'ftp://x'}, 'does not begin with https://'), ({'url': 'https://x/#a'}, 'fragment'),
            ({'url': 'https://x', 'events': ['disk.*']}, 'no event has the type'), ({'url': 'https://x', 'events': []}, '1 to 20'),
            ({'url': 'https://x', 'secret': 'x'}, "has no 'secret'"), ({'url': 'https://x', 'enabled': 'yes'}, 'true or false'),
            ({'url': 'https://x', 'stack': 'nobody'}, 'could not be found')]:
        status, _, answer = call('POST', webhooks, body, token)
        check(f'{body} is refused', status in (400, 404) and text in json.dumps(answer), f'{status} {answer}')
    for number in range(20):
        status, _, answer = call('POST', webhooks, {'url': 'https://x.example'}, token)
        if status != 201:
            break
    check('a project has a limit', status in (400, 403) and 'maximum webhooks per project' in json.dumps(answer), f'{status} {answer}')
    other = kiln.keystone('admin')
    first = call('GET', webhooks, token=token)[2]['webhooks'][0]['id']
    status, _, answer = call('GET', f'{kiln.url}/{other.project}/webhooks/{first}', token=other.token)
    equal('of another project', status, 404)
    said = commands('show', 'nothing', code=1)
    check('an unknown one', 'Webhook not found' in said.stderr, said.stderr)
    # A private address that the operator has not listed.
    made = call('GET', webhooks, token=token)[2]['webhooks'][-1]['id']
    call('PATCH', f'{webhooks}/{made}', {'url': 'http://169.254.169.254/latest', 'handshake': False}, token)
    said = commands('test', made, code=1)
    check('no address inside', 'no address of 169.254.169.254 may be used' in said.stderr, said.stderr)


def secret(kiln):
    """URLs and keys are neither in the log nor readable in the database."""
    texts = {path.name: path.read_bytes().decode('latin-1') for path in kiln.folder.iterdir() if path.is_file()}
    for name, text in texts.items():
        for planted in ('planted-url-token', 'whsec_'):
            at = text.find(planted)
            check(f'no {planted} in {name}', at < 0, text[max(0, at - 200):at + 50])


def main():
    with KilledDeployment(webhooks={'enabled': 'true', 'networks': '127.0.0.0/8', 'handshake': 'optional', 'timeout': '2'}) as kiln:
        commands = Commands(kiln)
        case(killed, kiln, commands)
        case(life, kiln, commands)
        case(documented, kiln, commands)
        case(refusals, kiln, commands)
        case(secret, kiln)
    finish()


if __name__ == '__main__':
    main()
