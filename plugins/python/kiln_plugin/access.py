"""The credentials of a call, and requests to the services of the cloud with them."""
import json
import urllib.error
import urllib.request

from kiln_plugin.errors import Conflict, NotFound, OverLimit, Refused, Unauthorized, Unavailable


class Access:
    """The token of the user, or of the trust of the stack, and the catalog of services."""

    def __init__(self, given):
        given = given or {}
        self.auth_url = given.get('auth_url')
        self.token = given.get('token')
        self.project_id = given.get('project_id')
        self.user_id = given.get('user_id')
        self.region = given.get('region')
        self.catalog = given.get('catalog') or []

    def endpoint(self, service, interface='public'):
        """The URL of a service type in the catalog.

        Raises NotFound if the catalog has no such service.
        """
        for entry in self.catalog:
            if entry['type'] != service:
                continue
            for endpoint in entry['endpoints']:
                if endpoint['interface'] == interface and self.region in (None, endpoint['region']):
                    return endpoint['url'].rstrip('/')
        raise NotFound(f'There is no {interface} endpoint of a {service} service.', 'EndpointNotFound')

    def request(self, service, method, path, body=None, headers=None, timeout=30):
        """Sends a request to a path below the endpoint of a service: the JSON of the response, None if it is empty.

        Raises Unauthorized (401), NotFound (404), Conflict (409), OverLimit (413, 429), Refused (other 4xx), and
        Unavailable (5xx, no response).
        """
        sent = {'Accept': 'application/json', 'X-Auth-Token': self.token or '', **(headers or {})}
        data = None
        if body is not None:
            data = json.dumps(body).encode()
            sent.setdefault('Content-Type', 'application/json')
        url = self.endpoint(service) + path
        request = urllib.request.Request(url, data=data, headers=sent, method=method)
        try:
            with urllib.request.urlopen(request, timeout=timeout) as response:
                text = response.read()
        except urllib.error.HTTPError as error:
            raise _of_status(error, f'{method} {url}') from None
        except OSError as error:
            raise Unavailable(f'{method} {url}: {error}') from error
        return json.loads(text) if text.strip() else None


def _of_status(error, what):
    text = error.read().decode(errors='replace')[:1000]
    message = f'{what}: HTTP {error.code}: {text or error.reason}'
    kinds = {401: Unauthorized, 404: NotFound, 409: Conflict, 413: OverLimit, 429: OverLimit}
    retry = error.headers.get('Retry-After', '')
    if error.code in kinds:
        return kinds[error.code](message, retry_after=int(retry) if retry.isdigit() else None)
    return (Unavailable if error.code >= 500 else Refused)(message)
