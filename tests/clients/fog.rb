# The orchestration service of fog-openstack against a service; run by fog.py.
require 'fog/openstack'
require 'json'

$passed = 0
$failed = 0

def check(what, good, detail = '')
  if good
    $passed += 1
  else
    $failed += 1
    puts "FAILED #{what}: #{detail}"
  end
end

def equal(what, got, expected)
  check(what, got == expected, "#{got.inspect} instead of #{expected.inspect}")
end

def refused(what, kind)
  yield
  check(what, false, 'accepted')
rescue StandardError => e
  check(what, e.is_a?(kind), "#{e.class}: #{e.message}")
end

# The stack after the end of an action.
def settled(heat, name, id, status)
  stack = nil
  300.times do
    stack = heat.stacks.get(name, id)
    break if stack.stack_status == status

    sleep 0.1
  end
  equal('status', stack.stack_status, status)
  stack
end

def output(stack, name)
  stack.outputs.find { |one| one['output_key'] == name }['output_value']
end

def life(heat, template)
  preview = heat.stacks.preview(stack_name: 'app', template: template, parameters: { label: 'a' })
  equal('a preview', [preview.stack_name, preview.parameters['label']], %w[app a])
  made = heat.stacks.create(stack_name: 'app', template: template, parameters: { label: 'a' }, timeout_mins: 5,
                            disable_rollback: true, tags: 'red,green')
  stack = settled(heat, 'app', made['id'], 'CREATE_COMPLETE')
  equal('shown', [stack.stack_name, stack.description, stack.timeout_mins, stack.disable_rollback],
        ['app', 'a network and a word', 5, true])
  equal('parameters', [stack.parameters['label'], stack.parameters['pin']], ['a', '******'])
  equal('an output', output(stack, 'name'), 'a')
  equal('listed', heat.stacks.all.map(&:stack_name), ['app'])
  equal('by tag', heat.stacks.all(tags: 'red').map(&:id), [made['id']])
  equal('by status', heat.stacks.all(stack_status: 'CREATE_FAILED').map(&:id), [])
  equal('details', heat.list_stack_data_detailed.body['stacks'].map { |one| one['stack_name'] }, ['app'])

  resources = stack.resources
  equal('resources', resources.map { |one| [one.resource_name, one.resource_type, one.resource_status] }.sort,
        [['net', 'OS::Neutron::Net', 'CREATE_COMPLETE'], ['word', 'OS::Heat::RandomString', 'CREATE_COMPLETE']])
  net = resources.find { |one| one.resource_name == 'net' }
  shown = heat.show_resource_data('app', made['id'], 'net').body['resource']
  equal('a resource', [shown['attributes']['name'], shown['physical_resource_id']], ['a', output(stack, 'network')])
  equal('metadata', heat.show_resource_metadata(stack, 'net').body['metadata'], {})
  equal('events', stack.events.length, 6)
  events = heat.list_events(stack: stack, resource: net).body['events']
  equal('events of a resource', events.map { |one| one['resource_status'] }.sort, %w[CREATE_COMPLETE CREATE_IN_PROGRESS])
  event = heat.show_event_details(stack, net, events[0]['id']).body['event']
  equal('an event', [event['id'], event['resource_name']], [events[0]['id'], 'net'])
  equal('the template', YAML.safe_load(stack.template.content)['resources'].keys.sort, %w[net word])

  stack.save(template: template, parameters: { label: 'b' })
  stack = settled(heat, 'app', made['id'], 'UPDATE_COMPLETE')
  equal('updated', output(stack, 'name'), 'b')
  stack.patch(parameters: { label: 'c' })
  100.times do
    stack = heat.stacks.get('app', made['id'])
    break if output(stack, 'name') == 'c'

    sleep 0.1
  end
  equal('patched', output(settled(heat, 'app', made['id'], 'UPDATE_COMPLETE'), 'name'), 'c')
  refused('a cancel without an update', Excon::Error::BadRequest) { heat.cancel_update(stack) }

  data = stack.abandon.body
  equal('abandoned', [data['id'], data['resources'].keys.sort], [made['id'], %w[net word]])
  adopted = heat.stacks.adopt(stack_name: 'adopted', template: template, adopt_stack_data: JSON.dump(data))
  id = adopted.body['stack']['id']
  stack = settled(heat, 'adopted', id, 'ADOPT_COMPLETE')
  equal('the same network', output(stack, 'network'), shown['physical_resource_id'])
  stack.delete
  settled(heat, 'adopted', id, 'DELETE_COMPLETE')
  equal('nothing is left', heat.stacks.all.to_a, [])
end

def types(heat, template)
  check('build info', heat.build_info.body.key?('engine'))
  check('types', heat.list_resource_types.body['resource_types'].include?('OS::Nova::Server'))
  equal('a type', heat.show_resource_schema('OS::Heat::Value').body['resource_type'], 'OS::Heat::Value')
  equal('a generated template', heat.show_resource_template('OS::Heat::Value').body['HeatTemplateFormatVersion'],
        '2012-12-12')
  equal('validated', heat.templates.validate(template: template).parameters.keys.sort, %w[label pin])
end

def errors(heat)
  equal('an unknown stack', heat.list_stack_data(name: 'nobody').body['stacks'], [])
  refused('a stack that is shown', Fog::OpenStack::Orchestration::NotFound) do
    heat.show_stack_details('nobody', '00000000-0000-4000-8000-000000000000')
  end
  bad = { 'heat_template_version' => '2018-08-31', 'resources' => { 'x' => { 'type' => 'OS::Nova::Sever' } } }
  refused('an unknown type', Excon::Error::BadRequest) { heat.stacks.create(stack_name: 'bad', template: bad) }
  empty = { 'heat_template_version' => '2018-08-31' }
  made = heat.stacks.create(stack_name: 'one', template: empty)
  stack = settled(heat, 'one', made['id'], 'CREATE_COMPLETE')
  refused('a second stack of the name', Excon::Error::Conflict) do
    heat.stacks.create(stack_name: 'one', template: empty)
  end
  stack.delete
  settled(heat, 'one', made['id'], 'DELETE_COMPLETE')
end

# Version 1.0.8 uses this name, but defines another one.
Fog::OpenStack::Orchestration::Util = Fog::OpenStack::OrchestrationUtil
# And it calls the YAML library of Ruby 2.
module Fog::OpenStack::OrchestrationUtil
  class RecursiveHotFileLoader
    def deep_copy(value)
      Marshal.load(Marshal.dump(value))
    end

  end
end

begin
  heat = Fog::OpenStack::Orchestration.new(
    openstack_auth_url: ENV['OS_AUTH_URL'].sub(%r{/v3$}, ''), openstack_username: ENV['OS_USERNAME'],
    openstack_api_key: ENV['OS_PASSWORD'], openstack_project_name: ENV['OS_PROJECT_NAME'],
    openstack_domain_id: 'default', openstack_region: ENV['OS_REGION_NAME']
  )
  template = YAML.safe_load(File.read(ARGV[0]), permitted_classes: [Date])
  template['heat_template_version'] = template['heat_template_version'].to_s
  life(heat, template)
  types(heat, template)
  errors(heat)
rescue StandardError => e
  check('the script', false, "#{e.class}: #{e.message[0, 600]} #{e.backtrace[0, 6]}".gsub("\n", ' '))
end
puts "#{$passed} passed, #{$failed} failed"
exit($failed.zero? ? 0 : 1)
