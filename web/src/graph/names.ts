// What nodes are called for people: without the names that only the plan has.

/** fails: __r1 = fails("__a1_0") -> fails */
export function nameOf(description: string): string {
  return description.replace(/^(.+?): __\w+ = .*$/s, "$1");
}
