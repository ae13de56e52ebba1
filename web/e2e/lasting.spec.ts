// What lasts: an API that is killed, two tabs, who may only read, many pipelines; and what an open page costs.

import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { expect, look, test } from "./world";

const QUERY = `CREATE TABLE numbers WITH (connector = 'impulse', event_rate = '50');
SELECT counter FROM numbers;`;

test("the API is killed, and comes again", async ({ page, cluster }) => {
  const id = await cluster.pipeline("lasting", QUERY);
  await cluster.reaches(id, "Running");
  await page.goto(cluster.login());
  await page.goto(`${cluster.address}/pipelines/${id}?tab=rows`);
  const rows = page.getByRole("region", { name: "The latest rows" });
  await expect(rows.getByRole("cell").first()).toBeVisible();
  const newest = async () => Number(await rows.getByRole("cell").first().textContent());
  const before = await newest();
  await cluster.killApi();
  await expect(page.getByRole("alert")).toContainText("The API does not answer.");
  await expect(page.getByRole("heading", { name: "lasting" })).toBeVisible();
  await look(page, "no-api");
  await cluster.startApi();
  await expect(page.getByRole("alert")).toBeHidden();
  await expect.poll(newest).toBeGreaterThan(before + 50);
  const shown = (await rows.getByRole("row").allInnerTexts()).slice(1).map(Number);
  expect(shown.slice(1)).toEqual(shown.slice(0, -1).map((number) => number - 1));
});

test("two tabs see the same", async ({ page, cluster, context }) => {
  const id = await cluster.pipeline("shared", QUERY);
  await page.goto(cluster.login());
  const other = await context.newPage();
  await page.goto(`${cluster.address}/pipelines/${id}`);
  await other.goto(`${cluster.address}/pipelines`);
  const row = other.getByRole("row", { name: /shared/ });
  await expect(row).toContainText("Running");
  await page.getByRole("button", { name: "Stop…" }).click();
  await page.getByRole("button", { name: "Stop it" }).click();
  await expect(row).toContainText("Stopped");
  await row.getByRole("link", { name: "shared" }).click();
  await other.getByRole("button", { name: "Start", exact: true }).click();
  await expect(page.locator(".head .badge")).toHaveText("Running");
  await cluster.call("PATCH", `/pipelines/${id}`, { stop: "immediate" });
  await cluster.reaches(id, "Stopped");
  await cluster.call("DELETE", `/pipelines/${id}`);
  await expect(page.getByRole("alert")).toContainText("Pipeline not found");
});

test("who may read sees no button that he may not use", async ({ page, cluster }) => {
  const id = await cluster.pipeline("read", QUERY);
  await cluster.function("from arroyo_udf_plugin import udf\n\n\n@udf\ndef same(n: int) -> int:\n    return n\n");
  const token = cluster.newToken("reader", "read");
  const refused: string[] = [];
  page.on("response", (response) => {
    if (response.status() >= 400 && !response.url().endsWith("/identity")) refused.push(response.url());
  });
  await page.goto(cluster.address);
  await page.getByLabel("Token").fill("aut_wrong");
  await page.getByRole("button", { name: "Log in" }).click();
  await expect(page.getByRole("alert")).toContainText("This token is not known here.");
  await page.getByLabel("Token").fill(token);
  await page.getByRole("button", { name: "Log in" }).click();
  await expect(page.getByText("reader (read)")).toBeVisible();
  refused.length = 0;
  await expect(page.getByRole("link", { name: "read", exact: true })).toBeVisible();
  await expect(page.getByText("New pipeline")).toHaveCount(0);
  await page.getByRole("link", { name: "read", exact: true }).click();
  await expect(page.getByRole("tab", { name: "Graph" })).toBeVisible();
  for (const name of ["Stop…", "Start", "Restart…", "More"])
    await expect(page.getByRole("button", { name })).toHaveCount(0);
  for (const tab of ["Checkpoints", "Errors", "Rows", "Query"]) {
    await page.getByRole("tab", { name: tab }).click();
    await expect(page.getByRole("tab", { name: tab })).toHaveAttribute("aria-selected", "true");
  }
  await page.getByRole("link", { name: "Functions" }).click();
  await page.getByRole("link", { name: "same" }).click();
  await expect(page.getByText("Your token may not run functions.")).toBeVisible();
  for (const name of ["Save", "Delete…", "Run"])
    await expect(page.getByRole("button", { name, exact: true })).toHaveCount(0);
  await page.getByRole("link", { name: "Connections" }).click();
  await expect(page.getByRole("heading", { name: "Connections", level: 1 })).toBeVisible();
  await expect(page.getByText("Loading…")).toHaveCount(0);
  for (const name of ["New table", "Connect one"]) await expect(page.getByRole("link", { name })).toHaveCount(0);
  for (const name of ["Sample", "More"]) await expect(page.getByRole("button", { name })).toHaveCount(0);
  expect(refused).toEqual([]);
  await cluster.call("PATCH", `/pipelines/${id}`, { stop: "immediate" });
});

test("by keyboard alone", async ({ page, cluster }) => {
  const id = await cluster.pipeline("keys", QUERY);
  await page.goto(cluster.login());
  await page.goto(`${cluster.address}/pipelines/${id}`);
  await page.getByRole("tab", { name: "Graph" }).focus();
  await page.keyboard.press("ArrowRight");
  await expect(page).toHaveURL(/tab=rows/);
  await page.keyboard.press("ArrowLeft");
  await expect(page.getByRole("tab", { name: "Graph" })).toBeFocused();
  await page.getByRole("button", { name: "More" }).focus();
  await page.keyboard.press("Enter");
  await expect(page.getByRole("menuitem", { name: /Rescale/ })).toBeFocused();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await expect(page.getByRole("dialog", { name: "Labels" })).toBeVisible();
  await page.keyboard.press("Escape");
  await expect(page.getByRole("dialog")).toHaveCount(0);
  await cluster.call("PATCH", `/pipelines/${id}`, { stop: "immediate" });
});

test("the first view is small and quick, a thousand pipelines do not stutter, and an open page is cheap", async ({
  page,
  cluster,
}) => {
  test.setTimeout(240_000);
  execFileSync(process.env.PYTHON ?? "python3", [`${import.meta.dirname}/many.py`, cluster.data, "1000"]);
  await page.goto(cluster.login());
  const session = await page.context().newCDPSession(page);
  await session.send("Network.setCacheDisabled", { cacheDisabled: true });
  let loaded = 0;
  await session.send("Network.enable");
  session.on("Network.loadingFinished", (event) => {
    loaded += event.encodedDataLength;
  });
  await page.goto(`${cluster.address}/pipelines`);
  await expect(page.getByRole("table")).toBeVisible();
  const shown = await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? 0);
  const size = loaded;
  const moved = await page.evaluate(
    () =>
      new Promise<number>((done) => {
        let sum = 0;
        new PerformanceObserver((list) => {
          for (const shift of list.getEntries() as (PerformanceEntry & { value: number })[]) sum += shift.value;
        }).observe({ type: "layout-shift", buffered: true });
        setTimeout(() => done(sum), 3_000);
      }),
  );
  expect(moved, "nothing moves while the first view is loaded").toBeLessThan(0.02);
  console.log(
    `first view: ${(size / 1024).toFixed(0)} KiB, drawn after ${shown.toFixed(0)} ms, layout shift ${moved.toFixed(3)}`,
  );
  expect(size).toBeLessThan(200 * 1024);

  await expect(page.getByText("50 of 1,0")).toBeVisible();
  for (let times = 0; times < 6; times++) await page.getByRole("button", { name: "Show more" }).click();
  await expect(page.getByText("350 of 1,0")).toBeVisible();
  const longest = await page.evaluate(
    () =>
      new Promise<number>((done) => {
        let [most, before, left] = [0, performance.now(), 120];
        const step = (now: number) => {
          most = Math.max(most, now - before);
          before = now;
          window.scrollBy(0, 120);
          if (left-- > 0) requestAnimationFrame(step);
          else done(most);
        };
        requestAnimationFrame(step);
      }),
  );
  console.log(`scrolling over 350 of 1,000 pipelines: the longest frame took ${longest.toFixed(0)} ms`);
  await page.getByLabel("Search by name").fill("number 0777");
  await expect(page.getByRole("row")).toHaveCount(2);

  const wide = `CREATE TABLE numbers WITH (connector = 'impulse', event_rate = '100');\n${Array.from(
    { length: 47 },
    (_, at) =>
      `CREATE VIEW v${at} AS SELECT counter FROM ${at ? `v${at - 1}` : "numbers"} WHERE counter % ${at + 2} <> 1 OR counter > 0;`,
  ).join("\n")}\nSELECT counter FROM v46;`;
  const id = await cluster.pipeline("wide", wide);
  await cluster.reaches(id, "Running");
  await page.goto(`${cluster.address}/pipelines/${id}`);
  await expect(page.locator(".part-now").first()).toBeVisible();
  const nodes = await page.locator(".part").count();
  // What a page does while it is loaded is not what it costs later.
  await page.waitForTimeout(3_000);
  await session.send("Performance.enable");
  const taken = async () => {
    const { metrics } = await session.send("Performance.getMetrics");
    return metrics.find((metric) => metric.name === "TaskDuration")?.value ?? 0;
  };
  const api = apiSeconds(cluster.data);
  const start = [await taken(), api(), Date.now()] as const;
  // The time over which is measured; nothing is expected to happen in it.
  await page.waitForTimeout(15_000);
  const seconds = (Date.now() - start[2]) / 1_000;
  const [browser, server] = [((await taken()) - start[0]) / seconds, (api() - start[1]) / seconds];
  console.log(
    `a live view of ${nodes} nodes: ${(browser * 100).toFixed(1)} % of a core in the browser, ${(server * 100).toFixed(1)} % in the API`,
  );
  await cluster.call("PATCH", `/pipelines/${id}`, { stop: "immediate" });
});

/** Processor time of the API's process. */
function apiSeconds(data: string): () => number {
  const found = execFileSync("pgrep", ["-f", `api --data ${data}`], { encoding: "utf8" })
    .trim()
    .split("\n")[0];
  return () => {
    const fields = readFileSync(`/proc/${found}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
    return (Number(fields[11]) + Number(fields[12])) / 100;
  };
}
