// The editor for templates: YAML, with what the language server says.

import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { yaml } from "@codemirror/lang-yaml";
import { bracketMatching, HighlightStyle, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { lintGutter, lintKeymap } from "@codemirror/lint";
import { highlightSelectionMatches, search, searchKeymap } from "@codemirror/search";
import { EditorState } from "@codemirror/state";
import { EditorView, highlightActiveLine, hoverTooltip, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { dump as dumpYaml } from "js-yaml";
import type { Editor, Options } from "./api";
import { LanguageServer } from "./language_server";

const theme = EditorView.theme({
  "&": { color: "var(--ink)", backgroundColor: "var(--paper)", border: "1px solid var(--quiet)", borderRadius: "4px" },
  "&.cm-focused": { outline: "2px solid var(--focus)", outlineOffset: "1px" },
  ".cm-scroller": { font: "13px/1.5 ui-monospace, monospace", minHeight: "14rem", maxHeight: "60vh", overflow: "auto" },
  ".cm-content": { caretColor: "var(--ink)" },
  ".cm-gutters": { backgroundColor: "var(--panel)", color: "var(--quiet)", borderRight: "1px solid var(--line)" },
  ".cm-activeLine": { backgroundColor: "color-mix(in srgb, var(--panel) 60%, transparent)" },
  ".cm-tooltip": { color: "var(--ink)", backgroundColor: "var(--panel)", border: "1px solid var(--quiet)", maxWidth: "min(40rem, 90vw)" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul > li[aria-selected]": { color: "var(--paper)", backgroundColor: "var(--accent)" },
  // All that is rendered is in sight: a list that scrolls would need the focus.
  ".cm-tooltip.cm-tooltip-autocomplete > ul": { maxHeight: "none", overflow: "hidden" },
  ".cm-completionDetail": { color: "inherit", fontStyle: "normal" },
  ".cm-panels": { color: "var(--ink)", backgroundColor: "var(--panel)" },
  ".cm-textfield, .cm-button": { color: "var(--ink)", background: "var(--paper)", border: "1px solid var(--quiet)" },
  ".cm-searchMatch, .cm-selectionMatch": { backgroundColor: "transparent", outline: "1px solid var(--accent)" },
  ".cm-matchingBracket, &.cm-focused .cm-matchingBracket": { backgroundColor: "transparent", outline: "1px solid var(--quiet)" },
  // The pictures of CodeMirror are data in addresses, which the Content-Security-Policy refuses.
  ".cm-lintRange": { backgroundImage: "none", textDecoration: "underline wavy 1px var(--failed)", textUnderlineOffset: "3px" },
  ".cm-lintRange-warning, .cm-lintRange-info, .cm-lintRange-hint": { backgroundImage: "none", textDecorationColor: "var(--quiet)" },
  ".cm-lint-marker": { width: "1em", textAlign: "center" },
  ".cm-lint-marker-error": { content: "none", color: "var(--failed)", "&::before": { content: "'✗'" } },
  ".cm-lint-marker-warning, .cm-lint-marker-info": { content: "none", "&::before": { content: "'!'" } },
  ".cm-lintPoint::after": { borderBottomColor: "var(--failed)" },
  ".cm-diagnostic-error": { borderLeftColor: "var(--failed)" },
  ".cm-diagnostic": { whiteSpace: "pre-wrap" },
  ".said": { padding: "0.3rem 0.6rem", whiteSpace: "pre-wrap", overflowWrap: "anywhere" },
});

// Few colours: those of the page, which have enough contrast in each theme.
const colours = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: "var(--progress)" },
  { tag: tags.comment, color: "var(--quiet)", fontStyle: "italic" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--complete)" },
  { tag: [tags.keyword, tags.labelName, tags.typeName, tags.meta], color: "var(--accent)" },
]);

/** A new line as far in as the present one, or further below a key. */
function newLine(view: EditorView): boolean {
  const { state } = view;
  const { from } = state.selection.main;
  const line = state.doc.lineAt(from);
  const before = line.text.slice(0, from - line.from);
  const indent = /^ */.exec(before)![0] + (/:\s*$/.test(before) ? "  " : "") + (/^ *- .*:\s*$/.test(before) ? "  " : "");
  view.dispatch(state.replaceSelection(`\n${indent}`), { scrollIntoView: true, userEvent: "input" });
  return true;
}

/** Chromium would give a style to what is typed over several lines, which the Content-Security-Policy refuses. */
function typeOverLines(event: InputEvent, view: EditorView): boolean {
  const { main } = view.state.selection;
  const isLong = view.state.doc.lineAt(main.from).to < main.to;
  if (!isLong || event.inputType !== "insertText" || event.data === null || event.isComposing) return false;
  event.preventDefault();
  view.dispatch(view.state.replaceSelection(event.data), { scrollIntoView: true, userEvent: "input.type" });
  return true;
}

export function start(options: Options): Editor {
  // A style element would break the Content-Security-Policy; in a shadow tree the styles are adopted.
  const root = options.parent.shadowRoot ?? options.parent.attachShadow({ mode: "open" });
  const server = new LanguageServer(options.server, options.files, options.checked);
  // No time runs out between Escape and Tab.
  const escape = { key: "Escape", run: (view: EditorView) => (view.setTabFocusMode(true), true) };
  const said = (text: string) => {
    const dom = document.createElement("div");
    dom.className = "said";
    dom.textContent = text;
    return dom;
  };
  const view = new EditorView({
    root,
    parent: root,
    state: EditorState.create({
      doc: options.text,
      extensions: [
        lineNumbers(),
        history(),
        indentUnit.of("  "),
        EditorState.tabSize.of(2),
        bracketMatching(),
        closeBrackets(),
        highlightActiveLine(),
        highlightSelectionMatches(),
        search({ top: true }),
        lintGutter(),
        yaml(),
        syntaxHighlighting(colours),
        theme,
        autocompletion({ override: [(context) => server.complete(context)], icons: false, maxRenderedOptions: 12 }),
        hoverTooltip(async (view, at) => {
          const hover = await server.hover(view.state.doc, at);
          return hover && { pos: hover.from, end: hover.to, above: true, create: () => ({ dom: said(hover.text) }) };
        }),
        keymap.of([
          ...closeBracketsKeymap,
          ...completionKeymap,
          ...searchKeymap,
          ...lintKeymap,
          ...historyKeymap,
          { key: "Enter", run: newLine },
          ...defaultKeymap,
          indentWithTab,
          escape,
        ]),
        EditorView.contentAttributes.of({ "aria-label": options.label, "aria-description": options.hint, tabindex: "0", spellcheck: "false" }),
        EditorView.domEventHandlers({ beforeinput: typeOverLines, blur: (_, view) => view.setTabFocusMode(false) }),
        EditorView.updateListener.of((update) => {
          if (!update.docChanged) return;
          options.changed(update.state.doc.toString());
          server.change(update.state.doc);
        }),
      ],
    }),
  });
  server.start(view);
  return {
    setText: (text) => {
      if (text !== view.state.doc.toString()) view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text } });
    },
    setFiles: (files) => server.setFiles(files),
    focus: () => view.focus(),
    goTo: (line) => {
      const { from } = view.state.doc.line(Math.min(Math.max(line, 1), view.state.doc.lines));
      view.dispatch({ selection: { anchor: from }, effects: EditorView.scrollIntoView(from, { y: "center" }) });
      view.focus();
    },
    destroy: () => {
      server.stop();
      view.destroy();
    },
  };
}

export function dump(value: unknown): string {
  return dumpYaml(value, { lineWidth: -1, noRefs: true });
}
