import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

// The page is built into the Python package, whose API serves it.
export default defineConfig({
  plugins: [react()],
  build: {
    outDir: "../python/arroyo_udf_plugin/_page",
    emptyOutDir: true,
    target: "es2022",
    chunkSizeWarningLimit: 700,
  },
  server: { proxy: { "/api": "http://127.0.0.1:5115" } },
  test: { include: ["src/**/*.test.ts"], environment: "node" },
});
