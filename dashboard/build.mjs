// Builds the files of the page into crates/dashboard/files, where the program takes them from.
import { copyFile, readFile } from "node:fs/promises";
import { build } from "esbuild";

const out = process.argv[2] ?? "../crates/dashboard/files";
// What is in page.js is under these licences, which must be with it.
const libraries = ["preact", "@preact/signals", "@preact/signals-core"];
const licences = await Promise.all(libraries.map((name) => readFile(`node_modules/${name}/LICENSE`, "utf8")));
const notice = [...new Set(licences)].map((text) => text.trim()).join("\n\n");
await build({
  banner: { js: `/*! ${libraries.join(", ")}:\n\n${notice}\n*/` },
  entryPoints: { page: "src/page.tsx", layout: "src/shape/layout_worker.ts" },
  outdir: out,
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  jsx: "automatic",
  jsxImportSource: "preact",
  legalComments: "none",
  charset: "utf8",
});
for (const file of ["index.html", "page.css", "icon.svg"]) await copyFile(`src/${file}`, `${out}/${file}`);
