// What a stack is made of: the template, the files that it names, and an environment.

import { type Signal, useSignal } from "@preact/signals";
import { useId } from "preact/hooks";
import { EditorFrame } from "./editor_frame";
import { Failure } from "./parts";

export type Files = Record<string, string>;

export interface Sources {
  template: Signal<string>;
  /** YAML; empty: none. */
  environment: Signal<string>;
  /** The files that were chosen, by the names that the template uses. */
  files: Signal<Files>;
}

export function useSources(): Sources {
  return { template: useSignal(""), environment: useSignal(""), files: useSignal<Files>({}) };
}

/** The sources as the API takes them. */
export function sent({ template, environment, files }: Sources): Record<string, unknown> {
  return {
    template: template.value,
    files: files.value,
    ...(environment.value.trim() !== "" && { environment: environment.value }),
  };
}

/** The options of a command with the same sources. */
export function commandOptions(sources: Sources): string {
  return ` -t template.yaml${sources.environment.value.trim() === "" ? "" : " -e environment.yaml"}`;
}

/** The name that a template uses for a file: what ends with it, or its own. */
function nameIn(text: string, known: string[], name: string): string {
  const words = text.match(/[^\s"'[\]{},]+/g) ?? [];
  return [...words, ...known].find((word) => word === name || word.endsWith(`/${name}`)) ?? name;
}

const size = (text: string) => {
  const bytes = new Blob([text]).size;
  return bytes < 1024 ? `${bytes} bytes` : `${(bytes / 1024).toFixed(1)} KiB`;
};

/** The text of a file. Templates and scripts are text: anything else would be changed on the way. */
async function textOf(file: File): Promise<string> {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
  } catch {
    throw new Error(`${file.name} is not a text in UTF-8. The command 'kiln' sends files of other kinds.`);
  }
}

/** `present` are the files that the stack has. */
export function SourcesForm({ sources, present = {} }: { sources: Sources; present?: Files }) {
  const { template, environment, files } = sources;
  const error = useSignal<unknown>(undefined);
  const ids = [useId(), useId(), useId()] as const;
  const read = async (event: Event, keep: (chosen: [string, string][]) => void) => {
    const input = event.currentTarget as HTMLInputElement;
    error.value = undefined;
    try {
      keep(await Promise.all([...(input.files ?? [])].map(async (file) => [file.name, await textOf(file)] as [string, string])));
    } catch (failed) {
      error.value = failed;
    }
    // The same file can be chosen again.
    input.value = "";
  };
  const add = (chosen: [string, string][]) => {
    const named = chosen.map(([name, text]) => [nameIn(template.value, Object.keys(present), name), text]);
    files.value = { ...files.value, ...Object.fromEntries(named) };
  };
  const rename = (from: string, to: string) => {
    if (to !== "") files.value = Object.fromEntries(Object.entries(files.value).map(([name, text]) => [name === from ? to : name, text]));
  };
  const without = (name: string) => Object.fromEntries(Object.entries(files.value).filter(([one]) => one !== name));
  return (
    <>
      <div class="field">
        <label for={ids[0]}>Template file</label>
        <input id={ids[0]} type="file" onChange={(event) => read(event, ([first]) => first && (template.value = first[1]))} />
      </div>
      <EditorFrame text={template} files={{ ...present, ...files.value }} label="Template" />
      <div class="field">
        <label for={ids[1]}>Files that the template names</label>
        <input id={ids[1]} type="file" multiple onChange={(event) => read(event, add)} aria-describedby={`${ids[1]}-hint`} />
        <small class="quiet" id={`${ids[1]}-hint`}>
          Nested templates, and scripts of get_file.
        </small>
      </div>
      <ul class="plain" aria-label="Files">
        {Object.entries(files.value).map(([name, text]) => (
          <li key={name} class="bar">
            <label>
              Name in the template{" "}
              <input value={name} onChange={(event) => rename(name, event.currentTarget.value.trim())} />
            </label>
            <span>{size(text)}</span>
            {name in present && <span>replaces the present one</span>}
            <button type="button" class="small" onClick={() => (files.value = without(name))} aria-label={`Remove ${name}`}>
              Remove
            </button>
          </li>
        ))}
        {Object.entries(present)
          .filter(([name]) => !(name in files.value))
          .map(([name, text]) => (
            <li key={name}>
              {name}, {size(text)}, stays
            </li>
          ))}
      </ul>
      <details>
        <summary>Environment</summary>
        <div class="field">
          <label for={ids[2]}>Environment (YAML)</label>
          <textarea
            id={ids[2]}
            rows={6}
            spellcheck={false}
            value={environment.value}
            onInput={(event) => (environment.value = event.currentTarget.value)}
          />
        </div>
      </details>
      <Failure error={error.value} />
    </>
  );
}
