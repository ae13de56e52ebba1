// What a query may name, from the saved tables and functions.

import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { tables, udfs } from "../api/queries";
import type { Known } from "./completion";

export function useKnown(): Known {
  const saved = useQuery(tables).data?.data;
  const functions = useQuery(udfs).data?.data;
  return useMemo(
    () => ({
      tables: Object.fromEntries(
        (saved ?? []).map((table) => [table.name, table.schema.fields?.map((field) => field.name) ?? []]),
      ),
      functions: (functions ?? []).map((udf) => ({ name: udf.name, detail: udf.language })),
    }),
    [saved, functions],
  );
}
