// Numbers and times as people read them. They have the same width from second to second, so nothing jumps.

const counts = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

/** 1,234,567 */
export function count(value: number): string {
  return counts.format(value);
}

/** Per second: 0, 0.4, 12, 1.2k, 3.4M */
export function rate(value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  if (value === 0) return "0";
  if (value < 10) return value.toFixed(1);
  if (value < 1_000) return value.toFixed(0);
  if (value < 999_500) return `${(value / 1_000).toFixed(value < 10_000 ? 1 : 0)}k`;
  return `${(value / 1_000_000).toFixed(1)}M`;
}

/** 512 B, 1.5 KiB, 3 MiB */
export function bytes(value: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${unit === 0 || value >= 100 ? value.toFixed(0) : value.toFixed(1)} ${units[unit]}`;
}

/** seconds: 12 µs, 3.4 ms, 1.2 s, 3 min, 2 h, 4 d */
export function duration(seconds: number | null | undefined): string {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return "–";
  const size = Math.abs(seconds);
  if (size === 0) return "0 s";
  if (size < 0.001) return `${(seconds * 1e6).toFixed(0)} µs`;
  if (size < 1) return `${(seconds * 1e3).toFixed(size < 0.01 ? 1 : 0)} ms`;
  if (size < 10) return `${seconds.toFixed(1)} s`;
  if (size < 120) return `${seconds.toFixed(0)} s`;
  if (size < 7_200) return `${(seconds / 60).toFixed(0)} min`;
  if (size < 172_800) return `${(seconds / 3_600).toFixed(0)} h`;
  return `${(seconds / 86_400).toFixed(0)} d`;
}

/** micros: since 1970 */
export function clock(micros: number): string {
  return new Date(micros / 1e3).toLocaleTimeString("en-GB");
}

export function moment(micros: number): string {
  const date = new Date(micros / 1e3);
  return `${date.toLocaleDateString("sv")} ${date.toLocaleTimeString("en-GB")}`;
}

/** micros: since 1970. How long ago, in whole seconds at least. */
export function ago(micros: number, now = Date.now() * 1e3): string {
  const seconds = Math.max(0, Math.round((now - micros) / 1e6));
  return seconds < 10 ? `${seconds} s` : duration(seconds);
}

/** Some rows, or a mean of them: 0.5, 3, 1,200 */
export function some(value: number): string {
  return value < 10 && !Number.isInteger(value) ? value.toFixed(1) : count(value);
}

export function share(value: number): string {
  return `${(value * 100).toFixed(0)} %`;
}
