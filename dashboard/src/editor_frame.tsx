// The place of the editor. Its code is loaded when it is first needed; a plain field is there until then, and without it.

import { type Signal, useSignal } from "@preact/signals";
import { useEffect, useId, useRef } from "preact/hooks";
import { scope } from "./api";
import type { Editor, Module, Trouble } from "./editor/api";

/** The program of the editor. */
export function editorModule(): Promise<Module> {
  return import(new URL("editor.js", document.baseURI).href) as Promise<Module>;
}

function languageServer(): URL {
  const url = new URL("lsp", document.baseURI);
  url.protocol = url.protocol.replace("http", "ws");
  url.search = new URLSearchParams({ project: scope.peek()! }).toString();
  return url;
}

const HINT = "Tab indents. To leave the field with the keyboard, press Escape, then Tab.";
const MOST_TROUBLES = 20;

export function EditorFrame({ text, files, label }: { text: Signal<string>; files: Record<string, string>; label: string }) {
  const id = useId();
  const place = useRef<HTMLDivElement>(null);
  const field = useRef<HTMLTextAreaElement>(null);
  const editor = useRef<Editor>();
  const isLoaded = useSignal(false);
  const troubles = useSignal<Trouble[] | undefined>(undefined);
  useEffect(() => {
    let isGone = false;
    const begin = ({ start }: Module) => {
      if (isGone) return;
      const hadFocus = document.activeElement === field.current;
      editor.current = start({
        parent: place.current!,
        text: text.peek(),
        label,
        hint: HINT,
        files,
        server: languageServer(),
        changed: (changed) => (text.value = changed),
        checked: (found) => (troubles.value = found),
      });
      isLoaded.value = true;
      if (hadFocus) editor.current.focus();
    };
    // Without its program, the plain field stays.
    editorModule().then(begin, () => undefined);
    return () => {
      isGone = true;
      editor.current?.destroy();
    };
  }, []);
  useEffect(() => editor.current?.setText(text.value), [text.value]);
  useEffect(() => editor.current?.setFiles(files), [files]);
  const found = troubles.value ?? [];
  const errors = found.filter(({ severity }) => severity === "error").length;
  return (
    <div class="field editor">
      <label for={id}>{label}</label>
      <div ref={place} />
      {!isLoaded.value && (
        <textarea
          ref={field}
          id={id}
          rows={16}
          spellcheck={false}
          value={text.value}
          onInput={(event) => (text.value = event.currentTarget.value)}
        />
      )}
      {isLoaded.value && <small class="quiet">{HINT}</small>}
      {isLoaded.value && text.value !== "" && (
        <p class="quiet" role="status">
          {troubles.value ? `${errors} errors, ${found.length - errors} hints.` : "Not checked while you type."}
        </p>
      )}
      {found.length > 0 && (
        <ul class="troubles" aria-label="Problems">
          {found.slice(0, MOST_TROUBLES).map(({ line, severity, message }, at) => (
            <li key={at}>
              <button type="button" class="small" onClick={() => editor.current?.goTo(line)}>
                Line {line}
              </button>{" "}
              <span class={severity === "error" ? "failure" : ""}>
                {severity}: {message}
              </span>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}
