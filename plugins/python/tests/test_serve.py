"""The example of the documentation, and a plug-in with everything, as processes."""
import http.server
import json
import pathlib
import signal
import tempfile
import threading
import unittest

from tests.process import Process, resource

EVERYTHING = '''
import time
from kiln_plugin import *

class Thing(Resource):
    """A thing.

    More about it.
    """
    type = 'Test::Thing'
    properties = {'does': Property('string', 'What it does.', update=True), 'zone': Property('string', constraint='test.zone')}
    definition = {'since': '1.0'}

    def create(self):
        does = self.properties['does']
        print('creating', does)
        if does == 'sleep':
            time.sleep(0.5)
        if does == 'refuse':
            raise Refused('not so', 'TooOdd', retry_after=5)
        if does == 'crash':
            return {}['size']
        if does == 'return':
            return 5
        if does == 'late':
            self.id = 'made'
            raise ValueError('after it was made')
        self.data['step'] = 'one'
        self.id = 'thing'
        return Wait({'left': 1}, after=0.5)

    def poll(self, operation, state):
        if state['left']:
            raise Wait({'left': state['left'] - 1})
        del self.data['step']

    def find(self):
        if self.mark == 'odd':
            raise CannotTell('no marks')
        return None

    def update(self, changed):
        raise Replace

    def delete(self):
        self.access.request('things', 'DELETE', '/things/' + self.id)

    def needs_replace_failed(self):
        return 0

    def signal(self, details):
        if details == 'crash':
            raise ValueError('no')
        if details == 'odd':
            return 5
        self.metadata['last'] = details
        self.data['signals'] = self.data.get('signals', 0) + 1
        return False if details == 'quiet' else details and 'got ' + details

    def snapshot(self):
        self.data['copy'] = 'copy-' + self.mark
        self.restored = {'does': 'restored'}

    def delete_snapshot(self):
        return Wait(after=2) if self.data.get('copy') else None

def zone(value, access):
    return 'no air, ' + access.user_id if value == 'moon' else None

def hints(hints, server):
    return {**hints, 'flavor': server.properties['flavor'], 'user': server.access.user_id}

serve('everything', [Thing], {'test.zone': zone}, hints)
'''


class Example(unittest.TestCase):
    """examples/note.py."""

    def test_a_note_lives(self):
        with tempfile.TemporaryDirectory() as folder:
            process = Process('examples/note.py', NOTES=folder)
            described = process.call('describe', {'protocol': 1})
            self.assertEqual((described['protocol'], described['name']), (1, 'notes'))
            [note] = described['resource_types']
            self.assertEqual(note['methods'], ['create', 'find', 'update', 'delete', 'attributes', 'check'])
            self.assertEqual(note['summary'], 'A note in a folder.')
            params = resource('Acme::Note', {'text': 'abc'})
            self.assertEqual(process.call('find', params), {'found': False})
            self.assertEqual(process.call('create', params), {'id': 'm1'})
            self.assertEqual(process.call('find', params), {'found': True, 'id': 'm1', 'data': {}})
            params = resource('Acme::Note', {'text': 'abcd'}, 'm1', changed={'text': 'abcd'}, before={'text': 'abc'})
            self.assertEqual(process.call('update', params), {})
            self.assertEqual(process.call('attributes', {**params, 'names': ['length']}), {'length': 4})
            self.assertEqual(process.call('delete', params), {})
            self.assertEqual(process.call('delete', params), {})
            gone = process.call('check', params)
            self.assertEqual(gone['data'], {'kind': 'not_found'})
            self.assertEqual(process.end(), '')

    def test_it_has_about_thirty_lines(self):
        text = (pathlib.Path(__file__).parent.parent / 'examples/note.py').read_text()
        code = [line for line in text.splitlines() if line.strip() and not line.startswith(('#', '"""'))]
        self.assertLess(len(code), 35)


class Everything(unittest.TestCase):
    """What types can do and do wrong."""

    def setUp(self):
        self.process = Process('-c', EVERYTHING)
        self.addCleanup(self.process.child.stdout.close)

    def create(self, does):
        return self.process.call('create', resource('Test::Thing', {'does': does}))

    def tearDown(self):
        if self.process.child.poll() is None:
            self.process.end()

    def test_signals_and_snapshots(self):
        def signal(details):
            return self.process.call('signal', resource('Test::Thing', id='thing', signal=details))
        self.assertEqual(signal('go'), {'data': {'signals': 1}, 'event': 'got go', 'metadata': {'last': 'go'}})
        self.assertEqual(signal('quiet')['event'], False)
        self.assertNotIn('event', signal(None))
        self.assertEqual(signal('crash')['message'], 'ValueError: no')
        self.assertIn('signal returned 5', signal('odd')['message'])
        made = self.process.call('snapshot', resource('Test::Thing', id='thing'))
        self.assertEqual(made, {'data': {'copy': 'copy-m1'}, 'restored': {'does': 'restored'}})
        left = resource('Test::Thing', id='thing', data=made['data'])
        self.assertEqual(self.process.call('delete_snapshot', left), {'after': 2})
        self.assertIsNone(self.process.call('delete_snapshot', resource('Test::Thing', id='thing')))

    def test_definition(self):
        [thing] = self.process.call('describe', {})['resource_types']
        self.assertEqual(thing['methods'], ['create', 'poll', 'find', 'update', 'delete', 'needs_replace_failed', 'signal',
                                            'snapshot', 'delete_snapshot'])
        self.assertEqual((thing['summary'], thing['since']), ('A thing.', '1.0'))
        self.assertEqual(thing['properties']['zone'], {'type': 'string', 'description': '', 'is': 'test.zone'})

    def test_steps_have_ids_data_and_states(self):
        made = self.create('')
        expected = {'wait': {'state': {'left': 1}, 'after': 0.5}, 'id': 'thing', 'data': {'step': 'one'}}
        self.assertEqual(made, expected)
        params = resource('Test::Thing', id='thing', data={'step': 'one'}, operation='create', state={'left': 1})
        self.assertEqual(self.process.call('poll', params), {'wait': {'state': {'left': 0}, 'after': 1.0}})
        params['state'] = {'left': 0}
        self.assertEqual(self.process.call('poll', params), {'data': {'step': None}})
        self.assertEqual(self.process.call('update', {**params, 'changed': {}, 'before': {}}), {'replace': True})
        self.assertIs(self.process.call('needs_replace_failed', params), False)

    def test_errors(self):
        refused = {'code': 1, 'message': 'not so', 'data': {'kind': 'refused', 'class': 'TooOdd', 'retry_after': 5}}
        self.assertEqual(self.create('refuse'), refused)
        self.assertEqual(self.create('crash'), {'code': -32603, 'message': "KeyError: 'size'"})
        self.assertEqual(self.create('return')['message'], 'TypeError: a method returned 5, expected nothing or Wait')
        self.assertEqual(self.process.call('swim', resource('Test::Thing'))['message'], 'ValueError: there is no method swim')
        said = self.process.end()
        self.assertIn('creating crash', said)
        self.assertIn('Traceback', said)

    def test_an_id_is_reported_before_the_failure(self):
        late = self.create('late')
        self.assertEqual((late['id'], late['wait']['after']), ('made', 0))
        params = resource('Test::Thing', id='made', operation='create', state=late['wait']['state'])
        told = self.process.call('poll', params)
        self.assertEqual((told['message'], told['data']), ('ValueError: after it was made', {'kind': 'failed'}))

    def test_searches(self):
        self.assertEqual(self.process.call('find', resource('Test::Thing')), {'found': False})
        told = self.process.call('find', resource('Test::Thing', mark='odd'))
        self.assertEqual(told, {'found': None, 'why': 'no marks'})

    def test_constraints(self):
        params = {'constraint': 'test.zone', 'value': 'moon', 'access': resource('x')['access']}
        told = self.process.call('validate_constraint', params)
        self.assertEqual(told, {'valid': False, 'why': 'no air, u1'})
        self.assertTrue(self.process.call('validate_constraint', {**params, 'value': 'mars'})['valid'])

    def test_scheduler_hints(self):
        params = resource('OS::Nova::Server', {'flavor': 'm1.large'}, hints={'rack': 'r7'})
        told = self.process.call('scheduler_hints', params)
        self.assertEqual(told, {'hints': {'rack': 'r7', 'flavor': 'm1.large', 'user': 'u1'}})
        params['resource']['properties'] = {}
        self.assertEqual(self.process.call('scheduler_hints', params)['message'], "KeyError: 'flavor'")

    def test_calls_run_at_the_same_time(self):
        slow = self.process.send('create', resource('Test::Thing', {'does': 'sleep'}))
        fast = self.process.send('find', resource('Test::Thing'))
        self.assertEqual([self.process.answer()[0], self.process.answer()[0]], [fast, slow])

    def test_it_ends_with_its_input_and_not_by_signals(self):
        self.process.call('describe', {})
        self.process.child.send_signal(signal.SIGTERM)
        self.process.child.send_signal(signal.SIGINT)
        self.process.call('describe', {})
        self.process.end()

    def test_requests_to_services(self):
        asked = []

        class Service(http.server.BaseHTTPRequestHandler):
            def do_DELETE(self):
                asked.append((self.path, self.headers['X-Auth-Token']))
                status = {'/v1/things/a': 204, '/v1/things/b': 404, '/v1/things/c': 429, '/v1/things/d': 503,
                          '/v1/things/e': 401}[self.path]
                self.send_response(status)
                if status == 429:
                    self.send_header('Retry-After', '7')
                self.end_headers()
                self.wfile.write(b'' if status == 204 else json.dumps({'why': status}).encode())

            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Service)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f'http://127.0.0.1:{server.server_port}/v1/'
        catalog = [{'type': 'things', 'endpoints': [{'interface': 'public', 'region': 'R1', 'url': url}]}]

        def delete(name, catalog=catalog):
            return self.process.call('delete', resource('Test::Thing', id=name, catalog=catalog))

        self.assertEqual(delete('a'), {})
        self.assertEqual(asked, [('/v1/things/a', 't1')])
        self.assertEqual(delete('b')['data'], {'kind': 'not_found'})
        self.assertEqual(delete('c')['data'], {'kind': 'over_limit', 'retry_after': 7})
        self.assertEqual(delete('e')['data'], {'kind': 'unauthorized'})
        self.assertIn('HTTP 503: {"why": 503}', delete('d')['message'])
        self.assertEqual(delete('d')['data'], {'kind': 'unavailable'})
        self.assertEqual(delete('a', [])['data'], {'kind': 'not_found', 'class': 'EndpointNotFound'})


if __name__ == '__main__':
    unittest.main()
