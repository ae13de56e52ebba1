// What screens ask for, and how often. Keys begin with the thing, so that a change makes all that shows it ask again.

import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import { api, ask, type Shape } from "./client";

export type Pipeline = Shape<"Pipeline">;
export type Scheduler = Shape<"Identity">["schedulers"][number];
export type Job = Shape<"Job">;
export type Udf = Shape<"GlobalUdf">;
export type Language = Udf["language"];
export type Connector = Shape<"Connector">;
export type Table = Shape<"ConnectionTable">;
export type Graph = Shape<"PipelineGraph">;
export type Diagnostic = Shape<"SqlDiagnostic">;
export type Finding = Shape<"StreamFinding">;
export type Live = Shape<"Live">;
export type Point = Shape<"Point">;
export type NodeCounts = Shape<"NodeCounts">;
export type Overview = Shape<"Overview">;
export type OverviewRow = Overview["data"][number];

const OFTEN = 2_000;
const SELDOM = 10_000;

export const identity = queryOptions({
  queryKey: ["identity"],
  queryFn: () => ask(api.GET("/v1/arroyo_udf/identity")),
  refetchInterval: SELDOM,
});

export interface ListAsked {
  named: string;
  states: string[];
  labels: string[];
  limit: number;
}

export const overview = (asked: ListAsked) =>
  queryOptions({
    queryKey: ["pipelines", "overview", asked],
    queryFn: () =>
      ask(
        api.GET("/v1/arroyo_udf/pipelines", {
          params: { query: { named: asked.named, state: asked.states, label: asked.labels, limit: asked.limit } },
        }),
      ),
    refetchInterval: OFTEN,
    placeholderData: keepPreviousData,
  });

export const pipeline = (id: string) =>
  queryOptions({
    queryKey: ["pipelines", id],
    queryFn: () => ask(api.GET("/v1/pipelines/{id}", { params: { path: { id } } })),
    refetchInterval: SELDOM,
  });

export const job = (id: string) =>
  queryOptions({
    queryKey: ["pipelines", id, "job"],
    queryFn: async () => {
      const [found] = (await ask(api.GET("/v1/pipelines/{id}/jobs", { params: { path: { id } } }))).data;
      if (found === undefined) throw new Error("the pipeline has no job");
      return found;
    },
    refetchInterval: 5_000,
  });

export const checkpoints = (id: string, jobId: string) =>
  queryOptions({
    queryKey: ["pipelines", id, "checkpoints"],
    queryFn: () =>
      ask(api.GET("/v1/pipelines/{id}/jobs/{job_id}/checkpoints", { params: { path: { id, job_id: jobId } } })),
    refetchInterval: 5_000,
  });

export const checkpointParts = (id: string, jobId: string, epoch: number) =>
  queryOptions({
    queryKey: ["pipelines", id, "checkpoints", epoch],
    queryFn: () =>
      ask(
        api.GET("/v1/pipelines/{id}/jobs/{job_id}/checkpoints/{epoch}/operator_checkpoint_groups", {
          params: { path: { id, job_id: jobId, epoch } },
        }),
      ),
  });

export const restorable = (id: string, jobId: string) =>
  queryOptions({
    queryKey: ["pipelines", id, "checkpoints", "restorable"],
    queryFn: () =>
      ask(api.GET("/v1/pipelines/{id}/jobs/{job_id}/restore", { params: { path: { id, job_id: jobId } } })),
    refetchInterval: SELDOM,
    retry: false,
  });

export const log = (id: string, jobId: string, level: "error" | "warn" | "info", limit: number) =>
  queryOptions({
    queryKey: ["pipelines", id, "log", level, limit],
    queryFn: () =>
      ask(
        api.GET("/v1/pipelines/{id}/jobs/{job_id}/errors", {
          params: { path: { id, job_id: jobId }, query: { level, limit } },
        }),
      ),
    refetchInterval: 5_000,
    placeholderData: keepPreviousData,
  });

export const udfs = queryOptions({
  queryKey: ["udfs"],
  queryFn: () => ask(api.GET("/v1/udfs")),
  refetchInterval: SELDOM,
});

export const udfUse = (id: string) =>
  queryOptions({
    queryKey: ["udfs", id, "use"],
    queryFn: () => ask(api.GET("/v1/arroyo_udf/udfs/{id}", { params: { path: { id } } })),
    refetchInterval: SELDOM,
  });

export const connectors = queryOptions({
  queryKey: ["connectors"],
  queryFn: () => ask(api.GET("/v1/connectors")),
  staleTime: Number.POSITIVE_INFINITY,
});

export const profiles = queryOptions({
  queryKey: ["profiles"],
  queryFn: () => ask(api.GET("/v1/connection_profiles")),
});

export const tables = queryOptions({
  queryKey: ["tables"],
  queryFn: () => ask(api.GET("/v1/connection_tables", { params: { query: { limit: 1000 } } })),
  refetchInterval: SELDOM,
});
