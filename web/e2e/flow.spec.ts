// The whole way: from a login over functions and a table to a pipeline that runs, is changed, and goes.

import type { Locator } from "@playwright/test";
import { expect, look, test, write } from "./world";

test.describe.configure({ mode: "serial" });

const PYTHON = `from arroyo_udf_plugin import udf
import asyncio


@udf
async def mph(distance: int, minutes: int) -> float:
    await asyncio.sleep(0.001)
    return distance * 60.0 / minutes
`;
const RUST = `use arroyo_udf_plugin::udf;

#[udf]
fn twice(n: i64) -> i64 {
    n * 2
}
`;
const C = `#include "arroyo_udf_plugin.h"

static const char* half(int64_t n, double* out) {
  *out = (double)n / 2;
  return NULL;
}
ARROYO_UDF_FUNCTION(half, float64, (int64, n));

ARROYO_UDF_PLUGIN(half);
`;

test("a login works once, and empty screens teach", async ({ page, cluster }) => {
  await page.goto(cluster.address);
  await expect(page.getByText("This cluster asks who you are")).toBeVisible();
  await look(page, "login");
  const login = cluster.login();
  await page.goto(login);
  await expect(page.getByRole("heading", { name: "No pipeline yet" })).toBeVisible();
  await look(page, "empty-pipelines");
  await page.getByRole("link", { name: "Functions" }).click();
  await expect(page.getByRole("heading", { name: "No function yet" })).toBeVisible();
  await page.getByRole("link", { name: "Connections" }).click();
  await expect(page.getByRole("heading", { name: "No table yet" })).toBeVisible();
  expect((await page.context().request.get(login)).status()).toBe(403);
});

/** Its lines are elements of their own. */
async function queryOf(editor: Locator): Promise<string> {
  return (await editor.locator(".cm-line").allTextContents()).join("\n");
}

test.describe("with a login", () => {
  test.beforeEach(async ({ page, cluster }) => {
    await page.goto(cluster.login());
  });

  test("a function in Python is written, tried, mended and saved", async ({ page, cluster }) => {
    await page.goto(`${cluster.address}/functions/new`);
    await write(page, "Definition in Python", PYTHON.replace("minutes: int", "minutes"));
    await expect(page.getByText("does not say the type of argument 'minutes'")).toBeVisible();
    await expect(page.locator(".cm-lintRange-error").first()).toBeVisible();
    await write(page, "Definition in Python", PYTHON);
    await expect(page.getByText("mph is built.")).toBeVisible();
    await page.getByRole("tab", { name: "Try it" }).click();
    await page.getByLabel("Rows", { exact: true }).fill("[1400, 227]\n[1000, 0]\n[null, 3]");
    await page.getByRole("button", { name: "Run" }).click();
    const rows = page.getByRole("table", { name: "What came of each row" }).getByRole("row");
    await expect(rows.nth(1)).toContainText("370.04");
    await expect(rows.nth(2)).toContainText("ZeroDivisionError");
    await expect(rows.nth(3)).toContainText("null");
    await look(page, "function");
    await page.getByRole("button", { name: "Save" }).click();
    await expect(page.getByRole("heading", { name: "mph", level: 1 })).toBeVisible();
    await page.getByRole("tab", { name: "Engines" }).click();
    await expect(page.getByText('duckdb.register(connection, "libmph.so")')).toBeVisible();
    const download = page.waitForEvent("download");
    await page.getByRole("link", { name: "Get libmph.so" }).click();
    expect((await download).suggestedFilename()).toBe("libmph.so");
    await look(page, "engines");
  });

  test("functions in Rust and C are built and tried", async ({ page, cluster }) => {
    test.setTimeout(240_000);
    for (const [language, definition, row, result] of [
      ["Rust", RUST, "[21]", "42"],
      ["C", C, "[7]", "3.5"],
    ] as const) {
      await page.goto(`${cluster.address}/functions/new`);
      await page.getByLabel("Language").selectOption({ label: language });
      await write(page, `Definition in ${language}`, definition);
      await expect(page.getByText(/(twice|half) is built\./)).toBeVisible({ timeout: 180_000 });
      await page.getByLabel("Rows", { exact: true }).fill(row);
      await page.getByRole("button", { name: "Run" }).click();
      await expect(page.getByRole("table", { name: "What came of each row" })).toContainText(result);
      await page.getByRole("button", { name: "Save" }).click();
      await expect(page.getByRole("heading", { level: 1 })).toHaveText(/twice|half/);
    }
    await page.getByRole("link", { name: "Functions" }).click();
    await expect(page.getByRole("row")).toHaveCount(4);
    await look(page, "functions");
  });

  test("a function that crashes is told so, and costs nothing else", async ({ page, cluster }) => {
    await page.goto(`${cluster.address}/functions/new`);
    const crash =
      "from arroyo_udf_plugin import udf\nimport ctypes\n\n\n@udf\ndef town(n: int) -> int:\n    return ctypes.string_at(n)[0]\n";
    await write(page, "Definition in Python", crash);
    await expect(page.getByText("town is built.")).toBeVisible();
    await page.getByLabel("Rows", { exact: true }).fill("[1]\n[2]");
    await page.getByRole("button", { name: "Run" }).click();
    await expect(page.getByText("It has crashed.")).toBeVisible();
    await expect(page.getByRole("alert").getByText("SIGSEGV")).toBeVisible();
  });

  test("a function keeps its versions", async ({ page, cluster }) => {
    await page.goto(`${cluster.address}/functions`);
    await page.getByRole("link", { name: "mph" }).click();
    await write(page, "Definition in Python", PYTHON.replace("60.0", "3600.0"));
    await expect(page.getByText("mph is built.")).toBeVisible();
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByRole("tab", { name: "Versions" }).click();
    const versions = page.getByRole("tabpanel").getByRole("listitem");
    await expect(versions).toHaveText([/Version 2.*the saved one/, /Version 1/]);
    await look(page, "versions");
    await versions.nth(1).getByRole("button").click();
    await expect(page.getByRole("textbox", { name: "Definition in Python" })).toContainText("* 60.0");
    await expect(page.getByText("mph is built.")).toBeVisible();
    await page.getByRole("button", { name: "Save" }).click();
    await expect(versions).toHaveCount(3);
  });

  test("a table is connected, sampled, and gives rows to try", async ({ page, cluster }) => {
    const path = cluster.file(
      "flights/one.json",
      '{"distance": 1400, "minutes": 227}\n{"distance": 760, "minutes": 116}\n',
    );
    await page.goto(`${cluster.address}/connections`);
    await page.getByRole("link", { name: "New table" }).click();
    await page.getByRole("button", { name: /^filesystem/i }).click();
    await page.getByLabel("Name", { exact: true }).fill("flights");
    await page.getByLabel("Path").fill(path.replace("one.json", "*.json"));
    await page.getByRole("button", { name: "Infer the columns" }).click();
    await expect(page.getByLabel("Name of column 2")).toHaveValue("minutes");
    await page.getByRole("button", { name: "Test" }).click();
    await expect(page.locator(".notice-good")).toBeVisible();
    await look(page, "wizard");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByRole("button", { name: "Sample" }).click();
    await expect(page.getByRole("region", { name: "Sample", exact: true })).toContainText("1400");
    await look(page, "connections");
    await page.getByRole("link", { name: "Functions" }).click();
    await page.getByRole("link", { name: "mph" }).click();
    await page.getByLabel("Take rows of a table").selectOption({ label: "flights" });
    await expect(page.getByLabel("Rows", { exact: true })).toHaveValue("[1400,227]\n[760,116]");
  });

  test("a query is written with help, previewed, and started", async ({ page, cluster }) => {
    await page.goto(`${cluster.address}/pipelines/new`);
    const table = "CREATE TABLE numbers WITH (connector = 'impulse', event_rate = '50');";
    await write(page, "Query in SQL", `${table}\nSELECT countr FROM numbers;`);
    await page.getByRole("tab", { name: "Errors (1)" }).click();
    await expect(page.getByRole("tabpanel")).toContainText("line 2, column 8");
    await expect(page.locator(".cm-lintRange-error")).toHaveText("countr");
    await look(page, "diagnostics");
    const editor = page.getByRole("textbox", { name: "Query in SQL" });
    await editor.press("Control+End");
    await editor.pressSequentially("\nSELECT tw");
    await expect(page.locator(".cm-tooltip-autocomplete")).toContainText("twice");
    await editor.press("Escape");
    const query = `${table}\nSELECT counter, twice(CAST(counter AS BIGINT)) AS two, half(CAST(counter AS BIGINT)) AS half, mph(CAST(counter AS BIGINT), 60) AS speed FROM numbers;`;
    await write(page, "Query in SQL", query);
    await expect(page.getByText("The query can be planned.")).toBeVisible();
    await page.getByRole("tab", { name: "Graph" }).click();
    await expect(page.locator(".react-flow__node").first()).toBeVisible();
    await page.getByRole("button", { name: "Preview" }).click();
    await expect(page.getByRole("region", { name: "The latest rows" })).toContainText("speed");
    await look(page, "preview");
    await page.getByRole("button", { name: "Stop" }).click();
    await expect(page.getByRole("tabpanel").getByText("Stopped")).toBeVisible();
    await page.getByLabel("Name").fill("speeds");
    await page.route("**/identity", async (route) => {
      const answer = await route.fetch();
      await route.fulfill({ response: answer, json: { ...(await answer.json()), schedulers: ["local", "flink"] } });
    });
    await page.getByRole("button", { name: "Start…" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Where it runs").selectOption("on Apache Flink");
    await dialog.getByRole("button", { name: "Start" }).click();
    await expect(dialog).toContainText("this cluster knows no Flink: set flink.url");
    await dialog.getByLabel("Where it runs").selectOption("on this machine");
    await dialog.getByLabel("Parallelism").fill("2");
    await dialog.getByLabel("Seconds between two checkpoints").fill("1");
    await dialog.getByLabel("Labels").fill("team=ads");
    await look(page, "start");
    await dialog.getByRole("button", { name: "Start" }).click();
    await expect(page.getByRole("heading", { name: "speeds" })).toBeVisible();
    await expect(page.locator(".badge").first()).toHaveText("Running");
  });

  test("a running pipeline shows what passes it", async ({ page, cluster }) => {
    await page.goto(`${cluster.address}/pipelines`);
    const row = page.getByRole("row", { name: /speeds/ });
    await expect(row.locator("[data-name='out/s']")).toHaveText(/^(4|5)\d$/);
    await look(page, "pipelines");
    await row.getByRole("link", { name: "speeds" }).click();
    await expect(page.locator(".part-now").first()).toContainText("/s");
    await look(page, "graph");
    await page.getByRole("tab", { name: "Functions" }).click();
    await expect(page.getByText("Rows/s by outcome")).toBeVisible();
    await expect(page.locator("dt", { hasText: "Rows/s out" }).locator("+ dd")).toHaveText(/^(4|5)\d$/);
    await look(page, "running-function");
    await page.getByRole("tab", { name: "Checkpoints" }).click();
    await expect(page.getByRole("button", { name: "Go back…" }).first()).toBeVisible();
    await look(page, "checkpoints");
    await page.getByRole("tab", { name: "Rows" }).click();
    await expect(page.getByRole("region", { name: "The latest rows" })).toContainText("speed");
    await page.getByRole("tab", { name: "Log" }).click();
    await expect(page.getByText("Running").last()).toBeVisible();
    await look(page, "log");
    await page.getByRole("tab", { name: "Query" }).click();
    await expect(page.getByRole("textbox", { name: "Query in SQL" })).toContainText("twice");
  });

  test("savepoint, stop, start, rescale, edit, copy, delete", async ({ page, cluster }) => {
    test.setTimeout(180_000);
    await page.goto(`${cluster.address}/pipelines`);
    await page.getByRole("link", { name: "speeds" }).click();
    const state = page.locator(".head .badge").first();
    const more = async (what: RegExp) => {
      await page.getByRole("button", { name: "More" }).click();
      await page.getByRole("menuitem", { name: what }).click();
    };
    await page.getByRole("tab", { name: "Checkpoints" }).click();
    await page.getByRole("button", { name: "Keep the latest checkpoint…" }).click();
    await page.getByLabel("Name of the savepoint").fill("before");
    await page.getByRole("button", { name: "Keep it" }).click();
    await expect(page.getByRole("row", { name: /before/ })).toBeVisible();

    await more(/Rescale/);
    await page.getByRole("dialog").getByLabel("Parallelism").fill("1");
    await page.getByRole("button", { name: "Change it" }).click();
    await expect(page.getByText("generation 2")).toBeVisible();
    await expect(state).toHaveText("Running");

    await page.getByRole("button", { name: "Restart…" }).click();
    await page.getByRole("button", { name: "Restart it" }).click();
    await expect(page.getByText("generation 3")).toBeVisible();
    await expect(state).toHaveText("Running");

    await more(/Edit/);
    const editor = page.getByRole("textbox", { name: "Query in SQL" });
    await expect(editor).toContainText("twice");
    await write(page, "Query in SQL", (await queryOf(editor)).replace("60) AS speed", "30) AS speed"));
    await page.getByRole("button", { name: "Run this query…" }).click();
    await page.getByRole("button", { name: "Run it" }).click();
    await expect(page.getByRole("heading", { name: "speeds" })).toBeVisible();
    await expect(page.getByText("generation 4")).toBeVisible();
    await expect(state).toHaveText("Running");

    await page.getByRole("button", { name: "Stop…" }).click();
    await page.getByRole("button", { name: "Stop it" }).click();
    await expect(state).toHaveText("Stopped");
    await page.getByRole("button", { name: "Start", exact: true }).click();
    await expect(state).toHaveText("Running");
    await page.getByRole("button", { name: "Stop…" }).click();
    await page.getByLabel(/At once/).check();
    await page.getByRole("button", { name: "Stop it" }).click();
    await expect(state).toHaveText("Stopped");

    await more(/Copy/);
    await expect(page.getByLabel("Name")).toHaveValue("speeds (copy)");
    await expect(page.getByRole("textbox", { name: "Query in SQL" })).toContainText("30) AS speed");
    await page.goBack();
    await expect(state).toHaveText("Stopped");
    await more(/Delete/);
    await page.getByRole("button", { name: "Delete it" }).click();
    await expect(page.getByRole("heading", { name: "No pipeline yet" })).toBeVisible();
  });
});
