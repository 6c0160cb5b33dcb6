// The page is built into ../page, which the Go program embeds. Names have no hashes, so that a new build shows as a
// small diff; the server forbids caching.
import { defineConfig } from 'vite'

export default defineConfig({
  base: './',
  build: {
    outDir: '../page/files',
    emptyOutDir: true,
    modulePreload: false,
    assetsInlineLimit: 0,
    rollupOptions: {
      output: { entryFileNames: 'console.js', assetFileNames: 'console[extname]', inlineDynamicImports: true },
    },
  },
})
