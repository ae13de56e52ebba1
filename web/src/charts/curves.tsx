// Curves over time, drawn by uPlot, in the colours of the theme. What they show is also said in words.

import { useEffect, useRef } from "react";
import UPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { useTheme } from "../app/theme";
import type { Curve } from "../live/rates";

interface Props {
  title: string;
  names: readonly string[];
  curve: Curve;
  say: (value: number) => string;
  height?: number;
  /** Of each curve: the number of a colour, from 1. */
  colours?: readonly number[];
}

const SPAN = 300;

export default function Curves({ title, names, curve, say, height = 150, colours }: Props) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<UPlot>(null);
  const [theme] = useTheme();
  const latest = useRef({ curve, say });
  latest.current = { curve, say };
  const shape = names.join("\n");
  const palette = colours?.join(",") ?? "";

  // biome-ignore lint/correctness/useExhaustiveDependencies: another theme has other colours
  useEffect(() => {
    const frame = place.current;
    if (frame === null) return;
    const style = getComputedStyle(document.documentElement);
    const colour = (name: string) => style.getPropertyValue(`--${name}`).trim();
    const chosen = palette ? palette.split(",") : [];
    const axis = {
      stroke: colour("ink-2"),
      font: "11px sans-serif",
      grid: { stroke: colour("line"), width: 1 },
      ticks: { show: false },
    };
    const chart = new UPlot(
      {
        width: frame.clientWidth || 300,
        height,
        legend: { show: false },
        cursor: { y: false },
        scales: {
          x: { time: true, range: (_, __, max) => [(max || Date.now() / 1e3) - SPAN, max || Date.now() / 1e3] },
          y: { range: (_, __, max) => [0, Math.max(max ?? 0, 1e-9) * 1.1] },
        },
        axes: [
          { ...axis, space: 80, size: 24, values: [[1, "{HH}:{mm}:{ss}", null, null, null, null, null, null, 1]] },
          { ...axis, size: 56, space: 36, values: (_, ticks) => ticks.map((tick) => latest.current.say(tick)) },
        ],
        series: [
          {},
          ...shape.split("\n").map((label, line) => ({
            label,
            stroke: colour(`series-${chosen[line] ?? line + 1}`),
            width: 1.5,
            points: { show: false },
          })),
        ],
      },
      dataOf(latest.current.curve),
      frame,
    );
    plot.current = chart;
    const watch = new ResizeObserver(() => chart.setSize({ width: frame.clientWidth, height }));
    watch.observe(frame);
    return () => {
      watch.disconnect();
      chart.destroy();
    };
  }, [theme, shape, height, palette]);

  useEffect(() => plot.current?.setData(dataOf(curve)), [curve]);

  const now = names.map((name, line) => `${name} ${lastOf(curve.lines[line], say)}`).join(", ");
  return (
    <figure className="curves">
      <figcaption>
        <span>{title}</span>
        <span className="row">
          {names.map((name, line) => (
            <span key={name} className="small quiet">
              <i style={{ background: `var(--series-${colours?.[line] ?? line + 1})` }} /> {name}{" "}
              <b>{lastOf(curve.lines[line], say)}</b>
            </span>
          ))}
        </span>
      </figcaption>
      <div ref={place} role="img" aria-label={`${title}, the last five minutes. Now: ${now}`} style={{ height }} />
    </figure>
  );
}

function dataOf(curve: Curve): UPlot.AlignedData {
  return [curve.times, ...curve.lines] as UPlot.AlignedData;
}

function lastOf(line: readonly (number | null)[] | undefined, say: (value: number) => string): string {
  const last = line?.at(-1);
  return last === undefined || last === null ? "–" : say(last);
}
