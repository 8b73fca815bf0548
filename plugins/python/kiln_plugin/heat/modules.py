"""Loads modules of Heat plug-ins with the stand-ins."""
import importlib
import importlib.abc
import importlib.util
import json
import logging
import pathlib
import sys
import types

from kiln_plugin.heat.common import exception, i18n
from kiln_plugin.heat.engine import attributes, constraints, properties, resource, support
from kiln_plugin.heat.errors import NotCovered

STAND_INS = {
    'heat.common.exception': exception,
    'heat.common.i18n': i18n,
    'heat.engine.attributes': attributes,
    'heat.engine.constraints': constraints,
    'heat.engine.properties': properties,
    'heat.engine.resource': resource,
    'heat.engine.support': support,
}


class Refusal(importlib.abc.MetaPathFinder):
    """Refuses the modules of Heat that have no stand-in."""

    def find_spec(self, fullname, path=None, target=None):
        if fullname.startswith('heat.'):
            raise NotCovered(f'module {fullname}')
        return None


def install():
    """Adds the stand-ins to the modules of this process. Small ones replace modules of oslo that are not installed."""
    if 'heat' in sys.modules:
        return
    for package in ('heat', 'heat.common', 'heat.engine'):
        module = types.ModuleType(package)
        module.__path__ = []
        sys.modules[package] = module
    for name, module in STAND_INS.items():
        sys.modules[name] = module
        parent, _, short = name.rpartition('.')
        setattr(sys.modules[parent], short, module)
    sys.modules['heat'].common = sys.modules['heat.common']
    sys.modules['heat'].engine = sys.modules['heat.engine']
    sys.meta_path.insert(0, Refusal())
    for package, short, content in (('oslo_log', 'log', {'getLogger': logging.getLogger}),
                                    ('oslo_serialization', 'jsonutils', {'dumps': json.dumps, 'loads': json.loads})):
        if importlib.util.find_spec(package) is None:
            outer, inner = types.ModuleType(package), types.ModuleType(f'{package}.{short}')
            outer.__path__ = []
            inner.__dict__.update(content)
            setattr(outer, short, inner)
            sys.modules[package], sys.modules[f'{package}.{short}'] = outer, inner


def load(place):
    """The module of a file or a name."""
    install()
    path = pathlib.Path(place)
    if path.suffix != '.py':
        return importlib.import_module(place)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def mappings(places):
    """The classes by type, and the constraints by name, of all modules."""
    classes, checks = {}, {}
    for place in places:
        module = load(place)
        mapping = getattr(module, 'available_resource_mapping', None) or getattr(module, 'resource_mapping', None)
        constraint_mapping = getattr(module, 'constraint_mapping', None)
        if mapping is None and constraint_mapping is None:
            raise SystemExit(f'{place} has no resource_mapping()')
        classes.update(mapping() if mapping else {})
        checks.update(constraint_mapping() if constraint_mapping else {})
    return classes, checks
