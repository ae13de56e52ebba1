// What surrounds every screen: where one is, who one is, and whether the API answers.

import { useQuery } from "@tanstack/react-query";
import { Link, Outlet, useRouterState } from "@tanstack/react-router";
import { useEffect, useRef } from "react";
import { ApiError } from "../api/client";
import { identity } from "../api/queries";
import { Button, Icon, Notice, Toasts, Waiting } from "../design/parts";
import { Login } from "./login";
import { useTheme } from "./theme";

const PLACES = [
  { to: "/pipelines", icon: "pipelines", name: "Pipelines" },
  { to: "/functions", icon: "functions", name: "Functions" },
  { to: "/connections", icon: "connections", name: "Connections" },
] as const;

export function Shell() {
  const me = useQuery({ ...identity, refetchInterval: 5_000, retry: false });
  const [theme, toggle] = useTheme();
  const place = useRouterState({ select: (state) => state.location.pathname });
  const main = useRef<HTMLElement>(null);
  const before = useRef(place);
  useEffect(() => {
    if (before.current !== place) main.current?.focus();
    before.current = place;
  }, [place]);

  if (me.error instanceof ApiError && (me.error.status === 401 || me.error.status === 403)) return <Login />;
  const down = me.error !== null && me.errorUpdatedAt > me.dataUpdatedAt;
  return (
    <Toasts>
      <a className="skip" href="#content">
        Skip to the content
      </a>
      <div className="shell">
        <header className="shell-side">
          <Link to="/pipelines" search={{}} className="shell-name" aria-label="arroyo-udf: pipelines">
            <img src="/icon.svg" alt="" width="28" height="28" />
            <span>arroyo-udf</span>
          </Link>
          <nav className="shell-nav" aria-label="Main">
            {PLACES.map(({ to, icon, name }) => (
              <Link key={to} to={to} className="shell-link" aria-current={place.startsWith(to) ? "page" : undefined}>
                <Icon name={icon} />
                {name}
              </Link>
            ))}
          </nav>
          <div className="shell-foot">
            <div className="who small quiet">
              {me.data?.asks_for_token ? `${me.data.name} (${me.data.role})` : me.data ? "no login" : " "}
              <br />
              {me.data ? `version ${me.data.version}` : " "}
            </div>
            <Button look="icon" onClick={toggle} aria-label={theme === "dark" ? "Light colours" : "Dark colours"}>
              <Icon name={theme === "dark" ? "sun" : "moon"} />
            </Button>
          </div>
        </header>
        <div>
          {down && (
            <div className="shell-alert">
              <Notice tone="bad" alert>
                <strong>The API does not answer.</strong> What you see may be old. The page goes on as soon as it
                answers.
              </Notice>
            </div>
          )}
          <main className="shell-main" id="content" ref={main} tabIndex={-1} style={{ outline: "none" }}>
            {me.data || down ? <Outlet /> : <Waiting />}
          </main>
        </div>
      </div>
    </Toasts>
  );
}
