// What tests share: a cluster for each file, a page that is logged in, and what must hold of every screen.

import AxeBuilder from "@axe-core/playwright";
import { test as base, expect, type Page } from "@playwright/test";
import { Cluster } from "./cluster";

export const test = base.extend<{ quiet: undefined }, { cluster: Cluster }>({
  cluster: [
    // biome-ignore lint/correctness/noEmptyPattern: Playwright asks for a pattern
    async ({}, use) => {
      const cluster = await Cluster.started();
      await use(cluster);
      await cluster.stop();
    },
    { scope: "worker", timeout: 90_000 },
  ],
  /** Nothing fails behind the user's back, and no other host is asked. */
  quiet: [
    async ({ page, cluster }, use) => {
      const wrong: string[] = [];
      page.on("pageerror", (error) => wrong.push(String(error)));
      page.on("request", (request) => {
        const { origin, protocol } = new URL(request.url());
        if (protocol !== "data:" && origin !== cluster.address) wrong.push(`asks ${request.url()}`);
      });
      await use(undefined);
      expect(wrong).toEqual([]);
    },
    { auto: true },
  ],
});

export { expect };

const SHOTS = process.env.SHOTS ?? "shots";
const NARROW = { width: 420, height: 860 };

/** A screen as a user with needs meets it: no findings of axe, light and dark, wide and narrow, nothing beside the page. */
export async function look(page: Page, name: string): Promise<void> {
  const wide = page.viewportSize() ?? { width: 1280, height: 900 };
  for (const theme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme: theme });
    await expect(page.locator("html")).toHaveAttribute("data-theme", theme);
    for (const size of [wide, NARROW]) {
      await page.setViewportSize(size);
      await page.screenshot({ path: `${SHOTS}/${name}-${theme}-${size.width}.png`, animations: "disabled" });
      const overflow = await page.evaluate(
        () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
      );
      expect(overflow, `${name} is too wide at ${size.width}`).toBeLessThanOrEqual(0);
    }
    await page.setViewportSize(wide);
    const { violations } = await new AxeBuilder({ page }).analyze();
    expect(
      violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join("\n  ")}`),
      `${name}, ${theme}`,
    ).toEqual([]);
  }
  await page.emulateMedia({ colorScheme: "light" });
}

/** Types into an editor what it then has. */
export async function write(page: Page, label: string, text: string): Promise<void> {
  const editor = page.getByRole("textbox", { name: label });
  await editor.fill(text);
  await expect(editor).toContainText(text.trim().split("\n").at(-1)?.trim() ?? "");
}
