// Kiln with a simulated cloud, and a browser that is signed in.

import { spawn } from "node:child_process";
import { after } from "node:test";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import assert from "node:assert/strict";
import { chromium } from "playwright-core";

export const KILN = process.env.KILN ?? new URL("../../target/debug/kiln", import.meta.url).pathname;
const BROWSERS = ["/usr/bin/chromium", "/usr/bin/google-chrome"];

/** What is ended when the tests of the file have ended. */
const ends = [];
after(async () => {
  for (const end of ends.reverse()) await end();
});

/** Starts 'kiln demo' and waits until its stack exists: its address, and the Keystone. */
export async function demo(...args) {
  const child = spawn(KILN, ["demo", "--port", "0", "--build-time", "0.3", "--progress", "none", ...args]);
  const out = await started(child, /Press Ctrl-C/);
  const url = /Kiln at (\S+)/.exec(out)[1];
  const cloud = /OS_AUTH_URL=(\S+)/.exec(out)[1];
  return { url, cloud, child, dashboard: `${url}/dashboard/` };
}

async function started(child, sign) {
  let out = "";
  ends.push(() => child.kill("SIGINT"));
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (data) => (out += data));
  for (let wait = 0; !sign.test(out); wait += 1) {
    assert.ok(child.exitCode === null && wait < 600, out);
    await new Promise((done) => setTimeout(done, 100));
  }
  return out;
}

/** A simulated cloud, and 'kiln serve' that can be stopped and started again on the same port and database. */
export async function service(options = {}) {
  const out = await started(spawn(KILN, ["testcloud", "--port", "0", "--build-time", "0.3"]), /Press Ctrl-C/);
  const cloud = /OS_AUTH_URL=(\S+)/.exec(out)[1];
  const folder = mkdtempSync(join(tmpdir(), "kiln-dashboard-"));
  ends.push(() => rmSync(folder, { recursive: true, force: true }));
  const env = {
    PATH: process.env.PATH,
    OS_DATABASE__CONNECTION: `sqlite://${folder}/kiln.db?mode=rwc`,
    OS_DEFAULT__AUTH_ENCRYPTION_KEY: "0123456789abcdef0123456789abcdef",
    OS_KEYSTONE_AUTHTOKEN__AUTH_URL: cloud,
    OS_KEYSTONE_AUTHTOKEN__USERNAME: "heat",
    OS_KEYSTONE_AUTHTOKEN__PASSWORD: "password",
    OS_KEYSTONE_AUTHTOKEN__PROJECT_NAME: "service",
    OS_KILN__DASHBOARD: "true",
    OS_KILN__CFN_API: "false",
    ...options,
  };
  const self = { cloud, url: "", dashboard: "", stop: undefined, start: undefined, set: (more) => Object.assign(env, more) };
  let child;
  let port = "0";
  self.start = async () => {
    child = spawn(KILN, ["serve", "--bind-host", "127.0.0.1", "--bind-port", port], { env });
    const said = await started(child, /serving.*address=\S*:\d+/);
    port = /address=\S*:(\d+)/.exec(said)[1];
    self.url = `http://127.0.0.1:${port}`;
    self.dashboard = `${self.url}/dashboard/`;
  };
  self.stop = async (signal) => {
    const gone = new Promise((done) => child.once("exit", done));
    child.kill(signal);
    await gone;
  };
  await self.start();
  return self;
}

/** Starts 'kiln dashboard' for the user demo, at a service: the address that opens its session. */
export async function alone(cloud, url, env = {}) {
  const variables = {
    PATH: process.env.PATH,
    OS_AUTH_URL: cloud,
    OS_USERNAME: "demo",
    OS_PASSWORD: "password",
    OS_PROJECT_NAME: "demo",
    ...(url && { OS_ORCHESTRATION_ENDPOINT_OVERRIDE: `${url}/v1/%(project_id)s` }),
    ...env,
  };
  const said = await started(spawn(KILN, ["dashboard", "--no-browser"], { env: variables }), /Press Ctrl-C/);
  return /http:\S+/.exec(said)[0];
}

/** A Chromium without a window. */
export async function browser() {
  const executablePath = BROWSERS.find(existsSync);
  assert.ok(executablePath, "no Chromium: apt install chromium");
  const started = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"] });
  ends.push(() => started.close());
  return started;
}

/** A page that fails its test on messages in the console, except those of refused requests that the test expects. */
export async function open(browser, url, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
  const page = await context.newPage();
  page.messages = [];
  page.on("console", (message) => page.messages.push(message.text()));
  page.on("pageerror", (error) => page.messages.push(String(error)));
  // The machine may compile beside it.
  page.setDefaultTimeout(60_000);
  await page.goto(url);
  return page;
}

export async function signIn(page, { user = "demo", password = "password", project = "demo" } = {}) {
  await page.getByLabel("User", { exact: true }).fill(user);
  await page.getByLabel("Password", { exact: true }).fill(password);
  await page.getByLabel("Project", { exact: true }).fill(project);
  await page.getByRole("button", { name: "Sign in" }).click();
}

/** A page of the demo after signing in. */
export async function signedIn(chrome, kiln, options) {
  const page = await open(chrome, kiln.dashboard, options);
  await signIn(page);
  await page.getByRole("link", { name: "three-tier" }).waitFor();
  return page;
}

/** The row of a list with this link. */
export const row = (page, name) => page.getByRole("row").filter({ has: page.getByRole("link", { name, exact: true }) });

/** A token of a user, for requests beside the page. */
export async function token(cloud, user = "demo", password = "password", project = "demo") {
  const domain = { name: "Default" };
  const body = {
    auth: {
      identity: { methods: ["password"], password: { user: { name: user, domain, password } } },
      scope: { project: { name: project, domain } },
    },
  };
  const response = await fetch(`${cloud}/auth/tokens`, { method: "POST", body: JSON.stringify(body), headers: { "content-type": "application/json" } });
  assert.equal(response.status, 201);
  return { token: response.headers.get("x-subject-token"), project: (await response.json()).token.project.id };
}

/** A request to the REST API beside the page. */
export async function api({ url, cloud }, method, path, body, user = "demo") {
  const { token: secret, project } = await token(cloud, user, "password", "demo");
  const headers = { "x-auth-token": secret, "content-type": "application/json" };
  const response = await fetch(`${url}/v1/${project}${path}`, { method, headers, body: body && JSON.stringify(body) });
  const text = await response.text();
  // As Heat, an update answers with a page.
  const isJson = response.headers.get("content-type")?.startsWith("application/json");
  return { status: response.status, body: text && isJson ? JSON.parse(text) : null };
}

/** Saves a picture for the documentation, if KILN_PICTURES names a folder. */
export async function picture(page, name) {
  const folder = process.env.KILN_PICTURES;
  if (folder) await page.screenshot({ path: join(folder, `${name}.png`) });
}

/** Makes a user who is a member of the project demo, with the password 'password': calls to Keystone, and the ID. */
export async function secondUser(cloud, name) {
  const admin = await token(cloud, "admin", "password", "admin");
  const { project } = await token(cloud);
  const call = async (method, path, body) => {
    const headers = { "x-auth-token": admin.token, "content-type": "application/json" };
    const response = await fetch(cloud + path, { method, headers, body: body && JSON.stringify(body) });
    assert.ok(response.ok, `${method} ${path}: ${response.status}`);
    return response.status === 204 ? null : response.json();
  };
  const { user } = await call("POST", "/users", { user: { name, domain_id: "default", password: "password" } });
  const { roles } = await call("GET", "/roles?name=member");
  await call("PUT", `/projects/${project}/users/${user.id}/roles/${roles[0].id}`);
  return { call, id: user.id };
}
