"""A Heat resource plug-in in the style of those that operators have, with a service that is a folder of JSON files."""
import json
import os
import pathlib

from heat.common import exception
from heat.common.i18n import _
from heat.engine import attributes
from heat.engine import constraints
from heat.engine import properties
from heat.engine import resource
from heat.engine import support
from oslo_log import log as logging

LOG = logging.getLogger(__name__)
FOLDER = pathlib.Path(os.environ.get('CRATES', '/tmp'))


class Crate(resource.Resource):
    """A crate in a warehouse."""

    support_status = support.SupportStatus(version='5.0.0')

    PROPERTIES = (
        NAME, SIZE, LABELS, PARTS, ZONE, OUTCOME,
    ) = (
        'name', 'size', 'labels', 'parts', 'zone', 'outcome',
    )

    _PART_KEYS = (PART_KIND, PART_COUNT) = ('kind', 'count')

    ATTRIBUTES = (WEIGHT, OWNER) = ('weight', 'owner')

    properties_schema = {
        NAME: properties.Schema(properties.Schema.STRING, _('Name of the crate.')),
        SIZE: properties.Schema(
            properties.Schema.INTEGER, _('Size in litres.'), default=10, update_allowed=True,
            constraints=[constraints.Range(min=1, max=1000)]),
        LABELS: properties.Schema(
            properties.Schema.LIST, schema=properties.Schema(properties.Schema.STRING), update_allowed=True),
        PARTS: properties.Schema(
            properties.Schema.LIST, _('What is in it.'),
            schema=properties.Schema(properties.Schema.MAP, schema={
                PART_KIND: properties.Schema(properties.Schema.STRING, required=True),
                PART_COUNT: properties.Schema(properties.Schema.INTEGER, default=1),
            })),
        ZONE: properties.Schema(
            properties.Schema.STRING, constraints=[constraints.CustomConstraint('warehouse.zone')], update_allowed=True),
        OUTCOME: properties.Schema(
            properties.Schema.STRING, default='good', update_allowed=True,
            constraints=[constraints.AllowedValues(['good', 'bad', 'worse', 'object'])],
            support_status=support.SupportStatus(
                status=support.DEPRECATED, version='6.0.0', message=_('Do not use it.'),
                previous_status=support.SupportStatus(version='5.0.0'))),
    }

    attributes_schema = {
        WEIGHT: attributes.Schema(_('Weight in kilograms.'), type=attributes.Schema.INTEGER),
        OWNER: attributes.Schema(_('User who made it.'), cache_mode=attributes.Schema.CACHE_NONE),
    }

    def _path(self):
        return FOLDER / self.resource_id

    def _load(self):
        if not self._path().exists():
            raise exception.EntityNotFound(entity='Crate', name=self.resource_id)
        return json.loads(self._path().read_text())

    def _save(self, crate):
        self._path().write_text(json.dumps(crate))

    def handle_create(self):
        LOG.info('making a crate')
        if self.properties[self.OUTCOME] == 'worse':
            raise exception.Error(message=_('There are no more crates.'))
        name = self.properties[self.NAME] or self.physical_resource_name()
        self.resource_id_set('crate-' + name)
        weight = sum(part[self.PART_COUNT] for part in self.properties[self.PARTS] or [])
        self._save({'size': self.properties[self.SIZE], 'weight': weight, 'owner': self.context.user_id, 'checks': 0})
        self.data_set('made_by', self.stack.name)
        if self.properties[self.OUTCOME] == 'object':
            return LOG
        return {'id': self.resource_id, 'wanted': 2}

    def check_create_complete(self, cookie):
        crate = self._load()
        crate['checks'] += 1
        self._save(crate)
        if self.properties[self.OUTCOME] == 'bad':
            raise exception.ResourceInError(resource_status='BROKEN', status_reason='it fell')
        return crate['checks'] >= cookie['wanted']

    def handle_update(self, json_snippet, tmpl_diff, prop_diff):
        after = json_snippet.properties(self.properties_schema, self.context)
        if self.SIZE in prop_diff and prop_diff[self.SIZE] < self.properties[self.SIZE]:
            raise resource.UpdateReplace(self.name)
        crate = self._load()
        crate['size'] = after[self.SIZE]
        self._save(crate)

    def handle_delete(self):
        if self.resource_id is None:
            return
        try:
            self._load()
        except exception.EntityNotFound:
            return
        self._path().unlink()
        return self.resource_id

    def check_delete_complete(self, resource_id):
        return resource_id is None or not (FOLDER / resource_id).exists()

    def handle_check(self):
        self._verify_check_conditions([
            {'attr': 'size', 'expected': self.properties[self.SIZE], 'current': self._load()['size']}])

    def handle_signal(self, details=None):
        if details == 'nothing':
            raise resource.NoActionRequired(res_name=self.name, reason='there is nothing to do')
        if details == 'fire':
            raise exception.Error(message=_('The crate is on fire.'))
        self.data_set('signal', str(details))
        return 'moved to %s' % details if details else None

    def handle_snapshot(self):
        copy = 'copy-of-' + self.resource_id
        (FOLDER / copy).write_text(self._path().read_text())
        self.data_set('copy', copy)
        return copy

    def check_snapshot_complete(self, copy):
        return (FOLDER / copy).exists()

    def handle_delete_snapshot(self, snapshot):
        copy = snapshot['resource_data'].get('copy')
        if copy:
            (FOLDER / copy).unlink(missing_ok=True)
        return copy

    def check_delete_snapshot_complete(self, copy):
        return copy is None or not (FOLDER / copy).exists()

    def handle_restore(self, defn, restore_data):
        size = json.loads((FOLDER / restore_data['resource_data']['copy']).read_text())['size']
        kept = {key: value for key, value in self.properties.data.items() if value is not None}
        return defn.freeze(properties=dict(kept, size=size))

    def _resolve_attribute(self, name):
        return self._load().get(name)

    def _show_resource(self):
        return self._load()

    def parse_live_resource_data(self, resource_properties, resource_data):
        return {self.SIZE: resource_data['size']}

    def validate(self):
        super().validate()
        if self.properties[self.SIZE] == 13:
            raise exception.StackValidationFailed(message=_('Crates of 13 litres are bad luck.'))

    def find_by_mark(self, mark):
        """What Heat does not have: the object of a create that got no answer."""
        path = FOLDER / ('crate-' + (self.properties[self.NAME] or self.physical_resource_name()))
        return path.name if path.exists() else None


class Shelf(resource.Resource):
    """A shelf, by a client with an entity."""

    default_client_name = 'warehouse'
    entity = 'shelves'
    properties_schema = {'odd': properties.Schema(properties.Schema.STRING)}

    def handle_create(self):
        if self.properties['odd']:
            return self.stack.outputs
        made = self.client().shelves.create(self.client_plugin().is_not_found(KeyError()))
        self.resource_id_set(made)


class Zone(constraints.BaseCustomConstraint):
    expected_exceptions = (KeyError,)

    def validate_with_client(self, clients, value):
        {'a': 1, 'b': 2}[value]


def constraint_mapping():
    return {'warehouse.zone': Zone}


def resource_mapping():
    return {'Warehouse::Crate': Crate, 'Warehouse::Shelf': Shelf}
