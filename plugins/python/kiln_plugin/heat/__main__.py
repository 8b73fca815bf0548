"""python3 -m kiln_plugin.heat [--name NAME] [--clients MODULE] MODULE…"""
import argparse
import sys

from kiln_plugin.heat import serve_modules
from kiln_plugin.heat.errors import NotCovered
from kiln_plugin.heat.modules import load


def main():
    parser = argparse.ArgumentParser(
        prog='kiln_plugin.heat', description='Runs classes of Heat resource plug-ins as a plug-in of Kiln.')
    parser.add_argument('modules', nargs='+', metavar='MODULE', help='file, or name of a module, with resource_mapping()')
    parser.add_argument('--name', default='heat', help='name of the plug-in in messages [default: heat]')
    parser.add_argument('--clients', metavar='MODULE',
                        help='file or module with a function client(name, context), for self.client()')
    arguments = parser.parse_args()
    try:
        clients = load(arguments.clients).client if arguments.clients else None
        serve_modules(arguments.name, arguments.modules, clients)
    except NotCovered as error:
        sys.exit(str(error))


if __name__ == '__main__':
    main()
