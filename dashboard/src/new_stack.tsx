// A new stack: template, files, parameters, and the plan before anything is created.

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { post } from "./api";
import { ParameterField, type Validated } from "./parameters";
import { Command, Failure, Field, quoted, useWork } from "./parts";
import { type CreatePreview, changesOf, PreviewTable } from "./preview";
import { goWhenDone } from "./route";
import { isKiln } from "./service";
import { commandOptions, sent, SourcesForm, useSources } from "./sources";

export function NewStack() {
  const sources = useSources();
  const name = useSignal("");
  const given = useSignal<Record<string, string>>({});
  const validated = useSignal<Validated | undefined>(undefined);
  const { busy, error, run } = useWork();
  const { template, environment, files } = sources;
  /** What a Heat has answered, and the request of which it is the preview. */
  const preview = useSignal<{ answer: CreatePreview; body: Record<string, unknown> } | undefined>(undefined);
  useEffect(() => {
    preview.value = undefined;
  }, [name.value, given.value, validated.value]);
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
      const body = { stack_name: name.value, ...sent(sources), parameters: Object.fromEntries(values) };
      if (!isKiln.value) {
        const asked = { ...body, disable_rollback: true };
        preview.value = { answer: await post<CreatePreview>("/stacks/preview", asked), body: asked };
      } else goOn("plans", (await post<{ plan: { id: string } }>("/plans", { action: "create", ...body })).plan.id);
    });
  };
  const create = (body: Record<string, unknown>) => {
    const goOn = goWhenDone();
    return run(async () => {
      const { stack } = await post<{ stack: { id: string } }>("/stacks", body);
      goOn("stacks", String(body.stack_name), stack.id, "time");
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
            {isKiln.value ? "Show the plan" : "Preview"}
          </button>
          {preview.value && (
            <>
              <PreviewTable changes={changesOf(preview.value.answer)} />
              <button type="button" class="main" disabled={busy.value} onClick={() => create(preview.value!.body)}>
                Create
              </button>
            </>
          )}
        </form>
      )}
      <Command text={`kiln stack create${commandOptions(sources)} ${quoted(name.value || "NAME")}${options}`} />
    </main>
  );
}
