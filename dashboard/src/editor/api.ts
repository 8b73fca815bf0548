// What the page and the editor, which is loaded later, know of each other.

/** Something that is wrong with a text. */
export interface Trouble {
  /** From 1. */
  line: number;
  severity: "error" | "warning" | "info";
  message: string;
}

export interface Options {
  parent: HTMLElement;
  text: string;
  label: string;
  hint: string;
  /** The files that the template names, by these names. */
  files: Record<string, string>;
  /** The address of the language server. */
  server: URL;
  changed: (text: string) => void;
  /** What is wrong, after each check; undefined: nothing checks. */
  checked: (troubles: Trouble[] | undefined) => void;
}

export interface Editor {
  setText: (text: string) => void;
  setFiles: (files: Record<string, string>) => void;
  focus: () => void;
  goTo: (line: number) => void;
  destroy: () => void;
}

/** The module `editor.js`. */
export interface Module {
  start: (options: Options) => Editor;
  /** A value as YAML. */
  dump: (value: unknown) => string;
}
