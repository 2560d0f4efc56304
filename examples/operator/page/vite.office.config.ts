/** `office.js`: one file under a name that stays, for the back office, whose pages the platform writes. */

import { defineConfig } from "vite";

export default defineConfig({
  publicDir: false,
  build: {
    outDir: "dist",
    emptyOutDir: false,
    target: "es2022",
    modulePreload: false,
    rollupOptions: { input: "entries/office.ts", output: { entryFileNames: "office.js", codeSplitting: false } },
  },
});
