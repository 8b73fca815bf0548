// Builds the files of the page into crates/dashboard/files, where the program takes them from.
import { copyFile, readFile } from "node:fs/promises";
import { build } from "esbuild";

const out = process.argv[2] ?? "../crates/dashboard/files";

/** The licences of libraries, which must be with what is made of them. */
async function banner(libraries) {
  const licences = new Map();
  for (const name of libraries) {
    const text = await readFile(`node_modules/${name}/LICENSE`, "utf8");
    const author = /^(\(The MIT License\)|MIT License)?\s*(Copyright .*)$/m.exec(text)[2];
    // Several have the same terms and differ in their authors alone.
    const terms = text.replace(/^Copyright .*\n/m, "").trim();
    const known = licences.get(terms) ?? { names: [], authors: new Set() };
    known.names.push(name);
    known.authors.add(author);
    licences.set(terms, known);
  }
  const texts = [...licences].map(([terms, { names, authors }]) => `${names.join(", ")}\n${[...authors].join("\n")}\n\n${terms}`);
  return { js: `/*! ${texts.join("\n\n")}\n*/` };
}

const page = ["preact", "@preact/signals", "@preact/signals-core", "diff"];
const editor = [
  ...["autocomplete", "commands", "lang-yaml", "language", "lint", "search", "state", "view"].map((name) => `@codemirror/${name}`),
  ...["common", "highlight", "lr", "yaml"].map((name) => `@lezer/${name}`),
  ...["@marijn/find-cluster-break", "crelt", "style-mod", "w3c-keyname", "js-yaml"],
];
const options = {
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  jsx: "automatic",
  jsxImportSource: "preact",
  legalComments: "none",
  charset: "utf8",
};
await build({ ...options, banner: await banner(page), entryPoints: ["src/page.tsx"], outfile: `${out}/page.js` });
// Loaded when it is needed: it is larger than the page.
await build({ ...options, banner: await banner(editor), entryPoints: ["src/editor/editor.ts"], outfile: `${out}/editor.js` });
await build({ ...options, entryPoints: ["src/shape/layout_worker.ts"], outfile: `${out}/layout.js` });
for (const file of ["index.html", "page.css", "icon.svg"]) await copyFile(`src/${file}`, `${out}/${file}`);
