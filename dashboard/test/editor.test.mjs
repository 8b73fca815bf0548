// The editor for templates: changes of a template, files, the language server, the keyboard.

import { test, before } from "node:test";
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { api, browser, demo, KILN, open, row, signedIn } from "./support.mjs";

const MARKUP = `<img src=x onerror="window.hit=1">`;
const axe = readFileSync(new URL("../node_modules/axe-core/axe.min.js", import.meta.url), "utf8");
const INNER = {
  heat_template_version: "2018-08-31",
  parameters: { length: { type: "number" } },
  resources: { text: { type: "OS::Heat::RandomString", properties: { length: { get_param: "length" } } } },
};
const OUTER = {
  heat_template_version: "2018-08-31",
  description: `of ${MARKUP}: 'yes' and "no"\nin two lines\n`,
  parameters: { size: { type: "number", default: 8 }, secret: { type: "string", hidden: true } },
  resources: {
    nested: { type: "nested/inner.yaml", properties: { length: { get_param: "size" } } },
    kept: { type: "OS::Heat::Value", properties: { type: "json", value: { a: "yes", b: "012", c: ["1:30", "~", "", null], d: "a: b # c" } } },
  },
};

let kiln, chrome;
before(async () => {
  kiln = await demo();
  chrome = await browser();
});

const opened = (options) => signedIn(chrome, kiln, options);
const field = (page) => page.getByRole("textbox", { name: "Template", exact: true });
/** The editor has started and its server has answered. */
const checked = (page) => page.getByText(/^\d+ errors, \d+ hints\.$/).waitFor();
const file = (name, text) => ({ name, mimeType: "text/plain", buffer: Buffer.from(text) });

async function made(name) {
  const files = { "nested/inner.yaml": JSON.stringify(INNER) };
  const body = { stack_name: name, template: OUTER, files, parameters: { secret: "planted-secret" }, disable_rollback: true };
  const answer = await api(kiln, "POST", "/stacks", body);
  assert.equal(answer.status, 201, JSON.stringify(answer.body));
  return answer.body.stack;
}

async function change(page, name) {
  await row(page, name).getByText("create complete").waitFor();
  await page.getByRole("link", { name, exact: true }).click();
  await page.getByRole("link", { name: "Change", exact: true }).click();
  await page.getByRole("button", { name: "Edit the template" }).click();
  await page.locator(".cm-content").waitFor();
}

test("a template and a file are changed by a plan; a hidden parameter stays", async () => {
  const stack = await made("edited");
  const page = await opened();
  const bodies = [];
  page.on("response", (response) => bodies.push(response.text().catch(() => "")));
  page.on("websocket", (socket) => socket.on("framereceived", ({ payload }) => bodies.push(String(payload))));
  await change(page, "edited");
  await checked(page);
  assert.ok(await page.getByRole("button", { name: "Show the plan" }).isDisabled(), "nothing is changed yet");
  await page.getByText("nested/inner.yaml, ", { exact: false }).waitFor();
  assert.equal(await page.getByText(/^0 errors, /).count(), 1);
  await field(page).click();
  await page.keyboard.press("Control+End");
  await page.keyboard.type("outputs:\nmore:\n");
  await page.getByRole("list", { name: "Problems" }).getByText("more").first().waitFor();
  await page.keyboard.press("Control+a");
  const next = structuredClone(OUTER);
  next.parameters.added = { type: "string", default: "", description: "of the new template" };
  next.resources.after = { type: "OS::Heat::Value", properties: { value: { get_param: "added" } } };
  await field(page).fill(JSON.stringify(next, null, 2));
  await page.getByText(/^0 errors, /).waitFor();
  const inner = structuredClone(INNER);
  inner.resources.other = { type: "OS::Heat::RandomString" };
  await page.getByLabel("Files that the template names").setInputFiles(file("inner.yaml", JSON.stringify(inner)));
  await page.getByText("replaces the present one").waitFor();
  assert.equal(await page.getByLabel("Name in the template").inputValue(), "nested/inner.yaml");
  await page.getByRole("button", { name: "Validate" }).click();
  await page.getByLabel("added").fill("new");
  assert.equal(await page.getByLabel("secret").inputValue(), "");
  await page.getByText("kiln stack update edited --existing -t template.yaml --parameter added=new").waitFor();
  await page.getByRole("button", { name: "Show the plan" }).click();
  await page.getByRole("heading", { name: "update edited" }).waitFor();
  const plan = page.getByRole("region", { name: "Plan" });
  for (const path of ["after", "nested/other"]) await plan.getByText(path, { exact: true }).waitFor();
  assert.equal(await plan.getByText("kept", { exact: true }).count(), 0, "what was not changed is as it was");
  await page.getByRole("button", { name: "Execute" }).click();
  await page.locator("h1 + .status.complete").filter({ hasText: "update complete" }).waitFor();
  const { body } = await api(kiln, "GET", `/stacks/edited/${stack.id}/resources/after`);
  assert.equal(body.resource.attributes.value, "new");
  assert.deepEqual((await Promise.all(bodies)).filter((body) => body.includes("planted-secret")), []);
  assert.ok(!(await page.content()).includes("planted-secret"));
  assert.equal(await page.evaluate(() => window.hit), undefined);
  assert.deepEqual(page.messages, []);
});

test("the text of a template that is not changed makes the same template", async () => {
  const stack = await made("same");
  const page = await opened();
  await change(page, "same");
  await field(page).click();
  await page.keyboard.press("Control+End");
  await page.keyboard.type("# a comment");
  await page.getByRole("button", { name: "Show the plan" }).click();
  await page.getByText("update same: 0 of ").waitFor();
  await page.getByRole("button", { name: "Execute" }).click();
  await page.locator("h1 + .status.complete").filter({ hasText: "update complete" }).waitFor();
  const { body } = await api(kiln, "GET", `/stacks/same/${stack.id}/template`);
  assert.deepEqual(body, OUTER);
  assert.deepEqual(page.messages, []);
});

test("a template with a number that a browser changes is not edited", async () => {
  const text = "heat_template_version: 2018-08-31\nresources: {large: {type: OS::Heat::Value, properties: {value: 9007199254740993}}}\n";
  assert.equal((await api(kiln, "POST", "/stacks", { stack_name: "large", template: text })).status, 201);
  const page = await opened();
  await row(page, "large").getByText("create complete").waitFor();
  await page.getByRole("link", { name: "large", exact: true }).click();
  await page.getByRole("link", { name: "Change", exact: true }).click();
  await page.getByRole("button", { name: "Edit the template" }).click();
  await page.getByRole("alert").filter({ hasText: "a number that a browser cannot keep" }).waitFor();
  assert.deepEqual(page.messages, []);
});

test("a new stack with files: a nested template and a script", async () => {
  const page = await opened();
  await page.getByRole("link", { name: "New stack" }).click();
  const template = structuredClone(OUTER);
  template.resources.kept.properties = { value: { get_file: "start.sh" } };
  await page.getByLabel("Template file").setInputFiles(file("outer.yaml", JSON.stringify(template)));
  await page.getByLabel("Files that the template names").setInputFiles([
    file("inner.yaml", JSON.stringify(INNER)),
    file("start.sh", `#!/bin/sh\necho '${MARKUP}'\n`),
    file("wrong", "x"),
  ]);
  await page.getByText("52 bytes").waitFor();
  await page.getByRole("button", { name: "Remove wrong" }).click();
  await page.getByLabel("Files that the template names").setInputFiles({ name: "binary", mimeType: "", buffer: Buffer.from([0xff, 0xfe]) });
  await page.getByRole("alert").filter({ hasText: "binary is not a text" }).waitFor();
  await page.getByText("Environment", { exact: true }).click();
  await page.getByLabel("Environment (YAML)").fill("parameter_defaults:\n  size: 11\n");
  await page.getByRole("button", { name: "Validate" }).click();
  await page.getByLabel("Name of the stack").fill("with-files");
  await page.getByLabel("secret").fill("planted-secret");
  const command = "kiln stack create -t template.yaml -e environment.yaml with-files --parameter 'secret=…'";
  await page.getByText(command).waitFor();
  const ran = spawnSync(KILN, [...command.split(" ").slice(1), "--help"], { encoding: "utf8" });
  assert.equal(ran.status, 0, ran.stderr);
  const update = spawnSync(KILN, ["stack", "update", "x", "--existing", "-t", "a", "-e", "b", "--parameter", "a=b", "--help"], { encoding: "utf8" });
  assert.equal(update.status, 0, update.stderr);
  await page.getByRole("button", { name: "Show the plan" }).click();
  await page.getByRole("button", { name: "Execute" }).click();
  await page.locator("h1 + .status.complete").filter({ hasText: "create complete" }).waitFor();
  await page.getByRole("link", { name: "Outputs", exact: true }).click();
  await page.getByText("11", { exact: true }).waitFor();
  assert.ok(!(await page.content()).includes("planted-secret"));
  assert.deepEqual(page.messages, []);
});

test("the language server completes, explains and finds mistakes; what it says is text", async () => {
  const page = await opened();
  await page.goto(`${kiln.dashboard}#/new`);
  await page.locator(".cm-content").waitFor();
  await field(page).fill(`heat_template_version: 2018-08-31\ndescription: '${MARKUP}'\nparameters:\n  p:\n    type: string\n    description: '${MARKUP}'\nresources:\n  one:\n    type: OS::Heat::RandomStrin\n`);
  const problems = page.getByRole("list", { name: "Problems" });
  await problems.getByText("OS::Heat::RandomString").first().waitFor();
  await page.getByRole("button", { name: "Line 9" }).click();
  await page.keyboard.press("End");
  await page.keyboard.type("g");
  await page.getByText(/^0 errors, /).waitFor();
  await page.keyboard.press("Enter");
  await page.keyboard.type("properties:");
  await page.keyboard.press("Enter");
  await page.keyboard.type("le");
  const option = page.locator(".cm-tooltip-autocomplete li").filter({ hasText: "length" });
  // The editor ignores keys for a moment after a list has appeared or changed.
  await option.click();
  await page.keyboard.type("{get_param: p}");
  await page.getByText("length: {get_param: p}").waitFor();
  await page.locator(".cm-line").filter({ hasText: "OS::Heat::RandomString" }).hover({ position: { x: 130, y: 8 } });
  await page.locator(".cm-tooltip-hover .said").waitFor();
  assert.equal(await page.evaluate(() => window.hit), undefined);
  assert.equal(await page.locator("img, main script").count(), 0);
  assert.deepEqual(page.messages, []);
});

test("the cloud is listed for a parameter, and another text can be typed", async () => {
  const page = await opened();
  await page.goto(`${kiln.dashboard}#/new`);
  const listed = (constraint) => ({ type: "string", constraints: [{ custom_constraint: constraint }] });
  const parameters = { flavor: listed("nova.flavor"), net: listed("neutron.network"), other: listed("keystone.user") };
  await page.locator(".cm-content").waitFor();
  await field(page).fill(JSON.stringify({ heat_template_version: "2018-08-31", parameters }, null, 1));
  const asked = [];
  page.on("request", (request) => asked.push(new URL(request.url()).pathname));
  await page.getByRole("button", { name: "Validate" }).click();
  for (const [name, value] of [["flavor", "m1.small"], ["net", "public"]]) {
    const list = await page.getByLabel(name, { exact: true }).getAttribute("list");
    await page.locator(`[id="${list}"] option[value="${value}"]`).waitFor({ state: "attached" });
  }
  assert.equal(await page.getByLabel("other", { exact: true }).getAttribute("list"), null);
  assert.deepEqual(asked.filter((path) => path.includes("choices")).sort(), ["/dashboard/choices/neutron.network", "/dashboard/choices/nova.flavor"]);
  await page.getByLabel("flavor", { exact: true }).fill("typed");
  await page.getByText("--parameter flavor=typed").waitFor();
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => window.axe.run());
  assert.deepEqual(violations.map(({ id }) => id), []);
  assert.deepEqual(page.messages, []);
});

test("the keyboard goes into the editor and out of it", async () => {
  const page = await opened();
  await page.goto(`${kiln.dashboard}#/new`);
  await page.locator(".cm-content").waitFor();
  const inside = () => page.evaluate(() => document.activeElement?.shadowRoot?.activeElement?.className.includes("cm-content") ?? false);
  await page.getByLabel("Template file").focus();
  await page.keyboard.press("Tab");
  assert.ok(await inside(), "Tab enters");
  await page.keyboard.type("a");
  await page.keyboard.press("Home");
  await page.keyboard.press("Tab");
  assert.ok(await inside(), "Tab indents");
  await page.keyboard.press("Escape");
  await page.waitForTimeout(2500);
  await page.keyboard.press("Tab");
  assert.ok(!(await inside()), "Escape, then Tab leaves, however long it takes");
  await page.keyboard.press("Shift+Tab");
  assert.ok(await inside());
  await page.keyboard.press("Escape");
  await page.keyboard.press("Shift+Tab");
  assert.ok(!(await inside()));
  const described = await page.locator(".cm-content").getAttribute("aria-description");
  assert.match(described, /Escape, then Tab/);
  assert.deepEqual(page.messages, []);
});

test("'kiln dashboard --local' checks templates too, and reads no file of the machine", async () => {
  const folder = mkdtempSync(join(tmpdir(), "kiln-editor-"));
  writeFileSync(join(folder, "child.yaml"), "heat_template_version: 2018-08-31\nparameters: {planted_parameter: {type: string}}\n");
  const env = { PATH: process.env.PATH, HOME: folder, XDG_DATA_HOME: folder };
  const child = spawn(KILN, ["dashboard", "--local", "--no-browser"], { env });
  try {
    const url = await new Promise((done) => child.stdout.once("data", (data) => done(String(data).trim())));
    const page = await open(chrome, url);
    const frames = [];
    page.on("websocket", (socket) => socket.on("framereceived", ({ payload }) => frames.push(String(payload))));
    await page.getByRole("link", { name: "New stack" }).click();
    await page.locator(".cm-content").waitFor();
    await field(page).fill(
      `heat_template_version: 2018-08-31\nresources:\n  one:\n    type: file://${folder}/child.yaml\n  two:\n    type: OS::Wrong\n` +
        "  three:\n    type: OS::Heat::Value\n    properties: {value: {get_file: /etc/passwd}}\n",
    );
    await page.getByRole("list", { name: "Problems" }).getByText("OS::Wrong").first().waitFor();
    assert.deepEqual(frames.filter((frame) => /planted_|root:/.test(frame)), []);
    // The list of stacks asks what has drifted, which is refused without a service.
    assert.deepEqual(page.messages.filter((message) => !message.includes("400")), []);
  } finally {
    child.kill("SIGINT");
    rmSync(folder, { recursive: true, force: true });
  }
});

test("without the language server or without its program, the editor still works", async () => {
  const page = await opened();
  await page.routeWebSocket(/lsp/, (socket) => socket.close({ code: 1013, reason: "busy" }));
  await page.goto(`${kiln.dashboard}#/new`);
  await page.locator(".cm-content").waitFor();
  await field(page).fill("{\n bad");
  await page.getByText("Not checked while you type.").waitFor();
  await page.getByRole("button", { name: "Validate" }).click();
  await page.getByRole("alert").waitFor();
  assert.match(page.messages.pop(), /400/);
  assert.deepEqual(page.messages, []);
  const plain = await opened();
  await plain.route("**/editor.js", (route) => route.abort());
  await plain.goto(`${kiln.dashboard}#/new`);
  await plain.locator("textarea").first().fill(JSON.stringify(INNER));
  await plain.getByRole("button", { name: "Validate" }).click();
  await plain.getByLabel("length").waitFor();
});

test("no violation of the rules of accessibility in three themes, and no page wider than a phone", async () => {
  await made("reached");
  const page = await opened();
  await page.evaluate(axe);
  const found = [];
  const check = async (where) => {
    await page.waitForTimeout(200);
    await page.evaluate(axe);
    const { violations } = await page.evaluate(() => window.axe.run());
    for (const { id, nodes } of violations) found.push(`${where}: ${id}: ${nodes[0].html.slice(0, 160)}`);
  };
  const wrong = `heat_template_version: 2018-08-31 # a comment\ndescription: "text"\nresources:\n  one:\n    type: OS::Wrong\n    depends_on: [two]\n`;
  for (const theme of ["light", "dark", "contrast"]) {
    await page.goto(kiln.dashboard);
    await page.getByLabel("Theme").selectOption(theme);
    await page.goto(`${kiln.dashboard}#/new`);
    await page.locator(".cm-content").waitFor();
    await field(page).fill(wrong);
    await page.getByLabel("Files that the template names").setInputFiles(file("inner.yaml", JSON.stringify(INNER)));
    await page.getByRole("list", { name: "Problems" }).waitFor();
    await check(`${theme} new`);
    await field(page).click();
    await page.keyboard.press("Control+End");
    await page.keyboard.type("    ");
    await page.keyboard.press("Control+Space");
    await page.locator(".cm-tooltip-autocomplete").waitFor();
    await check(`${theme} completion`);
    await page.keyboard.press("Escape");
    await page.keyboard.press("Control+f");
    await page.locator(".cm-search").waitFor();
    await check(`${theme} search`);
    await page.goto(kiln.dashboard);
    await change(page, "reached");
    await checked(page);
    await check(`${theme} change`);
  }
  assert.deepEqual(found, []);
  assert.deepEqual(page.messages, []);
  const phone = await opened({ viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true });
  const wide = () => phone.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  await change(phone, "reached");
  await checked(phone);
  assert.ok((await wide()) <= 0, `change: ${await wide()} px too wide`);
  await phone.goto(`${kiln.dashboard}#/new`);
  await phone.locator(".cm-content").waitFor();
  await field(phone).fill(wrong);
  await phone.getByRole("list", { name: "Problems" }).waitFor();
  assert.ok((await wide()) <= 0, `new: ${await wide()} px too wide`);
});
