// What people do with the page, from signing in to deleting a stack.

import { test, before } from "node:test";
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { api, browser, demo, KILN, open, picture, row, signedIn, signIn, token } from "./support.mjs";

const VALUES = {
  heat_template_version: "2018-08-31",
  parameters: { size: { type: "number", default: 8 }, secret: { type: "string", hidden: true, default: "planted-secret" } },
  resources: {
    one: { type: "OS::Heat::RandomString", properties: { length: { get_param: "size" } } },
    two: { type: "OS::Heat::Value", properties: { value: { get_attr: ["one", "value"] } } },
  },
  outputs: { text: { value: { get_attr: ["two", "value"] } } },
};

let kiln, chrome;
before(async () => {
  kiln = await demo();
  chrome = await browser();
});

const opened = (options) => signedIn(chrome, kiln, options);
const create = (name, template) => api(kiln, "POST", "/stacks", { stack_name: name, template, disable_rollback: true });

test("wrong credentials are refused, right ones show the stacks, each view shows the stack", async () => {
  const page = await open(chrome, kiln.dashboard);
  await signIn(page, { password: "wrong" });
  await page.getByRole("alert").filter({ hasText: "refused to sign you in" }).waitFor();
  assert.match(page.messages.pop(), /401/);
  await signIn(page);
  await page.getByRole("link", { name: "three-tier" }).click();
  const views = {
    Resources: "OS::Nova::ServerGroup",
    Time: "data_attachment",
    Events: "Stack CREATE completed successfully",
    Outputs: "Where the web server answers",
    Template: "heat_template_version",
    Operations: "Stack CREATE completed successfully",
  };
  for (const [view, text] of Object.entries(views)) {
    await page.getByRole("link", { name: view, exact: true }).click();
    await page.getByText(text).first().waitFor();
    if (view === "Time") await picture(page, "dashboard-time");
  }
  await page.getByRole("link", { name: "Drift", exact: true }).click();
  await page.getByRole("button", { name: "Check now" }).click();
  await page.getByText("12 of 14 resources are in sync").waitFor();
  // The address is permanent: the same view opens in another tab without signing in.
  await page.getByRole("link", { name: "Time", exact: true }).click();
  const other = await page.context().newPage();
  await other.goto(page.url());
  await other.getByText("14 of 14 resources").waitFor();
  assert.deepEqual(page.messages, []);
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByRole("button", { name: "Sign in" }).waitFor();
});

test("a stack that another client creates appears, and two tabs have one connection", async () => {
  const page = await opened();
  const streams = new Set();
  page.context().on("request", (request) => {
    if (request.url().endsWith("/api/events")) streams.add(request);
  });
  await page.getByText("live", { exact: true }).waitFor();
  const other = await page.context().newPage();
  await other.goto(kiln.dashboard);
  await other.getByText("live", { exact: true }).waitFor();
  await create("values", VALUES);
  for (const tab of [page, other]) await row(tab, "values").getByText("create complete").waitFor();
  assert.equal(streams.size, 0, "the second tab has its own stream");
  // The other tab leads when the first one is closed.
  await page.close();
  await other.getByText("live", { exact: true }).waitFor();
  await create("values-2", VALUES);
  await row(other, "values-2").getByText("create complete").waitFor();
  assert.equal(streams.size, 1);
});

test("a filter of the list is saved by the browser", async () => {
  const page = await opened();
  const name = "<b>mine</b>";
  assert.equal(await page.getByRole("button", { name: "Save the filter" }).count(), 0);
  await page.getByLabel("Search stacks").fill("no-such-stack");
  await page.getByLabel("State").selectOption("failed");
  await page.getByRole("button", { name: "Save the filter" }).click();
  await page.getByLabel("Name of the filter").fill(name);
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await page.reload();
  await page.getByRole("link", { name: "three-tier" }).waitFor();
  await page.getByLabel("Saved filter").selectOption(name);
  assert.equal(await page.getByLabel("Search stacks").inputValue(), "no-such-stack");
  assert.equal(await page.getByLabel("State").inputValue(), "failed");
  await page.getByText(/^0 of \d+$/).waitFor();
  await page.getByRole("button", { name: "Forget the filter" }).click();
  assert.equal(await page.getByLabel("Saved filter").count(), 0);
  await page.evaluate(() => localStorage.setItem("kiln-filters", '{"a": 1, "b": {"search": "x", "kind": "none"}, "c": [null'));
  await page.reload();
  await page.getByRole("link", { name: "three-tier" }).waitFor();
  assert.equal(await page.getByLabel("Saved filter").count(), 0);
  assert.deepEqual(page.messages, []);
});

test("what others have changed is in the list, and a plan repairs it", async () => {
  const made = await create("drifting", {
    heat_template_version: "2018-08-31",
    resources: { net: { type: "OS::Neutron::Net", properties: { name: "mine" } } },
  });
  const page = await opened();
  await row(page, "drifting").getByText("create complete").waitFor();
  assert.equal(await page.getByRole("columnheader", { name: "Drift" }).count(), 0, "no stack is watched yet");
  const { body } = await api(kiln, "GET", `/stacks/drifting/${made.body.stack.id}/resources/net`);
  const { token: secret } = await token(kiln.cloud);
  const network = async (method, change) => {
    const url = `${kiln.cloud.replace(/\/identity.*/, "")}/network/v2.0/networks/${body.resource.physical_resource_id}`;
    const headers = { "x-auth-token": secret, "content-type": "application/json" };
    const response = await fetch(url, { method, headers, body: change && JSON.stringify({ network: change }) });
    assert.equal(response.status, 200);
    return (await response.json()).network;
  };
  await network("PUT", { name: "theirs" });
  assert.equal((await api(kiln, "PUT", "/drift_schedules", { stack: "drifting", every: 900 })).status, 200);
  const found = row(page, "drifting").getByRole("link", { name: "1 drifted" });
  for (let wait = 0; (await found.count()) === 0; wait += 1) {
    assert.ok(wait < 60, "it is compared within a minute");
    await new Promise((done) => setTimeout(done, 1000));
    await page.reload();
    await row(page, "drifting").waitFor();
  }
  await page.getByLabel("State").selectOption("drifted");
  await page.getByText("1 of ").waitFor();
  await found.click();
  await page.getByRole("button", { name: "Check now" }).click();
  await page.getByText("name: mine → theirs").waitFor();
  await page.getByRole("button", { name: "Plan a repair" }).click();
  await page.getByText("repair of drift").waitFor();
  assert.equal((await network("GET")).name, "theirs", "a plan changes nothing");
  await page.getByRole("button", { name: "Execute" }).click();
  await page.getByText("update complete").first().waitFor();
  assert.equal((await network("GET")).name, "mine");
  assert.deepEqual(page.messages, []);
});

/** Changes a network beside the page. */
async function renameNetwork(stack, resource, name) {
  const { body } = await api(kiln, "GET", `/stacks/${stack.stack_name}/${stack.id}/resources/${resource}`);
  const { token: secret } = await token(kiln.cloud);
  const url = `${kiln.cloud.replace(/\/identity.*/, "")}/network/v2.0/networks/${body.resource.physical_resource_id}`;
  const headers = { "x-auth-token": secret, "content-type": "application/json" };
  const response = await fetch(url, { method: "PUT", headers, body: JSON.stringify({ network: { name } }) });
  assert.equal(response.status, 200);
}

test("changes of others are ignored with a reason, until the guard is lifted", async () => {
  const net = { type: "OS::Neutron::Net", properties: { name: "mine" } };
  const inner = { heat_template_version: "2018-08-31", resources: { net } };
  const template = { heat_template_version: "2018-08-31", resources: { app: { type: "inner.yaml" } } };
  const made = await api(kiln, "POST", "/stacks", { stack_name: "ignoring", template, files: { "inner.yaml": JSON.stringify(inner) } });
  assert.equal(made.status, 201, JSON.stringify(made.body));
  const page = await opened();
  await row(page, "ignoring").getByText("create complete").waitFor();
  const { body } = await api(kiln, "GET", `/stacks/ignoring/${made.body.stack.id}/resources?nested_depth=2`);
  const nested = body.resources.find((one) => one.resource_name === "net").links.find((one) => one.rel === "stack").href;
  const [stack_name, id] = nested.split("/").slice(-2);
  await renameNetwork({ stack_name, id }, "net", "theirs");
  await page.getByRole("link", { name: "ignoring", exact: true }).click();
  await page.getByRole("link", { name: "Drift", exact: true }).click();
  await page.getByRole("button", { name: "Check now" }).click();
  await page.getByText("name: mine → theirs").waitFor();
  await page.getByRole("button", { name: "Ignore" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Reason").fill("set by <b>them</b>");
  await dialog.getByText("kiln stack drift ignoring --ignore app/net.name --reason 'set by <b>them</b>'").waitFor();
  await dialog.getByRole("button", { name: "Ignore" }).click();
  await page.getByText("name: mine → theirs").waitFor({ state: "detached" });
  await page.getByText("in sync", { exact: true }).waitFor();
  await page.getByRole("link", { name: "Guards" }).click();
  const guard = page.getByRole("row").filter({ hasText: "ignores changes of others to app/net.name" });
  await guard.getByText("set by <b>them</b>").waitFor();
  await guard.getByRole("button", { name: "Lift" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Lift the guard" }).click();
  await guard.waitFor({ state: "detached" });
  assert.deepEqual(page.messages, []);
});

test("revisions are shown and compared, and a plan returns to one", async () => {
  const template = { ...VALUES, parameters: { size: VALUES.parameters.size, secret: { type: "string", hidden: true, default: "" } } };
  const made = await api(kiln, "POST", "/stacks", { stack_name: "revised", template, parameters: { secret: "planted-secret" } });
  assert.equal(made.status, 201);
  const page = await opened();
  await row(page, "revised").getByText("create complete").waitFor();
  const changed = await api(kiln, "PATCH", `/stacks/revised/${made.body.stack.id}`, { parameters: { size: 9, secret: "planted-secret-2" } });
  assert.equal(changed.status, 202);
  await row(page, "revised").getByText("update complete").waitFor();
  await page.getByRole("link", { name: "revised", exact: true }).click();
  await page.getByRole("link", { name: "Template", exact: true }).click();
  await page.getByLabel("Compared with").selectOption("1");
  const differences = page.getByRole("region", { name: "Differences" });
  await differences.getByText(/^\+ +size: 9/).waitFor();
  await page.getByText("kiln stack revision diff revised 1 2").waitFor();
  await page.getByLabel("Compared with").selectOption("");
  await page.getByLabel("Revision", { exact: true }).selectOption("1");
  await page.getByRole("region", { name: "Template" }).getByText("environment:").waitFor();
  assert.ok(!(await page.content()).includes("planted-secret"), "hidden parameters are masked");
  await page.getByRole("button", { name: "Plan to return to 1" }).click();
  await page.getByRole("heading", { name: "update revised" }).waitFor();
  await page.getByText("length").first().waitFor();
  assert.deepEqual(page.messages, []);
});

test("a protected stack is not deleted", async () => {
  await create("protected", VALUES);
  const page = await opened();
  await row(page, "protected").getByText("create complete").waitFor();
  await page.getByRole("link", { name: "protected", exact: true }).click();
  await page.getByRole("button", { name: "Protect" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Reason").fill("the yearly report");
  await dialog.getByText("kiln stack protect protected --from delete --reason 'the yearly report'").waitFor();
  await dialog.getByRole("button", { name: "Protect" }).click();
  await dialog.waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Delete" }).click();
  await dialog.getByLabel("Type the name of the stack").fill("protected");
  await dialog.getByRole("button", { name: "Delete" }).click();
  await dialog.getByRole("alert").filter({ hasText: "the yearly report" }).waitFor();
  assert.match(page.messages.pop(), /409/);
  assert.deepEqual(page.messages, []);
});

test("the resource types: searched, their properties, a template", async () => {
  const page = await opened();
  await page.getByRole("link", { name: "Types", exact: true }).click();
  await page.getByLabel("Search types").fill("neutron port");
  await page.getByRole("link", { name: "OS::Neutron::Port", exact: true }).click();
  const properties = page.getByRole("region", { name: "Properties" });
  const network = properties.getByRole("row").filter({ has: page.getByText("network", { exact: true }) });
  await network.getByText("replaces").waitFor();
  await properties.getByText("ip_address", { exact: true }).first().waitFor();
  await page.getByText("type: OS::Neutron::Port").waitFor();
  await page.getByText("kiln resource-type show OS::Neutron::Port").waitFor();
  assert.deepEqual(page.messages, []);
});

test("a resource is signalled, marked and forgotten from its page", async () => {
  const member = { type: "OS::Heat::RandomString" };
  await create("acted", {
    heat_template_version: "2018-08-31",
    resources: {
      group: { type: "OS::Heat::AutoScalingGroup", properties: { min_size: 1, max_size: 3, resource: member } },
      up: {
        type: "OS::Heat::ScalingPolicy",
        properties: { auto_scaling_group_id: { get_resource: "group" }, adjustment_type: "change_in_capacity", scaling_adjustment: 1 },
      },
    },
  });
  const page = await opened();
  await row(page, "acted").getByText("create complete").waitFor();
  await page.getByRole("link", { name: "acted", exact: true }).click();
  await page.getByText("3 of 3").waitFor();
  await page.getByRole("link", { name: "up", exact: true }).click();
  const dialog = page.getByRole("dialog");
  await page.getByRole("button", { name: "Signal" }).click();
  await dialog.getByLabel("Data (JSON)").fill("{");
  await dialog.getByRole("button", { name: "Signal" }).click();
  await dialog.getByRole("alert").waitFor();
  await dialog.getByLabel("Data (JSON)").fill("");
  await dialog.getByRole("button", { name: "Signal" }).click();
  await dialog.waitFor({ state: "detached" });
  await page.getByRole("link", { name: "Resources", exact: true }).click();
  await page.getByText("4 of 4").waitFor();
  await page.getByRole("link", { name: "group", exact: true }).click();
  await page.getByRole("button", { name: "Mark unhealthy" }).click();
  await dialog.getByLabel("Reason").fill("it smells");
  await dialog.getByText("kiln stack resource mark unhealthy acted group 'it smells'").waitFor();
  await dialog.getByRole("button", { name: "Mark unhealthy" }).click();
  await page.getByText("it smells").first().waitFor();
  await page.getByText("check failed").first().waitFor();
  assert.equal(await page.getByRole("button", { name: "Forget" }).count(), 0, "its delete has not failed");
  assert.deepEqual(page.messages, []);
});

test("a hidden parameter is not in any view", async () => {
  await create("hidden", VALUES);
  const page = await opened();
  const bodies = [];
  page.on("response", (response) => bodies.push(response.text().catch(() => "")));
  await row(page, "hidden").getByText("create complete").waitFor();
  await page.getByRole("link", { name: "hidden", exact: true }).click();
  for (const view of ["Resources", "Time", "Shape", "Events", "Outputs", "Operations", "Drift", "Change"]) {
    await page.getByRole("link", { name: view, exact: true }).click();
    await page.waitForTimeout(300);
    assert.ok(!(await page.content()).includes("planted-secret"), view);
  }
  const seen = (await Promise.all(bodies)).filter((body) => body.includes("planted-secret"));
  assert.deepEqual(seen, []);
});

test("a failing nested stack: the root cause comes first, and the failed operation goes on after a fix", async () => {
  const resources = {
    net: { type: "OS::Neutron::Net" },
    subnet: { type: "OS::Neutron::Subnet", properties: { network: { get_resource: "net" }, cidr: "10.0.0.0/24" } },
    port: {
      type: "OS::Neutron::Port",
      depends_on: "subnet",
      properties: { network: { get_resource: "net" }, fixed_ips: [{ ip_address: "192.0.2.9" }] },
    },
  };
  const inner = { heat_template_version: "2018-08-31", resources };
  const group = { type: "OS::Heat::ResourceGroup", properties: { count: 2, resource_def: { type: "inner.yaml" } } };
  const template = { heat_template_version: "2018-08-31", resources: { group, after: { type: "OS::Heat::RandomString", depends_on: "group" } } };
  const made = await api(kiln, "POST", "/stacks", { stack_name: "broken", template, files: { "inner.yaml": JSON.stringify(inner) }, disable_rollback: true });
  assert.equal(made.status, 201, JSON.stringify(made.body));
  const page = await opened();
  await row(page, "broken").locator(".status.failed").waitFor();
  await page.getByRole("link", { name: "broken", exact: true }).click();
  const cause = page.getByRole("alert").filter({ hasText: "Root cause" });
  await cause.waitFor();
  assert.match(await cause.innerText(), /group\/[01]\/port \(OS::Neutron::Port\)[\s\S]*192\.0\.2\.9/);
  await page.getByRole("link", { name: "Time", exact: true }).click();
  await page.getByLabel("Shown").selectOption("failed");
  await page.getByRole("region", { name: "Time of each resource" }).getByText("port").first().waitFor();
  await page.getByRole("button", { name: "Retry" }).click();
  await page.getByRole("dialog").getByText("kiln stack continue broken").waitFor();
});

test("a new stack from a form: validated, planned, executed", async () => {
  const page = await opened();
  await page.getByRole("link", { name: "New stack" }).click();
  await page.getByLabel("Template", { exact: true }).fill("{\n  bad");
  await page.getByRole("button", { name: "Validate" }).click();
  await page.getByRole("alert").waitFor();
  assert.match(page.messages.pop(), /400/);
  await page.getByLabel("Template", { exact: true }).fill(JSON.stringify(VALUES));
  await page.getByRole("button", { name: "Validate" }).click();
  assert.equal(await page.getByLabel("secret").getAttribute("type"), "password");
  await page.getByLabel("Name of the stack").fill("formed");
  await page.getByLabel("size").fill("12");
  await page.getByRole("button", { name: "Show the plan" }).click();
  await page.getByText("create formed: 2 of 2 resources").waitFor();
  await page.getByRole("button", { name: "Execute" }).click();
  await page.waitForURL(/#\/stacks\/.*formed/);
  const place = new URL(page.url()).hash.slice(1).replace("/time", "");
  const { status, body } = await api(kiln, "GET", place);
  assert.equal(status, 200);
  assert.equal(body.stack.parameters.size, "12");
  assert.deepEqual(page.messages, []);
});

test("a parameter is changed by a plan; a hidden one stays", async () => {
  await create("scaled", VALUES);
  const page = await opened();
  await row(page, "scaled").getByText("create complete").waitFor();
  await page.getByRole("link", { name: "scaled", exact: true }).click();
  await page.getByRole("link", { name: "Change", exact: true }).click();
  assert.equal(await page.getByLabel("secret").inputValue(), "");
  assert.ok(await page.getByRole("button", { name: "Show the plan" }).isDisabled());
  await page.getByLabel("size").fill("20");
  await page.getByText("kiln stack update scaled --existing --parameter size=20").waitFor();
  await page.getByRole("button", { name: "Show the plan" }).click();
  await page.getByText("length: 8 → 20").waitFor();
  await page.getByRole("button", { name: "Execute" }).click();
  await page.locator("h1 + .status.complete").filter({ hasText: "update complete" }).waitFor();
  await page.getByRole("link", { name: "Outputs", exact: true }).click();
  await page.getByText("20", { exact: true }).waitFor();
  assert.deepEqual(page.messages, []);
});

test("a delete shows what is lost and asks for the name; the keyboard is enough", async () => {
  const made = await create("gone", VALUES);
  const page = await opened();
  await row(page, "gone").getByText("create complete").waitFor();
  const saved = await api(kiln, "POST", `/stacks/gone/${made.body.stack.id}/snapshots`, { name: "before" });
  assert.equal(saved.status, 200);
  await row(page, "gone").getByText("snapshot complete").waitFor();
  const reach = async (name) => {
    for (let steps = 0; steps < 80; steps += 1) {
      await page.keyboard.press("Tab");
      const found = await page.evaluate(() => document.activeElement?.textContent?.trim() || document.activeElement?.id);
      if (found === name) return;
    }
    assert.fail(`${name} is not reached by Tab`);
  };
  await reach("gone");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "gone" }).waitFor();
  await reach("Delete");
  await page.keyboard.press("Enter");
  const dialog = page.getByRole("dialog");
  await dialog.getByText("delete gone: 2 of 2 resources").waitFor();
  await dialog.getByText("Deletes snapshots: before").waitFor();
  assert.ok(await dialog.getByRole("button", { name: "Delete" }).isDisabled());
  await dialog.getByLabel("Type the name").focus();
  await page.keyboard.type("gone");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Stacks" }).waitFor();
  await row(page, "gone").waitFor({ state: "detached" });
});

test("the commands that the page shows are commands of kiln", async () => {
  await create("shown", VALUES);
  const page = await opened();
  await row(page, "shown").getByText("create complete").waitFor();
  await page.getByRole("link", { name: "shown", exact: true }).click();
  const found = new Set();
  const collect = async () => (await page.locator(".command code").allInnerTexts()).forEach((text) => found.add(text));
  for (const view of ["Resources", "Time", "Events", "Outputs", "Template", "Operations", "Drift", "Change"]) {
    await page.getByRole("link", { name: view, exact: true }).click();
    await page.locator(".command").first().waitFor();
    await collect();
  }
  for (const action of ["Check", "Suspend", "Resume", "Delete"]) {
    await page.getByRole("button", { name: action, exact: true }).click();
    await page.getByRole("dialog").locator(".command").waitFor();
    await collect();
    await page.keyboard.press("Escape");
  }
  for (const text of ["kiln stack continue x", "kiln stack cancel x", "kiln stack cancel --no-rollback x"]) found.add(text);
  const { body } = await api(kiln, "POST", "/plans", { action: "delete", stack: "shown" });
  await page.goto(`${kiln.dashboard}#/plans/${body.plan.id}`);
  await page.getByText("delete shown: 2 of 2 resources").waitFor();
  await collect();
  assert.equal(found.size, 16, [...found].join("\n"));
  for (const text of found) {
    // Wrong words and options are errors before the help.
    const ran = spawnSync(KILN, [...text.split(" ").slice(1), "--help"], { encoding: "utf8" });
    assert.equal(ran.status, 0, `${text}: ${ran.stderr}`);
  }
});

test("the shape is chosen and opened by keys", async () => {
  const page = await opened();
  await page.getByRole("link", { name: "three-tier" }).click();
  await page.getByRole("link", { name: "Shape", exact: true }).click();
  const canvas = page.getByRole("application");
  await page.locator("canvas[aria-busy=false]").waitFor();
  const drawn = await page.evaluate(async () => {
    for (let frame = 0; frame < 3; frame += 1) await new Promise(requestAnimationFrame);
    const canvas = document.querySelector("canvas");
    return canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.some((value) => value !== 0);
  });
  assert.ok(drawn);
  await canvas.focus();
  await picture(page, "dashboard-shape");
  await page.keyboard.press("ArrowDown");
  const first = await page.locator(".chosen strong").innerText();
  await page.keyboard.press("ArrowLeft");
  const second = await page.locator(".chosen strong").innerText();
  assert.notEqual(first, second);
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: second }).waitFor();
});

test("a session whose token is revoked asks for the password again and loses nothing", async () => {
  const page = await opened();
  await page.getByRole("link", { name: "New stack" }).click();
  await page.getByLabel("Template", { exact: true }).fill(JSON.stringify(VALUES));
  // The session of a browser is its token: another tab that signs out revokes it.
  await page.evaluate(async () => {
    const session = (await (await fetch("session", { headers: { "X-Kiln-Dashboard": "-" } })).json()).session;
    const cookies = await fetch("session", { method: "DELETE", headers: { "X-Kiln-Dashboard": session.project.id } });
    return cookies.status;
  });
  await page.getByRole("button", { name: "Validate" }).click();
  const dialog = page.getByRole("dialog", { name: "Your session has expired" });
  await dialog.getByLabel("Password", { exact: true }).fill("password");
  await dialog.getByRole("button", { name: "Sign in" }).click();
  await dialog.waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Validate" }).click();
  await page.getByLabel("Name of the stack").waitFor();
});

test("what a user may not see is refused by the policy of the API", async () => {
  const page = await opened();
  await page.goto(`${kiln.dashboard}#/operator`);
  await page.getByRole("alert").filter({ hasText: "not authorized" }).waitFor();
  const admin = await open(chrome, kiln.dashboard);
  await signIn(admin, { user: "admin", project: "admin" });
  await admin.getByRole("link", { name: "Operator" }).click();
  await admin.getByText("kiln-engine").waitFor();
  // Heat's default: nobody lists the stacks of all projects.
  await admin.getByText("the rule is stacks:global_index").waitFor();
});
