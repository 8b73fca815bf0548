"""Classes of Heat plug-ins as types of Kiln."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

from tests.process import ROOT, Process, resource


class HeatClasses(unittest.TestCase):
    """tests/heat_plugin.py, run by `python3 -m kiln_plugin.heat`."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.process = Process('-m', 'kiln_plugin.heat', '--name', 'warehouse', '--clients', 'tests/heat_clients.py',
                               'tests/heat_plugin.py', CRATES=folder.name)
        self.addCleanup(self.end)
        self.said = None

    def end(self):
        if self.said is None:
            self.said = self.process.end()
        return self.said

    def crate(self, properties=None, id=None, type_name='Warehouse::Crate', **more):
        return resource(type_name, {'size': 10, 'outcome': 'good', **(properties or {})}, id, **more)

    def created(self, **properties):
        made = self.process.call('create', self.crate(properties))
        self.assertNotIn('code', made)
        return made

    def test_definition(self):
        described = self.process.call('describe', {'protocol': 1})
        self.assertEqual((described['name'], described['constraints']), ('warehouse', ['warehouse.zone']))
        crate = next(each for each in described['resource_types'] if each['type'] == 'Warehouse::Crate')
        self.assertEqual(crate['methods'], ['create', 'poll', 'find', 'update', 'delete', 'attributes', 'check', 'live',
                                            'validate', 'signal', 'snapshot', 'delete_snapshot'])
        self.assertEqual((crate['summary'], crate['since'], crate['class']), ('A crate in a warehouse.', '5.0.0', 'Crate'))
        size = {'type': 'integer', 'description': 'Size in litres.', 'update': True, 'default': 10,
                'range': {'min': 1, 'max': 1000}}
        self.assertEqual(crate['properties']['size'], size)
        parts = crate['properties']['parts']['items']['properties']
        self.assertEqual(parts['kind'], {'type': 'string', 'required': True})
        self.assertEqual(crate['properties']['zone']['is'], 'warehouse.zone')
        status = [{'status': 'deprecated', 'since': '6.0.0', 'message': 'Do not use it.'},
                  {'status': 'supported', 'since': '5.0.0'}]
        self.assertEqual(crate['properties']['outcome']['status'], status)
        self.assertEqual(crate['attributes']['owner']['live'], True)

    def test_signals_and_snapshots(self):
        id = self.created()['id']

        def signal(details):
            return self.process.call('signal', self.crate({}, id, signal=details))
        self.assertEqual(signal('a'), {'data': {'signal': 'a'}, 'event': 'moved to a'})
        self.assertEqual(signal(None), {'data': {'signal': 'None'}})
        self.assertEqual(signal('nothing'), {'event': False})
        self.assertEqual(signal('fire')['message'], 'The crate is on fire.')
        # What restores it is read from the snapshot, not from the properties.
        made = self.process.call('snapshot', self.crate({'size': 7}, id))
        self.assertEqual((made['data'], made['wait']['state']), ({'copy': f'copy-of-{id}'}, {'cookie': f'copy-of-{id}'}))
        poll = self.crate({'size': 7}, id, data=made['data'], operation='snapshot', state=made['wait']['state'])
        self.assertEqual(self.process.call('poll', poll), {'restored': {'size': 10}})
        self.assertTrue((self.folder / f'copy-of-{id}').exists())
        self.assertIsNone(self.process.call('delete_snapshot', self.crate({}, id, data=made['data'])))
        self.assertFalse((self.folder / f'copy-of-{id}').exists())

    def test_a_crate_lives(self):
        parts = [{'kind': 'nail', 'count': 5}, {'kind': 'screw'}]
        made = self.created(parts=parts)
        self.assertEqual((made['id'], made['data']), ('crate-stack-it-1', {'made_by': 'stack'}))
        self.assertEqual(made['wait'], {'state': {'cookie': {'id': 'crate-stack-it-1', 'wanted': 2}}, 'after': 0})
        poll = self.crate({}, made['id'], data=made['data'], operation='create', state=made['wait']['state'])
        self.assertEqual(self.process.call('poll', poll)['wait']['after'], 1)
        self.assertEqual(self.process.call('poll', poll), {})
        asked = {**self.crate({}, made['id']), 'names': ['weight', 'owner', 'show']}
        told = self.process.call('attributes', asked)
        self.assertEqual((told['weight'], told['owner'], told['show']['size']), (6, 'u1', 10))
        self.assertEqual(self.process.call('live', asked), {'size': 10})
        self.assertEqual(self.process.call('check', asked), {})

        update = self.crate({'size': 20}, made['id'], before={'size': 10, 'outcome': 'good'}, changed={'size': 20})
        self.assertEqual(self.process.call('update', update), {})
        told = self.process.call('check', asked)
        self.assertEqual(told['message'], "'size': expected '10', got '20'")
        update = self.crate({'size': 5}, made['id'], before={'size': 20, 'outcome': 'good'}, changed={'size': 5})
        self.assertEqual(self.process.call('update', update), {'replace': True})

        self.assertEqual(self.process.call('find', asked)['id'], made['id'])
        deleted = self.process.call('delete', asked)
        self.assertEqual(deleted['wait']['state'], {'cookie': made['id']})
        poll = {**asked, 'operation': 'delete', 'state': deleted['wait']['state']}
        self.assertEqual(self.process.call('poll', poll), {})
        self.assertEqual(list(self.folder.iterdir()), [])
        self.assertEqual(self.process.call('find', asked), {'found': False})
        self.assertEqual(self.process.call('check', asked)['data'], {'kind': 'not_found', 'class': 'EntityNotFound'})
        self.assertIsNone(self.process.call('attributes', asked)['weight'])

    def test_failures_have_heats_texts(self):
        made = self.created(outcome='bad')
        poll = self.crate({'outcome': 'bad'}, made['id'], operation='create', state=made['wait']['state'])
        told = self.process.call('poll', poll)
        self.assertEqual(told['message'], 'Went to status BROKEN due to "it fell"')
        self.assertEqual(told['data'], {'kind': 'in_error', 'class': 'ResourceInError'})
        told = self.process.call('create', self.crate({'outcome': 'worse'}))
        self.assertEqual((told['message'], told['data']), ('There are no more crates.', {'kind': 'failed', 'class': 'Error'}))
        told = self.process.call('validate', self.crate({'size': 13}))
        self.assertEqual(told['message'], 'Crates of 13 litres are bad luck.')
        self.assertIsNone(self.process.call('validate', self.crate()))

    def test_constraints(self):
        params = {'constraint': 'warehouse.zone', 'value': 'a', 'access': resource('x')['access']}
        self.assertTrue(self.process.call('validate_constraint', params)['valid'])
        told = self.process.call('validate_constraint', {**params, 'value': 'z'})
        self.assertEqual(told, {'valid': False, 'why': "'z'"})

    def test_clients_and_entities(self):
        shelf = self.crate(type_name='Warehouse::Shelf')
        shelf['resource']['properties'] = {'odd': None}
        self.assertEqual(self.process.call('create', shelf), {'id': 'shelf'})
        shelf['resource']['id'] = 'shelf'
        told = self.process.call('attributes', {**shelf, 'names': ['show']})
        self.assertEqual(told, {'show': {'name': 'shelf', 'content': 'False'}})
        self.assertEqual(self.process.call('delete', shelf), {})
        self.assertEqual(self.process.call('delete', shelf), {})

    def test_what_is_not_covered_is_named_when_it_is_used(self):
        shelf = self.crate(type_name='Warehouse::Shelf')
        shelf['resource']['properties'] = {'odd': 'yes'}
        told = self.process.call('create', shelf)
        self.assertEqual(told['message'], 'NotCovered: kiln_plugin.heat does not cover stack.outputs')
        made = self.created(outcome='object')
        poll = self.crate({}, made['id'], operation='create', state=made['wait']['state'])
        text = 'kiln_plugin.heat does not cover Crate.handle_create: a result that is not JSON (Logger)'
        self.assertIn(text, self.process.call('poll', poll)['message'])
        self.assertIn('Traceback', self.end())


class Refusals(unittest.TestCase):
    """What is not covered is named at the start."""

    HEAD = ('from heat.engine import resource, properties, attributes\n'
            'def resource_mapping():\n    return {"A::B": B}\n')

    def refused(self, text):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / 'odd_plugin.py'
            path.write_text(text)
            ran = subprocess.run([sys.executable, '-m', 'kiln_plugin.heat', str(path)], cwd=ROOT, text=True,
                                 capture_output=True, stdin=subprocess.DEVNULL, timeout=20)
        self.assertEqual(ran.returncode, 1, ran.stderr)
        return ran.stderr.strip().splitlines()[-1]

    def test_names(self):
        prefix = 'kiln_plugin.heat does not cover '
        body = 'class B(resource.Resource):\n    '
        for text, name in (
                (f'{self.HEAD}{body}def child_template(self, details=None): pass', 'A::B: B.child_template'),
                (f'{self.HEAD}{body}def translation_rules(self, properties): return []', 'A::B: B.translation_rules'),
                ('from heat.engine import stack_resource', 'module heat.engine.stack_resource'),
                ('from heat.engine.resources import signal_responder', 'module heat.engine.resources'),
                ('from heat.common import exception\nexception.StackExists', 'heat.common.exception.StackExists'),
                (f'{self.HEAD}{body}properties_schema = {{"p": properties.Schema("String", allow_conversion=True)}}',
                 'allow_conversion of A::B.p'),
        ):
            self.assertEqual(self.refused(text), prefix + name)

    def test_a_module_without_a_mapping(self):
        self.assertIn('has no resource_mapping()', self.refused('import json'))


if __name__ == '__main__':
    unittest.main()
