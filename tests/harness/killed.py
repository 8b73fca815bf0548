"""A Kiln whose engine is killed again and again, while its API runs."""
import random
import threading

from harness.deployment import Deployment


class KilledDeployment(Deployment):
    """As `Deployment`, with `kiln api` and `kiln engine` as two processes. From `begin` on, the engine is killed without
    a warning (SIGKILL) and replaced every 0.2 to 2 seconds."""

    def __init__(self, **sections):
        super().__init__(**sections)
        # Stacks of a killed engine are taken over after the lease.
        self.set('kiln', lease='0.5', call_timeout='5', call_limit='5', list_delay='0.1')
        self.kills, self.ends = 0, threading.Event()
        self.killer = threading.Thread(target=self.kill, daemon=True)

    def begin(self):
        self.killer.start()

    def start_service(self):
        self.start_engine()
        self.start('kiln', 'api', '--log-format', 'json', '--config-file', 'kiln.conf')

    def start_engine(self):
        self.start(f'engine-{self.kills}', 'engine', '--log-format', 'json', '--config-file', 'kiln.conf')

    def kill(self):
        at, choose = 1, random.Random(1)  # self.running: the cloud, the engine, the API
        while not self.ends.wait(choose.uniform(0.2, 2)):
            self.running[at].kill()
            self.running[at].wait()
            self.kills += 1
            self.start_engine()
            at = len(self.running) - 1

    def stop(self):
        self.ends.set()
        if self.killer.is_alive():
            self.killer.join()
        super().stop()
