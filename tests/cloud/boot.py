"""The servers of a project boot: their user data runs on this machine (for topology.py).

devcloud has no hypervisor. What Nova would give a server as user data is read from Nova, and run as root of a root file
system of its own, with the programs of this machine that every image has, and stand-ins for those that would install
software. The network is that of this machine, so that reports reach the service.
"""
import base64
import pathlib
import subprocess
import threading
import time

# The programs that every image has. Others of this machine must not be found.
USUAL = ['sh', 'bash', 'python3', 'cat', 'tar', 'gzip', 'base64', 'sed', 'grep', 'mktemp', 'chmod', 'mkdir', 'rm', 'basename',
         'ls', 'install', 'printf', 'pwd', 'env', 'dirname', 'id', 'curl', 'test', 'true', 'touch']
# Programs that would change a server: each writes its name and arguments into /ran.
RECORDED = '#!/bin/sh\necho "$(basename "$0") $*" >> /ran\n'
TOOLS = {
    # Application servers have a folder for applications, and a file with options.
    'apt-get': RECORDED + 'for name in jetty9 tomcat10; do case "$*" in\n'
                          '*$name*) mkdir -p /var/lib/$name/webapps; touch /etc/default/$name ;;\nesac; done\n',
    'dnf': RECORDED,
    'systemctl': RECORDED + 'if [ "$1" = list-unit-files ]; then echo "$2 enabled"; fi\n',
    'mysql': RECORDED + 'echo "password $MYSQL_PWD" >> /ran\ncat >> /ran\n',
    'su': RECORDED,
}
FOLDERS = ['usr', 'dev', 'etc/yum.repos.d', 'etc/default', 'opt/bin', 'opt/usual', 'tmp', 'var/lib', 'var/tmp']
SECONDS = 60


class Server:
    """One that has booted. `name` is that in Nova, `folder` its root file system."""

    def __init__(self, folder, name, user_data):
        self.folder, self.name = folder, name
        for place in FOLDERS:
            (folder / place).mkdir(parents=True)
        for link in ('bin', 'lib', 'lib64', 'sbin'):
            (folder / link).symlink_to(f'usr/{link}')
        for tool in USUAL:
            (folder / 'opt/usual' / tool).symlink_to(f'/usr/bin/{tool}')
        for tool, script in TOOLS.items():
            (folder / 'opt/bin' / tool).write_text(script)
            (folder / 'opt/bin' / tool).chmod(0o755)
        (folder / 'user-data').write_bytes(user_data)
        script = ('mount --rbind /usr usr && mount --rbind /dev dev && '
                  'exec env -i PATH=/opt/bin:/opt/usual /usr/sbin/chroot . /bin/sh /user-data')
        with open(folder / 'console.log', 'wb') as console:
            self.process = subprocess.Popen(['unshare', '--map-root-user', '--mount', 'sh', '-ec', script], cwd=folder,
                                            stdin=subprocess.DEVNULL, stdout=console, stderr=console)

    @staticmethod
    def is_for(user_data):
        return b'KILN_END_OF_STEPS' in user_data

    def text(self, path):
        """A file of the server; '' if there is none."""
        file = self.folder / path.lstrip('/')
        return file.read_text() if file.exists() else ''

    def wait(self):
        try:
            self.process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Boots:
    """Boots each new server of a project, in a thread, until the end of the block. `list_servers` returns what Nova
    returns for the servers, with their user data; `servers` are those that have booted, by ID. `kinds` are classes of
    servers with the user data that they are for."""

    def __init__(self, folder, list_servers, *kinds):
        self.folder, self.list_servers, self.kinds = pathlib.Path(folder), list_servers, kinds
        self.servers, self.ended = {}, threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *error):
        self.ended.set()
        self.thread.join()
        for server in self.servers.values():
            server.wait()

    def run(self):
        while not self.ended.is_set():
            try:
                servers = self.list_servers()
            except (OSError, RuntimeError) as error:
                # Nova may be busy.
                print(f'the servers cannot be listed: {error}', flush=True)
                servers = []
            for one in servers:
                data = one.get('OS-EXT-SRV-ATTR:user_data')
                if one['id'] not in self.servers and one['status'] == 'ACTIVE' and data:
                    content = base64.b64decode(data)
                    kind = next((kind for kind in self.kinds if kind.is_for(content)), None)
                    if kind:
                        self.servers[one['id']] = kind(self.folder / one['id'], one['name'], content)
            time.sleep(0.3)

    def of(self, id):
        """A server that has booted."""
        deadline = time.monotonic() + SECONDS
        while id not in self.servers and time.monotonic() < deadline:
            time.sleep(0.1)
        if id not in self.servers:
            raise RuntimeError(f'the server {id} has no user data of Kiln')
        return self.servers[id]
