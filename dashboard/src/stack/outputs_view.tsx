// The outputs and the parameters of a stack.

import { get } from "../api";
import { Command, Loading, quoted, useLoaded } from "../parts";
import { shown } from "../value";
import type { StackData } from "./stack_data";

interface Output {
  output_key: string;
  description: string;
  output_value: unknown;
  output_error?: string;
}

export function OutputsView({ data }: { data: StackData }) {
  const load = async () => (await get<{ stack: { outputs?: Output[]; parameters: Record<string, unknown> } }>(data.base)).stack;
  const { value, error } = useLoaded(load, [data.base, data.turn.value]);
  const stack = value.value;
  if (!stack) return <Loading error={error.value} />;
  const outputs = stack.outputs ?? [];
  return (
    <>
      <h2>Outputs</h2>
      {outputs.length === 0 && <p>The template has no outputs.</p>}
      <dl>
        {outputs.map((output) => (
          <div key={output.output_key}>
            <dt>
              {output.output_key}
              {output.description && <small class="quiet"> {output.description}</small>}
            </dt>
            <dd>{output.output_error ? <span class="failure">{output.output_error}</span> : <pre>{shown(output.output_value)}</pre>}</dd>
          </div>
        ))}
      </dl>
      <h2>Parameters</h2>
      <dl>
        {Object.entries(stack.parameters).map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>
              <pre>{shown(value)}</pre>
            </dd>
          </div>
        ))}
      </dl>
      <Command text={`kiln stack show ${quoted(data.root.name)}`} />
    </>
  );
}
