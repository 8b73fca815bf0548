#!/usr/bin/env python3
"""A plug-in with one type: Acme::Note, a file in a folder. The name of the file is the mark of the create."""
import os
import pathlib

from kiln_plugin import Attribute, NotFound, Property, Resource, serve

FOLDER = pathlib.Path(os.environ.get('NOTES', '/var/lib/notes'))


class Note(Resource):
    """A note in a folder."""

    type = 'Acme::Note'
    properties = {'text': Property('string', 'The text.', required=True, update=True)}
    attributes = {'length': Attribute('integer', 'Number of characters.')}

    def create(self):
        (FOLDER / self.mark).write_text(self.properties['text'])
        return self.mark

    def find(self):
        return self.mark if (FOLDER / self.mark).exists() else None

    def update(self, changed):
        (FOLDER / self.id).write_text(changed['text'])

    def delete(self):
        (FOLDER / self.id).unlink(missing_ok=True)

    def read(self):
        return {'length': len((FOLDER / self.id).read_text())}

    def check(self):
        if not (FOLDER / self.id).exists():
            raise NotFound(f'Note {self.id} does not exist.')


if __name__ == '__main__':
    serve('notes', [Note])
