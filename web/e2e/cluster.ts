// A real cluster for a test: API and controller as programs of their own, with a data folder that goes at the end.

import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const COMMAND = process.env.ARROYO_UDF ?? "arroyo-udf";
const CACHE = resolve(import.meta.dirname, "../../build/cache");

export type Json = Record<string, unknown>;

export class Cluster {
  readonly folder = mkdtempSync(join(tmpdir(), "arroyo-udf-page-"));
  readonly data = join(this.folder, "data");
  private readonly running = new Map<string, ChildProcess>();
  private port = 0;
  private token = "";

  static async started(): Promise<Cluster> {
    const cluster = new Cluster();
    mkdirSync(join(cluster.data, "functions"), { recursive: true, mode: 0o700 });
    // What compilers keep, from run to run.
    if (existsSync(CACHE)) symlinkSync(CACHE, join(cluster.data, "functions", "cache"));
    cluster.port = await freePort();
    await cluster.startApi();
    cluster.start("controller", "controller", "--data", cluster.data);
    return cluster;
  }

  get address(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  async startApi(): Promise<void> {
    this.start("api", "api", "--data", this.data, "--port", String(this.port));
    await until(async () => (await fetch(`${this.address}/health/ready`)).ok);
    this.token = this.command("token", "show", "--data", this.data).trim();
  }

  /** As a power cut would. */
  async killApi(): Promise<void> {
    const api = this.running.get("api");
    if (api?.pid === undefined) throw new Error("there is no API");
    const gone = new Promise((done) => api.once("exit", done));
    process.kill(-api.pid, "SIGKILL");
    await gone;
    this.running.delete("api");
  }

  command(...words: string[]): string {
    return execFileSync(COMMAND, words, { encoding: "utf8" });
  }

  /** An address that logs a browser in, once. */
  login(): string {
    const found = /https?:\/\/\S+/.exec(this.command("login", "--data", this.data));
    if (found === null) throw new Error("arroyo-udf login prints no address");
    return found[0];
  }

  newToken(name: string, role: "read" | "run"): string {
    return this.command("token", "add", name, "--role", role, "--data", this.data).trim().split("\n").at(-1) ?? "";
  }

  async call(method: string, path: string, body?: Json): Promise<Json> {
    const answer = await fetch(`${this.address}/api/v1${path}`, {
      method,
      headers: { authorization: `Bearer ${this.token}`, "content-type": "application/json" },
      ...(body && { body: JSON.stringify(body) }),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
    return text === "" ? {} : (JSON.parse(text) as Json);
  }

  async function(definition: string, language: "python" | "rust" | "c" = "python"): Promise<void> {
    await this.call("POST", "/udfs", { prefix: "/", definition, language });
  }

  /** Returns its id. */
  async pipeline(name: string, query: string, more: Json = {}): Promise<string> {
    return String((await this.call("POST", "/pipelines", { name, query, ...more })).id);
  }

  async state(id: string): Promise<string> {
    const { data } = (await this.call("GET", `/pipelines/${id}/jobs`)) as { data: { state: string }[] };
    return data[0]?.state ?? "";
  }

  async reaches(id: string, state: string): Promise<void> {
    await until(async () => (await this.state(id)) === state);
  }

  file(name: string, text: string): string {
    const path = join(this.folder, name);
    mkdirSync(resolve(path, ".."), { recursive: true });
    writeFileSync(path, text);
    return path;
  }

  async stop(): Promise<void> {
    for (const program of this.running.values()) {
      if (program.pid === undefined || program.exitCode !== null) continue;
      const gone = new Promise((done) => program.once("exit", done));
      process.kill(program.pid, "SIGTERM");
      await gone;
    }
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 5 });
  }

  private start(name: string, ...words: string[]): void {
    const environment = { ...process.env };
    // Chromium's libraries are not for Python.
    for (const key of ["LD_LIBRARY_PATH", "FONTCONFIG_PATH", "XDG_DATA_DIRS"]) delete environment[key];
    const stdio = process.env.SHOW_CLUSTER ? "inherit" : "ignore";
    this.running.set(name, spawn(COMMAND, words, { detached: true, stdio, env: environment }));
  }
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const address = server.address();
  await new Promise((done) => server.close(done));
  if (address === null || typeof address === "string") throw new Error("no port is free");
  return address.port;
}

/** Asks until it is so. */
export async function until(is: () => Promise<boolean>, seconds = 60): Promise<void> {
  const end = Date.now() + seconds * 1_000;
  for (;;) {
    try {
      if (await is()) return;
    } catch (error) {
      if (Date.now() > end) throw error;
    }
    if (Date.now() > end) throw new Error(`it is not so after ${seconds} s: ${is}`);
    await new Promise((done) => setTimeout(done, 100));
  }
}
