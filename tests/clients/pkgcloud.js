// The orchestration client of pkgcloud against a service; run by pkgcloud.py.
const fs = require('fs');
const { isDeepStrictEqual, inspect, promisify } = require('util');
const pkgcloud = require('pkgcloud');

let passed = 0, failed = 0;

function check(what, good, detail) {
  if (good) {
    passed += 1;
  } else {
    failed += 1;
    console.log(`FAILED ${what}: ${String(detail).replace(/\n/g, ' ')}`);
  }
}

function equal(what, got, expected) {
  check(what, isDeepStrictEqual(got, expected), `${inspect(got)} instead of ${inspect(expected)}`);
}

async function refused(what, status, call) {
  try {
    await call();
    check(what, false, 'accepted');
  } catch (error) {
    equal(what, error.statusCode, status);
  }
}

const client = pkgcloud.orchestration.createClient({
  provider: 'openstack', keystoneAuthVersion: 'v3', authUrl: process.env.OS_AUTH_URL.replace(/\/v3$/, ''),
  username: process.env.OS_USERNAME, password: process.env.OS_PASSWORD, region: process.env.OS_REGION_NAME,
  tenantName: process.env.OS_PROJECT_NAME, domainId: 'default', projectDomainId: 'default',
});
const heat = new Proxy({}, { get: (_, name) => promisify(client[name]).bind(client) });

async function settled(id, status) {
  for (let attempt = 0; ; attempt += 1) {
    const stack = await heat.getStack(id);
    if (stack.status === status || attempt > 300) {
      equal('status', stack.status, status);
      return stack;
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

const output = (stack, name) => stack.outputs.find((one) => one.output_key === name).output_value;

async function life(template) {
  const environment = { parameters: { pin: '99' } };
  const made = await heat.createStack({ name: 'app', timeout: 5, template, environment, parameters: { label: 'a' } });
  let stack = await settled(made.id, 'CREATE_COMPLETE');
  equal('shown', [stack.name, stack.description, stack.timeout, stack.parameters.label, stack.parameters.pin],
    ['app', 'a network and a word', 5, 'a', '******']);
  equal('an output', output(stack, 'name'), 'a');
  equal('found by name', (await heat.getStack('app')).id, made.id);
  equal('listed', (await heat.getStacks({})).map((one) => one.name), ['app']);
  equal('by status', (await heat.getStacks({ status: 'FAILED' })).length, 0);
  equal('sorted', (await heat.getStacks({ sortKeys: 'stack_name', sortDir: 'asc', limit: 1 })).length, 1);
  const resources = await heat.getResources('app');
  equal('resources', resources.map((one) => one.name).sort(), ['net', 'word']);
  const net = await heat.getResource(stack, 'net');
  equal('a resource', [net.type, net.status, net.physicalResourceId],
    ['OS::Neutron::Net', 'CREATE_COMPLETE', output(stack, 'network')]);
  equal('events', (await heat.getEvents(stack)).length, 6);
  const events = await heat.getResourceEvents('app', 'net');
  equal('events of a resource', events.length, 2);
  equal('an event', (await heat.getEvent(stack, 'net', events[0].id)).id, events[0].id);
  equal('the template', Object.keys((await heat.getTemplate(stack)).resources).sort(), ['net', 'word']);
  Object.assign(stack, { template, parameters: { label: 'b' }, environment: {} });
  await heat.updateStack(stack);
  stack = await settled(made.id, 'UPDATE_COMPLETE');
  equal('updated', output(stack, 'name'), 'b');
  await refused('a second stack of the name', 409, () => heat.createStack({ name: 'app', timeout: 5, template }));
  const data = await heat.abandonStack('app');
  equal('abandoned', [data.id, Object.keys(data.resources).sort()], [made.id, ['net', 'word']]);
  const adopted = await heat.adoptStack({ name: 'adopted', timeout: 5, template, stackData: data });
  stack = await settled(adopted.id, 'ADOPT_COMPLETE');
  equal('the same network', output(stack, 'network'), net.physicalResourceId);
  equal('deleted', await heat.deleteStack('adopted'), true);
  await settled(adopted.id, 'DELETE_COMPLETE');
  equal('nothing is left', (await heat.getStacks({})).length, 0);
}

async function types(template) {
  const all = await heat.getResourceTypes();
  check('types', all.includes('OS::Nova::Server'), all.length);
  equal('a type', (await heat.getResourceSchema('OS::Heat::Value')).resource_type, 'OS::Heat::Value');
  equal('a generated template', (await heat.getResourceTemplate('OS::Heat::Value')).HeatTemplateFormatVersion,
    '2012-12-12');
  const validated = await heat.validateTemplate(template);
  equal('validated', Object.keys(validated.Parameters).sort(), ['label', 'pin']);
}

async function errors() {
  await refused('an unknown stack', 404, () => heat.getStack('nobody'));
  const template = { heat_template_version: '2018-08-31', resources: { x: { type: 'OS::Nova::Sever' } } };
  await refused('an unknown type', 400, () => heat.createStack({ name: 'bad', timeout: 5, template }));
  await refused('a template at a URL', 400, () => heat.validateTemplate('http://127.0.0.1/t.yaml'));
}

(async () => {
  const template = JSON.parse(fs.readFileSync(process.argv[2], 'utf8'));
  for (const part of [life, types, errors]) {
    try {
      await part(template);
    } catch (error) {
      check(part.name, false, error.stack || inspect(error));
    }
  }
  console.log(`${passed} passed, ${failed} failed`);
  process.exit(failed ? 1 : 0);
})();
