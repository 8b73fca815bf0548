"""Stand-in of heat.engine.attributes: the schema of an attribute."""
from kiln_plugin.heat.engine import support
from kiln_plugin.heat.errors import refusing

__getattr__ = refusing('heat.engine.attributes')

SHOW_ATTR = 'show'


class Schema:
    """The schema of an attribute."""

    CACHE_LOCAL, CACHE_NONE = 'cache_local', 'cache_none'
    UNKNOWN, STRING, MAP, LIST, INTEGER, BOOLEAN = None, 'String', 'Map', 'List', 'Integer', 'Boolean'

    def __init__(self, description=None, support_status=None, cache_mode=CACHE_LOCAL, type=UNKNOWN):
        self.description, self.cache_mode, self.type = description, cache_mode, type
        self.support_status = support_status or support.SupportStatus()

    def defined(self):
        """The definition for Kiln."""
        defined = {'type': self.type.lower() if self.type else 'any', **self.support_status.defined()}
        if self.description:
            defined['description'] = str(self.description)
        if self.cache_mode == self.CACHE_NONE:
            defined['live'] = True
        return defined
