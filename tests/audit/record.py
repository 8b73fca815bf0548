"""Records what the audit filter of keystonemiddleware says of requests: the data of crates/audit/tests/real.rs.

    python3 -m venv VENV; VENV/bin/pip install keystonemiddleware==13.0.1 pycadf==4.1.0 oslo.messaging webob
    VENV/bin/python tests/audit/record.py > crates/audit/tests/data/real.json

The filter runs as in the pipeline of Heat, behind auth_token: the headers that auth_token sets are set here. The requests are all
routes of the REST API of Heat, and cases of their own.
"""
import json
import pathlib
import re
import sys

import webob
from keystonemiddleware import audit
from oslo_config import cfg

HERE = pathlib.Path(__file__).resolve().parent
PROJECT, STACK = '5f1c7a9a0d6e4b3c9d2e1f0a9b8c7d6e', '0d9a8c7b-1234-4321-8abc-0123456789ab'
VALUES = {'tenant_id': PROJECT, 'stack_name': 'web', 'stack_id': STACK, 'resource_name': 'server', 'event_id': 'e1',
          'type_name': 'OS::Nova::Server', 'template_version': 'heat_template_version.2018-08-31', 'config_id': 'c1',
          'deployment_id': 'd1', 'server_id': 's1', 'snapshot_id': 'n1', 'output_key': 'url', 'path': 'resources', 'subpath': 'x'}
CATALOG = [
    {'type': 'compute', 'name': 'nova', 'endpoints': [{'publicURL': 'http://nova:8774/v2.1', 'region': 'r'}]},
    {'type': 'orchestration', 'name': 'heat', 'endpoints': [
        {'region': 'r', 'publicURL': f'http://heat:8004/v1/{PROJECT}',
         'adminURL': f'http://admin:8004/v1/{PROJECT}', 'internalURL': f'http://inside:8004/v1/{PROJECT}'}]},
]
HEADERS = {'X-User-Id': 'u1', 'X-User-Name': 'alice', 'X-Project-Id': PROJECT, 'X-Auth-Token': 'gAAAAABn-token-of-alice',
           'X-Identity-Status': 'Confirmed', 'User-Agent': 'python-heatclient'}


class Kept:
    def __init__(self):
        self.events = []

    def notify(self, context, event_type, payload):
        self.events.append({'event_type': event_type, 'payload': payload})


def events(status, method, url, headers=HEADERS, catalog=CATALOG, conf=None, address='192.0.2.7'):
    def app(environ, start):
        start(f'{status} x', [])
        return [b'']

    filter_ = audit.AuditMiddleware(app, **(conf or {}))
    filter_._notifier = kept = Kept()
    request = webob.Request.blank(url, method=method, headers=headers, environ={'REMOTE_ADDR': address})
    request.environ['openstack.request_id'] = 'req-1'
    if catalog is not None:
        request.environ['HTTP_X_SERVICE_CATALOG'] = json.dumps(catalog)
    request.get_response(filter_)
    for event in kept.events:
        # They differ in each run.
        for name in ('id', 'eventTime', 'tags'):
            assert event['payload'].pop(name)
        for reporter in event['payload'].get('reporterchain', []):
            assert reporter.pop('reporterTime')
    return kept.events


def main():
    cfg.CONF([], project='heat')
    mapped = {'audit_map_file': str(HERE / 'heat_api_audit_map.conf')}
    own = {'audit_map_file': str(HERE / 'own_map.conf')}
    routes = json.loads((HERE / 'routes.json').read_text())
    cases = []

    def case(name, status, method, url, **more):
        conf = more.get('conf', mapped)
        found = events(status, method, url, **{**more, 'conf': conf})
        # What is usual is not repeated.
        about = {'name': name, 'status': status, 'method': method, 'url': url, 'map': pathlib.Path(conf.get('audit_map_file', '')).name}
        about |= {k: v for k, v in conf.items() if k != 'audit_map_file'}
        about |= {k: v for k, v in more.items() if k != 'conf'}
        cases.append({**about, 'events': found})

    for method, path in routes:
        url = re.sub(r'\{stack_name:arn[^}]*\}', f'arn:openstack:heat::{PROJECT}:stacks/web/{STACK}', path)
        url = re.sub(r'\{path:(\w+)[^}]*\}', r'\1', url)
        for name, value in VALUES.items():
            url = url.replace('{' + name + '}', value)
        case(f'{method} {path}', 200, method, f'http://heat:8004/v1{url}')
    stacks = f'http://heat:8004/v1/{PROJECT}/stacks'
    case('failed', 409, 'POST', stacks)
    case('a redirection is a success', 302, 'GET', f'{stacks}/web')
    case('a query', 200, 'GET', f'{stacks}?limit=2&marker=a%20b')
    case('a slash at the end', 200, 'GET', f'{stacks}/')
    case('json at the end', 200, 'GET', f'{stacks}.json')
    case('an encoded path', 200, 'GET', f'http://heat:8004/v1/{PROJECT}/resource_types/OS%3A%3ANova%3A%3AServer')
    case('patch', 202, 'PATCH', f'{stacks}/web/{STACK}')
    case('head', 200, 'HEAD', stacks)
    case('options', 204, 'OPTIONS', stacks)
    case('the admin URL', 200, 'GET', stacks.replace('heat:8004', 'admin:8004'))
    case('the internal URL', 200, 'GET', stacks.replace('heat:8004', 'inside:8004'))
    case('another host', 200, 'GET', stacks.replace('heat:8004', 'other'))
    case('another port', 200, 'GET', stacks.replace('heat:8004', 'heat:9999'))
    case('no catalog', 200, 'GET', stacks, catalog=None)
    case('an endpoint with one URL', 200, 'GET', stacks, catalog=[
        {'type': 'orchestration', 'name': 'heat', 'endpoints': [{'publicURL': 'http://heat:8004/v1'}]}])
    case('a service without endpoints', 200, 'GET', stacks, catalog=[{'type': 'orchestration', 'name': 'heat', 'endpoints': []}])
    case('a map with a type of the catalog', 200, 'GET', stacks.replace('heat:8004', 'other'), conf=own)
    case('own actions', 200, 'POST', f'{stacks}/web/{STACK}/actions', conf=own)
    case('own actions of a method', 200, 'DELETE', f'{stacks}/web', conf=own)
    case('no map', 200, 'POST', stacks, conf={})
    case('no user agent', 200, 'GET', stacks, headers={k: v for k, v in HEADERS.items() if k != 'User-Agent'})
    case('a short token', 200, 'GET', stacks, headers={**HEADERS, 'X-Auth-Token': 'abc'})
    case('an ignored method', 200, 'GET', stacks, conf={**mapped, 'ignore_req_list': 'get, HEAD'})
    case('a method that is not ignored', 200, 'POST', stacks, conf={**mapped, 'ignore_req_list': 'GET'})
    case('an ignored path', 200, 'GET', stacks, conf={**mapped, 'ignore_path_list': f'/healthcheck,/v1/{PROJECT}/stacks'})
    case('a path that is not ignored', 200, 'GET', f'{stacks}/web', conf={**mapped, 'ignore_path_list': f'/v1/{PROJECT}/stacks'})
    lines = ',\n'.join(json.dumps(case, sort_keys=True) for case in cases)
    usual = json.dumps({'headers': HEADERS, 'catalog': CATALOG, 'client': '192.0.2.7', 'request_id': 'req-1'}, sort_keys=True)
    print(f'{{"usual": {usual},\n"cases": [\n{lines}\n]}}')


main()
