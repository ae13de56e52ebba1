// The counts of a running pipeline, as they come: each answer has what is new since the one before.

import { queryOptions, useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { api, ask } from "../api/client";
import type { Live } from "../api/queries";
import { untilNow } from "./rates";

const KEPT = 300_000_000;
const OFTEN = 1_000;

const live = (id: string) => {
  const queryKey = ["pipelines", id, "live"] as const;
  return queryOptions({
    queryKey,
    queryFn: async ({ client, signal }): Promise<Live> => {
      const before = client.getQueryData<Live>(queryKey);
      const known = before?.points ?? [];
      const since = known.at(-1)?.at ?? 0;
      const got = await ask(
        api.GET("/v1/arroyo_udf/pipelines/{id}/live", { params: { path: { id }, query: { since } }, signal }),
      );
      // Without news, what is shown stays as it is, unless a time goes on in it.
      if (before && got.points.length === 0 && isQuiet(before, got)) return before;
      const points = [...known, ...got.points].filter((point) => point.at >= got.now - KEPT);
      return { ...got, points };
    },
    refetchInterval: ({ state }) => (state.data && isFresh(state.data) ? 2 * OFTEN : OFTEN),
    structuralSharing: false,
  });
};

const STILL = 5_000_000;
const FRESH = 1_000_000;

/** Workers tell their counts every two seconds: who has just got some need not ask in between. */
function isFresh({ now, points }: Live): boolean {
  return now - (points.at(-1)?.at ?? 0) < FRESH;
}

function isQuiet(before: Live, got: Live): boolean {
  const same = before.state === got.state && before.generation === got.generation && before.restarts === got.restarts;
  const waits = before.points.at(-1)?.nodes.some((node) => node.oldest !== null) ?? false;
  return (
    same && got.now - before.now < (waits ? OFTEN * 1_000 : STILL) && got.complaints.length === before.complaints.length
  );
}

export function useLive(id: string) {
  // Only what is read here makes its screen draw again: not that a request has begun.
  const { data } = useQuery(live(id));
  const points = useMemo(() => (data ? untilNow(data.points, data.now) : []), [data]);
  return { data, points };
}
