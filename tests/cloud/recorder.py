"""A proxy between an orchestration service and the services of a cloud. It records what is sent.

The proxy listens on a loopback address of its own, with the ports of the services. In responses it replaces the address
of the services by its own: the catalog of each token then names the proxy, and so do links.
"""
import dataclasses
import http.client
import http.server
import json
import threading

SERVICES = '127.0.0.1'
# Headers for one connection only, and those that the proxy sets again.
OF_CONNECTION = {'connection', 'keep-alive', 'transfer-encoding', 'content-length', 'host', 'te', 'trailer', 'upgrade',
                 'proxy-connection', 'accept-encoding', 'expect'}
# Headers that are part of a request to Swift.
OF_OBJECTS = ('x-container-', 'x-account-', 'x-object-', 'x-remove-', 'x-delete-', 'x-versions-', 'x-history-')


@dataclasses.dataclass
class Request:
    """A request that changes something. `project` is the one of its token; bodies are JSON where they can be."""
    service: str
    method: str
    path: str
    project: str
    body: object
    status: int
    answer: object
    headers: dict


def data(raw):
    """JSON as its value, other bodies as text, no body as None."""
    if not raw:
        return None
    text = raw.decode('utf-8', 'replace')
    try:
        return json.loads(text)
    except ValueError:
        return text


class Recorder:
    """`services`: port -> name of the service. Requests are in `requests`, in the order of their responses."""

    def __init__(self, address, services):
        self.address, self.services = address, services
        self.requests, self.projects, self.lock = [], {}, threading.Lock()
        self.servers = [self.server(port) for port in services]

    def server(self, port):
        recorder = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = 'HTTP/1.1'
            # Without it each answer waits for the acknowledgement of its head.
            disable_nagle_algorithm = True
            wbufsize = -1

            def log_message(self, *_):
                """Prints nothing."""

            def handle_any(self):
                recorder.forward(self, port)

            do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = do_COPY = handle_any

        server = http.server.ThreadingHTTPServer((self.address, port), Handler)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return server

    def close(self):
        for server in self.servers:
            server.shutdown()
            server.server_close()

    def forward(self, handler, port):
        own, theirs = self.address.encode(), SERVICES.encode()
        sent = read_body(handler).replace(own, theirs)
        kept = {name: value for name, value in handler.headers.items() if name.lower() not in OF_CONNECTION}
        kept |= {'Host': f'{SERVICES}:{port}', 'Connection': 'close'}
        if sent or handler.command in ('POST', 'PUT', 'PATCH'):
            kept['Content-Length'] = str(len(sent))
        upstream = http.client.HTTPConnection(SERVICES, port, timeout=300)
        try:
            upstream.request(handler.command, handler.path, sent or None, kept)
            answer = upstream.getresponse()
            raw = answer.read()
        except OSError as error:
            handler.send_error(502, str(error))
            return
        finally:
            upstream.close()
        if not answer.getheader('Content-Type', '').startswith('application/octet-stream'):
            raw = raw.replace(theirs, own)
        self.note(handler, port, sent, answer, raw)
        handler.send_response_only(answer.status, answer.reason)
        for name, value in answer.getheaders():
            if name.lower() not in OF_CONNECTION:
                handler.send_header(name, value.replace(SERVICES, self.address))
        length = answer.getheader('Content-Length', '0') if handler.command == 'HEAD' else str(len(raw))
        if answer.status not in (204, 304):
            handler.send_header('Content-Length', length)
        handler.end_headers()
        if handler.command != 'HEAD' and answer.status not in (204, 304):
            handler.wfile.write(raw)

    def note(self, handler, port, sent, answer, raw):
        path, body = handler.path, data(raw)
        if path.endswith('/auth/tokens'):
            token = answer.getheader('X-Subject-Token') or handler.headers.get('X-Subject-Token')
            shown = body.get('token', {}) if isinstance(body, dict) else {}
            with self.lock:
                self.projects[token] = shown.get('project', {}).get('id')
            return
        if handler.command in ('GET', 'HEAD', 'OPTIONS'):
            return
        headers = {name.lower(): value for name, value in handler.headers.items()
                   if name.lower().startswith(OF_OBJECTS)}
        with self.lock:
            self.requests.append(Request(
                self.services[port], handler.command, path, self.projects.get(handler.headers.get('X-Auth-Token')),
                data(sent), answer.status, body, headers))


def read_body(handler):
    if handler.headers.get('Transfer-Encoding', '').lower() == 'chunked':
        parts = []
        while size := int(handler.rfile.readline().split(b';')[0], 16):
            parts.append(handler.rfile.read(size))
            handler.rfile.readline()
        handler.rfile.readline()
        return b''.join(parts)
    return handler.rfile.read(int(handler.headers.get('Content-Length') or 0))
