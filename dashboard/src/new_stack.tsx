// A new stack: template, files, parameters, and the plan before anything is created.

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { post } from "./api";
import { ParameterField, type Validated } from "./parameters";
import { Command, Failure, Field, quoted, useWork } from "./parts";
import { goWhenDone } from "./route";
import { commandOptions, sent, SourcesForm, useSources } from "./sources";

export function NewStack() {
  const sources = useSources();
  const name = useSignal("");
  const given = useSignal<Record<string, string>>({});
  const validated = useSignal<Validated | undefined>(undefined);
  const { busy, error, run } = useWork();
  const { template, environment, files } = sources;
  useEffect(() => {
    validated.value = undefined;
  }, [template.value, environment.value, files.value]);
  const validate = () =>
    run(async () => {
      validated.value = await post<Validated>("/validate", sent(sources));
    });
  const known = validated.value?.Parameters ?? {};
  // An empty field is the default, if there is one.
  const values = Object.keys(known)
    .map((name) => [name, given.value[name] ?? ""] as const)
    .filter(([name, value]) => value !== "" || known[name]?.Default === undefined);
  const plan = (event: Event) => {
    event.preventDefault();
    const goOn = goWhenDone();
    return run(async () => {
      const body = { action: "create", stack_name: name.value, ...sent(sources), parameters: Object.fromEntries(values) };
      goOn("plans", (await post<{ plan: { id: string } }>("/plans", body)).plan.id);
    });
  };
  const shown = ([name, value]: readonly [string, string]) => (known[name]?.NoEcho === "true" ? `${name}=…` : `${name}=${value}`);
  const options = values.map((one) => ` --parameter ${quoted(shown(one))}`).join("");
  return (
    <main tabIndex={-1}>
      <h1>New stack</h1>
      <SourcesForm sources={sources} />
      <p>
        <button type="button" onClick={validate} disabled={busy.value || template.value === ""}>
          Validate
        </button>
      </p>
      <Failure error={error.value} />
      {validated.value && (
        <form onSubmit={plan}>
          <p>{validated.value.Description}</p>
          <Field
            label="Name of the stack"
            required
            pattern="[A-Za-z][A-Za-z0-9_.\-]*"
            autocomplete="off"
            value={name.value}
            onInput={(event) => (name.value = event.currentTarget.value)}
          />
          {Object.entries(known).map(([name, parameter]) => (
            <ParameterField
              key={name}
              name={name}
              parameter={parameter}
              value={given.value[name] ?? ""}
              given={(value) => (given.value = { ...given.value, [name]: value })}
            />
          ))}
          <button type="submit" class="main" disabled={busy.value}>
            Show the plan
          </button>
        </form>
      )}
      <Command text={`kiln stack create${commandOptions(sources)} ${quoted(name.value || "NAME")}${options}`} />
    </main>
  );
}
