import type { Connector } from "../api/queries";

/** Shown as a mask, not as markup: an icon comes from a connector, which somebody else may have written. */
export function ConnectorIcon({ connector }: { connector: Connector | undefined }) {
  if (!connector?.icon) return <span style={{ width: 20 }} />;
  const image = `url("data:image/svg+xml,${encodeURIComponent(connector.icon)}")`;
  return (
    <span
      aria-hidden="true"
      style={{ width: 20, height: 20, background: "currentColor", mask: `${image} center / contain no-repeat` }}
    />
  );
}
