// Changes parameters of a stack: the plan comes before anything is changed.

import { useSignal } from "@preact/signals";
import { post } from "../api";
import { Command, Failure, Field, Loading, quoted } from "../parts";
import { goWhenDone } from "../route";
import { shown } from "../value";
import type { StackData } from "./stack_data";

/** What the API shows instead of a hidden value. */
const MASK = "******";

export function ChangeView({ data }: { data: StackData }) {
  const given = useSignal<Record<string, string>>({});
  const error = useSignal<unknown>(undefined);
  const busy = useSignal(false);
  const stack = data.stack.value.value;
  if (!stack) return <Loading error={data.stack.error.value} />;
  const parameters = Object.entries(stack.parameters).filter(([name]) => !name.startsWith("OS::"));
  const changed = Object.entries(given.value).filter(([name, value]) => value !== shown(stack.parameters[name]) && value !== "");
  const submit = async (event: Event) => {
    event.preventDefault();
    busy.value = true;
    const goOn = goWhenDone();
    try {
      const body = { action: "update", stack: stack.id, existing: true, parameters: Object.fromEntries(changed) };
      const made = await post<{ plan: { id: string } }>("/plans", body);
      goOn("plans", made.plan.id);
    } catch (failed) {
      error.value = failed;
    } finally {
      busy.value = false;
    }
  };
  const hidden = (value: unknown) => value === MASK;
  const options = changed.map(([name, value]) => ` --parameter ${quoted(hidden(stack.parameters[name]) ? `${name}=…` : `${name}=${value}`)}`);
  return (
    <form onSubmit={submit}>
      {parameters.length === 0 && <p>The template has no parameters.</p>}
      {parameters.map(([name, value]) => (
        <Field
          key={name}
          label={name}
          type={hidden(value) ? "password" : "text"}
          autocomplete={hidden(value) ? "new-password" : "off"}
          hint={hidden(value) ? "Hidden. Empty: it stays." : undefined}
          value={given.value[name] ?? (hidden(value) ? "" : shown(value))}
          onInput={(event) => (given.value = { ...given.value, [name]: event.currentTarget.value })}
        />
      ))}
      <Failure error={error.value} />
      <button type="submit" class="main" disabled={busy.value || changed.length === 0}>
        Show the plan
      </button>
      <Command text={`kiln stack update ${quoted(stack.stack_name)} --existing${options.join("")}`} />
    </form>
  );
}
