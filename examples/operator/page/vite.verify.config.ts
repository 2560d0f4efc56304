/** `verify.html`: one file with all that it needs inside, which works from a disk and loads nothing. */

import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";

import { defineConfig, type Plugin } from "vite";

function hashOf(text: string): string {
  return `'sha256-${createHash("sha256").update(text, "utf8").digest("base64")}'`;
}

/** The licences of the packages inside, as a comment: they go wherever the file goes. */
function licencesOf(modules: readonly string[]): string {
  const names = new Set(modules.flatMap((id) => /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(id)?.[1] ?? []));
  const texts = [...names].sort().map((name) => {
    const file = ["LICENSE-MIT", "LICENSE", "LICENSE.md"].map((one) => `node_modules/${name}/${one}`).find((one) => existsSync(one));
    if (!file) throw new Error(`the package ${name} has no licence file`);
    return `${name}:\n${readFileSync(file, "utf8").replaceAll("--", "- -")}`;
  });
  return texts.length ? `<!-- This file contains:\n${texts.join("\n")}-->` : "";
}

/** Puts script and style into the HTML, and allows these two alone by their hashes. */
function oneFile(): Plugin {
  return {
    name: "one-file",
    enforce: "post",
    generateBundle(_options, bundle) {
      let script = "";
      let style = "";
      const modules: string[] = [];
      for (const [name, output] of Object.entries(bundle)) {
        if (output.type === "chunk") {
          script += output.code;
          modules.push(...output.moduleIds);
        }
        else if (name.endsWith(".css")) style += String(output.source);
        else continue;
        delete bundle[name];
      }
      const page = bundle["verify.html"];
      if (page?.type !== "asset") throw new Error("verify.html was not built");
      if (/<\/script/i.test(script) || /<\/style/i.test(style)) throw new Error("a closing tag stands in script or style");
      const policy = [
        "default-src 'none'",
        `script-src ${hashOf(script)}`,
        `style-src ${hashOf(style)}`,
        "base-uri 'none'",
        "form-action 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
      ].join("; ");
      const bare = String(page.source)
        .replace(/\s*<script[^>]*src=[^>]*><\/script>/g, "")
        .replace(/\s*<link rel="stylesheet"[^>]*>/g, "");
      page.source = bare
        .replace("<title>", () => `<meta http-equiv="Content-Security-Policy" content="${policy}" />\n    <title>`)
        .replace("</head>", () => `  <style>${style}</style>\n  </head>`)
        .replace("</body>", () => `  <script type="module">${script}</script>\n  </body>`)
        .replace("</html>", () => `${licencesOf(modules)}\n</html>`);
    },
  };
}

export default defineConfig({
  plugins: [oneFile()],
  publicDir: false,
  build: {
    outDir: "dist",
    emptyOutDir: false,
    target: "es2022",
    modulePreload: false,
    cssCodeSplit: false,
    rollupOptions: { input: "verify.html" },
  },
});
