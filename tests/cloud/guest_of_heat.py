"""A server of a stack that Heat has made, and the agent in it (for take_over.py).

The agent has only what Heat has put into the server: a user of the stack, its password, and the path of its metadata. It polls
the metadata as os-collect-config does, and sends the result of each deployment to the URL that is in its inputs.
"""
import json
import threading
import time

import requests

TEMPLATE = '''
heat_template_version: 2018-08-31
parameters:
  greeting: {type: string, default: hello}
resources:
  server:
    type: OS::Nova::Server
    properties:
      image: cirros
      flavor: m1.nano
      networks: [{network: private}]
      user_data_format: SOFTWARE_CONFIG
      software_config_transport: POLL_SERVER_HEAT
  config:
    type: OS::Heat::SoftwareConfig
    properties:
      group: script
      inputs: [{name: greeting}]
      outputs: [{name: answer}]
      config: echo $greeting
  deployment:
    type: OS::Heat::SoftwareDeployment
    properties:
      config: {get_resource: config}
      server: {get_resource: server}
      input_values: {greeting: {get_param: greeting}}
      actions: [CREATE, UPDATE, SUSPEND, RESUME]
outputs:
  answer: {value: {get_attr: [deployment, answer]}}
'''
PAUSE = 0.5


class Agent(threading.Thread):
    """Runs until `stop`. `failures`: what went wrong with signals."""

    def __init__(self, client, stack, api):
        super().__init__(daemon=True)
        self.client, self.stack, self.api = client, stack, api
        self.place, self.token, self.done, self.failures = None, None, set(), []
        self.stopping = threading.Event()

    def run(self):
        while not self.stopping.wait(PAUSE):
            try:
                self.poll()
            except (requests.RequestException, KeyError, ValueError):
                self.token = None  # the services are being replaced, or there is no server yet

    def stop(self):
        self.stopping.set()
        self.join()

    def poll(self):
        if self.place is None:
            try:
                self.place = self.client.resources.metadata(self.stack, 'server')['os-collect-config']['heat']
            except Exception as early:  # heatclient has an exception of its own for each status
                raise KeyError(self.stack) from early
        if self.token is None:
            self.token = self.authenticated()
        place = self.place
        url = f"{self.api}/v1/{place['project_id']}/stacks/{place['stack_id']}/resources/{place['resource_name']}/metadata"
        answer = requests.get(url, headers={'x-auth-token': self.token}, timeout=30)
        answer.raise_for_status()
        for deployment in answer.json()['metadata'].get('deployments', []):
            inputs = {one['name']: one.get('value') for one in deployment['inputs']}
            key = (deployment['id'], inputs['greeting'], inputs['deploy_action'])
            if key not in self.done:
                self.signal(inputs)
                self.done.add(key)

    def authenticated(self):
        place = self.place
        user = {'id': place['user_id'], 'password': place['password']}
        body = {'auth': {'identity': {'methods': ['password'], 'password': {'user': user}},
                         'scope': {'project': {'id': place['project_id']}}}}
        answer = requests.post(f"{place['auth_url'].rstrip('/')}/auth/tokens", json=body, timeout=30)
        answer.raise_for_status()
        return answer.headers['x-subject-token']

    def signal(self, inputs):
        result = {'answer': inputs['greeting'], 'deploy_stdout': '', 'deploy_stderr': '', 'deploy_status_code': 0}
        # Guests do not send it again after an answer.
        answer = requests.request(inputs.get('deploy_signal_verb') or 'POST', inputs['deploy_signal_id'],
                                  data=json.dumps(result), headers={'content-type': 'application/json'}, timeout=120)
        if not answer.ok:
            self.failures.append(f'{answer.status_code} {answer.text[:300]}')
        time.sleep(PAUSE)
