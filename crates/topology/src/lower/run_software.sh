#!/bin/sh
# Runs the operations of this server in their order, and reports the result to the stack.
umask 077
export KILN_FOLDER="${KILN_FOLDER:-/var/lib/kiln}"
mkdir -p "$KILN_FOLDER"
cat > "$KILN_FOLDER/steps.json" << 'KILN_END_OF_STEPS'
@KILN_STEPS@
KILN_END_OF_STEPS
exec python3 - << 'KILN_END_OF_RUNNER'
import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.parse
import urllib.request

URL = '@KILN_URL@'
TOKEN = '@KILN_TOKEN@'
FOLDER = os.environ['KILN_FOLDER']
OWN_ADDRESS = '@KILN_OWN_' + 'ADDRESS@'
OUTPUT = re.compile('@KILN_' + 'OUTPUT:([^:@]+):([^@]+)@')
# By operation: the outputs that others read.
outputs = {}


def own_address():
    """The address that this server reaches the stack from."""
    host = urllib.parse.urlparse(URL).hostname
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((host or '192.0.2.1', 9))
        return probe.getsockname()[0]


def report(status, reason, id='end'):
    body = json.dumps({'status': status, 'reason': reason, 'id': id, 'data': reason}).encode()
    headers = {'Content-Type': 'application/json', 'Accept': 'application/json', 'X-Auth-Token': TOKEN}
    for attempt in range(10):
        try:
            urllib.request.urlopen(urllib.request.Request(URL, body, headers), timeout=30)
            return
        except OSError as error:
            print('The report was not received:', error, file=sys.stderr)
            time.sleep(min(60, 2 ** attempt))


def text(value):
    value = value if isinstance(value, str) else json.dumps(value)
    value = OUTPUT.sub(lambda found: outputs[found[1]][found[2]], value)
    return value.replace(OWN_ADDRESS, own_address()) if OWN_ADDRESS in value else value


with open(os.path.join(FOLDER, 'steps.json')) as file:
    steps = json.load(file)
report('SUCCESS', 'The operations begin.', 'begin')
for number, step in enumerate(steps):
    path = os.path.join(FOLDER, '%03d-%s' % (number, step['name']))
    with open(path, 'w') as file:
        file.write(step['script'])
    os.chmod(path, 0o700)
    inputs = {name: text(value) for name, value in step['inputs'].items()}
    outputs_path = path + '.output'
    environment = dict(os.environ, heat_outputs_path=outputs_path, **inputs)
    try:
        ran = subprocess.run([path], env=environment, stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    except OSError as error:
        report('FAILURE', '%s cannot be run: %s' % (step['name'], error.strerror))
        sys.exit(1)
    output = ran.stdout.decode(errors='replace')
    with open(path + '.log', 'w') as file:
        file.write(output)
    if ran.returncode != 0:
        report('FAILURE', '%s failed with exit code %d: %s' % (step['name'], ran.returncode, output[-1000:].strip()))
        sys.exit(1)
    # Operations write their outputs as the hooks of heat-agents expect them.
    found = outputs[step['name']] = {'deploy_stdout': output}
    for name in step.get('outputs', []):
        if os.path.exists(outputs_path + '.' + name):
            with open(outputs_path + '.' + name) as file:
                found[name] = file.read().rstrip('\n')
        elif name not in found:
            report('FAILURE', '%s has not written its output %s.' % (step['name'], name))
            sys.exit(1)
report('SUCCESS', 'All operations have run.')
KILN_END_OF_RUNNER
