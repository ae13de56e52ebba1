// What the caller may do: who may not use a button does not see it.

import { useQuery } from "@tanstack/react-query";
import { identity } from "../api/queries";

const ROLES = ["read", "run", "admin"] as const;

export function useMay(role: (typeof ROLES)[number]): boolean {
  const me = useQuery(identity).data;
  return me !== undefined && ROLES.indexOf(me.role) >= ROLES.indexOf(role);
}
