"""Stand-in of heat.engine.properties: the schema of a property, and the values of the properties of a resource."""
import collections.abc

from kiln_plugin.heat.engine import support
from kiln_plugin.heat.errors import NotCovered, refusing

__getattr__ = refusing('heat.engine.properties')


class Schema:
    """The schema of a property."""

    INTEGER, STRING, NUMBER, BOOLEAN, MAP, LIST, ANY = 'Integer', 'String', 'Number', 'Boolean', 'Map', 'List', 'Any'

    def __init__(self, data_type, description=None, default=None, schema=None, required=False, constraints=None,
                 implemented=True, update_allowed=False, immutable=False, support_status=None, allow_conversion=False):
        self.type, self.description, self.default, self.schema = data_type, description, default, schema
        self.required, self.constraints, self.implemented = required, constraints or [], implemented
        self.update_allowed, self.immutable, self.allow_conversion = update_allowed, immutable, allow_conversion
        self.support_status = support_status or support.SupportStatus()

    def defined(self, place):
        """The definition for Kiln; `place` is the name in a refusal."""
        if not isinstance(self, Schema):
            raise NotCovered(f'the schema of {place}: it is no properties.Schema')
        if self.allow_conversion:
            raise NotCovered(f'allow_conversion of {place}')
        defined = {'type': self.type.lower(), **self.support_status.defined()}
        if self.description:
            defined['description'] = str(self.description)
        for name in ('required', 'immutable'):
            if getattr(self, name):
                defined[name] = True
        if self.update_allowed:
            defined['update'] = True
        if not self.implemented:
            defined['implemented'] = False
        if self.default is not None:
            defined['default'] = self.default
        for constraint in self.constraints:
            if constraint.key in defined:
                raise NotCovered(f'several constraints {constraint.key} of {place}')
            defined[constraint.key] = constraint.defined()
        if self.schema is not None:
            if self.type == self.MAP:
                inner = self.schema.items()
                defined['properties'] = {name: Schema.defined(each, f'{place}.{name}') for name, each in inner}
            else:
                defined['items'] = Schema.defined(self.schema, f'{place}.*')
        return defined

    def filled(self, value):
        """A value with all keys of nested maps."""
        if value is None or self.schema is None:
            return value
        if self.type == self.MAP:
            return {name: each.filled(value.get(name, each.default)) for name, each in self.schema.items()}
        return [self.schema.filled(item) for item in value]


class Properties(collections.abc.Mapping):
    """The values of the properties of a schema, with defaults; None for those without a value."""

    def __init__(self, schema, data, context=None):
        self.schema, self.data, self.context = schema, data, context

    def __getitem__(self, name):
        if name not in self.schema:
            raise KeyError(f'Invalid Property {name}')
        value = self.data.get(name)
        return self.schema[name].filled(self.schema[name].default if value is None else value)

    def __contains__(self, name):
        return name in self.schema

    def __iter__(self):
        return iter(self.schema)

    def __len__(self):
        return len(self.schema)

    def __getattr__(self, name):
        raise NotCovered(f'Properties.{name}')
