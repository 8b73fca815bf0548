#part-handler
"""Stores the parts for heat-cfntools as files in the directories that its commands read."""
import os

FOLDERS = ("/var/lib/heat-cfntools", "/var/lib/cloud/data")


def list_types():
    return ["text/x-cfninitdata"]


def handle_part(data, ctype, filename, payload):
    if ctype == "__end__":
        return
    for folder in FOLDERS:
        if not os.path.isdir(folder):
            os.makedirs(folder, 0o700)
    if ctype == "__begin__":
        return
    mode = "wb" if isinstance(payload, bytes) else "w"
    for folder in FOLDERS:
        with open(os.path.join(folder, os.path.basename(filename)), mode) as part:
            part.write(payload)
