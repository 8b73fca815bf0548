// A new stack: template, parameters, and the plan before anything is created.

import { useSignal } from "@preact/signals";
import { post } from "./api";
import { Failure, Field } from "./parts";
import { goWhenDone } from "./route";

interface Parameter {
  Type: string;
  Description: string;
  Label: string;
  NoEcho: string;
  Default?: unknown;
  AllowedValues?: unknown[];
}

interface Validated {
  Description: string;
  Parameters: Record<string, Parameter>;
}

export function NewStack() {
  const template = useSignal("");
  const validated = useSignal<Validated | undefined>(undefined);
  const error = useSignal<unknown>(undefined);
  const busy = useSignal(false);
  const run = async (work: () => Promise<void>) => {
    busy.value = true;
    error.value = undefined;
    try {
      await work();
    } catch (failed) {
      error.value = failed;
    } finally {
      busy.value = false;
    }
  };
  const validate = () =>
    run(async () => {
      validated.value = await post<Validated>("/validate", { template: template.value });
    });
  const plan = (event: SubmitEvent) => {
    event.preventDefault();
    const fields = Object.fromEntries(new FormData(event.currentTarget as HTMLFormElement)) as Record<string, string>;
    const { stack_name, ...rest } = fields;
    const known = validated.value!.Parameters;
    // An empty field is the default, if there is one.
    const given = Object.entries(rest).filter(([name, value]) => value !== "" || known[name]?.Default === undefined);
    const goOn = goWhenDone();
    return run(async () => {
      const body = { action: "create", stack_name, template: template.value, parameters: Object.fromEntries(given) };
      const made = await post<{ plan: { id: string } }>("/plans", body);
      goOn("plans", made.plan.id);
    });
  };
  const read = async (event: Event) => {
    const file = (event.currentTarget as HTMLInputElement).files?.[0];
    if (file) template.value = await file.text();
    validated.value = undefined;
  };
  return (
    <main tabIndex={-1}>
      <h1>New stack</h1>
      <p>
        The template must not refer to other files: for those, use <code>kiln stack create</code>, which collects them.
      </p>
      <label class="field">
        <span>Template file</span>
        <input type="file" onChange={read} />
      </label>
      <label class="field">
        <span>Template</span>
        <textarea
          rows={16}
          spellcheck={false}
          value={template.value}
          onInput={(event) => {
            template.value = event.currentTarget.value;
            validated.value = undefined;
          }}
        />
      </label>
      <button type="button" onClick={validate} disabled={busy.value || template.value === ""}>
        Validate
      </button>
      <Failure error={error.value} />
      {validated.value && (
        <form onSubmit={plan}>
          <p>{validated.value.Description}</p>
          <Field label="Name of the stack" name="stack_name" required pattern="[A-Za-z][A-Za-z0-9_.\-]*" autocomplete="off" />
          {Object.entries(validated.value.Parameters).map(([name, parameter]) => (
            <Input key={name} name={name} parameter={parameter} />
          ))}
          <button type="submit" class="main" disabled={busy.value}>
            Show the plan
          </button>
        </form>
      )}
    </main>
  );
}

function Input({ name, parameter }: { name: string; parameter: Parameter }) {
  const hidden = parameter.NoEcho === "true";
  const standard = parameter.Default === undefined || hidden ? "" : String(parameter.Default);
  if (parameter.AllowedValues) {
    return (
      <label class="field">
        <span>{parameter.Label}</span>
        <select name={name} defaultValue={standard}>
          {parameter.AllowedValues.map((value) => (
            <option key={String(value)} value={String(value)}>
              {String(value)}
            </option>
          ))}
        </select>
        <small class="quiet">{parameter.Description}</small>
      </label>
    );
  }
  return (
    <Field
      label={parameter.Label}
      name={name}
      type={hidden ? "password" : "text"}
      hint={parameter.Description}
      placeholder={standard}
      required={parameter.Default === undefined}
      autocomplete={hidden ? "new-password" : "off"}
    />
  );
}
