// The parts of which screens are made: nothing here knows pipelines or functions.

import {
  type ButtonHTMLAttributes,
  createContext,
  type KeyboardEvent,
  type ReactNode,
  useCallback,
  useContext,
  useEffect,
  useId,
  useMemo,
  useRef,
  useState,
} from "react";
import { said } from "../api/client";

type Tone = "good" | "busy" | "warn" | "bad" | "idle";

interface ButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  look?: "main" | "bad" | "plain" | "icon";
}

export function Button({ look, className = "", type = "button", ...others }: ButtonProps) {
  return <button type={type} className={`button ${look ? `button-${look}` : ""} ${className}`} {...others} />;
}

export function Badge({ tone, children }: { tone: Tone; children: ReactNode }) {
  return <span className={`badge badge-${tone}`}>{children}</span>;
}

export function Notice({ tone, children, alert }: { tone: Tone; children: ReactNode; alert?: boolean }) {
  return (
    <div className={`notice notice-${tone}`} role={alert ? "alert" : undefined}>
      <div className="grow">{children}</div>
    </div>
  );
}

export function Failed({ error, what }: { error: unknown; what: string }) {
  return (
    <Notice tone="bad" alert>
      <strong>{what}</strong> {said(error)}
    </Notice>
  );
}

export function Waiting({ children = "Loading…" }: { children?: ReactNode }) {
  return (
    <div className="waiting" role="status">
      {children}
    </div>
  );
}

export function Panel({ title, actions, children }: { title: ReactNode; actions?: ReactNode; children: ReactNode }) {
  const id = useId();
  return (
    <section className="panel" aria-labelledby={id}>
      <div className="panel-head">
        <h2 id={id}>{title}</h2>
        {actions}
      </div>
      {children}
    </section>
  );
}

interface FieldProps {
  label: string;
  hint?: ReactNode;
  error?: string | undefined;
  children: (given: { id: string; "aria-describedby": string | undefined; "aria-invalid": boolean }) => ReactNode;
}

export function Field({ label, hint, error, children }: FieldProps) {
  const id = useId();
  const described = hint || error ? `${id}-hint` : undefined;
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      {children({ id, "aria-describedby": described, "aria-invalid": error !== undefined })}
      {described && (
        <div id={described} className="small quiet" style={error ? { color: "var(--bad)" } : undefined}>
          {error ?? hint}
        </div>
      )}
    </div>
  );
}

export function Figures({ children }: { children: ReactNode }) {
  return <dl className="figures">{children}</dl>;
}

export function Figure({
  name,
  children,
  tone,
}: {
  name: string;
  children: ReactNode;
  tone?: "bad" | "warn" | undefined;
}) {
  return (
    <div className="figure">
      <dt>{name}</dt>
      <dd className={tone ? `is-${tone}` : ""}>{children}</dd>
    </div>
  );
}

/** Tabs whose choice is in the address. */
export function Tabs<Name extends string>(props: {
  label: string;
  tabs: readonly { name: Name; title: ReactNode }[];
  chosen: Name;
  onChoose: (name: Name) => void;
  children: ReactNode;
}) {
  const id = useId();
  const list = useRef<HTMLDivElement>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: another tab is chosen
  useEffect(() => {
    list.current?.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [props.chosen]);
  const move = (event: KeyboardEvent) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const at = props.tabs.findIndex((tab) => tab.name === props.chosen);
    const next = step && props.tabs[(at + step + props.tabs.length) % props.tabs.length];
    if (!next) return;
    event.preventDefault();
    props.onChoose(next.name);
    list.current?.querySelector<HTMLElement>(`#${CSS.escape(`${id}-${next.name}`)}`)?.focus();
  };
  return (
    <div className="stack">
      <div className="tabs" role="tablist" aria-label={props.label} ref={list} onKeyDown={move}>
        {props.tabs.map((tab) => (
          <button
            key={tab.name}
            id={`${id}-${tab.name}`}
            type="button"
            role="tab"
            className="tab"
            aria-selected={tab.name === props.chosen}
            aria-controls={`${id}-panel`}
            tabIndex={tab.name === props.chosen ? 0 : -1}
            onClick={() => props.onChoose(tab.name)}
          >
            {tab.title}
          </button>
        ))}
      </div>
      <div id={`${id}-panel`} role="tabpanel" aria-labelledby={`${id}-${props.chosen}`}>
        {props.children}
      </div>
    </div>
  );
}

interface DialogProps {
  title: string;
  onClose: () => void;
  onSubmit: () => void;
  submit: string;
  bad?: boolean;
  busy?: boolean;
  error?: unknown;
  children: ReactNode;
}

export function Dialog({ title, onClose, onSubmit, submit, bad, busy, error, children }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} className="dialog" aria-labelledby={id} onClose={onClose}>
      <form
        method="dialog"
        onSubmit={(event) => {
          event.preventDefault();
          onSubmit();
        }}
      >
        <h2 id={id}>{title}</h2>
        {children}
        {error ? <Failed error={error} what="Refused." /> : null}
        <div className="dialog-foot">
          <Button onClick={() => dialog.current?.close()}>Cancel</Button>
          <Button type="submit" look={bad ? "bad" : "main"} disabled={busy}>
            {busy ? "One moment…" : submit}
          </Button>
        </div>
      </form>
    </dialog>
  );
}

const CloseMenu = createContext(() => {});

/** A button with choices below it. Escape and a click elsewhere close it. */
export function Menu({ label, children }: { label: ReactNode; children: ReactNode }) {
  const [open, setOpen] = useState(false);
  const frame = useRef<HTMLDivElement>(null);
  const id = useId();
  useEffect(() => {
    if (!open) return;
    const close = (event: Event) => {
      if (!(event.target instanceof Node) || !frame.current?.contains(event.target)) setOpen(false);
    };
    document.addEventListener("pointerdown", close);
    frame.current?.querySelector<HTMLElement>("[role=menuitem]:not(:disabled)")?.focus();
    return () => document.removeEventListener("pointerdown", close);
  }, [open]);
  const move = (event: KeyboardEvent) => {
    const items = [...(frame.current?.querySelectorAll<HTMLElement>("[role=menuitem]:not(:disabled)") ?? [])];
    const at = items.indexOf(document.activeElement as HTMLElement);
    if (event.key === "Escape") {
      setOpen(false);
      frame.current?.querySelector("button")?.focus();
    } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      items[(at + (event.key === "ArrowDown" ? 1 : items.length - 1)) % items.length]?.focus();
    }
  };
  return (
    <div className="menu" ref={frame} onKeyDown={move} role="none">
      <Button aria-haspopup="menu" aria-expanded={open} aria-controls={id} onClick={() => setOpen(!open)}>
        {label} <span aria-hidden="true">▾</span>
      </Button>
      {open && (
        <CloseMenu value={() => setOpen(false)}>
          <div className="menu-list" id={id} role="menu">
            {children}
          </div>
        </CloseMenu>
      )}
    </div>
  );
}

export function MenuItem({ onClick, ...others }: ButtonHTMLAttributes<HTMLButtonElement>) {
  const close = useContext(CloseMenu);
  const choose: typeof onClick = (event) => {
    close();
    onClick?.(event);
  };
  return <button type="button" role="menuitem" className="menu-item" onClick={choose} {...others} />;
}

interface Toast {
  id: number;
  tone: Tone;
  text: string;
}
const ToastContext = createContext<(tone: Tone, text: string) => void>(() => undefined);

/** Short messages about what was done. They go after some seconds; errors stay until they are closed. */
export function Toasts({ children }: { children: ReactNode }) {
  const [toasts, setToasts] = useState<Toast[]>([]);
  const next = useRef(0);
  const remove = useCallback((id: number) => setToasts((all) => all.filter((toast) => toast.id !== id)), []);
  const add = useCallback(
    (tone: Tone, text: string) => {
      const id = next.current++;
      setToasts((all) => [...all.slice(-3), { id, tone, text }]);
      if (tone !== "bad") setTimeout(() => remove(id), 5_000);
    },
    [remove],
  );
  return (
    <ToastContext value={add}>
      {children}
      <div className="toasts" role="status" aria-live="polite">
        {toasts.map((toast) => (
          <div key={toast.id} className={`notice notice-${toast.tone}`}>
            <span className="grow">{toast.text}</span>
            <button type="button" className="tag" aria-label="Close this message" onClick={() => remove(toast.id)}>
              ✕
            </button>
          </div>
        ))}
      </div>
    </ToastContext>
  );
}

export const useToast = () => useContext(ToastContext);

/** A value that has stood still for a while. */
export function useSettled<Value>(value: Value, milliseconds: number): Value {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), milliseconds);
    return () => clearTimeout(timer);
  }, [value, milliseconds]);
  return settled;
}

export function Icon({ name }: { name: "pipelines" | "functions" | "connections" | "sun" | "moon" }) {
  const path = useMemo(
    () =>
      ({
        pipelines: "M3 6h6a3 3 0 0 1 3 3v6a3 3 0 0 0 3 3h6M3 18h4M17 6h4",
        functions: "M9 4c-3 0-3 2-3 5s0 3-3 3c3 0 3 0 3 3s0 5 3 5M15 4c3 0 3 2 3 5s0 3 3 3c-3 0-3 0-3 3s0 5-3 5",
        connections: "M8 7V3M16 7V3M5 7h14v4a7 7 0 0 1-14 0zM12 18v3",
        sun: "M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM12 2v2M12 20v2M2 12h2M20 12h2M5 5l1.4 1.4M17.6 17.6 19 19M5 19l1.4-1.4M17.6 6.4 19 5",
        moon: "M20 14.5A8.5 8.5 0 0 1 9.5 4 8.5 8.5 0 1 0 20 14.5z",
      })[name],
    [name],
  );
  return (
    <svg width="18" height="18" viewBox="0 0 24 24" aria-hidden="true" focusable="false">
      <path d={path} fill="none" stroke="currentColor" strokeWidth="2" strokeLinecap="round" strokeLinejoin="round" />
    </svg>
  );
}
