// The one client of the API. Types come from its OpenAPI document (`npm run types`).

import createClient from "openapi-fetch";
import type { components, paths } from "./schema";

type Schemas = components["schemas"];
export type Shape<Name extends keyof Schemas> = Schemas[Name];

/** What the API has refused, in its own words. status 0: nobody answered. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

// The API takes changes as JSON alone, also where a request has no body.
export const api = createClient<paths>({
  baseUrl: "/api/",
  headers: { "content-type": "application/json" },
  fetch: (request: Request) => fetch(request),
});

/** The data of an answer. Throws ApiError. */
export async function ask<Data>(
  answer: Promise<{ data?: Data; error?: unknown; response: Response }>,
): Promise<NonNullable<Data>> {
  let got: Awaited<typeof answer>;
  try {
    got = await answer;
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new ApiError(0, "The API does not answer.");
  }
  if (!got.response.ok) throw new ApiError(got.response.status, textOf(got.error, got.response.status));
  return (got.data ?? null) as NonNullable<Data>;
}

function textOf(error: unknown, status: number): string {
  if (typeof error === "object" && error !== null && "error" in error) return String(error.error);
  return `The API has answered ${status}, and says nothing else.`;
}

/** What an error tells its user. */
export function said(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
