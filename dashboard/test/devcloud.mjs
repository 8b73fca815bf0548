// The dashboard of a Kiln on devcloud, with a real Keystone: `dashboard/check --devcloud`, after `devcloud/devcloud up kiln`.

import { test } from "node:test";
import assert from "node:assert/strict";
import { browser, open, signIn } from "./support.mjs";

const DASHBOARD = process.env.KILN_DASHBOARD ?? "http://127.0.0.1:8014/dashboard/";
const template = {
  heat_template_version: "2018-08-31",
  resources: {
    net: { type: "OS::Neutron::Net" },
    subnet: { type: "OS::Neutron::Subnet", properties: { network: { get_resource: "net" }, cidr: "10.77.0.0/24" } },
    volume: { type: "OS::Cinder::Volume", properties: { size: 1 } },
  },
};

for (const [user, count] of [["demo", 1], ["admin", 3]]) {
  test(`${user}: sign in, create by a plan, drift, delete, sign out`, async () => {
    const name = `dashboard-${user}-${Date.now()}`;
    const page = await open(await browser(), DASHBOARD);
    await signIn(page, { user, password: "wrong", project: "demo" });
    await page.getByRole("alert").filter({ hasText: "refused to sign you in" }).waitFor();
    assert.match(page.messages.pop(), /401/);
    // Without a project: the first one of the user.
    await signIn(page, { user, password: "devcloud", project: "" });
    await page.getByText("live", { exact: true }).waitFor();
    const projects = page.getByLabel("Project").locator("option");
    await projects.nth(count - 1).waitFor({ state: "attached" });
    assert.equal(await projects.count(), count);
    await page.getByRole("link", { name: "New stack" }).click();
    await page.getByLabel("Template", { exact: true }).fill(JSON.stringify(template));
    await page.getByRole("button", { name: "Validate" }).click();
    await page.getByLabel("Name of the stack").fill(name);
    await page.getByRole("button", { name: "Show the plan" }).click();
    await page.getByText("3 of 3 resources").waitFor();
    await page.getByRole("button", { name: "Execute" }).click();
    await page.locator("h1 + .status.complete").waitFor({ timeout: 120_000 });
    await page.getByRole("link", { name: "Drift", exact: true }).click();
    await page.getByRole("button", { name: "Check now" }).click();
    await page.getByText("3 of 3 resources are in sync").waitFor({ timeout: 60_000 });
    await page.getByRole("button", { name: "Delete" }).click();
    await page.getByRole("dialog").getByLabel("Type the name").fill(name);
    await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
    await page.getByRole("heading", { name: "Stacks" }).waitFor();
    const [cookie] = await page.context().cookies();
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByRole("button", { name: "Sign in" }).waitFor();
    assert.deepEqual(page.messages, []);
    // A copy of the cookie opens nothing: Keystone has revoked the token.
    await page.context().addCookies([cookie]);
    const status = await page.evaluate(async () => (await fetch("projects", { headers: { "X-Kiln-Dashboard": "-" } })).status);
    assert.equal(status, 401);
  });
}
