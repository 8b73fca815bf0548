"""Runs classes of Heat's resource plug-ins.

A Heat plug-in is a module with `resource_mapping()`, whose classes are derived from `heat.engine.resource.Resource`.
They run here with stand-ins of the modules of Heat that they import; Heat is not needed. What the stand-ins do not cover
is refused with its name: at the start if a class overrides it, otherwise when it is used.
"""
from kiln_plugin.heat.modules import mappings
from kiln_plugin.heat.types import adapted, constraint
from kiln_plugin.serve import serve

__all__ = ['adapted', 'constraint', 'mappings', 'serve_modules']


def serve_modules(name, modules, clients=None):
    """Serves the types and constraints of Heat plug-ins.

    `modules`: files or names of modules; `clients`: a function that returns what `self.client(name)` is, called with the
    name and the context.
    """
    classes, checks = mappings(modules)
    serve(
        name,
        [adapted(type_name, each, clients) for type_name, each in classes.items()],
        {each: constraint(check, clients) for each, check in checks.items()},
    )
