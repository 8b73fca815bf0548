// A service that restarts, a proxy with a prefix, and many resources.

import { spawnSync } from "node:child_process";
import { createHmac } from "node:crypto";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import http from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import assert from "node:assert/strict";
import { api, browser, KILN, open, secondUser, service, signIn, token } from "./support.mjs";

const VALUE = { heat_template_version: "2018-08-31", resources: { one: { type: "OS::Heat::RandomString" } } };

test("a service that is killed and starts again: the page says so and goes on", async () => {
  const kiln = await service();
  const chrome = await browser();
  const page = await open(chrome, kiln.dashboard);
  await signIn(page);
  await page.getByText("live", { exact: true }).waitFor();
  await kiln.stop("SIGKILL");
  await page.getByText("not live").waitFor();
  await kiln.start();
  await page.getByText("live", { exact: true }).waitFor();
  await api(kiln, "POST", "/stacks", { stack_name: "later", template: VALUE });
  await page.getByRole("row").filter({ hasText: "later" }).getByText("create complete").waitFor();
  // A view that was open meanwhile has what it missed.
  await page.getByRole("link", { name: "later" }).click();
  await page.getByRole("link", { name: "Events", exact: true }).click();
  await page.getByText("Stack CREATE completed successfully").waitFor();
});

test("a plan with data loss is approved by a second user", async () => {
  const kiln = await service({ OS_KILN__PLAN_APPROVALS: "1" });
  await secondUser(kiln.cloud, "second");
  const volume = { type: "OS::Cinder::Volume", properties: { size: 1 } };
  await api(kiln, "POST", "/stacks", { stack_name: "data", template: { ...VALUE, resources: { volume } } });
  const chrome = await browser();
  const page = await open(chrome, kiln.dashboard);
  await signIn(page);
  await page.getByRole("row").filter({ hasText: "data" }).getByText("create complete").waitFor();
  const { body } = await api(kiln, "POST", "/plans", { action: "delete", stack: "data" });
  await page.getByRole("link", { name: "Plans" }).click();
  await page.getByRole("link", { name: /delete/ }).click();
  await page.getByText("loses the volume's data").waitFor();
  await page.getByText("1 more approval is needed. Your own does not count.").waitFor();
  await page.getByRole("button", { name: "Execute" }).click();
  await page.getByRole("alert").waitFor();
  const other = await open(chrome, `${kiln.dashboard}#/plans/${body.plan.id}`);
  await signIn(other, { user: "second" });
  await other.getByRole("button", { name: "Approve" }).click();
  await other.getByText("1 more approval").waitFor({ state: "detached" });
  await page.reload();
  await page.getByRole("button", { name: "Execute" }).click();
  await page.getByRole("heading", { name: "data", exact: true }).waitFor();
  await page.getByRole("link", { name: "Stacks" }).first().click();
  await page.getByText("There is no stack in this project.").waitFor();
});

/** The passcode of RFC 6238 now. */
function passcode(secret) {
  const step = Buffer.alloc(8);
  step.writeBigUInt64BE(BigInt(Math.floor(Date.now() / 30_000)));
  const digest = createHmac("sha1", secret).update(step).digest();
  const word = digest.readUInt32BE(digest[19] & 15) & 0x7fffffff;
  return String(word % 1_000_000).padStart(6, "0");
}

test("a user with two factors is asked for the passcode", async () => {
  const kiln = await service();
  const { call, id } = await secondUser(kiln.cloud, "careful");
  // BASE32 of the secret.
  await call("POST", "/credentials", { credential: { type: "totp", user_id: id, blob: "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ" } });
  const options = { multi_factor_auth_enabled: true, multi_factor_auth_rules: [["password", "totp"]] };
  await call("PATCH", `/users/${id}`, { user: { options } });
  const page = await open(await browser(), kiln.dashboard);
  assert.equal(await page.getByLabel("Passcode").count(), 0);
  await signIn(page, { user: "careful" });
  await page.getByLabel("Passcode").fill("000000");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("alert").filter({ hasText: "the passcode or the project is wrong" }).waitFor();
  await page.getByLabel("Passcode").fill(passcode("12345678901234567890"));
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByText("There is no stack in this project.").waitFor();
});

test("'--open' opens the page of a stack, or says how to see it", async () => {
  const kiln = await service();
  const folder = mkdtempSync(join(tmpdir(), "kiln-open-"));
  after(() => rmSync(folder, { recursive: true, force: true }));
  writeFileSync(join(folder, "browser"), `#!/bin/sh\nprintf %s "$1" > ${folder}/url\n`, { mode: 0o755 });
  writeFileSync(join(folder, "one.yaml"), JSON.stringify(VALUE));
  const run = (url, ...args) => {
    const env = {
      PATH: process.env.PATH,
      BROWSER: join(folder, "browser"),
      OS_AUTH_URL: kiln.cloud,
      OS_USERNAME: "demo",
      OS_PASSWORD: "password",
      OS_PROJECT_NAME: "demo",
      OS_ORCHESTRATION_ENDPOINT_OVERRIDE: `${url}/v1/%(project_id)s`,
    };
    const ran = spawnSync(KILN, ["stack", ...args], { env, encoding: "utf8" });
    assert.equal(ran.status, 0, ran.stderr);
    return ran;
  };
  const opened = async () => {
    for (let wait = 0; !existsSync(join(folder, "url")); wait += 1) {
      assert.ok(wait < 100, "no browser is started");
      await new Promise((done) => setTimeout(done, 50));
    }
    await new Promise((done) => setTimeout(done, 100));
    const url = readFileSync(join(folder, "url"), "utf8");
    rmSync(join(folder, "url"));
    return url;
  };
  run(kiln.url, "create", "-t", join(folder, "one.yaml"), "--wait", "--open", "one");
  const url = await opened();
  assert.ok(url.startsWith(`${kiln.dashboard}#/stacks/one/`), url);
  for (const args of [["show", "--open", "one"], ["update", "--existing", "--wait", "--open", "one"]]) {
    const ran = run(kiln.url, ...args);
    assert.equal(await opened(), url);
    assert.ok(ran.stderr.includes(url) && !ran.stdout.includes("#/stacks"), ran.stderr);
  }
  const page = await open(await browser(), url);
  await signIn(page);
  await page.getByRole("heading", { name: "one", exact: true }).waitFor();
  // A service without the option.
  await kiln.stop("SIGINT");
  kiln.set({ OS_KILN__DASHBOARD: "false" });
  await kiln.start();
  const ran = run(kiln.url, "show", "--open", "one");
  assert.ok(ran.stderr.includes("The service has no dashboard. 'kiln dashboard one' shows the stack."), ran.stderr);
});

test("an operator sees the failed stacks of all projects, if the policy allows it", async () => {
  const folder = mkdtempSync(join(tmpdir(), "kiln-policy-"));
  after(() => rmSync(folder, { recursive: true, force: true }));
  writeFileSync(join(folder, "policy.yaml"), '"stacks:global_index": "role:admin"\n');
  const kiln = await service({ OS_OSLO_POLICY__POLICY_FILE: join(folder, "policy.yaml") });
  const bad = { type: "OS::Heat::TestResource", properties: { value: "<b>x</b>", fail: true } };
  for (const [stack_name, resources] of [["broken", { bad }], ["well", VALUE.resources]]) {
    await api(kiln, "POST", "/stacks", { stack_name, template: { ...VALUE, resources }, disable_rollback: true });
  }
  const page = await open(await browser(), kiln.dashboard);
  await signIn(page, { user: "admin", project: "admin" });
  await page.getByRole("link", { name: "Operator" }).click();
  const failed = page.getByRole("region", { name: "Failed stacks" });
  const { project } = await token(kiln.cloud);
  for (let wait = 0; (await failed.count()) === 0; wait += 1) {
    assert.ok(wait < 30, "no stack is listed");
    await page.reload();
    await page.getByText("No stack has failed.").or(failed).waitFor();
  }
  await failed.getByRole("row").filter({ hasText: "broken" }).getByText(project).waitFor();
  await failed.getByText("resources.bad").waitFor();
  assert.equal(await failed.getByText("well", { exact: true }).count(), 0);
  assert.deepEqual(page.messages, []);
});

test("the last event is purged while a tab is not connected: the stream begins anew", async () => {
  const kiln = await service();
  const page = await open(await browser(), kiln.dashboard);
  await signIn(page);
  await page.getByText("live", { exact: true }).waitFor();
  await api(kiln, "POST", "/stacks", { stack_name: "first", template: VALUE });
  await page.getByRole("row").filter({ hasText: "first" }).getByText("create complete").waitFor();
  let refused = 0;
  await page.route("**/api/events", (route) => {
    if (!route.request().headers()["last-event-id"]) return route.continue();
    refused += 1;
    return route.fulfill({ status: 404, json: { error: { type: "NotFound", message: "The event does not exist." } } });
  });
  await kiln.stop("SIGKILL");
  await page.getByText("not live").waitFor();
  await kiln.start();
  await page.getByText("live", { exact: true }).waitFor();
  assert.ok(refused > 0, "the stream did not go on after its last event");
  await api(kiln, "POST", "/stacks", { stack_name: "second", template: VALUE });
  await page.getByRole("row").filter({ hasText: "second" }).getByText("create complete").waitFor();
});

/** A proxy that serves Kiln below /orchestration. */
async function proxy(port) {
  const server = http.createServer((request, response) => {
    const path = request.url.replace(/^\/orchestration/, "");
    const { host } = request.headers;
    const headers = { ...request.headers, "x-forwarded-host": host, "x-forwarded-proto": "http", "x-forwarded-prefix": "/orchestration" };
    const passed = http.request({ host: "127.0.0.1", port, path, method: request.method, headers }, (answer) => {
      response.writeHead(answer.statusCode, answer.headers);
      answer.pipe(response);
    });
    passed.on("error", () => response.destroy());
    response.on("close", () => passed.destroy());
    request.pipe(passed);
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  after(() => {
    server.close();
    server.closeAllConnections();
  });
  return `http://127.0.0.1:${server.address().port}/orchestration/dashboard`;
}

test("below the prefix of a proxy", async () => {
  const kiln = await service({ OS_OSLO_MIDDLEWARE__ENABLE_PROXY_HEADERS_PARSING: "true" });
  await api(kiln, "POST", "/stacks", { stack_name: "behind", template: VALUE });
  const page = await open(await browser(), await proxy(new URL(kiln.url).port));
  await signIn(page);
  await page.getByText("live", { exact: true }).waitFor();
  await page.getByRole("link", { name: "behind" }).click();
  await page.getByRole("link", { name: "Shape", exact: true }).click();
  await page.getByRole("application").waitFor();
  assert.ok(page.url().includes("/orchestration/dashboard/#/stacks/behind/"), page.url());
  assert.deepEqual(page.messages, []);
});

test("many resources while they are created", async (context) => {
  const size = Number(process.env.KILN_SIZE ?? 1000);
  const kiln = await service({
    OS_DEFAULT__MAX_RESOURCES_PER_STACK: "-1",
    OS_DEFAULT__MAX_JSON_BODY_SIZE: "10000000",
    OS_DEFAULT__MAX_TEMPLATE_SIZE: "10000000",
  });
  const resources = {};
  for (let number = 0; number < size; number += 1) {
    const before = Math.floor((number - 1) / 10);
    resources[`value_${number}`] = {
      type: "OS::Heat::RandomString",
      properties: { length: 8, ...(number > 0 && { salt: { get_attr: [`value_${before}`, "value"] } }) },
    };
  }
  const page = await open(await browser(), kiln.dashboard);
  await signIn(page);
  await page.getByText("live", { exact: true }).waitFor();
  const made = await api(kiln, "POST", "/stacks", { stack_name: "many", template: { ...VALUE, resources } });
  assert.equal(made.status, 201, JSON.stringify(made.body));
  await page.getByRole("link", { name: "many" }).click();
  await page.getByRole("heading", { name: "many" }).waitFor();
  await page.locator("h1 + .status.complete").waitFor({ timeout: 120_000 });
  await page.getByText(`${size} of ${size}`).waitFor({ timeout: 60_000 });
  const figures = {};
  const measured = async (view, ready) => {
    const began = performance.now();
    await page.getByRole("link", { name: view, exact: true }).click();
    await ready();
    figures[view] = Math.round(performance.now() - began);
  };
  await measured("Time", () => page.getByText(`${size} of ${size} resources`).waitFor({ timeout: 60_000 }));
  assert.ok((await page.locator(".segment").count()) < 100, "only the rows in sight are in the document");
  await measured("Shape", () => page.locator("canvas[aria-busy=false]").waitFor({ timeout: 60_000 }));
  // The time of a frame while the picture moves.
  const frame = await page.evaluate(async () => {
    const canvas = document.querySelector("canvas");
    const box = canvas.getBoundingClientRect();
    const at = (type, x) => canvas.dispatchEvent(new PointerEvent(type, { clientX: box.x + x, clientY: box.y + 100, pointerId: 1 }));
    canvas.setPointerCapture = () => {};
    at("pointerdown", 100);
    const times = [];
    for (let step = 0; step < 30; step += 1) {
      const began = performance.now();
      at("pointermove", 100 + step * 8);
      await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
      times.push(performance.now() - began);
    }
    at("pointerup", 340);
    return times.sort((a, b) => a - b)[15];
  });
  figures.frame = Math.round(frame * 10) / 10;
  await measured("Resources", () => page.getByText(`${size} of ${size}`).waitFor());
  context.diagnostic(`${size} resources, ms: ${JSON.stringify(figures)}`);
  assert.deepEqual(page.messages, []);
});
