#!/usr/bin/env python3
"""Blueprints, packages, TOSCA and a VNF on a real OpenStack, whose servers run their user data.

    devcloud/devcloud up kiln octavia designate swift && tests/cloud/topology.py [--short | CASE...]

Kiln is the orchestration service of devcloud. Each case creates a stack of one document, some by a request with the document
or package as its body and some by `kiln stack create -t`, and compares it with what the services list. It is updated
without a replacement of what did not change, scaled, and deleted; nothing may be left. The documents are the examples of the
proposal (crates/topology/tests/data/blueprint/seed), samples of TOSCA (tests/data/tosca) and those in tests/cloud/topology/.

devcloud has no hypervisor: the user data of each server is read from Nova and runs on this machine (boot.py), and the
result is reported to Kiln as from a server. What would be installed stands in: scripts and archives have contents of the
test, and programs such as dnf record their arguments. Prints one line per failed check, and `N passed, N failed`.
"""
import functools
import http.server
import io
import pathlib
import re
import shutil
import sys
import tarfile
import tempfile
import threading
import time
import zipfile

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent))
from harness.checks import case, check, equal, finish, until  # noqa: E402
from harness.pypi import ROOT  # noqa: E402

from agent import Agent  # noqa: E402
from boot import Boots, Server  # noqa: E402
from project import Project  # noqa: E402
from stack import Refused, Stack  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent / 'topology'
SEED = ROOT / 'crates/topology/tests/data/blueprint/seed'
SAMPLES = ROOT / 'tests/data/tosca/heat-translator/data'


def zipped(files):
    """A ZIP of files by name."""
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, 'w', zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return whole.getvalue()


def csar(root, files):
    meta = f'TOSCA-Meta-File-Version: 1.1\nCSAR-Version: 1.1\nCreated-By: test\nEntry-Definitions: {root}\n'
    return zipped({'TOSCA-Metadata/TOSCA.meta': meta, **files})


def archive(files):
    """A gzipped TAR of files by name."""
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode='w:gz') as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content.encode()))
    return whole.getvalue()


def ran(line):
    """A script that writes a line with its inputs into /log."""
    return f'#!/bin/sh\necho "{line}" >> /log\n'


class Contents(http.server.SimpleHTTPRequestHandler):
    """What http://example.com/ has in the proposal's examples."""

    def log_message(self, *_):
        pass


class Run:
    """A case in a project. `folder` is a scratch folder of its own."""

    def __init__(self, project, boots, folder, contents, name):
        self.project, self.boots, self.folder, self.contents, self.name = project, boots, folder, contents, name
        self.before = project.inventory()

    def seed(self, name):
        """An example of the proposal; its contents are served here."""
        return (SEED / name).read_text().replace('http://example.com/', self.contents)

    def stack(self, side=None):
        return Stack(side or self.project.user, self.name.replace('_', '-'))

    def equal(self, what, got, expected):
        return equal(f'{self.name}: {what}', got, expected)

    def check(self, what, good, detail=''):
        return check(f'{self.name}: {what}', good, detail)

    def completed(self, stack, shown, action='CREATE'):
        """The operation was successful, and all servers that it made are ACTIVE in Nova."""
        if not self.check(f'{action} of the stack', shown['stack_status'] == f'{action}_COMPLETE', shown['stack_status_reason']):
            raise RuntimeError('the case cannot go on')
        bad = [one['resource_name'] for one in stack.resources() if not one['resource_status'].endswith('COMPLETE')]
        self.equal(f'{action}: incomplete resources', bad, [])
        there = {one['id']: one['status'] for one in self.project.servers()}
        mine = stack.servers().values()
        self.equal(f'{action}: the servers in Nova', {id: there.get(id) for id in mine}, dict.fromkeys(mine, 'ACTIVE'))
        made = self.made('server')
        self.equal(f'{action}: other servers', made - set(mine), set())

    def made(self, kind):
        """What the service lists now and did not before."""
        return self.project.inventory()[kind] - self.before[kind]

    def server(self, id):
        """A server after the end of its user data."""
        server = self.boots.of(id)
        server.wait()
        return server

    def scale(self, stack, policy, wanted, kept):
        """Signals a policy: `wanted` servers are there, with those of `kept` (or a part of them, if they are fewer)."""
        stack.signal(policy)
        deadline = time.monotonic() + 90
        while time.monotonic() < deadline:
            servers = set(stack.servers().values())
            busy = [one for one in stack.resources() if one['resource_status'].endswith('IN_PROGRESS')]
            if len(servers) == wanted and not busy:
                break
            time.sleep(0.5)
        self.equal(f'{policy}: the number of servers', len(servers), wanted)
        self.check(f'{policy}: the servers that stay', servers <= kept or kept <= servers, (servers, kept))
        self.equal(f'{policy}: the servers in Nova', servers, self.made('server'))
        shown = stack.shown()
        self.check(f'{policy}: the stack', shown['stack_status'].endswith('COMPLETE'), shown['stack_status_reason'])
        return servers

    def deleted(self, stack):
        gone = stack.delete()
        self.check('the delete', gone is None, gone and gone['stack_status_reason'])
        # The trust, and the project of the users of the stack, are deleted right after it.
        now = until(self.project.inventory, lambda now: not self.more(now), 60, 1)
        self.equal('left', self.more(now), {})
        lost = {kind: ids - now[kind] for kind, ids in self.before.items() if ids - now[kind]}
        self.equal('lost', lost, {})

    def more(self, now):
        return {kind: ids - self.before[kind] for kind, ids in now.items() if ids - self.before[kind]}

    def refusal(self, work, *texts):
        """The work is refused with these texts."""
        try:
            shown = work()
            self.check(f'refused: {texts[0]}', False, shown)
        except Refused as refused:
            for text in texts:
                self.check(f'refused: {text}', text in str(refused), str(refused)[:2000])


def addresses(project, ids):
    return {address['addr'] for one in project.servers() if one['id'] in ids
            for network in one['addresses'].values() for address in network}


def script_server(run):
    """The proposal's first example: a server with a script, in memory of 4 GB; by requests."""
    stack, document = run.stack(), run.seed('1-script-server-requires.yaml')
    run.refusal(lambda: stack.upload(document), 'An image.', 'cirros', 'fedora-coreos')
    run.completed(stack, stack.upload(document, my_server_image='cirros'))
    first = stack.servers()['my_server']
    run.equal('the script has run', run.server(first).text('/log'), 'installed\n')
    flavor = lambda: next(one['flavor']['original_name'] for one in run.project.servers() if one['id'] == first)
    run.equal('the flavor', flavor(), 'm1.medium')
    run.equal('the original', stack.original(), ('application/yaml', document.encode()))
    # The same document changes nothing.
    before = stack.ids()
    run.completed(stack, stack.upload(document, my_server_image='cirros'), 'UPDATE')
    run.equal('nothing is replaced', stack.ids(), before)
    # More memory: the server is resized.
    larger = document.replace('minRam: 4gb', 'minRam: 8gb')
    run.completed(stack, stack.upload(larger, my_server_image='cirros'), 'UPDATE')
    run.equal('a resize keeps all', stack.ids(), before)
    run.equal('the larger flavor', flavor(), 'm1.large')
    # Another script is another server, and its failure is that of the update.
    failed = stack.upload(larger.replace('my_install', 'my_failure'), my_server_image='cirros')
    run.equal('a script that fails', failed['stack_status'], 'UPDATE_FAILED')
    run.check('its reason', 'my_script_create failed with exit code 3: no such package' in failed['stack_status_reason'],
              failed['stack_status_reason'])
    run.completed(stack, stack.upload(larger, my_server_image='cirros'), 'UPDATE')
    second = stack.servers()['my_server']
    run.check('a changed script replaces the server', second != first, second)
    run.equal('its script has run', run.server(second).text('/log'), 'installed\n')
    # A rollback keeps the server that was there.
    back = stack.upload(larger.replace('my_install', 'my_failure'), rollback=True, my_server_image='cirros')
    run.completed(stack, back, 'ROLLBACK')
    run.equal('the server after a rollback', stack.servers()['my_server'], second)
    run.deleted(stack)


def camp(run):
    """The first example as a deployment plan of CAMP: a gzipped TAR with a manifest, by requests."""
    stack, package = run.stack(), (SEED.parent / 'packages/1-script-server.pdp.tar.gz').read_bytes()
    run.refusal(lambda: stack.upload(package[:-20], my_server_image='cirros'), 'archive')
    run.completed(stack, stack.upload(package, my_server_image='cirros'))
    server = run.server(stack.servers()['my_server'])
    run.equal('the script has run', server.text('/var/tmp/installed'), 'installed\n')
    run.equal('the original', stack.original(), ('application/gzip', package))
    before = stack.ids()
    run.completed(stack, stack.upload(package, my_server_image='cirros'), 'UPDATE')
    run.equal('the same package replaces nothing', stack.ids(), before)
    run.deleted(stack)


def war_container(run):
    """The second: a WAR file, for which the platform makes a Jetty; as a package, by the command."""
    stack, package = run.stack(), run.folder / 'war.zip'
    document = run.seed('2-war-container.yaml')
    package.write_bytes(zipped({'heat.yaml': document, 'hello.war': 'first war'}))
    create = functools.partial(stack.command, '-t', package, '--software', 'cloud-init')
    name = 'hello_war_WarDeploymentRequirement'
    run.refusal(lambda: create(jurisdiction='DE', **{f'{name}_image': 'cirros'}), 'jurisdiction')
    run.completed(stack, create(jurisdiction='US', **{f'{name}_image': 'cirros'}))
    first = stack.servers()[name]
    server = run.server(first)
    run.equal('the WAR file', server.text('/var/lib/jetty9/webapps/ROOT.war'), 'first war')
    run.check('Jetty', 'apt-get install -y jetty9' in server.text('/ran'), server.text('/ran'))
    before = stack.ids()
    package.write_bytes(zipped({'heat.yaml': document.replace('"us"', '[us, ca]'), 'hello.war': 'first war'}))
    run.completed(stack, create('--existing'), 'UPDATE')
    run.equal('one more country replaces nothing', stack.ids(), before)
    run.equal('the original', stack.original(), ('application/zip', package.read_bytes()))
    run.deleted(stack)


def elastic_php(run):
    """The third: a tier of three servers behind Octavia, with a name in Designate; by requests, without parameters."""
    project, stack, document = run.project, run.stack(), run.seed('3-elastic-php.yaml')
    run.completed(stack, stack.upload(document))
    servers = set(stack.servers().values())
    run.equal('the size of the tier', len(servers), 3)
    for id in sorted(servers):
        server = run.server(id)
        run.equal('the packages', server.text('/ran'), 'dnf install -y php\n')
        run.check('the repository', 'baseurl=http://rpms.example.com/repo/' in server.text('/etc/yum.repos.d/kiln-1.repo'))
        run.equal('the application', server.text('/var/html/index.php'), '<?php echo 1;\n')
    ids = stack.ids()
    balancer = project.user.call('load-balancer', 'GET', f'/v2/lbaas/loadbalancers/{ids["my_lb"]}')['loadbalancer']
    members = lambda: {(one['address'], one['protocol_port']) for one in project.user.call(
        'load-balancer', 'GET', f'/v2/lbaas/pools/{ids["my_lb_pool"]}/members')['members']}
    listener = lambda: project.user.call('load-balancer', 'GET', f'/v2/lbaas/listeners/{stack.ids()["my_lb_listener"]}')[
        'listener']['protocol_port']
    run.equal('the members', members(), {(address, 80) for address in addresses(project, servers)})
    run.equal('the port', listener(), 80)
    records = [one for one in project.user.list('dns', '/v2/recordsets') if one['name'] == 'myapp.example.com.']
    run.equal('the record', [(one['type'], one['records']) for one in records], [('A', [balancer['vip_address']])])
    more = run.scale(stack, 'my_tier_scale_out', 4, servers)
    for id in more - servers:
        run.equal('software on a new server', run.server(id).text('/var/html/index.php'), '<?php echo 1;\n')
    run.equal('the members of 4', members(), {(address, 80) for address in addresses(project, more)})
    fewer = run.scale(stack, 'my_tier_scale_in', 3, more)
    run.equal('the members of 3', members(), {(address, 80) for address in addresses(project, fewer)})
    run.completed(stack, stack.upload(document.replace('publicPort: 80', 'publicPort: 8080')), 'UPDATE')
    run.equal('another port: the port', listener(), 8080)
    run.equal('another port keeps the servers', set(stack.servers().values()), fewer)
    run.equal('another port keeps the load balancer', stack.ids()['my_lb'], ids['my_lb'])
    run.equal('another port keeps the record', stack.ids()['my_lb_record'], ids['my_lb_record'])
    run.deleted(stack)


def war_database(run):
    """The fourth: a WAR file with a database whose SQL has run before. devcloud has no Trove: a type file of the package
    takes its place."""
    stack, document = run.stack(), run.seed('4-war-database.yaml')
    files = {'heat.yaml': document, 'hello.war': 'war', 'hello.sql': 'CREATE TABLE hello (id INT);\n'}
    images = {'frontend_image': 'cirros', 'backend_image': 'cirros'}
    run.refusal(lambda: stack.upload(zipped(files), frontend_image='cirros', backend_flavor='m1.small'), 'database')
    files['topology-types/database.yaml'] = (HERE / 'database/database.yaml').read_text()
    run.completed(stack, stack.upload(zipped(files), **images))
    servers = stack.servers()
    run.equal('the servers', set(servers), {'frontend', 'backend'})
    front, back = run.server(servers['frontend']), run.server(servers['backend'])
    password = re.search(r"IDENTIFIED BY '(\w{24})'", back.text('/ran'))
    run.check('the database', password, back.text('/ran'))
    host = addresses(run.project, [servers['backend']]).pop()
    log = front.text('/ran')
    run.check('the SQL', f'mysql -h {host} -u app app\npassword {password[1]}\nCREATE TABLE hello' in log, log)
    run.check('the application knows it', f'-Ddb.host={host} -Ddb.user=app -Ddb.password={password[1]}'
              in front.text('/etc/default/jetty9') + front.text('/etc/default/tomcat10'), front.text('/console.log'))
    listener = run.project.user.call('load-balancer', 'GET', f'/v2/lbaas/listeners/{stack.ids()["lb_listener"]}')
    run.equal('the listener', listener['listener']['protocol'], 'HTTPS')
    files['heat.yaml'] = document.replace('round-robin', 'least_connections')
    before = stack.ids()
    run.completed(stack, stack.upload(zipped(files), **images), 'UPDATE')
    run.equal('another algorithm replaces nothing', stack.ids(), before)
    files['hello.sql'] += 'INSERT INTO hello VALUES (1);\n'
    run.completed(stack, stack.upload(zipped(files), **images), 'UPDATE')
    now = stack.servers()
    run.equal('more SQL keeps the database', now['backend'], servers['backend'])
    run.check('more SQL replaces its client', now['frontend'] != servers['frontend'])
    run.check('the SQL of the update', 'INSERT INTO' in run.server(now['frontend']).text('/ran'))
    run.deleted(stack)


def wordpress(run):
    """WordPress, a sample of TOSCA, as a CSAR; by the command and by requests."""
    stack = run.stack()
    document = (SAMPLES / 'tosca_single_instance_wordpress.yaml').read_text()
    files = {'wordpress.yaml': document, 'custom_types/wordpress.yaml': (SAMPLES / 'custom_types/wordpress.yaml').read_text()}
    inputs = {'wordpress/wordpress_configure.sh': ' $wp_db_name $wp_db_user $wp_db_password',
              'mysql/mysql_database_configure.sh': ' $db_name $db_user $db_password $db_root_password',
              'mysql/mysql_dbms_install.sh': ' $db_root_password', 'mysql/mysql_dbms_configure.sh': ' $db_port'}
    for path in re.findall(r'\S+\.sh', document):
        files[path] = ran(path.rpartition('/')[2].removesuffix('.sh') + inputs.get(path, ''))
    package = run.folder / 'wordpress.csar'
    package.write_bytes(csar('wordpress.yaml', files))
    given = {'db_root_pwd': 'secret', 'server_image': 'ubuntu'}
    run.refusal(lambda: stack.command('-t', package, **given | {'cpus': 3}), 'wordpress.yaml', 'cpus')
    run.completed(stack, stack.command('-t', package, '--software', 'cloud-init', **given))
    server = stack.servers()['server']
    log = run.server(server).text('/log').splitlines()
    wanted = ['mysql_dbms_install secret', 'mysql_dbms_configure 3366', 'mysql_dbms_start',
              'mysql_database_configure wordpress wp_user wp_pass secret', 'webserver_install', 'webserver_start',
              'wordpress_install', 'wordpress_configure wordpress wp_user wp_pass']
    run.equal('the operations', sorted(log), sorted(wanted))
    order = [log.index(line) for line in wanted if line in log]
    run.check('their order', order[:4] == sorted(order[:4]) and order[4] < order[5] < order[6] < order[7], log)
    outputs = {one['output_key']: one.get('output_value') for one in stack.shown()['outputs']}
    run.equal('the output', {outputs['website_url']}, addresses(run.project, [server]))
    before = stack.ids()
    run.completed(stack, stack.command('-t', package, '--existing', '--software', 'cloud-init', cpus=4), 'UPDATE')
    run.equal('more CPUs resize the server', stack.ids(), before)
    flavor = next(one['flavor'] for one in run.project.servers() if one['id'] == server)
    run.check('the flavor has 4 CPUs', flavor['vcpus'] >= 4, flavor)
    # Values of parameters are part of the software too: the stack waits for the new run.
    run.completed(stack, stack.upload(csar('wordpress.yaml', files), **given, cpus=4, db_name='blog'), 'UPDATE')
    other = stack.servers()['server']
    run.check('another name of the database replaces the server', other != server)
    run.check('it has run', 'wordpress_configure blog' in run.server(other).text('/log'), run.server(other).text('/log'))
    run.deleted(stack)


def elk(run):
    """Elasticsearch, Logstash, Kibana and an application on five servers, a sample of TOSCA; a document with its folder, by
    the command."""
    stack, document = run.stack(), (HERE / 'elk/tosca_elk.yaml').read_text()
    folder = run.folder / 'elk'
    shutil.copytree(SAMPLES / 'custom_types', folder / 'custom_types')
    inputs = {'kibana/config.sh': ' $elasticsearch_ip $kibana_ip', 'nodejs/config.sh': ' $github_url $mongodb_ip',
              'mongodb/config.sh': ' $mongodb_ip', 'rsyslog/config.sh': ' $logstash_ip', 'collectd/config.py': ' $logstash_ip',
              'logstash/configure_elasticsearch.py': ' $elasticsearch_ip'}
    for path in set(re.findall(r'\w+/\w+\.(?:sh|py)', document)):
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_text(ran(path + inputs.get(path, '')))
    (folder / 'elk.yaml').write_text(document)
    given = {f'{name}_image': 'ubuntu' for name in ('app_server', 'mongo_server', 'elasticsearch_server', 'logstash_server',
                                                    'kibana_server')}
    deploy = functools.partial(stack.command, '-t', folder / 'elk.yaml', '--software', 'cloud-init')
    run.completed(stack, deploy(**given))
    servers = stack.servers()
    run.equal('the servers', set(servers), {name.removesuffix('_image') for name in given})
    address = {name: addresses(run.project, [id]).pop() for name, id in servers.items()}
    logs = {name: run.server(id).text('/log').splitlines() for name, id in servers.items()}
    run.equal('Elasticsearch', logs['elasticsearch_server'], ['elasticsearch/create.sh', 'elasticsearch/start.sh'])
    run.equal('Kibana', logs['kibana_server'],
              ['kibana/create.sh', f'kibana/config.sh {address["elasticsearch_server"]} 127.0.0.1', 'kibana/start.sh'])
    wanted = ['logstash/create.sh', f'logstash/configure_elasticsearch.py {address["elasticsearch_server"]}',
              'logstash/start.sh', 'logstash/configure_collectd.py', 'logstash/configure_rsyslog.py']
    run.equal('Logstash', sorted(logs['logstash_server']), sorted(wanted))
    run.equal('Logstash is configured between', logs['logstash_server'].index(wanted[1]) <
              logs['logstash_server'].index(wanted[2]), True)
    for line in (f'collectd/config.py {address["logstash_server"]}', f'rsyslog/config.sh {address["logstash_server"]}',
                 f'nodejs/config.sh http://github.com/paypal/rest-api-sample-app-nodejs.git {address["mongo_server"]}'):
        run.check(f'the application: {line}', line in logs['app_server'], logs['app_server'])
    (folder / 'kibana/start.sh').write_text(ran('kibana restarted'))
    run.completed(stack, deploy('--existing'), 'UPDATE')
    now = stack.servers()
    run.equal('another script of Kibana replaces its server only',
              {name for name in servers if now[name] != servers[name]}, {'kibana_server'})
    run.check('it has run', 'kibana restarted' in run.server(now['kibana_server']).text('/log'))
    run.deleted(stack)


def tier(run):
    """Servers that scale behind a load balancer, in TOSCA; created by a request, updated by the command."""
    project, stack = run.project, run.stack()
    document = (HERE / 'tier/service.yaml').read_text()
    files = {'service.yaml': document, 'shop.sh': ran('$greeting $address')}
    package = run.folder / 'tier.csar'
    package.write_bytes(csar('service.yaml', files))
    run.completed(stack, stack.upload(package.read_bytes(), web_image='cirros'))
    servers = set(stack.servers().values())
    run.equal('the number of servers', len(servers), 2)
    run.equal('the software', {run.server(id).text('/log') for id in servers}, {'hello 127.0.0.1\n'})
    outputs = {one['output_key']: one.get('output_value') for one in stack.shown()['outputs']}
    run.equal('the output', set(outputs['addresses']), addresses(project, servers))
    pool = stack.ids()['entry_pool']
    found = project.user.call('load-balancer', 'GET', f'/v2/lbaas/pools/{pool}')['pool']
    run.equal('the algorithm', found['lb_algorithm'], 'LEAST_CONNECTIONS')
    run.equal('the members', len(found['members']), 2)
    servers = run.scale(stack, 'grow_scale_out', 3, servers)
    files['service.yaml'] = document.replace('least_connections', 'source_ip')
    package.write_bytes(csar('service.yaml', files))
    run.completed(stack, stack.command('-t', package, '--existing', '--software', 'cloud-init', most=4), 'UPDATE')
    run.equal('another algorithm replaces no server', set(stack.servers().values()), servers)
    found = project.user.call('load-balancer', 'GET', f'/v2/lbaas/pools/{pool}')['pool']
    run.equal('the other algorithm', (found['lb_algorithm'], len(found['members'])), ('SOURCE_IP', 3))
    servers = run.scale(stack, 'grow_scale_out', 4, servers)
    servers = run.scale(stack, 'grow_scale_in', 3, servers)
    run.completed(stack, stack.upload(package.read_bytes(), web_image='cirros', most=4, greeting='good day'), 'UPDATE')
    now = set(stack.servers().values())
    run.check('another greeting replaces the servers', not now & servers, (now, servers))
    run.equal('the other greeting', {run.server(id).text('/log') for id in now}, {'good day 127.0.0.1\n'})
    run.deleted(stack)


def vnf(run):
    """A VNF of SOL001 as a CSAR: an administrator creates it, because it has flavors."""
    project, stack = run.project, run.stack(run.project.admin)
    files = {f'Definitions/{name}': (SAMPLES / 'etsi_nfv' / name).read_text()
             for name in ('etsi_nfv_sol001_common_types.yaml', 'etsi_nfv_sol001_vnfd_types.yaml')}
    document = (HERE / 'vnf/vnfd.yaml').read_text()
    package = lambda text: csar('Definitions/vnfd.yaml', files | {'Definitions/vnfd.yaml': text})
    run.completed(stack, stack.upload(package(document)))
    servers = stack.servers()
    run.equal('the number of servers', len(servers), 2)
    run.equal('each has an address of the link', [address.rpartition('.')[0] for address in
                                                  addresses(project, servers.values())], ['10.66.0', '10.66.0'])
    ids = stack.ids()
    shown = {one['id']: one for one in project.servers()}
    volumes = shown[ids['controller']]['os-extended-volumes:volumes_attached']
    run.equal('the volume is attached', [one['id'] for one in volumes], [ids['data']])
    run.equal('the container', run.made('container'), {ids['images']})
    flavors = {one['name']: one['flavor']['ram'] for one in shown.values() if one['id'] in servers.values()}
    run.equal('the memory', sorted(flavors.values()), [512, 1024])
    groups = project.admin.list('compute', '/os-server-groups')
    mine = next(one for one in groups if one['id'] == ids['apart_group'])
    run.equal('the server group', (mine['members'], mine['policies'] if 'policies' in mine else [mine['policy']]),
              ([ids['controller']], ['anti-affinity']))
    limit = lambda: [rule['max_kbps'] for policy in project.user.list('network', '/v2.0/qos/policies?project_id={project}')
                     for rule in policy['rules']]
    run.equal('the bandwidth', limit(), [1024])
    all_servers = run.scale(stack, 'workers_scale_out', 3, set(servers.values()))
    before = stack.ids()
    run.completed(stack, stack.upload(package(document.replace('max_bitrate_requirements: {root: 1048576}',
                                                               'max_bitrate_requirements: {root: 2097152}'))), 'UPDATE')
    run.equal('another bandwidth replaces nothing', stack.ids(), before)
    run.equal('the other bandwidth', limit(), [2048])
    all_servers = run.scale(stack, 'workers_scale_in', 2, all_servers)
    run.check('the controller stays', ids['controller'] in all_servers)
    run.deleted(stack)


def deployments(run):
    """Software deployments for servers with agents, in TOSCA: outputs of other servers, and operations when the stack is
    deleted; as a CSAR, by requests."""
    stack = run.stack()
    step = '#!/bin/sh\necho "$step" >> "$LOG"\n'
    package = csar('service.yaml', {
        'service.yaml': (HERE / 'deployments/service.yaml').read_text(), 'step.sh': step,
        'database.sh': '#!/bin/sh\necho "database create $port" >> "$LOG"\nprintf "db:$port" > "$heat_outputs_path.address"\n'})
    given = {'front_image': 'cirros', 'back_image': 'cirros'}
    upload = functools.partial(stack.upload, package, 'deployments', **given)
    run.completed(stack, upload())
    servers = stack.servers()
    front, back = run.boots.of(servers['front']), run.boots.of(servers['back'])
    run.equal('the database', back.lines(), ['database create 5432', 'database start'])
    run.equal('the shop', front.lines(), ['shop create', 'shop connects', 'shop configure hello db:5432'])
    outputs = {one['output_key']: one.get('output_value') for one in stack.shown()['outputs']}
    run.equal('the output', outputs, {'database': 'db:5432'})
    run.completed(stack, upload(greeting='good day'), 'UPDATE')
    run.equal('another input keeps the servers', stack.servers(), servers)
    run.equal('another input runs its operation again', front.lines()[3:], ['shop configure good day db:5432'])
    run.equal('another input runs nothing else', len(back.lines()), 2)
    run.completed(stack, upload(greeting='good day', port=5433), 'UPDATE')
    run.equal('another port runs on the database', back.lines()[2:], ['database create 5433'])
    run.equal('its output is another input of the shop', front.lines()[4:], ['shop configure good day db:5433'])
    run.deleted(stack)
    run.equal('the operations at the end', front.lines()[5:], ['shop stop', 'shop delete'])
    front.wait()
    back.wait()


CASES = [script_server, camp, war_container, elastic_php, war_database, wordpress, elk, tier, vnf, deployments]
# One of each kind of document, and what no other case has.
SHORT = [script_server, elastic_php, wordpress, tier, deployments]


def main():
    names = sys.argv[1:]
    chosen = SHORT if names == ['--short'] else [one for one in CASES if not names or one.__name__ in names]
    with Project() as project, tempfile.TemporaryDirectory(prefix='kiln-topology-') as scratch:
        scratch = pathlib.Path(scratch)
        served = scratch / 'served'
        served.mkdir()
        (served / 'my_install.sh').write_text(ran('installed'))
        (served / 'my_failure.sh').write_text('#!/bin/sh\necho no such package\nexit 3\n')
        (served / 'my_app.tgz').write_bytes(archive({'index.php': '<?php echo 1;\n'}))
        server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), functools.partial(Contents, directory=str(served)))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        contents = f'http://127.0.0.1:{server.server_address[1]}/'
        project.image('rhel', os_distro='rhel')
        project.image('ubuntu', architecture='x86_64', os_type='linux', os_distro='ubuntu', os_version='14.04')
        project.zone('example.com.')
        with Boots(scratch / 'servers', project.servers, Server, Agent) as boots:
            for one in chosen:
                start, name = time.monotonic(), one.__name__
                (scratch / name).mkdir()
                run = Run(project, boots, scratch / name, contents, name)
                case(one, run, name=name)
                if run.stack().shown():
                    case(run.stack().delete, name=f'{name}, delete')
                print(f'{name}: {time.monotonic() - start:.1f} s', flush=True)
        server.shutdown()
    finish()


if __name__ == '__main__':
    main()
