// The pictures of the README: a stream that a service holds back, and a function that is tried.

import { resolve } from "node:path";
import { expect, test, write } from "../e2e/world";

const FOLDER = resolve(import.meta.dirname, "../../docs/pictures");
const SIZE = { width: 1180, height: 760 };

const SERVICE = `from arroyo_udf_plugin import udf
import asyncio


@udf(timeout=60)
async def town(flight: int) -> str:
    """The town of a flight's airport, from a service that answers slowly now and then."""
    await asyncio.sleep(20 if flight % 2000 == 1999 else 0.01)
    return ["Lyon", "Nice", "Grenoble"][flight % 3]
`;

const TRIED = `from arroyo_udf_plugin import udf


@udf
def speed(miles: int, minutes: int) -> float:
    """Miles and minutes to miles per hour."""
    return miles / (minutes / 60)
`;

const QUERY = `CREATE TABLE flights WITH (connector = 'impulse', event_rate = '200');

SELECT counter AS flight, town(CAST(counter AS BIGINT)) AS town FROM flights;`;

test("what holds a stream back", async ({ page, cluster }) => {
  await cluster.function(SERVICE);
  const id = await cluster.pipeline("flights", QUERY, { tags: { team: "ads" } });
  await page.setViewportSize(SIZE);
  await page.goto(cluster.login());
  await page.goto(`${cluster.address}/pipelines/${id}`);
  await expect(page.locator("[data-kind=order]")).toBeVisible({ timeout: 60_000 });
  await page.screenshot({ path: `${FOLDER}/running.png`, animations: "disabled" });
});

test("a function is tried", async ({ page, cluster }) => {
  await page.setViewportSize(SIZE);
  await page.goto(cluster.login());
  await page.goto(`${cluster.address}/functions/new`);
  await write(page, "Definition in Python", TRIED);
  await expect(page.getByText("speed is built.")).toBeVisible();
  await page.getByLabel("Rows", { exact: true }).fill("[12, 25]\n[140, 120]\n[1, 0]\n[30, null]");
  await page.getByRole("button", { name: "Run" }).click();
  await expect(page.getByRole("table")).toContainText("ZeroDivisionError");
  await page.screenshot({ path: `${FOLDER}/function.png`, animations: "disabled" });
});
