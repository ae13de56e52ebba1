// Who is not logged in gives a token once: it becomes a cookie, and is kept nowhere else.

import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { said } from "../api/client";
import { Button, Failed, Field } from "../design/parts";

export function Login() {
  const client = useQueryClient();
  const [token, setToken] = useState("");
  const [error, setError] = useState<unknown>(null);
  const logIn = async () => {
    setError(null);
    try {
      const answer = await fetch("/api/v1/session", {
        method: "POST",
        headers: { authorization: `Bearer ${token.trim()}`, "content-type": "application/json" },
        body: "{}",
      });
      if (!answer.ok) throw new Error("This token is not known here.");
      await client.invalidateQueries();
    } catch (failure) {
      setError(said(failure));
    }
  };
  return (
    <main className="stack" style={{ maxWidth: "28rem", margin: "12vh auto", padding: "var(--space-4)" }}>
      <h1>arroyo-udf</h1>
      <p>
        This cluster asks who you are. Run <code>arroyo-udf login</code> on its machine and open the address that it
        prints, or paste a token here.
      </p>
      <form
        className="stack"
        onSubmit={(event) => {
          event.preventDefault();
          void logIn();
        }}
      >
        <Field label="Token" hint="arroyo-udf token show prints one.">
          {(given) => (
            <input
              {...given}
              className="input"
              type="password"
              autoComplete="off"
              required
              value={token}
              onChange={(event) => setToken(event.target.value)}
            />
          )}
        </Field>
        {error ? <Failed error={error} what="" /> : null}
        <div>
          <Button type="submit" look="main">
            Log in
          </Button>
        </div>
      </form>
    </main>
  );
}
