"""Common parts of all kinds: unusual values, formats of values and errors, a stack with the resources of the input."""

import datetime
import dis
from unittest import mock

from heat.common import context, exception, identifier
from heat.engine import attributes, environment, function, node_data, rsrc_defn, stk_defn, template
from oslo_config import cfg

cfg.CONF(args=[], project="heat")

SCALARS = [
    None, True, False, 0, 1, -1, 5, 2.5, 1e16, 1e-7, 123456789012345678901234567890, "", "a", "abc", "Abc", "true",
    "yes", "Off", "1", "1.5", " 5 ", "1_000", "0x1", "nan", "a,b", "a, b,", ",", "[1, 2]", '{"a": 1}',
    '{"a":1,"a":2}', "{bad", "null", "é", "it's", "\n", "x" * 12, "1e5", "٣", '[1.0, 1e3, "\\u00e9"]',
]
IDENTITY = identifier.HeatIdentifier("tenant-1", "teststack", "11111111-2222-4333-8444-555555555555")
# Texts that differ by version, process or Python.
OTHERWISE = [
    "Items to merge must be maps", "Algorithm must be one of", "Ambiguous versions", "receiver", "<class",
    "recognized IP subnet", "Invalid net cidr"]
CONTEXT = context.RequestContext(project_id="tenant-1", user_id="u", username="u", password="p", auth_url="http://peer")


def plain(value):
    """Encodes values that JSON does not support."""
    if isinstance(value, float) and (value != value or abs(value) == float("inf")):
        return {"__float__": repr(value)}
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (set, frozenset)):
        return {"__set__": sorted(plain(item) for item in value)}
    if isinstance(value, datetime.datetime):
        return {"__datetime__": value.isoformat()}
    if isinstance(value, datetime.timedelta):
        return {"__timespan_seconds__": value.total_seconds()}
    if isinstance(value, bytes):
        return {"__bytes_hex__": value.hex()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


def failure(error):
    """An error in the format of the vectors; texts of Python and of libraries are advisory."""
    written = {"class": type(error).__name__, "message": str(error)}
    return {**written, "advisory_message": True} if foreign(error, written["message"]) else written


def foreign(error, message):
    """Whether the error, or its cause, was raised outside of Heat."""
    if error is None or " " not in str(error) or str(error) not in message:
        return False
    if isinstance(error, exception.HeatException):
        return foreign(error.__context__, message)
    last = error.__traceback__
    while last.tb_next:
        last = last.tb_next
    code = last.tb_frame.f_code
    raised = dis.opname[code.co_code[last.tb_lasti]] in ("RAISE_VARARGS", "RERAISE")
    own = any(name in code.co_filename for name in ("/heat/", "/oslo_utils/", "/yaql/"))
    return not raised or not own or any(text in message for text in OTHERWISE) or foreign(error.__context__, message)


def either(key, error_key, make):
    """`{key: value}` or `{error_key: error}`."""
    try:
        return {key: plain(make())}
    except RecursionError:
        raise
    except Exception as error:
        return {error_key: failure(error)}


class Attributes(dict):
    """The attributes of a resource; paths are selected from the values."""

    def __getitem__(self, wanted):
        name, *path = wanted if isinstance(wanted, tuple) else [wanted]
        return attributes.select_from_attribute(super().__getitem__(name), path)


def definition(given):
    """The definition of the stack that an input describes."""
    parsed = template.Template(
        given["template"], files=given.get("files"), env=environment.Environment(given.get("env") or {}))
    nodes = {
        name: node_data.NodeData(
            1, name, "uuid", data.get("reference_id"), Attributes(data.get("attributes", {})),
            data.get("action", "CREATE"), data.get("status", "COMPLETE"))
        for name, data in (given.get("resources") or {}).items() if data is not None}
    stack = stk_defn.StackDefinition(CONTEXT, parsed, IDENTITY, nodes, parent(given.get("parent")))
    stack._zones = given.get("availability_zones", ["nova"])
    return stack


def parent(given):
    """The parent resource of a nested stack."""
    if given is None:
        return None
    facade = mock.Mock()
    facade.metadata_get.return_value = given.get("metadata", {})
    facade.t = rsrc_defn.ResourceDefinition(
        "facade", "OS::Heat::None", metadata=given.get("metadata"), deletion_policy=given.get("deletion_policy"),
        update_policy=given.get("update_policy"))
    return facade


def resolve(expression):
    """A missing value is null at the top level."""
    value = function.resolve(expression)
    return None if value is Ellipsis else value
