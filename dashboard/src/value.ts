// A value as text.

/** Text as it is, everything else as JSON. */
export function shown(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}

/** A value as YAML, for templates: keys in their order, texts of several lines as blocks. */
export function yaml(value: unknown, depth = 0): string {
  const indent = "  ".repeat(depth);
  if (Array.isArray(value)) {
    if (value.length === 0) return " []";
    return value.map((item) => `\n${indent}-${yaml(item, depth + 1)}`).join("");
  }
  if (typeof value === "object" && value !== null) {
    const entries = Object.entries(value);
    if (entries.length === 0) return " {}";
    return entries.map(([key, item]) => `\n${indent}${scalar(key)}:${yaml(item, depth + 1)}`).join("");
  }
  if (typeof value === "string" && value.includes("\n") && !/^\s|[^\P{Cc}\n]|[^\S\n]\n/u.test(value)) {
    const sign = value.endsWith("\n\n") ? "|+" : value.endsWith("\n") ? "|" : "|-";
    return ` ${sign}\n${value.replace(/\n$/, "").split("\n").map((line) => (line ? indent + line : "")).join("\n")}`;
  }
  return ` ${typeof value === "string" ? scalar(value) : JSON.stringify(value)}`;
}

function scalar(text: string): string {
  const plain = /^[A-Za-z_/][\w ./:()-]*$/.test(text) && !/: |:$| $/.test(text);
  return plain && !/^(true|false|yes|no|on|off|null|y|n|~)$/i.test(text) ? text : JSON.stringify(text);
}
