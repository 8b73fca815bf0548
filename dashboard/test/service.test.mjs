// A service that restarts, a proxy with a prefix, and many resources.

import http from "node:http";
import { after, test } from "node:test";
import assert from "node:assert/strict";
import { api, browser, open, secondUser, service, signIn } from "./support.mjs";

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
