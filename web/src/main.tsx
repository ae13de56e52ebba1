import "./design/tokens.css";
import "./design/base.css";
import "./design/parts.css";
import "./design/shell.css";
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { ApiError } from "./api/client";
import { router } from "./app/router";
import { startTheme } from "./app/theme";

// A refusal stays one. An API that is restarted answers soon: what is shown stays until then.
const client = new QueryClient({
  defaultOptions: {
    queries: {
      retry: (times, error) => times < 1 && !(error instanceof ApiError && error.status > 0),
      staleTime: 1_000,
    },
  },
});

startTheme();
const place = document.getElementById("page");
if (place === null) throw new Error("index.html has no element #page");
createRoot(place).render(
  <StrictMode>
    <QueryClientProvider client={client}>
      <RouterProvider router={router} />
    </QueryClientProvider>
  </StrictMode>,
);
