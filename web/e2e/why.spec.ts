// Functions that raise, stall, keep on, block or crash: the page says which one it is, and why.

import { expect, look, test } from "./world";

const HEAD = "from arroyo_udf_plugin import udf\nimport asyncio, ctypes, time\n\n";
const query = (name: string, settings = "") =>
  `${settings}CREATE TABLE numbers WITH (connector = 'impulse', event_rate = '50');
SELECT counter, ${name}(CAST(counter AS BIGINT)) AS result FROM numbers;`;

test.beforeEach(async ({ page, cluster }) => {
  await page.goto(cluster.login());
});

test("it raises: errors, retries, and dead letters that are mended and replayed", async ({ page, cluster }) => {
  test.setTimeout(180_000);
  await cluster.function(
    `${HEAD}@udf(max_attempts=2, backoff=0.01, retry_on="error", idempotent=True)
async def raises(town: str) -> int:
    return {"home": 1, "work": 2}[town]
`,
  );
  const towns = Array.from({ length: 40 }, (_, at) => `{"town": "${at % 4 ? "home" : "moon"}"}\n`).join("");
  const [source, sink, dead] = [
    cluster.file("towns/1.json", towns),
    `${cluster.folder}/numbered`,
    `${cluster.folder}/dead`,
  ];
  const id = await cluster.pipeline(
    "numbered",
    `SET on_error = 'dead_letter';
SET dead_letters = '${dead}';
CREATE TABLE towns (town TEXT) WITH (connector = 'filesystem', path = '${source}', format = 'json', type = 'source');
CREATE TABLE numbered (number BIGINT) WITH (connector = 'filesystem', path = '${sink}', format = 'json', type = 'sink');
INSERT INTO numbered SELECT raises(town) AS number FROM towns;`,
    { checkpoint_interval_micros: 1_000_000 },
  );
  await cluster.reaches(id, "Finished");
  await page.goto(`${cluster.address}/pipelines/${id}?tab=letters`);
  await expect(page.getByText("10 dead letters")).toBeVisible();
  await expect(page.getByRole("table")).toContainText("KeyError: 'moon'");
  await look(page, "letters");
  await page.getByRole("button", { name: "Edit…" }).first().click();
  await page.getByLabel("town", { exact: true }).fill("work");
  await page.getByRole("button", { name: "Change it for the replay" }).click();
  await expect(page.locator("mark")).toHaveText("work");
  await page.getByRole("button", { name: "Replay 1" }).click();
  await expect(page.getByText("1 row ran again, 1 row came into the sinks.")).toBeVisible();
});

test("it raises: the page counts and shows the error", async ({ page, cluster }) => {
  await cluster.function(
    `${HEAD}@udf
async def sevenths(n: int) -> int:
    if n % 7 == 0:
        raise ValueError(f"{n} is a multiple of seven")
    return n
`,
  );
  const id = await cluster.pipeline("sevens", query("sevenths", "SET on_error = 'drop';\n"));
  await page.goto(`${cluster.address}/pipelines/${id}?tab=functions`);
  const finding = page.locator("[data-kind=failing]").first();
  await expect(finding).toContainText("sevenths: Rows fail.");
  await expect(page.getByText("ValueError: 0 is a multiple of seven")).toBeVisible();
  await look(page, "raises");
  await cluster.call("PATCH", `/pipelines/${id}`, { stop: "immediate" });
});

test("it stalls: rows wait for one, by its number", async ({ page, cluster }) => {
  await cluster.function(
    `${HEAD}@udf(ordered=True, timeout=600)
async def stalls(n: int) -> int:
    if n == 20:
        await asyncio.Event().wait()
    return n
`,
  );
  const id = await cluster.pipeline("stalled", query("stalls"));
  await page.goto(`${cluster.address}/pipelines/${id}?tab=functions`);
  const finding = page.locator("[data-kind=order]").first();
  await expect(finding).toContainText(/stalls: Held by order\. .* wait for row 21 of impulse/);
  await expect(page.getByText(/The oldest row is row 21/)).toBeVisible();
  await look(page, "stalls");
  await page.goto(`${cluster.address}/pipelines`);
  await expect(page.getByRole("row", { name: /stalled/ })).toContainText("stalls: Held by order");
  await cluster.call("PATCH", `/pipelines/${id}`, { stop: "immediate" });
});

test("it ignores its cancellation: the stack says where", async ({ page, cluster }) => {
  await cluster.function(
    `${HEAD}@udf(timeout=0.2, max_attempts=1)
async def keeps_on(n: int) -> int:
    while n == 20:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            pass
    return n
`,
  );
  const id = await cluster.pipeline("kept", query("keeps_on", "SET on_timeout = 'drop';\n"));
  await page.goto(`${cluster.address}/pipelines/${id}?tab=functions`);
  await expect(page.locator("[data-kind=stuck]").first()).toContainText("keeps_on: Stuck.");
  await expect(page.locator("li[data-kind=stuck] pre")).toContainText("await asyncio.sleep(3600)");
  await look(page, "stuck");
  await cluster.call("PATCH", `/pipelines/${id}`, { stop: "force" });
});

test("it blocks the event loop: the stack says where", async ({ page, cluster }) => {
  await cluster.function(
    `${HEAD}@udf(timeout=600)
async def blocks(n: int) -> int:
    if n % 25 == 0:
        time.sleep(1)
    return n
`,
  );
  const id = await cluster.pipeline("blocked", query("blocks"));
  await page.goto(`${cluster.address}/pipelines/${id}?tab=functions`);
  await expect(page.locator("[data-kind=blocked]").first()).toContainText("blocks: Event loop blocked.");
  await expect(page.locator("li[data-kind=blocked] pre").first()).toContainText("time.sleep(1)");
  await look(page, "blocks");
  await cluster.call("PATCH", `/pipelines/${id}`, { stop: "force" });
});

test("it crashes: the page names the function", async ({ page, cluster }) => {
  await cluster.function(
    `${HEAD}@udf
def crashes(n: int) -> int:
    return ctypes.string_at(8)[0] if n == 20 else n
`,
  );
  const id = await cluster.pipeline("crashed", query("crashes"));
  await page.goto(`${cluster.address}/pipelines/${id}`);
  await expect(page.locator("[data-kind=crash]").first()).toContainText(
    /Crashes\. started again \d+ times? in a row: .*crashes/,
  );
  await page.getByRole("tab", { name: "Errors" }).click();
  await expect(page.locator(".log li").first()).toContainText("crashes");
  await look(page, "crashes");
  await cluster.call("PATCH", `/pipelines/${id}`, { stop: "force" });
});
