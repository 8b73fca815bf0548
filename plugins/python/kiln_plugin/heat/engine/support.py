"""Stand-in of heat.engine.support: since when something is supported."""
from kiln_plugin.heat.errors import refusing

__getattr__ = refusing('heat.engine.support')

SUPPORT_STATUSES = UNKNOWN, SUPPORTED, DEPRECATED, UNSUPPORTED, HIDDEN = (
    'UNKNOWN', 'SUPPORTED', 'DEPRECATED', 'UNSUPPORTED', 'HIDDEN')


class SupportStatus:
    """A status since a version, and the one before it."""

    def __init__(self, status=SUPPORTED, message=None, version=None, previous_status=None, substitute_class=None):
        self.status, self.message, self.version = status, message, version
        self.previous_status, self.substitute_class = previous_status, substitute_class

    def defined(self):
        """The keys of a definition of Kiln."""
        found, at = [], self
        while at is not None:
            entry = {'status': at.status.lower()}
            if at.version is not None:
                entry['since'] = at.version
            if at.message is not None:
                entry['message'] = at.message
            found.append(entry)
            at = at.previous_status
        if len(found) == 1 and self.status == SUPPORTED and self.message is None:
            return {'since': self.version} if self.version else {}
        return {'status': found}
