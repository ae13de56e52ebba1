// All places of the page. What is large comes when it is needed: editors, graphs and curves.

import { createRootRoute, createRoute, createRouter, lazyRouteComponent, redirect } from "@tanstack/react-router";
import { Failed, Waiting } from "../design/parts";
import { PipelineList } from "../pipelines/list";
import { Shell } from "./shell";

const root = createRootRoute({ component: Shell, notFoundComponent: NotFound });

function NotFound() {
  return <p>There is no such place in this page.</p>;
}

const text = (value: unknown) => (typeof value === "string" && value !== "" ? value : undefined);
const texts = (value: unknown) => (Array.isArray(value) ? value.filter((item) => typeof item === "string") : undefined);

const home = createRoute({
  getParentRoute: () => root,
  path: "/",
  beforeLoad: () => {
    throw redirect({ to: "/pipelines", search: {} });
  },
});

interface ListSearch {
  named?: string | undefined;
  states?: string[] | undefined;
  labels?: string[] | undefined;
}

const list = createRoute({
  getParentRoute: () => root,
  path: "/pipelines",
  component: PipelineList,
  validateSearch: (search): ListSearch => ({
    named: text(search.named),
    states: texts(search.states),
    labels: texts(search.labels),
  }),
});

const create = createRoute({
  getParentRoute: () => root,
  path: "/pipelines/new",
  validateSearch: (search): { from?: string | undefined } => ({ from: text(search.from) }),
  component: lazyRouteComponent(() => import("../pipelines/create"), "CreatePipeline"),
});

export const TABS = ["graph", "functions", "rows", "checkpoints", "errors", "letters", "log", "query"] as const;
export type Tab = (typeof TABS)[number];

const details = createRoute({
  getParentRoute: () => root,
  path: "/pipelines/$id",
  validateSearch: (search): { tab?: Tab | undefined; node?: number | undefined } => ({
    tab: TABS.find((tab) => tab === search.tab),
    node: typeof search.node === "number" ? search.node : undefined,
  }),
  component: lazyRouteComponent(() => import("../pipelines/details"), "PipelineDetails"),
});

const edit = createRoute({
  getParentRoute: () => root,
  path: "/pipelines/$id/edit",
  component: lazyRouteComponent(() => import("../pipelines/edit"), "EditPipeline"),
});

const functions = createRoute({
  getParentRoute: () => root,
  path: "/functions",
  component: lazyRouteComponent(() => import("../functions/list"), "FunctionList"),
});

const newFunction = createRoute({
  getParentRoute: () => root,
  path: "/functions/new",
  component: lazyRouteComponent(() => import("../functions/edit"), "NewFunction"),
});

const oneFunction = createRoute({
  getParentRoute: () => root,
  path: "/functions/$id",
  component: lazyRouteComponent(() => import("../functions/edit"), "EditFunction"),
});

const connections = createRoute({
  getParentRoute: () => root,
  path: "/connections",
  component: lazyRouteComponent(() => import("../connections/list"), "ConnectionList"),
});

const newConnection = createRoute({
  getParentRoute: () => root,
  path: "/connections/new",
  validateSearch: (search): { connector?: string | undefined } => ({ connector: text(search.connector) }),
  component: lazyRouteComponent(() => import("../connections/wizard"), "ConnectionWizard"),
});

export const router = createRouter({
  routeTree: root.addChildren([
    home,
    list,
    create,
    details,
    edit,
    functions,
    newFunction,
    oneFunction,
    connections,
    newConnection,
  ]),
  defaultPreload: "intent",
  defaultPendingComponent: Waiting,
  defaultErrorComponent: ({ error }) => <Failed error={error} what="This screen has failed." />,
});

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}
