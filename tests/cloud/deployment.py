"""A stack with a software deployment on a server that has an agent (for agents.py)."""

SCRIPT = '''#!/bin/sh
echo "size is $size"
echo "a warning" >&2
printf '%s' "$size" > "$heat_outputs_path.result"
exit $code
'''


def deployment(collect, report, group='script', config=SCRIPT, result='result'):
    return {
        'heat_template_version': '2018-08-31',
        'parameters': {'size': {'type': 'string', 'default': '1'}, 'code': {'type': 'string', 'default': '0'}},
        'resources': {
            'config': {'type': 'OS::Heat::SoftwareConfig' if isinstance(config, str) else 'OS::Heat::StructuredConfig',
                       'properties': {'group': group, 'config': config, 'outputs': [{'name': result}],
                                      'inputs': [{'name': 'size'}, {'name': 'code'}]}},
            'server': {'type': 'OS::Heat::DeployedServer', 'properties': {'software_config_transport': collect}},
            'deployment': {
                'type': f'OS::Heat::{"Software" if isinstance(config, str) else "Structured"}Deployment',
                'properties': {'config': {'get_resource': 'config'}, 'server': {'get_resource': 'server'},
                               'signal_transport': report,
                               'input_values': {'size': {'get_param': 'size'}, 'code': {'get_param': 'code'}}}},
        },
        'outputs': {'collect': {'value': {'get_attr': ['server', 'os_collect_config']}},
                    'server': {'value': {'get_resource': 'server'}},
                    'deployment': {'value': {'get_resource': 'deployment'}},
                    **{name: {'value': {'get_attr': ['deployment', name]}}
                       for name in (result, 'deploy_stdout', 'deploy_stderr', 'deploy_status_code')}},
    }
