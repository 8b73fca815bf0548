// Builds the files of the page into crates/dashboard/files, where the program takes them from.
import { copyFile, readFile } from "node:fs/promises";
import { build } from "esbuild";

const out = process.argv[2] ?? "../crates/dashboard/files";
// What is in page.js is under these licences, which must be with it.
const libraries = ["preact", "@preact/signals", "@preact/signals-core", "diff"];
const licences = new Map();
for (const name of libraries) {
  const text = await readFile(`node_modules/${name}/LICENSE`, "utf8");
  const author = /^Copyright .*$/m.exec(text)[0];
  // Several have the same terms and differ in their authors alone.
  const terms = text.replace(/^Copyright .*\n/m, "").trim();
  const known = licences.get(terms) ?? { names: [], authors: new Set() };
  known.names.push(name);
  known.authors.add(author);
  licences.set(terms, known);
}
const licence = [...licences].map(([terms, { names, authors }]) => `${names.join(", ")}\n${[...authors].join("\n")}\n\n${terms}`);
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
const banner = { js: `/*! ${licence.join("\n\n")}\n*/` };
await build({ ...options, banner, entryPoints: ["src/page.tsx"], outfile: `${out}/page.js` });
await build({ ...options, entryPoints: ["src/shape/layout_worker.ts"], outfile: `${out}/layout.js` });
for (const file of ["index.html", "page.css", "icon.svg"]) await copyFile(`src/${file}`, `${out}/${file}`);
