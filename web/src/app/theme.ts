// Dark or light: the system's choice, until the user has made one. It is set before anything is drawn.

import { useSyncExternalStore } from "react";

type Theme = "light" | "dark";
const KEY = "arroyo-udf-theme";
const system = matchMedia("(prefers-color-scheme: dark)");
const listeners = new Set<() => void>();

function chosen(): Theme {
  const stored = localStorage.getItem(KEY);
  return stored === "light" || stored === "dark" ? stored : system.matches ? "dark" : "light";
}

function show() {
  document.documentElement.dataset.theme = chosen();
  for (const listener of listeners) listener();
}

export function startTheme() {
  system.addEventListener("change", show);
  show();
}

export function useTheme(): [Theme, () => void] {
  const theme = useSyncExternalStore((listener) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  }, chosen);
  return [
    theme,
    () => {
      localStorage.setItem(KEY, theme === "dark" ? "light" : "dark");
      show();
    },
  ];
}
