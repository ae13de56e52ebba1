// Labels as a user types them: team=ads, stage=test.

export function labelsOf(text: string): Record<string, string> {
  const pairs = text.split(",").map((part) => part.trim());
  return Object.fromEntries(
    pairs
      .filter((pair) => pair !== "")
      .map((pair) => {
        const at = pair.indexOf("=");
        return at < 0 ? [pair, ""] : [pair.slice(0, at).trim(), pair.slice(at + 1).trim()];
      }),
  );
}

export function textOf(labels: Record<string, string>): string {
  return Object.entries(labels)
    .map(([name, value]) => `${name}=${value}`)
    .join(", ");
}
