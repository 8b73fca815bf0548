// The template of a stack.

import { get } from "../api";
import { Command, Loading, quoted, useLoaded } from "../parts";
import { yaml } from "../value";
import type { StackData } from "./stack_data";

export function TemplateView({ data }: { data: StackData }) {
  const { value, error } = useLoaded(() => get<unknown>(`${data.base}/template`), [data.base, data.turn.value]);
  if (!value.value) return <Loading error={error.value} />;
  const lines = yaml(value.value).trimStart().split("\n");
  return (
    <>
      <pre class="template" tabIndex={0} role="region" aria-label="Template">
        {lines.map((line, at) => (
          <code key={at} data-line={at + 1}>
            {line + "\n"}
          </code>
        ))}
      </pre>
      <Command text={`kiln stack template show ${quoted(data.root.name)}`} />
    </>
  );
}
