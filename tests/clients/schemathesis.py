#!/usr/bin/env python3
"""The OpenAPI document, and requests generated from it.

    tests/clients/schemathesis.py [KILN] [SECONDS]

openapi-spec-validator checks the document that the service sends; schemathesis (both from PyPI) sends requests that agree
with it, and others, for 60 seconds with a fixed seed. No response may be a server error, have another content type or shape
than the document says, or accept a request without a token.
"""
import json
import pathlib
import re
import subprocess
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent))
from harness.checks import check, equal, finish  # noqa: E402
from harness.deployment import Deployment  # noqa: E402
from harness.pypi import CLIENTS, virtual_environment  # noqa: E402
from harness.request import call  # noqa: E402

virtual_environment('schemathesis', 'schemathesis', 'openapi-spec-validator', 'pyyaml')

SECONDS = sys.argv[2] if len(sys.argv) > 2 else '60'
CHECKS = ('not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance,'
          'response_headers_conformance,ignored_auth,unsupported_method')
# The paths refer to a stack that exists, so that requests get further than to 404.
CONFIGURATION = '''
[parameters]
tenant_id = "{project}"
stack_name = "probe"
stack_id = "{stack}"
resource_name = "handle"
output_key = "word"
snapshot_id = "{snapshot}"
type_name = "OS::Heat::Value"
template_version = "heat_template_version.2018-08-31"
wait = 0
"body.template" = {template}

[[operations]]
include-operation-id-regex = "^(DeleteStack|AbandonStack|Lookup_delete_stack)$"
parameters = {{ stack_name = "other", stack_id = "00000000-0000-4000-8000-000000000000" }}
'''
TEMPLATE = {
    'heat_template_version': '2018-08-31',
    'parameters': {'word': {'type': 'string', 'default': 'a'}},
    'resources': {'handle': {'type': 'OS::Heat::WaitConditionHandle'},
                  'value': {'type': 'OS::Heat::Value', 'properties': {'value': {'get_param': 'word'}}}},
    'outputs': {'word': {'value': {'get_attr': ['value', 'value']}}},
}


def valid(document):
    """The document agrees with the specification of OpenAPI."""
    from openapi_spec_validator import OpenAPIV31SpecValidator
    errors = [f'{list(error.absolute_path)}: {error.message}' for error in OpenAPIV31SpecValidator(document).iter_errors()]
    check('the document is valid OpenAPI 3.1', not errors, '\n'.join(errors[:20]))


def probe(kiln, token, project):
    """A stack with a snapshot."""
    stacks = f'{kiln.url}/{project}/stacks'
    status, headers, body = call('POST', stacks, {'stack_name': 'probe', 'template': TEMPLATE}, token)
    equal('the stack', status, 201)
    stack = headers['Location']
    for _ in range(100):
        if call('GET', stack, token=token)[2]['stack']['stack_status'] == 'CREATE_COMPLETE':
            break
    snapshot = call('POST', f'{stack}/snapshots', {'name': 'one'}, token)[2]
    return body['stack']['id'], snapshot['id']


def main():
    with Deployment() as kiln:
        root = kiln.url.removesuffix('/v1')
        status, _, document = call('GET', f'{root}/openapi.json')
        equal('the document', (status, document['openapi']), (200, '3.1.0'))
        valid(document)
        token, project = kiln.token('demo')
        stack, snapshot = probe(kiln, token, project)
        configuration = kiln.folder / 'schemathesis.toml'
        configuration.write_text(CONFIGURATION.format(
            project=project, stack=stack, snapshot=snapshot, template=json.dumps('heat_template_version: 2018-08-31\n')))
        ran = subprocess.run(
            [str(CLIENTS / 'schemathesis/bin/schemathesis'), '--config-file', str(configuration), 'run',
             f'{root}/openapi.json', '-H', f'X-Auth-Token: {token}', '--checks', CHECKS, '--seed', '1',
             '--phases', 'examples,coverage,fuzzing', '--max-time', SECONDS, '--request-timeout', '30',
             # With two workers, the parser of CPython 3.11 may fail in one ("AST constructor recursion depth mismatch").
             '--continue-on-failure', '--generation-database', 'none', '--no-color', '--workers', '1'],
            cwd=kiln.folder, capture_output=True, text=True)
        print('\n'.join(ran.stdout.splitlines()[-25:]))
        # Its report of failures and errors begins with a line `=== FAILURES ===` or `=== ERRORS ===`.
        report = re.split('^=+ (?=FAILURES|ERRORS)', ran.stdout, maxsplit=1, flags=re.MULTILINE)[-1]
        check('schemathesis', ran.returncode == 0, report[:3000] + ran.stderr[-2000:])
        log = kiln.log('kiln')
        check('no panic', 'panicked' not in log, log[-3000:])
        status, _, health = call('GET', f'{root}/healthcheck')
        equal('the service is well', status, 200)
    finish()


if __name__ == '__main__':
    main()
