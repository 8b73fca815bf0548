// Builds the files of the page into crates/dashboard/files, where the program takes them from.
import { copyFile, readFile } from "node:fs/promises";
import { build } from "esbuild";

const out = process.argv[2] ?? "../crates/dashboard/files";
// What is in page.js is under these licences, which must be with it.
const libraries = ["preact", "@preact/signals", "@preact/signals-core"];
const licences = await Promise.all(libraries.map((name) => readFile(`node_modules/${name}/LICENSE`, "utf8")));
// They differ in their authors alone.
const [authors, terms] = [/^Copyright .*$/m, new Set(licences.map((text) => text.replace(/^Copyright .*\n/m, "").trim()))];
if (terms.size !== 1) throw new Error("the licences of the libraries differ");
const copyright = [...new Set(licences.map((text) => authors.exec(text)[0]))].join("\n");
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
const banner = { js: `/*! ${libraries.join(", ")}\n${copyright}\n\n${[...terms][0]}\n*/` };
await build({ ...options, banner, entryPoints: ["src/page.tsx"], outfile: `${out}/page.js` });
await build({ ...options, entryPoints: ["src/shape/layout_worker.ts"], outfile: `${out}/layout.js` });
for (const file of ["index.html", "page.css", "icon.svg"]) await copyFile(`src/${file}`, `${out}/${file}`);
