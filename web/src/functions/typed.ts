// Rows as a user types them: a JSON array in each line; a line without brackets has the values of one row.

export function rowsOf(text: string): unknown[][] {
  const lines = text.split("\n").map((line, at) => ({ line: line.trim(), at: at + 1 }));
  return lines
    .filter(({ line }) => line !== "")
    .map(({ line, at }) => {
      try {
        const whole: unknown = JSON.parse(`[${line}]`);
        if (!Array.isArray(whole)) throw new Error();
        return whole.length === 1 && Array.isArray(whole[0]) && line.startsWith("[") ? whole[0] : whole;
      } catch {
        throw new Error(`line ${at} is no row: write its values as JSON, such as [1400, "N7"]`);
      }
    });
}
