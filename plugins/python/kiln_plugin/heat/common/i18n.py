"""Stand-in of heat.common.i18n: texts are not translated."""
from kiln_plugin.heat.errors import refusing

__getattr__ = refusing('heat.common.i18n')


def _(text):
    return text


_LE = _LI = _LW = _
