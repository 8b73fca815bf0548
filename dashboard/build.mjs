// Builds the files of the page into crates/dashboard/files, where the program takes them from.
import { copyFile } from "node:fs/promises";
import { build } from "esbuild";

const out = process.argv[2] ?? "../crates/dashboard/files";
await build({
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
