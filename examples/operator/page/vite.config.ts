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
  },
  worker: { format: "es" },
});
