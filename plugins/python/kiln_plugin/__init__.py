"""Resource types and custom constraints for Kiln, as a child process (docs/plugins.md).

A type is a class derived from `Resource`; `serve` answers Kiln's calls until Kiln closes the standard input.
"""
from kiln_plugin.access import Access
from kiln_plugin.errors import (Busy, CannotTell, Conflict, Failed, InError, NotFound, OverLimit, PluginError,
                                Refused, Unauthorized, Unavailable)
from kiln_plugin.resource import Attribute, Property, Replace, Resource, Stack, Wait
from kiln_plugin.serve import serve

__all__ = [
    'Access', 'Attribute', 'Busy', 'CannotTell', 'Conflict', 'Failed', 'InError', 'NotFound', 'OverLimit',
    'PluginError', 'Property', 'Refused', 'Replace', 'Resource', 'Stack', 'Unauthorized', 'Unavailable', 'Wait', 'serve',
]
