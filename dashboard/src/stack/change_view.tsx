// Changes a stack, its parameters and its template: the plan comes before anything is changed.

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { get, patch, post } from "../api";
import { editorModule } from "../editor_frame";
import { type Parameter, ParameterField, type Validated } from "../parameters";
import { Command, Failure, Loading, quoted, useWork } from "../parts";
import { changesOf, PreviewTable, type UpdatePreview } from "../preview";
import { goWhenDone } from "../route";
import { isKiln } from "../service";
import { commandOptions, type Files, sent, SourcesForm, useSources } from "../sources";
import { shown } from "../value";
import type { StackData } from "./stack_data";

/** What the API shows instead of a hidden value. */
const MASK = "******";

/** What the stack itself tells of a parameter. */
function described(name: string, value: unknown): Parameter {
  return { Type: "", Description: "", Label: name, NoEcho: String(value === MASK) };
}

/** Whether a browser keeps each number of a value: whole ones above 2^53 lose their last digits. */
function keepsNumbers(value: unknown): boolean {
  if (typeof value === "number") return !Number.isInteger(value) || Number.isSafeInteger(value);
  return typeof value !== "object" || value === null || Object.values(value).every(keepsNumbers);
}

export function ChangeView({ data }: { data: StackData }) {
  const given = useSignal<Record<string, string>>({});
  const { busy, error, run } = useWork();
  const sources = useSources();
  /** The template of the stack, if it is edited. */
  const original = useSignal<string | undefined>(undefined);
  const present = useSignal<Files>({});
  const validated = useSignal<Validated | undefined>(undefined);
  /** The text that was valid. */
  const valid = useSignal<string | undefined>(undefined);
  /** What a Heat has answered, and the request of which it is the preview. */
  const preview = useSignal<{ answer: UpdatePreview; body: Record<string, unknown> } | undefined>(undefined);
  const { template, environment, files } = sources;
  useEffect(() => {
    preview.value = undefined;
  }, [given.value, template.value, environment.value, files.value]);
  const stack = data.stack.value.value;
  if (!stack) return <Loading error={data.stack.error.value} />;
  const own = Object.entries(stack.parameters).filter(([name]) => !name.startsWith("OS::"));
  const parameters =
    validated.value?.Parameters ?? Object.fromEntries(own.map(([name, value]) => [name, described(name, value)]));
  const isHidden = (name: string) => parameters[name]?.NoEcho === "true";
  const ofStack = (name: string) => (name in stack.parameters ? shown(stack.parameters[name]) : undefined);
  const value = (name: string) => given.value[name] ?? (isHidden(name) ? "" : (ofStack(name) ?? ""));
  const changed = Object.keys(parameters)
    .map((name) => [name, value(name)] as const)
    .filter(([name, value]) => value !== ofStack(name) && value !== "");
  const { template: text, ...rest } = sent(sources);
  const isNew = original.value !== undefined && template.value !== original.value;
  const isChanged = isNew || Object.keys(files.value).length > 0 || environment.value.trim() !== "" || changed.length > 0;
  const edit = () =>
    run(async () => {
      const parts = [get<unknown>(`${data.base}/template`), get<Files>(`${data.base}/files`), editorModule()] as const;
      const [value, found, { dump }] = await Promise.all(parts);
      if (!keepsNumbers(value)) throw new Error("The template has a number that a browser cannot keep: use 'kiln stack update'.");
      present.value = found;
      template.value = dump(value);
      original.value = template.value;
      await read();
    });
  const read = async () => {
    const body = { ...sent(sources), files: { ...present.value, ...files.value } };
    validated.value = await post<Validated>("/validate", body);
    valid.value = template.value;
  };
  const validate = () => run(read);
  const plan = (event: Event) => {
    event.preventDefault();
    const goOn = goWhenDone();
    return run(async () => {
      const parameters = Object.fromEntries(changed);
      const body = { parameters, ...rest, ...(isNew && { template: text }) };
      if (!isKiln.value) {
        preview.value = { answer: await patch<UpdatePreview>(`${data.base}/preview`, body), body };
        return;
      }
      const asked = { action: "update", stack: stack.id, existing: true, ...body };
      goOn("plans", (await post<{ plan: { id: string } }>("/plans", asked)).plan.id);
    });
  };
  const update = (body: Record<string, unknown>) => {
    const goOn = goWhenDone();
    return run(async () => {
      await patch(data.base, body);
      goOn("stacks", data.root.name, data.root.id, "time");
    });
  };
  const options = changed.map(([name, value]) => ` --parameter ${quoted(isHidden(name) ? `${name}=…` : `${name}=${value}`)}`);
  const ofSources = original.value === undefined ? "" : commandOptions(sources);
  return (
    <>
      {original.value === undefined ? (
        <p>
          <button type="button" disabled={busy.value} onClick={edit}>
            Edit the template
          </button>
        </p>
      ) : (
        <section aria-label="Template and files">
          <p>
            The service keeps the template without its comments and its layout: this text is written from what it keeps.
          </p>
          <SourcesForm sources={sources} present={present.value} />
          <p>
            <button type="button" disabled={busy.value} onClick={validate}>
              Validate
            </button>
          </p>
          {valid.value === template.value && <p role="status">The template is valid. Its parameters are below.</p>}
        </section>
      )}
      <form onSubmit={plan}>
        {Object.keys(parameters).length === 0 && <p>The template has no parameters.</p>}
        {Object.entries(parameters).map(([name, parameter]) => (
          <ParameterField
            key={name}
            name={name}
            parameter={parameter}
            value={value(name)}
            present={ofStack(name)}
            given={(text) => (given.value = { ...given.value, [name]: text })}
          />
        ))}
        <Failure error={error.value} />
        <button type="submit" class="main" disabled={busy.value || !isChanged}>
          {isKiln.value ? "Show the plan" : "Preview"}
        </button>
        {preview.value && (
          <>
            <PreviewTable changes={changesOf(preview.value.answer)} />
            <button type="button" class="main" disabled={busy.value} onClick={() => update(preview.value!.body)}>
              Update
            </button>
          </>
        )}
      </form>
      <Command text={`kiln stack update ${quoted(stack.stack_name)} --existing${ofSources}${options.join("")}`} />
    </>
  );
}
