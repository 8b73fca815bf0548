"""Aodh's notifiers and Prometheus' alertmanager scale a group and heal it (for agents.py)."""
import json
import pathlib
import re
import subprocess

from harness.checks import check, equal, until
from harness.request import send

from guest import TOOLS

MEMBER = json.dumps({'heat_template_version': '2018-08-31', 'resources': {'text': {'type': 'OS::Heat::RandomString'}}})

# What the alertmanager posts to a webhook (version 4 of its format).
ALERT = {
    'version': '4', 'groupKey': '{}:{alertname="HighLoad"}', 'truncatedAlerts': 0, 'status': 'firing',
    'receiver': 'heat',
    'groupLabels': {'alertname': 'HighLoad'}, 'commonLabels': {'alertname': 'HighLoad', 'severity': 'page'},
    'commonAnnotations': {'summary': 'The load is high'}, 'externalURL': 'http://alertmanager.example:9093',
    'alerts': [{
        'status': 'firing', 'labels': {'alertname': 'HighLoad', 'instance': 'web-1:9100', 'severity': 'page'},
        'annotations': {'summary': 'The load is high'}, 'startsAt': '2026-11-20T09:14:02.215Z',
        'endsAt': '0001-01-01T00:00:00Z',
        'generatorURL': 'http://prometheus.example:9090/graph?g0.expr=node_load1+%3E+4',
        'fingerprint': 'c6e1f5a2b3d40718'}],
}


def template():
    def policy(change):
        return {'type': 'OS::Heat::ScalingPolicy', 'properties': {
            'adjustment_type': 'change_in_capacity', 'scaling_adjustment': change, 'cooldown': 0,
            'auto_scaling_group_id': {'get_resource': 'group'}}}

    urls = {f'{name}_{url}': {'value': {'get_attr': [name, f'{url}_url']}}
            for name in ('up', 'down') for url in ('alarm', 'signal')}
    return {'heat_template_version': '2018-08-31', 'resources': {
        'group': {'type': 'OS::Heat::AutoScalingGroup', 'properties': {
            'min_size': 1, 'max_size': 3, 'resource': {'type': 'member.yaml'}}},
        'up': policy(1), 'down': policy(-1)},
        'outputs': {'size': {'value': {'get_attr': ['group', 'current_size']}}, **urls}}


class Aodh:
    """The notifiers, with a trust of the user."""

    def __init__(self, folder, keystone):
        folder.mkdir()
        self.file = folder / 'aodh.conf'
        self.file.write_text(
            f'[DEFAULT]\ntransport_url = fake://\ndebug = true\nuse_stderr = true\n'
            f'[service_credentials]\nauth_type = password\nauth_url = {keystone.url}\nusername = heat\npassword = password\nproject_name = service\n'
            f'user_domain_id = default\nproject_domain_id = default\nregion_name = RegionOne\n')
        self.trust = keystone.trust_to('heat')

    def notify(self, action, current='alarm', reason_data=None):
        """The notifier's log after an alarm with the action."""
        alarm = {'actions': [action], 'alarm_id': 'e6b3d0c4', 'alarm_name': 'load', 'severity': 'low', 'previous': 'ok',
                 'current': current, 'reason': 'Transition to alarm due to 1 samples outside threshold',
                 'reason_data': reason_data or {'type': 'threshold', 'disposition': 'outside', 'count': 1,
                                                'most_recent': 93.5}}
        script = pathlib.Path(__file__).with_name('aodh_notifier.py')
        return subprocess.run([TOOLS / 'bin/python', script, self.file], input=json.dumps([alarm]), text=True,
                              capture_output=True, timeout=60).stderr

    def with_trust(self, url):
        return url.replace('http://', f'trust+http://{self.trust}:delete@')


def reached(heat, name, group, size):
    """The size of the group, as soon as it is `size` and the group is not changing: until then it takes no signals."""
    def read():
        return heat.outputs(name)['size'], heat.stack(group)['stack_status'].endswith('COMPLETE')

    return until(read, lambda now: now == (size, True), 20)[0]


def members(heat, id):
    """The text of each member, by the name of the member."""
    found = heat.call('GET', f'/stacks/{id}/resources?nested_depth=3')['resources']
    return {one['parent_resource']: one['physical_resource_id'] for one in found if one['resource_name'] == 'text'}


def alarms(heat, folder):
    name = 'scaled'
    id = heat.create(name, template(), files={'member.yaml': MEMBER})
    aodh = Aodh(folder / name, heat.keystone)
    equal('a group', heat.settled(name)['stack_status'], 'CREATE_COMPLETE')
    out = heat.outputs(name)
    group = heat.resource(name, id, 'group')['physical_resource_id']
    answered = re.compile(r'gets response: (\d+)')

    def aodh_says(what, action, status, size, **alarm):
        log = aodh.notify(action, **alarm)
        equal(f'Aodh, {what}: the answer', answered.findall(log) or log[-1500:], [status])
        equal(f'Aodh, {what}: the size', reached(heat, name, group, size), size)

    aodh_says('http', out['up_alarm'], '200', 2)
    aodh_says('http, the state ok', out['down_alarm'], '200', 1, current='ok')
    forged = re.sub('Signature=[^&]+', 'Signature=Zm9yZ2Vk', out['up_alarm'])
    aodh_says('a forged signature', forged, '403', 1)
    aodh_says('trust+http', aodh.with_trust(out['up_signal']), '200', 2)
    aodh_says('http without a token', out['up_signal'], '401', 2)

    answer = send('POST', out['up_alarm'], ALERT, **{'User-Agent': 'Alertmanager/0.27.0'})
    equal('alertmanager: the answer', answer.status, 200)
    equal('alertmanager: the size', reached(heat, name, group, 3), 3)

    def signals():
        events = heat.call('GET', f'/stacks/{name}/{id}/events')['events']
        return [event['resource_status_reason'] for event in events if event['resource_status'] == 'SIGNAL_COMPLETE']

    # A signal has its event after the group has changed.
    reasons = until(signals, lambda reasons: 'Unknown' in reasons, 20)
    text = 'alarm state changed from ok to alarm (Transition to alarm due to 1 samples outside threshold)'
    check('the event of an alarm of Aodh', text in reasons, reasons)
    check('the event of an alarm of the alertmanager', 'Unknown' in reasons, reasons)

    # The notifier of unhealthy members of a load balancer marks them and updates the stack.
    before = members(heat, id)
    sick = sorted(before)[0]
    log = aodh.notify(f'trust+heat://{aodh.trust}:delete@', reason_data={
        'stack_id': id, 'asg_id': group, 'unhealthy_members': [{'id': before[sick]}]})
    check('Aodh, trust+heat', f'Heat stack {id} is updated' in log, log[-1500:])
    equal('Aodh, trust+heat: the stack', heat.settled(name)['stack_status'], 'UPDATE_COMPLETE')
    after = members(heat, id)
    equal('Aodh, trust+heat: the other members are kept', sorted(set(before.values()) & set(after.values())),
          sorted(text for member, text in before.items() if member != sick))
    # Without a desired capacity, an update keeps as many members as are healthy (Heat's grouputils.get_size).
    equal('Aodh, trust+heat: the size', (len(before), heat.outputs(name)['size']), (3, 2))
    equal('the delete of the group', heat.delete(name, id), 'DELETE_COMPLETE')
