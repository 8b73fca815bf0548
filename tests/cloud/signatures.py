"""Signed URLs that are forged, foreign, expired or replayed (for agents.py): the answers of Heat with Keystone, and the
log.

Neither Heat nor Kiln knows the secret keys: Keystone checks the signatures, of the versions 2 and 4, and how old they
are.
"""
import base64
import datetime
import hashlib
import hmac
import http.server
import json
import re
import threading
import urllib.error
import urllib.request
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from harness.checks import check, equal

# Keystone's `[credential] auth_ttl`.
LIFE = datetime.timedelta(minutes=15)


def now():
    return datetime.datetime.now(datetime.timezone.utc)


class FrontKeystone:
    """The Keystone of the simulated cloud, with a clock that may be ahead: a signature with a time is refused (401) 15
    minutes after it. `ahead` is how much later it is for an access key.
    """

    def __init__(self, url):
        self.ahead = {}
        front, port_of = self, urlsplit(url)

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = 'HTTP/1.1'

            def log_message(self, *_):
                pass

            def do_GET(self):
                body = self.rfile.read(int(self.headers.get('Content-Length', 0)))
                if self.path.endswith('/ec2tokens') and front.is_expired(json.loads(body)['ec2Credentials']):
                    return self.reply(401, {'Content-Type': 'application/json'},
                                      b'{"error": {"code": 401, "title": "Unauthorized", "message": "Not authorized"}}')
                headers = {name: value for name, value in self.headers.items() if name.lower() != 'host'}
                address = f'{port_of.scheme}://{port_of.netloc}{self.path}'
                request = urllib.request.Request(address, body or None, headers, method=self.command)
                try:
                    answer = urllib.request.urlopen(request, timeout=30)
                except urllib.error.HTTPError as error:
                    answer = error
                self.reply(answer.status, answer.headers, answer.read())

            do_POST = do_GET

            def reply(self, status, headers, body):
                self.send_response(status)
                for name, value in headers.items():
                    if name.lower() not in ('content-length', 'transfer-encoding', 'connection', 'date', 'server'):
                        self.send_header(name, value)
                self.send_header('Content-Length', str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.url = f'http://127.0.0.1:{server.server_address[1]}{port_of.path}'

    def is_expired(self, given):
        params, headers = given['params'], given['headers']
        text = params.get('Timestamp') or headers.get('X-Amz-Date') or params.get('X-Amz-Date')
        if not text:
            return False
        try:
            # With and without separators.
            time = datetime.datetime.strptime(re.sub('[-:]', '', text), '%Y%m%dT%H%M%SZ')
        except ValueError:
            return True
        end = time.replace(tzinfo=datetime.timezone.utc) + LIFE
        return now() + self.ahead.get(given['access'], datetime.timedelta()) > end


def version_2(verb, url, access, secret, **params):
    """The URL with other parameters and a signature of version 2."""
    parts = urlsplit(url)
    params = {'SignatureMethod': 'HmacSHA256', 'SignatureVersion': '2', 'AWSAccessKeyId': access, **params}
    query = '&'.join(f'{key}={quote(params[key], safe="-_~")}' for key in sorted(params))
    text = f'{verb}\n{parts.netloc}\n{unquote(parts.path)}\n{query}'
    mac = base64.b64encode(hmac.new(secret.encode(), text.encode(), hashlib.sha256).digest()).decode()
    return f'{parts.scheme}://{parts.netloc}{parts.path}?{query}&Signature={quote(mac, safe="")}'


def version_4(verb, url, body, access, secret, time):
    """The URL without parameters, and the headers with a signature of version 4."""
    parts = urlsplit(url)
    # Heat signs the path as WebOb writes it, with colons.
    path, date = unquote(parts.path), time.strftime('%Y%m%dT%H%M%SZ')
    scope = f'{date[:8]}/RegionOne/cloudformation/aws4_request'
    request = (f'{verb}\n{path}\n\nhost:{parts.netloc}\nx-amz-date:{date}\n\nhost;x-amz-date\n'
               f'{hashlib.sha256(body).hexdigest()}')
    text = f'AWS4-HMAC-SHA256\n{date}\n{scope}\n{hashlib.sha256(request.encode()).hexdigest()}'
    key = f'AWS4{secret}'.encode()
    for part in scope.split('/'):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    signature = hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
    authorization = (f'AWS4-HMAC-SHA256 Credential={access}/{scope}, SignedHeaders=host;x-amz-date, '
                     f'Signature={signature}')
    return f'{parts.scheme}://{parts.netloc}{path}', {'X-Amz-Date': date, 'Authorization': authorization}


TEMPLATE = {
    'heat_template_version': '2018-08-31',
    'resources': {
        'one': {'type': 'AWS::CloudFormation::WaitConditionHandle'},
        'other': {'type': 'AWS::CloudFormation::WaitConditionHandle'},
        'user': {'type': 'AWS::IAM::User'},
        'key': {'type': 'AWS::IAM::AccessKey', 'properties': {'UserName': {'get_resource': 'user'}}},
        'group': {'type': 'OS::Heat::AutoScalingGroup', 'properties': {
            'min_size': 1, 'max_size': 5, 'resource': {'type': 'OS::Heat::RandomString'}}},
        'up': {'type': 'OS::Heat::ScalingPolicy', 'properties': {
            'adjustment_type': 'exact_capacity', 'scaling_adjustment': 1,
            'auto_scaling_group_id': {'get_resource': 'group'}}}},
    'outputs': {'one': {'value': {'get_resource': 'one'}}, 'other': {'value': {'get_resource': 'other'}},
                'access': {'value': {'get_resource': 'key'}},
                'secret': {'value': {'get_attr': ['key', 'SecretAccessKey']}},
                'alarm': {'value': {'get_attr': ['up', 'alarm_url']}}},
}
BODY = json.dumps({'Status': 'SUCCESS', 'UniqueId': '1', 'Data': 'd', 'Reason': 'r'}).encode()


class Sender:
    """Sends signals, and counts the refusals by their status."""

    def __init__(self):
        self.refused = []

    def __call__(self, url, headers=None, verb='PUT', body=BODY):
        """The status and the code of the error, if there is one."""
        headers = {'Content-Type': 'application/json' if verb == 'POST' else '', **(headers or {})}
        try:
            request = urllib.request.Request(url, body, headers, method=verb)
            return urllib.request.urlopen(request, timeout=30).status, None
        except urllib.error.HTTPError as error:
            self.refused.append(error.code)
            code = re.search('<Code>(.*?)</Code>', error.read().decode())
            return error.code, code and code.group(1)


def signatures(heat, folder, front):
    ids = {name: heat.create(name, TEMPLATE) for name in ('signed', 'signed-too')}
    for name in ids:
        equal(f'the stack {name}', heat.settled(name)['stack_status'], 'CREATE_COMPLETE')
    out, too = heat.outputs('signed'), heat.outputs('signed-too')
    send, fine, denied = Sender(), (200, None), (403, 'AccessDenied')
    own, foreign = (dict(parse_qsl(urlsplit(out[name]).query)) for name in ('one', 'other'))
    key = out['access'], out['secret']
    changed = BODY.replace(b'"d"', b'"e"')

    def signed_2(age, url=out['one'], key=key, **params):
        params = {'Timestamp': (now() - age).strftime('%Y-%m-%dT%H:%M:%SZ'), **params}
        return version_2('PUT', url, *key, **params)

    def minutes(count):
        return datetime.timedelta(minutes=count)

    equal('a signature', send(out['one']), fine)
    # Forged.
    forged = version_2('PUT', out['one'], own['AWSAccessKeyId'], 'another', Timestamp=own['Timestamp'])
    equal('a forged signature', send(forged), denied)
    later = out['one'].replace(quote(own['Timestamp'], safe=''), '2036-01-01T00%3A00%3A00Z')
    equal('a later time', send(later), denied)
    equal('another method', send(version_2('POST', out['one'], *key)), denied)
    equal('an unknown key', send(signed_2(minutes(0), key=('0' * 32, out['secret']))), denied)
    # Foreign.
    equal('the signature of another key',
          send(out['one'].replace(quote(own['Signature'], safe=''), quote(foreign['Signature'], safe=''))), denied)
    other_key = out['one'].replace(own['AWSAccessKeyId'], foreign['AWSAccessKeyId'])
    equal('the key of another resource', send(other_key), denied)
    equal('a URL of another resource', send(out['one'].replace('/one?', '/other?')), denied)
    # Users of a stack may signal all of its resources, but those of no other stack.
    equal('a user of the stack', send(signed_2(minutes(0))), fine)
    equal('a user of another stack', send(signed_2(minutes(0), key=(too['access'], too['secret']))),
          (400, 'InvalidParameterValue'))
    # Expired.
    equal('a signature of version 2, 14 minutes old', send(signed_2(minutes(14))), fine)
    equal('a signature of version 2, 16 minutes old', send(signed_2(minutes(16))), denied)
    equal('a time that is none', send(signed_2(minutes(0), Timestamp='yesterday')), denied)
    equal('Expires, which Keystone does not read', send(signed_2(minutes(0), Expires='2012-01-01T00:00:00Z')), fine)
    of_alarm = dict(parse_qsl(urlsplit(out['alarm']).query))
    front.ahead = {access: minutes(16) for access in (own['AWSAccessKeyId'], of_alarm['AWSAccessKeyId'])}
    equal("a handle's own URL after 16 minutes", send(out['one']), denied)
    equal('the URL of a scaling policy after 16 minutes', send(out['alarm'], verb='POST', body=b'{}'), fine)
    front.ahead = {}
    for age, answer in [(0, fine), (14, fine), (16, denied), (60 * 24 * 365, denied)]:
        url, headers = version_4('PUT', out['one'], BODY, *key, now() - minutes(age))
        equal(f'a signature of version 4, {age} minutes old', send(url, headers), answer)
    url, headers = version_4('PUT', out['one'], BODY, *key, now())
    equal('version 4 with another body', send(url, headers, body=changed), denied)
    equal('version 4 with another date', send(url, {**headers, 'X-Amz-Date': '20360101T000000Z'}), denied)
    # Replayed: Keystone remembers no signatures, and a signal with a known ID takes the place of the earlier one.
    equal('a replay', send(out['one']), fine)
    metadata = heat.call('GET', f'/stacks/signed/{ids["signed"]}/resources/one/metadata')['metadata']
    equal('the signals after it', list(metadata), ['1'])
    for name, id in ids.items():
        heat.delete(name, id)
    # The keys are deleted with the stack.
    equal('a replay after the delete', send(out['one']), denied)
    equal('a replay of an alarm after the delete', send(out['alarm'], verb='POST', body=b'{}'), denied)

    log = (folder / 'kiln.log').read_text()
    lines = [json.loads(line) for line in log.splitlines() if line.startswith('{')]
    logged, warned = [], []
    for line in lines:
        fields = {**line, **line.get('fields', {})}
        path = unquote(str(fields.get('path')))
        if not re.match('/v1/(waitcondition|signal)/.*stacks/signed/', path):
            continue
        if fields.get('status', 0) >= 400:
            logged.append(fields['status'])
        if fields['message'] == 'a signal was refused':
            warned.append(fields['key'])
    equal('the log has every refusal', sorted(logged), sorted(send.refused))
    equal('and a warning for each signature', len(warned), send.refused.count(403))
    equal('with the key', [key for key in warned if not key], [])
    check('enough was refused', len(send.refused) >= 15, send.refused)
    for what, secret in [('the signature', quote(own['Signature'], safe='')), ('the secret key', out['secret'])]:
        check(f'the log does not show {what}', secret not in log and unquote(secret) not in log, 'it is there')
