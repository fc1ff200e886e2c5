/**
 * Preloaded under Node 26: resolves the names of `deno.json`'s imports to the
 * files that the test run has chosen for them.
 */

import { readFileSync } from "node:fs";
import { registerHooks } from "node:module";

const { imports } = JSON.parse(
  readFileSync(
    new URL("../../.cache/import_map.json", import.meta.url),
    "utf8",
  ),
) as { imports: Record<string, string> };

registerHooks({
  resolve(specifier, context, nextResolve) {
    const target = imports[specifier];
    const known = target?.startsWith("file:") ? target : specifier;
    return nextResolve(known, context);
  },
});
