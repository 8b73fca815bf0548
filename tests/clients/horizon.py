#!/usr/bin/env python3
"""Horizon with heat-dashboard (from PyPI), in Debian's Chromium: create, topology, resources, events, update, delete.

    tests/clients/horizon.py [KILN]

Horizon runs in Django's server, with sessions in memory; the browser clicks through its pages without a display.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent))
from harness.checks import case, check, equal, failed, finish, skip, until  # noqa: E402
from harness.deployment import Deployment, free_port, listens  # noqa: E402
from harness.pypi import virtual_environment  # noqa: E402
from harness.request import call  # noqa: E402

if not shutil.which('chromium') or not shutil.which('chromedriver'):
    skip('chromium and chromium-driver are not installed')
virtual_environment('horizon', 'horizon', 'heat-dashboard', 'selenium')

import heat_dashboard  # noqa: E402
import openstack_dashboard  # noqa: E402
from selenium import webdriver  # noqa: E402
from selenium.common.exceptions import WebDriverException  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.support.ui import WebDriverWait  # noqa: E402

TEMPLATE = '''heat_template_version: 2018-08-31
description: two networks
parameters:
  label: {type: string, label: The label, default: one}
  size: {type: number, default: 8, constraints: [{range: {min: 1, max: 20}}]}
  secret: {type: string, hidden: true, default: "1234"}
resources:
  net: {type: OS::Neutron::Net, properties: {name: {get_param: label}}}
  subnet: {type: OS::Neutron::Subnet, properties: {network: {get_resource: net}, cidr: 10.9.0.0/24}}
  word: {type: OS::Heat::RandomString, properties: {length: {get_param: size}}}
outputs:
  word: {value: {get_attr: [word, value]}}
'''
SETTINGS = '''
DEBUG = True
ALLOWED_HOSTS = ['*']
SECRET_KEY = 'horizon'
OPENSTACK_HOST = '127.0.0.1'
OPENSTACK_KEYSTONE_URL = '{auth}'
# The sessions are in this cache too, and it forgets some of its entries when it is full.
CACHES = {{'default': {{'BACKEND': 'django.core.cache.backends.locmem.LocMemCache', 'OPTIONS': {{'MAX_ENTRIES': 100000}}}}}}
STATIC_ROOT = '{folder}/static'
POLICY_FILES = {{'orchestration': 'heat_policy.yaml'}}
DEFAULT_POLICY_FILES = {{'orchestration': 'default_policies/heat.yaml'}}
OPENSTACK_HEAT_STACK = {{'enable_user_pass': True}}
'''


def plug_in():
    """Copies the panels and the policy of heat-dashboard to where Horizon reads them, as its instructions say."""
    source, target = (pathlib.Path(one.__file__).parent for one in (heat_dashboard, openstack_dashboard))
    for file in (source / 'enabled').glob('_1*.py'):
        shutil.copy(file, target / 'local/enabled')
    shutil.copy(source / 'conf/heat_policy.yaml', target / 'conf')
    shutil.copytree(source / 'conf/default_policies', target / 'conf/default_policies', dirs_exist_ok=True)


class Horizon:
    """Horizon's server, and a browser that has logged in."""

    def __init__(self, kiln):
        self.kiln, self.port = kiln, free_port()
        self.url = f'http://127.0.0.1:{self.port}'
        local = kiln.folder / 'settings/local'
        local.mkdir(parents=True)
        (local / '__init__.py').touch()
        (local / 'local_settings.py').write_text(SETTINGS.format(auth=kiln.auth, folder=kiln.folder))
        self.log = kiln.folder / 'horizon.log'

    def __enter__(self):
        command = [sys.executable, '-m', 'django', 'runserver', '--noreload', f'127.0.0.1:{self.port}']
        env = {**os.environ, 'DJANGO_SETTINGS_MODULE': 'openstack_dashboard.settings',
               'PYTHONPATH': str(self.kiln.folder / 'settings')}
        with open(self.log, 'w') as log:
            self.server = subprocess.Popen(command, stdout=log, stderr=log, env=env, cwd=self.kiln.folder)
        self.browser = None
        try:
            until(lambda: listens(self.port) or self.server.poll() is not None, bool)
            options = webdriver.ChromeOptions()
            for word in ('--headless=new', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage',
                         '--window-size=1400,1200'):
                options.add_argument(word)
            options.set_capability('goog:loggingPrefs', {'browser': 'SEVERE'})
            service = webdriver.ChromeService(shutil.which('chromedriver'))
            self.browser = webdriver.Chrome(options=options, service=service)
            # The first page compiles the styles.
            self.browser.set_page_load_timeout(240)
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, kind, error, trace):
        if self.browser:
            self.browser.quit()
        self.server.terminate()
        self.server.wait()
        if failed or error:
            noise = ('DEBUG:', '  warnings.warn', '[')
            lines = self.log.read_text().splitlines()
            lines = [line for line in lines if not line.startswith(noise) and 'DeprecationWarning' not in line]
            print('\n'.join(lines[-40:]))

    def open(self, path):
        self.browser.get(self.url + path)

    def wait(self, what, condition, seconds=30):
        """Waits until a condition of the page holds."""
        def holds(_):
            try:
                return condition()
            except WebDriverException:   # the page is changing
                return None
        try:
            return WebDriverWait(self.browser, seconds, 0.3).until(holds)
        except WebDriverException:
            body = self.browser.find_element(By.TAG_NAME, 'body').text
            raise RuntimeError(f'{what}: not on {self.browser.current_url}: {body[-1500:]}') from None

    def find(self, css, seconds=30):
        """The first visible element."""
        def visible():
            return next((one for one in self.browser.find_elements(By.CSS_SELECTOR, css) if one.is_displayed()), None)
        return self.wait(css, visible, seconds)

    def all(self, css):
        return self.browser.find_elements(By.CSS_SELECTOR, css)

    def click(self, css):
        element = self.find(css)
        self.wait(f'a click on {css}', lambda: element.click() or True)

    def fill(self, css, text):
        element = self.find(css)
        element.clear()
        element.send_keys(text)

    def text(self, css):
        return self.find(css).text

    def row(self, name):
        """The row of a stack: its cells, or None."""
        for row in self.all('#stacks tbody tr'):
            cells = [cell.text for cell in row.find_elements(By.TAG_NAME, 'td')]
            if name in cells:
                return row, cells
        return None

    def reaches(self, name, status):
        """Waits for a state in the table, which refreshes the rows of stacks that are in progress."""
        def there():
            found = self.row(name)
            return found and status in found[1] and found
        return self.wait(f'{name} is {status}', there)

    def give_template(self, template):
        """The dialog with the template, up to the next one."""
        # Horizon draws its selections itself.
        self.click('.modal-body .themable-select .dropdown-toggle')
        self.click('.modal-body .themable-select a[data-select-value="raw"]')
        area = self.find('#id_template_data')
        self.browser.execute_script('arguments[0].value = arguments[1]', area, template)
        self.click('.modal-footer input[type=submit], .modal-footer button[type=submit]')

    def tab(self, slug):
        """Opens a tab of a stack and returns its element when it is loaded."""
        self.click(f'a[href="?tab=stack_details__{slug}"], a[data-target="#stack_details__{slug}"]')
        pane = self.find(f'#stack_details__{slug}')
        self.wait(f'the tab {slug}', lambda: pane.text and 'Loading' not in pane.text)
        return pane


def log_in(horizon):
    # Not the overview of the project, which asks for quotas and usage of other services.
    horizon.open('/auth/login/?next=/project/stacks/')
    horizon.fill('#id_username', 'demo')
    horizon.fill('#id_password', 'wrong')
    horizon.click('#loginBtn')
    check('a wrong password', 'Invalid credentials' in horizon.text('form .alert, .alert-danger, .error, #container'))
    horizon.fill('#id_username', 'demo')
    horizon.fill('#id_password', 'password')
    horizon.click('#loginBtn')
    horizon.wait('a login', lambda: horizon.browser.current_url.endswith('/project/stacks/'), 120)
    equal('the page', horizon.text('h1'), 'Stacks')
    check('no stack', 'No items to display' in horizon.text('#stacks'))


def create(horizon):
    horizon.click('#stacks__action_launch')
    horizon.give_template(TEMPLATE.replace('Neutron::Net', 'Neutron::Nett'))
    said = horizon.text('.modal-body .alert-danger, .modal-body .help-block.alert')
    check('an invalid template', 'The Resource Type (OS::Neutron::Nett) could not be found.' in said, said)
    horizon.give_template(TEMPLATE)
    horizon.fill('#id_stack_name', 'web')
    equal('a parameter with its default', horizon.find('#id___param_label').get_attribute('value'), 'one')
    equal('a hidden parameter', horizon.find('#id___param_secret').get_attribute('type'), 'password')
    horizon.fill('#id___param_label', 'two')
    horizon.fill('#id_password', 'password')
    horizon.click('.modal-footer input[type=submit], .modal-footer button[type=submit]')
    row, cells = horizon.reaches('web', 'Create Complete')
    check('the row', 'web' in cells, cells)
    return row.get_attribute('data-object-id')


def shown(horizon, stack):
    token, project = horizon.kiln.token()
    path = f'{horizon.kiln.url}/{project}/stacks/web/{stack}'
    resources = {one['resource_name']: one for one in call('GET', f'{path}/resources', token=token)[2]['resources']}
    row, _ = horizon.row('web')
    row.find_element(By.LINK_TEXT, 'web').click()
    horizon.wait('the stack', lambda: f'/stack/{stack}' in horizon.browser.current_url)
    # The topology is drawn by a script from JSON.
    drawn = horizon.wait('the topology', lambda: horizon.all('svg .node'))
    equal('the resources in the topology', sorted(one.get_attribute('node_name') for one in drawn),
          ['net', 'subnet', 'word'])
    equal('the dependency in the topology', len(horizon.all('svg .link')), 1)
    check('the stack in the topology', 'web' in horizon.text('#stack_box'), horizon.text('#stack_box'))
    data = horizon.browser.execute_async_script(
        'const done = arguments[arguments.length - 1];'
        'fetch(arguments[0]).then(answer => answer.json()).then(done)', f'/project/stacks/get_d3_data/{stack}/')
    equal('the data of the topology', {one['name']: (one['status'], one['required_by']) for one in data['nodes']},
          {'net': ('CREATE_COMPLETE', ['subnet']), 'subnet': ('CREATE_COMPLETE', []), 'word': ('CREATE_COMPLETE', [])})
    overview = horizon.tab('overview').text
    for text in (stack, 'two networks', 'Create_Complete', 'Stack CREATE completed successfully', 'label', 'two', 'word'):
        check(f'the overview has {text}', text in overview, overview)
    check('the overview hides a value', '1234' not in overview and '*****' in overview, overview)
    listed = horizon.tab('resources')
    for name, one in resources.items():
        for text in (name, one['resource_type'], one['physical_resource_id']):
            check(f'the resources have {text}', text in listed.text, listed.text)
    events = horizon.tab('events').text
    check('the events', all(text in events for text in ('net', 'web', 'Create Complete', 'Create In Progress')), events)
    template = horizon.tab('stack_template').text
    check('the template', 'OS::Neutron::Subnet' in template, template)
    horizon.tab('resources').find_element(By.LINK_TEXT, 'net').click()
    horizon.wait('the resource', lambda: f'/stack/{stack}/net/' in horizon.browser.current_url)
    page = horizon.text('#content_body, body')
    check('a resource', 'OS::Neutron::Net' in page and resources['net']['physical_resource_id'] in page, page)


def menu(horizon, name, action):
    """Opens the menu of a stack and chooses an action."""
    row, _ = horizon.wait(f'{name} in the list', lambda: horizon.row(name))
    if not row.find_element(By.CSS_SELECTOR, f'[id$="__action_{action}"]').is_displayed():
        row.find_element(By.CSS_SELECTOR, '.dropdown-toggle').click()
    horizon.click(f'#stacks tbody tr [id$="__action_{action}"]')


def update(horizon, stack):
    horizon.open('/project/stacks/')
    menu(horizon, 'web', 'check')
    horizon.reaches('web', 'Check Complete')
    menu(horizon, 'web', 'edit')
    horizon.give_template(TEMPLATE.replace('RandomString, properties', 'RandomString, metadata: {a: 1}, properties'))
    # The dashboard does not offer the current value.
    equal('the default', horizon.find('#id___param_label').get_attribute('value'), 'one')
    horizon.fill('#id___param_label', 'three')
    horizon.fill('#id_password', 'password')
    horizon.click('.modal-footer input[type=submit], .modal-footer button[type=submit]')
    horizon.reaches('web', 'Update Complete')
    token, project = horizon.kiln.token()
    path = f'{horizon.kiln.url}/{project}/stacks/web/{stack}'
    equal('the parameter', call('GET', path, token=token)[2]['stack']['parameters']['label'], 'three')
    for action, status in (('suspend', 'Suspend Complete'), ('resume', 'Resume Complete')):
        menu(horizon, 'web', action)
        check(action, horizon.reaches('web', status))


def others(horizon):
    """The other pages of the panel group."""
    horizon.open('/project/resource_types/')
    check('resource types', 'OS::Barbican::CertificateContainer' in horizon.text('#resource_types'))
    horizon.open('/project/resource_types/OS::Neutron::Net/')
    page = horizon.text('body')
    check('a resource type', 'admin_state_up' in page, page)
    horizon.open('/project/template_versions/')
    check('template versions', 'heat_template_version.2018-08-31' in horizon.text('#template_versions'))
    horizon.open('/project/template_versions/heat_template_version.2018-08-31/')
    check('functions', 'get_attr' in horizon.text('body'))


def delete(horizon):
    horizon.open('/project/stacks/')
    menu(horizon, 'web', 'delete')
    horizon.click('.modal-footer .btn-danger, .modal-footer .btn-primary')
    horizon.wait('the stack is gone', lambda: 'No items to display' in horizon.text('#stacks'))
    severe = [one['message'] for one in horizon.browser.get_log('browser')]
    check('no script failed', not [text for text in severe if 'Uncaught' in text], severe)


def main():
    plug_in()
    with Deployment() as kiln, Horizon(kiln) as horizon:
        start = time.monotonic()
        case(log_in, horizon)
        print(f'logged in after {time.monotonic() - start:.0f} s', flush=True)
        stack = case(create, horizon)
        if stack:
            for part, arguments in ((shown, [stack]), (update, [stack]), (others, []), (delete, [])):
                case(part, horizon, *arguments)
        errors = re.findall(r'^ERROR.*', horizon.log.read_text(), re.M)
        equal('errors of Horizon', errors, [])
    finish()


if __name__ == '__main__':
    main()
