// Markup in everything that users can name, and views for all eyes and screens.

import { test, before } from "node:test";
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { api, browser, demo, open, signedIn } from "./support.mjs";

const MARKUP = `<img src=x onerror="window.hit=1"><script>window.hit=1</script>`;
const VIEWS = ["Resources", "Time", "Shape", "Events", "Outputs", "Template", "Operations", "Drift", "Change"];
const axe = readFileSync(new URL("../node_modules/axe-core/axe.min.js", import.meta.url), "utf8");

let kiln, chrome;
before(async () => {
  kiln = await demo();
  chrome = await browser();
});

const opened = (options) => signedIn(chrome, kiln, options);

test("markup is text", async () => {
  const template = {
    heat_template_version: "2018-08-31",
    description: MARKUP,
    parameters: { [`p${MARKUP}`]: { type: "string", default: MARKUP, description: MARKUP, label: MARKUP } },
    resources: {
      [`a${MARKUP}`]: { type: "OS::Heat::Value", properties: { value: MARKUP } },
      fails: { type: "OS::Heat::Value", properties: { type: "number", value: MARKUP } },
    },
    outputs: { [`o${MARKUP}`]: { description: MARKUP, value: MARKUP } },
  };
  const made = await api(kiln, "POST", "/stacks", { stack_name: "markup", template, tags: MARKUP.replaceAll(",", ""), disable_rollback: true });
  const page = await opened();
  if (made.status !== 201) {
    // The names are refused by the API: the values alone.
    template.parameters = { p: Object.values(template.parameters)[0] };
    template.resources = { a: template.resources[`a${MARKUP}`] };
    template.outputs = { o: Object.values(template.outputs)[0] };
    assert.equal((await api(kiln, "POST", "/stacks", { stack_name: "markup", template })).status, 201, JSON.stringify(made.body));
  }
  await page.getByRole("link", { name: "markup", exact: true }).click();
  for (const view of VIEWS) {
    await page.getByRole("link", { name: view, exact: true }).click();
    if (view === "Drift") await page.getByRole("button", { name: "Check now" }).click();
    await page.waitForTimeout(300);
    assert.equal(await page.locator("img, main script").count(), 0, view);
  }
  await page.getByRole("link", { name: "Outputs", exact: true }).click();
  await page.getByText("onerror").first().waitFor();
  // Reflected: the address of a view.
  for (const path of [`stacks/${encodeURIComponent(MARKUP)}/${encodeURIComponent(MARKUP)}`, encodeURIComponent(MARKUP), "plans/%E0%A4%A"]) {
    await page.goto(`${kiln.dashboard}#/${path}`);
    await page.waitForTimeout(300);
    assert.equal(await page.locator("img, main script").count(), 0, path);
  }
  assert.equal(await page.evaluate(() => window.hit), undefined);
  const policy = page.messages.filter((message) => message.includes("Content Security Policy"));
  assert.deepEqual(policy, []);
});

test("no violation of the rules of accessibility in three themes", async () => {
  const page = await opened();
  const found = [];
  const check = async (where) => {
    await page.waitForTimeout(200);
    await page.evaluate(axe);
    // The themes differ in their colours alone.
    const rules = where.startsWith("light") ? {} : { runOnly: ["color-contrast", "link-in-text-block"] };
    const { violations } = await page.evaluate((rules) => window.axe.run(rules), rules);
    for (const { id, nodes } of violations) found.push(`${where}: ${id}: ${nodes[0].html.slice(0, 120)}`);
  };
  for (const theme of ["light", "dark", "contrast"]) {
    await page.goto(kiln.dashboard);
    await page.getByLabel("Theme").selectOption(theme);
    await page.getByRole("link", { name: "three-tier" }).waitFor();
    await check(`${theme} stacks`);
    await page.getByRole("link", { name: "three-tier" }).click();
    for (const view of VIEWS) {
      await page.getByRole("link", { name: view, exact: true }).click();
      await check(`${theme} ${view}`);
    }
    await page.getByRole("button", { name: "Delete" }).click();
    await page.getByRole("dialog").getByText("14 of 14").waitFor();
    await check(`${theme} delete`);
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "Protect" }).click();
    await check(`${theme} protect`);
    await page.keyboard.press("Escape");
    for (const view of ["new", "plans", "guards", "types", "types/OS::Nova::Server"]) {
      await page.goto(`${kiln.dashboard}#/${view}`);
      await check(`${theme} ${view}`);
    }
  }
  const signedOut = await open(chrome, kiln.dashboard);
  await signedOut.getByLabel("User").waitFor();
  await signedOut.evaluate(axe);
  const { violations } = await signedOut.evaluate(() => window.axe.run());
  found.push(...violations.map(({ id }) => `sign in: ${id}`));
  assert.deepEqual(found, []);
});

test("a phone shows each view without a page that is wider than the screen", async () => {
  const page = await opened({ viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true });
  const wide = async () => page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  assert.ok((await wide()) <= 0, `stacks: ${await wide()}`);
  await page.getByRole("link", { name: "three-tier" }).click();
  for (const view of VIEWS) {
    await page.getByRole("link", { name: view, exact: true }).click();
    await page.waitForTimeout(300);
    assert.ok((await wide()) <= 0, `${view}: ${await wide()} px too wide`);
  }
});
