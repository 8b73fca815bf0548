"""A resource type: the base class, and the definitions of its properties and attributes."""
import re

from kiln_plugin.access import Access

# What Kiln can call. A class has a method of the same name for each; that of `attributes` is `read`.
METHODS = ('create', 'poll', 'find', 'update', 'delete', 'attributes', 'check', 'suspend', 'resume', 'live', 'validate',
           'needs_replace_failed', 'signal', 'snapshot', 'delete_snapshot')


class Property(dict):
    """A property: its type, its description, and the other keys of docs/resource-types.md: required, update, default,
    allowed, range, length, pattern, find …; `constraint` is the key `is`."""

    def __init__(self, type, description='', **keys):
        if 'constraint' in keys:
            keys['is'] = keys.pop('constraint')
        super().__init__(type=type, description=description, **keys)


class Attribute(dict):
    """An attribute: its type and its description."""

    def __init__(self, type='any', description='', **keys):
        super().__init__(type=type, description=description, **keys)


class Wait(Exception):
    """The result of a method that is not complete: Kiln calls `poll` with the state (JSON) after some seconds."""

    def __init__(self, state=None, after=1.0):
        super().__init__(state)
        self.state = state
        self.after = after


class Replace(Exception):
    """Raised by `update`: the change needs another object."""


class Stack:
    """The stack of a resource."""

    def __init__(self, given):
        self.id = given['id']
        self.name = given['name']
        self.project_id = given['project_id']
        self.root_id = given['root_id']


class Resource:
    """A resource. A type overrides `type`, `properties`, `attributes`, and the methods that it has.

    A new instance is made for every call. Kiln stores `id` and `data` (JSON) after the call; they are there in the next
    one.
    """

    type = None
    properties = {}
    attributes = {}
    # Further keys of the definition (docs/resource-types.md): service, since, name_limit, translate …
    definition = {}

    def __init__(self, params):
        resource = params['resource']
        self.mark = params['mark']
        self.id = resource['id']
        self.name = resource['name']
        self.physical_name = resource['physical_name']
        self.given = resource['given']
        self.metadata = resource['metadata'] or {}
        self.data = dict(resource['data'])
        self.stack = Stack(params['stack'])
        self.access = Access(params['access'])
        # The definitions are in the class.
        self.properties = resource['properties']
        self.before = params.get('before')
        # Set by `snapshot`: the properties that restore the object.
        self.restored = None
        # The attributes that `read` is asked for; it may return more.
        self.names = params.get('names', [])

    def create(self):
        """Creates the object and returns its ID, or sets `id` and returns or raises Wait.

        `mark` is unique for this attempt: `find` must find the object by it.
        """
        raise NotImplementedError

    def delete(self):
        """Deletes the object. If it does not exist, it may raise NotFound."""
        raise NotImplementedError

    def poll(self, operation, state):
        """Continues an operation (create, update, delete …) after Wait: returns nothing at its end, or another Wait."""
        raise NotImplementedError

    def find(self):
        """The ID of the object with this `mark`; None if there is none. Raises CannotTell."""
        raise NotImplementedError

    def update(self, changed):
        """Changes the object; `changed` are the changed properties with the new values, `before` all old ones."""
        raise NotImplementedError

    def read(self):
        """The attributes: a map; `show` is the whole object."""
        raise NotImplementedError

    def check(self):
        """Raises an error if the object is not healthy."""
        raise NotImplementedError

    def suspend(self):
        """Suspends the object."""
        raise NotImplementedError

    def resume(self):
        """Resumes the object."""
        raise NotImplementedError

    def live(self):
        """The values of properties in the object, to find what others have changed."""
        raise NotImplementedError

    def validate(self):
        """Raises Refused if the properties do not fit together. Unknown values are None."""
        raise NotImplementedError

    def needs_replace_failed(self):
        """Whether a failed object must be replaced by the next update."""
        raise NotImplementedError

    def signal(self, details):
        """Handles a signal with these details (JSON, or None). Returns a text for the event, nothing for the usual text,
        or False for no event. May change `data` and `metadata`. May be called again after a failure."""
        raise NotImplementedError

    def snapshot(self):
        """Makes a snapshot, unless one with this `mark` exists. `data` of its end belongs to the snapshot, and so does
        `restored`: the properties that restore the object."""
        raise NotImplementedError

    def delete_snapshot(self):
        """Deletes the snapshot that `data` describes; `id` is the object at that time. Returns nothing if it does not
        exist any more, or Wait(after=seconds) to be called again. There are no properties and no `mark`."""
        raise NotImplementedError

    @classmethod
    def has(cls, method):
        """Whether the class has a method."""
        return getattr(cls, method) is not getattr(Resource, method)

    @classmethod
    def described(cls):
        """The definition for Kiln."""
        methods = [name for name in METHODS if cls.has('read' if name == 'attributes' else name)]
        summary = re.split(r'\n\s*\n', (cls.__doc__ or '').strip())[0]
        definition = {'type': cls.type, 'summary': ' '.join(summary.split()) or f'{cls.type}.', 'methods': methods}
        if cls.properties:
            definition['properties'] = cls.properties
        if cls.attributes:
            definition['attributes'] = cls.attributes
        definition.update(cls.definition)
        return definition
