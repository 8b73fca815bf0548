// 'kiln dashboard' with a service that has the calls of a Heat alone.

import http from "node:http";
import { after, test } from "node:test";
import assert from "node:assert/strict";
import { alone, api, browser, open, service, token } from "./support.mjs";

const STACK = "/stacks/[^/]+/[^/]+";
const RESOURCE = `${STACK}/resources/[^/]+`;
/** The calls of a Heat that a dashboard may need: method, and path below the project. */
const HEATS = [
  ["GET", "/resource_types"],
  ["GET", "/resource_types/[^/]+(/template)?"],
  ["GET", "/stacks"],
  ["POST", "/stacks"],
  ["POST", "/stacks/preview"],
  ["POST", "/validate"],
  ["GET", "/stacks/[^/]+"],
  ["(GET|PUT|PATCH|DELETE)", STACK],
  ["(PUT|PATCH)", `${STACK}/preview`],
  ["GET", `${STACK}/(template|files|environment|resources|events|outputs)`],
  ["POST", `${STACK}/actions`],
  ["(GET|PATCH)", RESOURCE],
  ["GET", `${RESOURCE}/events`],
  ["POST", `${RESOURCE}/signal`],
  ["GET", "/services"],
].map(([method, path]) => [new RegExp(`^${method}$`), new RegExp(`^/v1/[^/]+${path}$`)]);
const ACTIONS = ["suspend", "resume", "check", "cancel_update", "cancel_without_rollback"];
const FIELDS = ["stack_name", "template", "files", "environment", "parameters", "disable_rollback", "timeout_mins", "tags"];

/**
 * A service before Kiln that answers as strictly as a Heat; `refused` are the requests that a Heat does not know. While `old.is`, a
 * stack is still in its create.
 */
async function heat(kiln) {
  const refused = [];
  const old = { is: false };
  const known = (request, path, body) => {
    if (!HEATS.some(([method, pattern]) => method.test(request.method) && pattern.test(path))) return 404;
    const keys = body ? Object.keys(JSON.parse(body)) : [];
    if (path.endsWith("/actions")) return keys.length === 1 && ACTIONS.includes(keys[0]) ? 200 : 400;
    return /\/stacks(\/preview)?$/.test(path) && keys.some((key) => !FIELDS.includes(key)) ? 400 : 200;
  };
  const server = http.createServer(async (request, response) => {
    let body = "";
    for await (const part of request) body += part;
    const path = request.url.split("?")[0];
    const status = known(request, path, body);
    if (status !== 200) {
      refused.push(`${request.method} ${path.replace(/^\/v1\/[^/]+/, "")}`);
      response.writeHead(status, { "content-type": "application/json" });
      return response.end(JSON.stringify({ code: status, title: "", explanation: "", error: { type: "None", message: "None" } }));
    }
    const headers = { ...request.headers };
    delete headers.accept;
    const passed = http.request(kiln.url + request.url, { method: request.method, headers }, async (answer) => {
      if (!old.is || !/\/stacks\/[^/]+\/[^/]+$/.test(path)) {
        response.writeHead(answer.statusCode, answer.headers);
        return answer.pipe(response);
      }
      let text = "";
      for await (const part of answer) text += part;
      response.writeHead(answer.statusCode, { "content-type": "application/json" });
      response.end(text.replaceAll("CREATE_COMPLETE", "CREATE_IN_PROGRESS"));
    });
    passed.end(body);
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  after(() => {
    server.close();
    server.closeAllConnections();
  });
  return { url: `http://127.0.0.1:${server.address().port}`, refused, old };
}

const TEMPLATE = `heat_template_version: 2018-08-31
parameters: {length: {type: number, default: 8}}
resources:
  one: {type: OS::Heat::RandomString, properties: {length: {get_param: length}}}
  two: {type: OS::Heat::Value, properties: {value: {get_attr: [one, value]}}}
outputs: {text: {value: {get_attr: [two, value]}}}
`;

test("a Heat: a stack from its creation to its deletion, and what is absent is named", async () => {
  const kiln = await service();
  const { url, refused } = await heat(kiln);
  const page = await open(await browser(), await alone(kiln.cloud, url));
  await page.getByText("There is no stack in this project.").waitFor();
  for (const view of ["Plans", "Guards"]) assert.equal(await page.getByRole("link", { name: view }).count(), 0, view);
  await page.getByRole("link", { name: "Heat: asked every 5 s" }).click();
  await page.getByRole("heading", { name: "The service is a Heat" }).waitFor();
  for (const absent of ["Plans", "Drift", "Guards", "Operations and revisions", "Stream of events"]) {
    await page.getByText(absent, { exact: true }).waitFor();
  }
  await page.getByRole("link", { name: "Stacks" }).click();
  await page.getByRole("link", { name: "New stack" }).click();
  await page.locator("textarea, .cm-content").first().waitFor();
  await page.getByLabel("Template file").setInputFiles({ name: "t.yaml", mimeType: "text/yaml", buffer: Buffer.from(TEMPLATE) });
  await page.getByRole("button", { name: "Validate" }).click();
  await page.getByLabel("Name of the stack").fill("plain");
  await page.getByRole("button", { name: "Preview" }).click();
  const preview = page.getByRole("region", { name: "Preview" });
  await preview.getByText("2 resources are changed").waitFor();
  await preview.getByText("OS::Heat::RandomString").waitFor();
  await page.getByRole("button", { name: "Create", exact: true }).click();
  const status = page.locator("h1 + .status");
  // Nothing but the events that are asked for tells it.
  await status.getByText("create complete").waitFor();
  for (const view of ["Operations", "Drift"]) assert.equal(await page.getByRole("link", { name: view }).count(), 0, view);
  await page.getByText("2 of 2 resources").waitFor();
  for (const [view, text] of [["Shape", "two"], ["Events", "Stack CREATE completed successfully"], ["Template", "heat_template_version"], ["Outputs", "length"]]) {
    await page.getByRole("link", { name: view, exact: true }).click();
    await (view === "Shape" ? page.getByRole("application") : page.getByText(text).first()).waitFor();
  }
  await page.getByRole("link", { name: "Change", exact: true }).click();
  await page.getByLabel("length").fill("9");
  await page.getByRole("button", { name: "Preview" }).click();
  await preview.getByRole("row").filter({ hasText: "one" }).getByText("replace").waitFor();
  await page.getByRole("button", { name: "Update", exact: true }).click();
  await status.getByText("update complete").waitFor();
  for (const [label, ended] of [["Suspend", "suspend complete"], ["Resume", "resume complete"], ["Check", "check complete"]]) {
    await page.getByRole("button", { name: label, exact: true }).click();
    await page.getByRole("dialog").getByRole("button", { name: label, exact: true }).click();
    await status.getByText(ended).waitFor();
  }
  assert.equal(await page.getByRole("button", { name: "Protect" }).count(), 0);
  await page.getByRole("link", { name: "Resources", exact: true }).click();
  await page.getByRole("link", { name: "one", exact: true }).click();
  await page.getByRole("button", { name: "Mark unhealthy" }).click();
  await page.getByRole("dialog").getByLabel("Reason").fill("broken by hand");
  await page.getByRole("dialog").getByRole("button", { name: "Mark unhealthy" }).click();
  await page.getByText("broken by hand").first().waitFor();
  await page.getByRole("button", { name: "Delete" }).click();
  await page.getByRole("dialog").getByText("Deletes 2 resources. A Heat does not say what is lost with them.").waitFor();
  await page.getByRole("dialog").getByLabel("Type the name").fill("plain");
  await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
  await page.getByText("There is no stack in this project.").waitFor();
  // It asks once whether the service has plans.
  assert.deepEqual([...new Set(refused)], ["GET /plans"]);
  assert.equal(refused.length, 1);
});

test("a Heat: the root cause is read from the events, and a signal scales a group", async () => {
  const kiln = await service();
  const { url, refused } = await heat(kiln);
  const inner = { heat_template_version: "2018-08-31", resources: { bad: { type: "OS::Heat::TestResource", properties: { value: "x", fail: true } } } };
  const page = await open(await browser(), await alone(kiln.cloud, url));
  await page.getByText("There is no stack in this project.").waitFor();
  await api(kiln, "POST", "/stacks", {
    stack_name: "fails",
    template: { heat_template_version: "2018-08-31", resources: { outer: { type: "inner.yaml" } } },
    files: { "inner.yaml": JSON.stringify(inner) },
    disable_rollback: true,
  });
  await page.getByRole("link", { name: "fails" }).click();
  await page.getByRole("alert").filter({ hasText: "Root cause: outer/bad (OS::Heat::TestResource)" }).waitFor();
  assert.equal(await page.getByRole("button", { name: "Retry" }).count(), 0);
  const resources = {
    group: { type: "OS::Heat::AutoScalingGroup", properties: { min_size: 1, max_size: 3, resource: { type: "OS::Heat::RandomString" } } },
    up: {
      type: "OS::Heat::ScalingPolicy",
      properties: { adjustment_type: "change_in_capacity", auto_scaling_group_id: { get_resource: "group" }, scaling_adjustment: 1, cooldown: 0 },
    },
  };
  await api(kiln, "POST", "/stacks", { stack_name: "scales", template: { heat_template_version: "2018-08-31", resources } });
  await page.getByRole("link", { name: "Stacks" }).first().click();
  await page.getByRole("link", { name: "scales" }).click();
  await page.locator("h1 + .status").getByText("create complete").waitFor();
  await page.getByText("3 of 3").waitFor();
  await page.getByRole("link", { name: "up", exact: true }).click();
  await page.getByRole("button", { name: "Signal" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Signal" }).click();
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await page.getByRole("link", { name: "Resources", exact: true }).click();
  await page.getByText("4 of 4").waitFor();
  assert.deepEqual([...new Set(refused)], ["GET /plans"]);
});

test("the catalogue has two regions: Kiln in one, a Heat in the other", async () => {
  const kiln = await service();
  const { url } = await heat(kiln);
  await api(kiln, "POST", "/stacks", { stack_name: "here", template: TEMPLATE });
  const admin = await token(kiln.cloud, "admin", "password", "admin");
  const post = async (path, body) => {
    const headers = { "x-auth-token": admin.token, "content-type": "application/json" };
    const response = await fetch(kiln.cloud + path, { method: "POST", headers, body: JSON.stringify(body) });
    assert.equal(response.status, 201, path);
    return response.json();
  };
  await post("/regions", { region: { id: "Region Two" } });
  const { service: orchestration } = await post("/services", { service: { type: "orchestration", name: "heat", enabled: true } });
  for (const [region_id, root] of [["RegionOne", kiln.url], ["Region Two", url]]) {
    const endpoint = { service_id: orchestration.id, interface: "public", region_id, url: `${root}/v1/%(tenant_id)s` };
    await post("/endpoints", { endpoint });
  }
  const page = await open(await browser(), await alone(kiln.cloud, undefined, { OS_REGION_NAME: "RegionOne" }));
  await page.getByRole("link", { name: "Plans" }).waitFor();
  const other = await page.context().newPage();
  await other.goto(page.url());
  await other.getByRole("link", { name: "here" }).waitFor();
  await page.getByLabel("Region").selectOption("Region Two");
  await page.getByRole("link", { name: "Heat: asked every 5 s" }).waitFor();
  await page.getByRole("link", { name: "here" }).click();
  await page.getByText("2 of 2").waitFor();
  // The other tab still shows the first region: it does not act in the second one.
  await other.getByRole("link", { name: "Types" }).click();
  await other.getByRole("alert").filter({ hasText: "the project demo and the region Region Two: another tab has changed it" }).waitFor();
  await page.getByLabel("Region").selectOption("RegionOne");
  await page.getByText("live", { exact: true }).waitFor();
});

test("a Heat: a state that was read before the last event does not stay", async () => {
  const kiln = await service();
  const { url, old } = await heat(kiln);
  const create = { stack_name: "plain", template: TEMPLATE, parameters: {} };
  await api(kiln, "POST", "/stacks", create);
  const page = await open(await browser(), await alone(kiln.cloud, url));
  await page.getByText("create complete").waitFor();
  old.is = true;
  await page.getByRole("link", { name: "plain", exact: true }).click();
  const status = page.locator("h1 + .status");
  await status.getByText("create in progress").waitFor();
  old.is = false;
  // No event comes any more.
  await status.getByText("create complete").waitFor();
});
