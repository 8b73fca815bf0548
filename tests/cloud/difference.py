"""What two lives of a template have in common: values that differ by nature get the same names, the rest is compared."""
import base64
import binascii
import collections
import copy
import json
import re
import urllib.parse

import yaml

from life import inner

UUID = re.compile(r'(?<![0-9a-f])(?:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{32})(?![0-9a-f])')
REQUEST = re.compile(r'req-[0-9a-f-]{36}')
TIME = re.compile(r'\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:?\d\d)?'
                  r'|\b\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT')
MAC = re.compile(r'(?<![\w:])([0-9a-f]{2}:){5}[0-9a-f]{2}(?![\w:])')
ADDRESS = re.compile(r'\b\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}\b(?!/)')
HOST = re.compile(r'\bhost-\d+-\d+-\d+-\d+\b')
LOCAL = re.compile(r'127\.0\.0\.\d')
PORT = {'8000': 'cfn', '8010': 'cfn', '8004': 'api', '8014': 'api'}
ENGINE = re.compile(r'127\.0\.0\.1:(8000|8010|8004|8014)\b')
PART = re.compile(r'Content-Type: (text/\S+);.*|Content-Disposition: .*filename="?([^"\n]+)')
BOUNDARY = re.compile(r'={15}\d+={2}|\bkiln-[0-9a-f]{8,}\b')
PASSWORD = re.compile(r'("(?:password|secret_access_key)": ")[^"]{32}"')
TOKEN = re.compile(r'\bgAAAAA[\w=-]+')
SIGNED = re.compile(r'\b(Signature|AWSAccessKeyId|Timestamp|temp_url_sig|temp_url_expires)=[^&"\s]+')
NUMBERED = re.compile(r'(/os-aggregates/)\d+')
# The name of the project of a side.
PROJECT = re.compile(r'\btypes-(?:peer|kiln)-\d\b')
# The random part of the name of a resource.
RANDOM = re.compile('-[a-z0-9]{12}(?![a-z0-9])')
MEMBER = re.compile('[a-z0-9]{12}')
# Keys of values that the service of a stack chooses at random.
SECRETS = {'password', 'SecretAccessKey', 'secret_access_key', 'adminPass', 'secret', 'blob'}
# Keys of objects whose values differ between two objects with the same properties.
VOLATILE = {
    'created_at', 'updated_at', 'created', 'updated', 'revision_number', 'hostId', 'launched_at', 'progress', 'accessIPv6',
    'OS-EXT-SRV-ATTR:host', 'OS-EXT-SRV-ATTR:hypervisor_hostname', 'OS-EXT-SRV-ATTR:instance_name',
    'OS-EXT-SRV-ATTR:reservation_id', 'OS-SRV-USG:launched_at', 'OS-EXT-STS:task_state', 'provider:segmentation_id',
    'os-vol-mig-status-attr:name_id', 'host', 'os-vol-host-attr:host', 'timestamp', 'state_timestamp', 'serial', 'version',
    'x-timestamp', 'x-trans-id', 'x-openstack-request-id', 'host_name', 'binding:host_id', 'standard_attr_id', 'transferred_at', 'created_on', 'OS-EXT-SRV-ATTR:ramdisk_id', 'availability_zones', 'share_server_id',
}


class Names:
    """The names of one side's IDs and other values that differ by nature."""

    def __init__(self, life, shared):
        """`shared`: the IDs that both sides mention, which stay as they are."""
        self.life, self.shared, self.known = life, shared, {}
        # Some objects of Nova have numbers.
        self.numbers = {physical for _, physical in life.physical if physical.isdigit()}
        known = collections.defaultdict(list)
        self.members = {logical for logical, _ in life.physical
                        if MEMBER.fullmatch(logical) and logical not in life.case.resources}
        for logical, physical in life.physical:
            for one in UUID.findall(physical):
                if one not in shared:
                    # The object's own resource, rather than one that has its ID, or has it in its ID.
                    known[one].append((one != physical, logical in life.case.tested(), logical))
        numbers = collections.Counter()
        for one, logicals in known.items():
            logical = min(logicals)[2]
            logical = 'member' if logical in self.members else RANDOM.sub('-*', logical)
            numbers[logical] += logical != 'member'
            self.known[one] = f'{{{logical}}}' if numbers[logical] < 2 else f'{{{logical} {numbers[logical]}}}'
        self.known |= {life.id: '{stack}', life.project: '{project}'}
        self.given = json.dumps(life.case.resources) + json.dumps(life.case.steps)
        stack = re.escape(life.stack)
        self.generated = re.compile(rf'\b(?:{stack}|{stack[:2]})-[\w-]+', re.IGNORECASE)
        self.member = re.compile('|'.join(sorted(self.members)) or '$.')

    def text(self, text):
        if text in self.numbers:
            return '<number>'
        text = LOCAL.sub('127.0.0.1', text)
        text = ENGINE.sub(lambda port: f'127.0.0.1:{PORT[port[1]]}', text)
        text = NUMBERED.sub(r'\1<number>', text)
        text = TOKEN.sub('<token>', REQUEST.sub('<request>', text))
        text = self.generated.sub(lambda name: RANDOM.sub('-*', name[0]), text)
        text = self.member.sub('<member>', text)
        text = UUID.sub(lambda one: self.known.get(one[0]) or (one[0] if one[0] in self.shared else '<id>'), text)
        text = TIME.sub(lambda one: one[0] if one[0] in self.given else '<time>', text)
        text = PROJECT.sub('{project}', text)
        text = PASSWORD.sub(r'\1<password>"', text)
        text = HOST.sub('host-<address>', text)
        text = MAC.sub(lambda one: one[0] if one[0] in self.given else '<mac>', text)
        text = ADDRESS.sub(lambda one: one[0] if one[0] in self.given or one[0].startswith('127.') else '<address>', text)
        return SIGNED.sub(r'\1=*', BOUNDARY.sub('<boundary>', text))

    def plain(self, value, is_object=False):
        """The value with names; in objects also without volatile keys, and with lists in one order."""
        if isinstance(value, dict):
            return {self.text(key): self.plain(self.readable(key, item), is_object) for key, item in value.items()
                    if not (is_object and (key in VOLATILE or '_types-' in key or key == 'id' and isinstance(item, int)))}
        if isinstance(value, list):
            items = [self.plain(item, is_object) for item in value]
            return sorted(items, key=lambda item: json.dumps(item, sort_keys=True)) if is_object else items
        if isinstance(value, int) and str(value) in self.numbers:
            return '<number>'
        if isinstance(value, str) and value.startswith(('{', '[')):
            try:
                return {'JSON': self.plain(json.loads(value), is_object)}
            except ValueError:
                pass
        return self.text(value) if isinstance(value, str) else value

    def readable(self, key, value):
        """User data as text, definitions of workflows as data, random secrets by a name."""
        if key in SECRETS and isinstance(value, str) and value not in self.given:
            return f'<{key}>'
        if key == 'definition' and isinstance(value, str):
            return yaml.safe_load(value)
        if key.endswith('user_data') and isinstance(value, str):
            try:
                value = base64.b64decode(value, validate=True).decode()
            except (binascii.Error, UnicodeDecodeError):
                return value
            # The programs that Heat and Kiln add for agents are their own: only what the parts are is compared.
            return PART.findall(value) if value.startswith('Content-Type: multipart/') else value
        return value


def mentioned(phases):
    return set(UUID.findall(json.dumps(phases, default=vars)))


def flat(value, path=''):
    """Path -> scalar of all parts; the lines of a text are its parts."""
    if isinstance(value, str) and '\n' in value:
        value = value.split('\n')
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from flat(item, f'{path}.{key}' if path else str(key))
    elif isinstance(value, list) and value:
        for number, item in enumerate(value):
            yield from flat(item, f'{path}.{number}')
    elif path or value != {}:
        yield path, value


def fields(what, peer, kiln):
    """The differing fields: (name, value of the peer, value of Kiln); `<none>` is a missing one."""
    peer, kiln = dict(flat(peer)), dict(flat(kiln))
    for path in dict.fromkeys([*peer, *kiln]):
        one, other = peer.get(path, '<none>'), kiln.get(path, '<none>')
        if one != other:
            yield f'{what}{path}', one, other


def requests(names, observed):
    """Key -> bodies of the requests, with names."""
    found = collections.defaultdict(list)
    for one in observed.get('requests', []):
        body = names.plain(definition(one))
        if one.method == 'POST':
            body = stated(body)
        if one.headers:
            body = {'headers': names.plain(one.headers), 'body': body}
        found[f'{one.method} {one.service} {names.text(urllib.parse.unquote(one.path)).replace("/v2.0/lbaas", "/v2/lbaas").rstrip("/")}'].append(body)
    return found


def definition(one):
    """The body of a request; definitions for Mistral are YAML."""
    is_text = one.service == 'workflowv2' and isinstance(one.body, str)
    return yaml.safe_load(one.body) if is_text else one.body


def stated(value):
    """The body of a create without its nulls: to the services they are the same as nothing."""
    if isinstance(value, dict):
        return {key: stated(item) for key, item in value.items() if item is not None}
    return [stated(item) for item in value] if isinstance(value, list) else value


def without_marks(observed):
    """The requests of Kiln without those that replace the mark of a new object by the description, or by the name, of
    the template: the request that creates the object gets it."""
    made, rest = {}, []
    for one in observed.get('requests', []):
        own, path = inner(one.body), one.path.rstrip('/')
        if one.method == 'POST' and inner(one.answer).get('id'):
            made[f'{path}/{inner(one.answer)["id"]}'] = one = copy.deepcopy(one)
        elif path in made and len(own) == 1 and next(iter(own)) in ('description', 'name'):
            inner(made[path].body).update(own)
            continue
        rest.append(one)
    return observed | {'requests': rest}


def compare(peer, kiln):
    """Yields the differences of two lives."""
    shared = mentioned(peer.phases) & mentioned(kiln.phases)
    of_peer, of_kiln = Names(peer, shared), Names(kiln, shared)
    for label in dict.fromkeys([*peer.phases, *kiln.phases]):
        one, other = peer.phases.get(label, {}), without_marks(kiln.phases.get(label, {}))
        states = [*parts(('refused', 'stack'), label, of_peer, of_kiln, one, other)]
        yield from states
        if any(field.endswith((': stack status', ': refused code')) for field, _, _ in states):
            continue
        yield from parts(('resources', 'attributes', 'outputs'), label, of_peer, of_kiln, one, other)
        theirs, ours = requests(of_peer, one), requests(of_kiln, other)
        for key in dict.fromkeys([*theirs, *ours]):
            yield from bodies(f'{label}: {key}', theirs.get(key, []), ours.get(key, []))
        left, right = objects(of_peer, one), objects(of_kiln, other)
        for key in dict.fromkeys([*left, *right]):
            # Objects that only one side made: their requests differ.
            if key in left and key in right:
                yield from bodies(f'{label}: object {key}', left[key], right[key])


def parts(names, label, of_peer, of_kiln, peer, kiln):
    for part in names:
        is_object = part in ('attributes', 'outputs')
        theirs, ours = of_peer.plain(peer.get(part, {}), is_object), of_kiln.plain(kiln.get(part, {}), is_object)
        if part == 'attributes':
            # One difference for a resource that only Kiln shows.
            for name in [name for name in ours if ours[name] and not theirs.get(name)]:
                yield f'{label}: {part} {name}', theirs.pop(name, None), ours.pop(name)
        yield from fields(f'{label}: {part} ', theirs, ours)


def objects(names, observed):
    """Key -> objects with this path, in one order."""
    found = collections.defaultdict(list)
    for key, value in observed.get('objects', {}).items():
        found[names.text(key)].append(names.plain(value, True))
    return {key: sorted(values, key=lambda value: json.dumps(value, sort_keys=True)) for key, values in found.items()}


def bodies(key, peer, kiln):
    """Requests or objects with the same path: pairs of equal ones do not matter, nor does their order."""
    rest = list(kiln)
    unequal = [body for body in peer if body not in rest or rest.remove(body)]
    for body in unequal:
        if not rest:
            yield f'{key} only the peer', body, '<none>'
            continue
        nearest = min(rest, key=lambda other: len([*fields('', body, other)]))
        rest.remove(nearest)
        yield from fields(f'{key} ', body, nearest)
    for body in rest:
        yield f'{key} only Kiln', '<none>', body
