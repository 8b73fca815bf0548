"""The servers of a project have agents that run software deployments (for topology.py). The agents are those of guest.py, as
the user data of each server configures them; devcloud has no metadata service for the collector `ec2`."""
import email
import json
import threading
import time

from guest import Server

PAUSE = 1


class Agent(Server):
    """The agent of a server, from its user data; it works in a thread until `stop`. Scripts may write to the file $LOG."""

    def __init__(self, folder, name, user_data):
        parts = {part.get_filename(): part for part in email.message_from_bytes(user_data).walk()}
        collect = json.loads(parts['cfn-init-data'].get_payload(decode=True))['os-collect-config']
        collect['collectors'] = [kind for kind in collect['collectors'] if kind not in ('ec2', 'local')]
        super().__init__(folder, collect)
        self.name, self.ended = name, threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    @staticmethod
    def is_for(user_data):
        return b'filename="cfn-init-data"' in user_data and b'os-collect-config' in user_data

    def env(self):
        return super().env() | {'LOG': str(self.folder / 'deployments.log')}

    def run(self):
        while not self.ended.is_set():
            self.work()
            time.sleep(PAUSE)

    def lines(self):
        log = self.folder / 'deployments.log'
        return log.read_text().splitlines() if log.exists() else []

    def wait(self):
        self.ended.set()
        self.thread.join()
