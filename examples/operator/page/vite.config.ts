import { defineConfig } from "vite";

export default defineConfig({
  build: {
    outDir: "dist",
    emptyOutDir: true,
    target: "es2022",
    modulePreload: { polyfill: false },
    // Nothing is written into the page: the content security policy allows no data URLs of scripts and styles.
    assetsInlineLimit: 0,
    reportCompressedSize: true,
    // The licences of the packages inside go along with them.
    license: { fileName: "licenses.md" },
    rollupOptions: {
      input: { index: "index.html", elements: "entries/elements.ts" },
      // Pages of others name this one file, so its name stays; whoever serves it lets browsers ask for it anew.
      output: { entryFileNames: ({ name }) => (name === "elements" ? "elements.js" : "assets/[name]-[hash].js") },
      preserveEntrySignatures: "allow-extension",
    },
  },
  worker: { format: "es" },
});
