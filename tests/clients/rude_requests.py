#!/usr/bin/env python3
"""Requests that no client sends: broken heads, strange paths, XML in names, bodies that lie, connections that wait.

    tests/clients/rude_requests.py [KILN]

After each of them the service must answer others, and no answer may be a server error or repeat a header of the request.
"""
import concurrent.futures
import json
import pathlib
import re
import socket
import sys
import urllib.parse
import xml.etree.ElementTree

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent))
from harness.checks import case, check, equal, finish  # noqa: E402
from harness.deployment import Deployment  # noqa: E402
from harness.request import call  # noqa: E402

EMPTY = {'heat_template_version': '2018-08-31'}


def raw(kiln, data, wait=10):
    """Sends bytes and returns what is answered until the connection is closed or quiet."""
    with socket.create_connection(('127.0.0.1', kiln.port), timeout=wait) as connection:
        answer = b''
        try:
            connection.sendall(data)
            while True:
                part = connection.recv(65536)
                if not part:
                    break
                answer += part
        except OSError:
            pass
        return answer


def statuses(answer):
    """The statuses of the responses in a stream."""
    return [int(one) for one in re.findall(rb'^HTTP/1\.1 (\d{3})', answer, re.M)]


def healthy(kiln, what):
    status = call('GET', f'{kiln.root}/healthcheck')[0]
    check(f'the service answers after {what}', status == 200, status)


def heads(kiln):
    """No head is understood in two ways (request smuggling), and none is answered with an error of the server."""
    path = f'/v1/{kiln.project}/stacks'
    token = f'X-Auth-Token: {kiln.token_text}\r\n'
    for what, data, expected in [
        ('two lengths', f'POST {path} HTTP/1.1\r\nHost: h\r\n{token}Content-Length: 2\r\nContent-Length: 40\r\n\r\n{{}}', {400}),
        ('a length and chunks', f'POST {path} HTTP/1.1\r\nHost: h\r\n{token}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n'
         f'Connection: close\r\n\r\n0\r\n\r\nGET /healthcheck HTTP/1.1\r\nHost: h\r\n\r\n', {400}),
        ('an unknown encoding', f'POST {path} HTTP/1.1\r\nHost: h\r\n{token}Transfer-Encoding: chunked, x\r\n\r\n0\r\n\r\n', {400}),
        ('a negative length', f'POST {path} HTTP/1.1\r\nHost: h\r\n{token}Content-Length: -1\r\n\r\n', {400}),
        ('a huge length', f'POST {path} HTTP/1.1\r\nHost: h\r\n{token}Content-Length: 99999999999999\r\n\r\n{{', {400, 413}),
        ('a space before the colon', f'GET {path} HTTP/1.1\r\nHost : h\r\n\r\n', {400}),
        ('a folded header', f'GET {path} HTTP/1.1\r\nHost: h\r\nX-A: a\r\n b\r\n\r\n', {400}),
        ('a zero byte', f'GET {path} HTTP/1.1\r\nHost: h\r\nX-A: a\0b\r\n\r\n', {400}),
        ('no version', f'GET {path}\r\n\r\n', {400}),
        ('another protocol', 'SSH-2.0-client\r\n\r\n', {400}),
        ('TLS', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03', {400}),
        ('a long head', f'GET {path} HTTP/1.1\r\nHost: h\r\nX-A: ' + 'a' * 2_000_000, {400, 431}),
        ('many headers', f'GET {path} HTTP/1.1\r\nHost: h\r\n' + ''.join(f'X-{i}: a\r\n' for i in range(5000)) + '\r\n', {400, 431}),
        ('a long path', f'GET /{"a" * 100_000} HTTP/1.1\r\nHost: h\r\n\r\n', {400, 401, 404, 414, 431}),
    ]:
        answer = raw(kiln, data.encode('latin-1'), wait=5)
        got = statuses(answer)
        check(f'{what} is refused', len(got) <= 1 and set(got) <= expected, f'{got}: {answer[:300]}')
    healthy(kiln, 'broken heads')


def paths(kiln):
    """Paths and queries are data."""
    stacks = f'{kiln.url}/{kiln.project}/stacks'
    for path in ('..', '../..', '%2e%2e', '..%2f..%2fetc%2fpasswd', '%00', '%0d%0aX-Injected:%20yes', '%ff%fe', "a'%20or%201=1--",
                 '%E2%80%AE', 'a' * 5000, '%252e', ';/..;/', '{}', '$(id)', '%F0%9F%92%A9'):
        status, headers, body = call('GET', f'{stacks}/{path}', token=kiln.token_text)
        check(f'the path {path[:30]}', status in (200, 300, 302, 400, 403, 404) and 'X-Injected' not in headers, f'{status} {body}')
        location = headers.get('Location') or ''
        check(f'the redirect of {path[:30]}', location.startswith(kiln.root) or not location, location)
    for query in ('limit=99999999999999999999', 'limit=-1', 'limit=1e3', 'marker=%27', 'sort_keys=%00', 'sort_dir=x', 'tags=%ff',
                  'name=' + 'a' * 20000, 'status=a' + '&status=a' * 500, 'show_deleted=maybe', 'id=' + '%27%20OR%201=1', '&&&===', '%'):
        status, _, body = call('GET', f'{stacks}?{query}', token=kiln.token_text)
        check(f'the query {query[:30]}', status in (200, 400, 414, 431), f'{status} {body}')
    # The address of the client is not trusted for links unless the operator says so.
    headers = {'X-Forwarded-Host': 'evil.example', 'X-Forwarded-Proto': 'https', 'Forwarded': 'host=evil.example'}
    status, _, body = call('GET', kiln.root + '/', **headers)
    check('forwarded headers', 'evil.example' not in json.dumps(body), body)
    status, headers, _ = call('GET', f'{kiln.url}/{kiln.project}/stacks', token=kiln.token_text,
                              **{'X-Openstack-Request-Id': 'req-<script>', 'Origin': 'http://evil.example'})
    check('no header is repeated', 'script' not in str(headers) and 'evil' not in str(headers), str(headers))
    for method in ('TRACE', 'CONNECT', 'PROPFIND', 'X' * 200):
        answer = raw(kiln, f'{method} /v1/{kiln.project}/stacks HTTP/1.1\r\nHost: h\r\nConnection: close\r\nX-Auth-Token: secret\r\n\r\n'.encode())
        check(f'{method[:10]} does not show the request', b'secret' not in answer and (statuses(answer) or [400])[0] < 500, answer[:300])


def bodies(kiln):
    """Bodies that are not what they say, or that are small and become large."""
    stacks = f'{kiln.url}/{kiln.project}/stacks'
    bomb = 'heat_template_version: 2018-08-31\na: &a [x, x, x, x, x, x, x, x, x]\n' + ''.join(
        f'{chr(98 + i)}: &{chr(98 + i)} [{", ".join(["*" + chr(97 + i)] * 9)}]\n' for i in range(12))
    for what, body in [
        ('deep JSON', b'[' * 100_000), ('deep objects', b'{"a":' * 50_000 + b'1' + b'}' * 50_000), ('no JSON', b'\xff\xfe{}'),
        ('a number', b'1'), ('an empty list', b'[]'), ('a huge number', b'{"timeout_mins": 1e999}'),
        ('keys twice', b'{"stack_name": "a", "stack_name": 1}'), ('a lone surrogate', b'{"stack_name": "\\ud800"}'),
        ('an alias bomb', json.dumps({'stack_name': 'bomb', 'template': bomb}).encode()),
        ('deep YAML', json.dumps({'stack_name': 'deep', 'template': '[' * 20_000}).encode()),
        ('a tag of Python', json.dumps({'stack_name': 'tag', 'template': '!!python/object/apply:os.system [id]'}).encode()),
        ('a pattern', json.dumps({'stack_name': 'p', 'template': {**EMPTY, 'parameters': {'a': {
            'type': 'string', 'default': 'a' * 40 + '!', 'constraints': [{'allowed_pattern': '(a+)+$'}]}}}}).encode()),
    ]:
        start = kiln.processor_seconds()
        status, _, answer = call('POST', stacks, body, kiln.token_text)
        check(f'{what} is refused', status in (400, 413), f'{status} {str(answer)[:300]}')
        took = kiln.processor_seconds() - start
        check(f'{what} is refused soon', took < 5, took)
    healthy(kiln, 'bodies')
    for url in ('http://127.0.0.1/t', 'http://[::1]/t', 'http://169.254.169.254/latest', 'file:///etc/passwd', 'http://0/',
                'http://2130706433/', 'gopher://127.0.0.1/', 'http://localhost.localdomain/', f'{kiln.root}/healthcheck'):
        status, _, answer = call('POST', stacks, {'stack_name': 'inside', 'template_url': url}, kiln.token_text)
        check(f'{url} is not read', status == 400, f'{status} {answer}')
        status, _, answer = call('POST', stacks, {'stack_name': 'inside', 'template': {**EMPTY, 'resources': {
            'a': {'type': url + '.yaml'}}}}, kiln.token_text)
        check(f'{url} is no type', status == 400, f'{status} {answer}')


def names(kiln):
    """Names with markup: XML and pages stay well-formed."""
    for name in ('a<b>&"\'', 'a]]>', 'a&amp;', '<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]>&e;', 'a\u202e', 'a\u0001'):
        quoted = urllib.parse.quote(name, safe='')
        status, headers, page = call('GET', f'{kiln.url}/{kiln.project}/nothing/{quoted}', token=kiln.token_text,
                                     Accept='text/html')
        check(f'the page for {name!r}', status == 404 and name not in page, page)
        query = urllib.parse.urlencode({'Action': 'DescribeStacks', 'StackName': name, 'AWSAccessKeyId': 'x', 'Signature': name,
                                        'SignatureVersion': '2', 'Version': name})
        status, headers, page = call('GET', f'{kiln.cfn}/?{query}')
        check(f'the status of CFN for {name!r}', 400 <= status < 500, f'{status} {page}')
        try:
            xml.etree.ElementTree.fromstring(page)
            check(f'the XML for {name!r}', True)
        except xml.etree.ElementTree.ParseError as error:
            check(f'the XML for {name!r}', False, f'{error}: {page}')


def waiting(kiln):
    """Many connections that send little: others are served meanwhile."""
    opened = []
    for _ in range(300):
        try:
            one = socket.create_connection(('127.0.0.1', kiln.port), timeout=2)
            one.sendall(b'POST /v1/x/stacks HTTP/1.1\r\nHost: h\r\nContent-Length: 100\r\n')
            opened.append(one)
        except OSError:
            break
    # From another address: the limit is one of each address.
    with socket.create_connection(('127.0.0.1', kiln.port), timeout=15, source_address=('127.0.0.2', 0)) as other:
        other.sendall(b'GET /healthcheck HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n')
        answer = other.recv(1000)
    check('others are served', statuses(answer) == [200], answer)
    for one in opened:
        one.close()
    healthy(kiln, 'waiting connections')

    def burst(_):
        return len(statuses(raw(kiln, b'GET /healthcheck HTTP/1.1\r\nHost: h\r\n\r\n' * 200, wait=2)))

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        answered = list(pool.map(burst, range(8)))
    check('pipelined requests are answered in order', min(answered) > 0, answered)
    healthy(kiln, 'pipelined requests')


def main():
    with Deployment() as kiln:
        kiln.root = kiln.url.removesuffix('/v1')
        kiln.token_text, kiln.project = kiln.token()
        for part in (heads, paths, bodies, names, waiting):
            case(part, kiln)
        left = call('GET', f'{kiln.url}/{kiln.project}/stacks', token=kiln.token_text)[2]
        equal('no stack is left', left, {'stacks': []})
        check('no panic', 'panicked' not in kiln.log('kiln'))
    finish()


if __name__ == '__main__':
    main()
