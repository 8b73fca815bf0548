"""The clients of a plug-in: shelves are files."""
import os
import pathlib

FOLDER = pathlib.Path(os.environ.get('CRATES', '/tmp'))


class NotFound(Exception):
    http_status = 404


class Shelves:
    def create(self, flag):
        (FOLDER / 'shelf').write_text(str(flag))
        return 'shelf'

    def get(self, name):
        return {'name': name, 'content': (FOLDER / name).read_text()}

    def delete(self, name):
        if not (FOLDER / name).exists():
            raise NotFound(name)
        (FOLDER / name).unlink()


class Warehouse:
    shelves = Shelves()


def client(name, context):
    assert name == 'warehouse' and context.auth_token == 't1'
    return Warehouse()
