// States of jobs, and findings, with the colours of what they mean.

import type { Finding } from "../api/queries";
import { Badge } from "../design/parts";

export const ENDED = ["Stopped", "Finished", "Failed"];

const TONES = {
  Running: "good",
  Finished: "idle",
  Stopped: "idle",
  Failed: "bad",
  Failing: "bad",
  Recovering: "warn",
  Restarting: "warn",
} as const;

export function StateBadge({ state }: { state: string }) {
  return <Badge tone={(TONES as Record<string, "good" | "idle" | "bad" | "warn">)[state] ?? "busy"}>{state}</Badge>;
}

const KINDS: Record<Finding["kind"], { tone: "bad" | "warn"; title: string }> = {
  failed: { tone: "bad", title: "Failed" },
  crash: { tone: "bad", title: "Crashes" },
  stuck: { tone: "bad", title: "Stuck" },
  blocked: { tone: "bad", title: "Event loop blocked" },
  order: { tone: "warn", title: "Held by order" },
  stalled: { tone: "warn", title: "Stalled" },
  failing: { tone: "bad", title: "Rows fail" },
  timeouts: { tone: "bad", title: "Rows time out" },
  retries: { tone: "warn", title: "Retries" },
  slow: { tone: "warn", title: "Too slow" },
};

export function toneOf(finding: Finding): "bad" | "warn" {
  return KINDS[finding.kind].tone;
}

export function titleOf(finding: Finding): string {
  return KINDS[finding.kind].title;
}
