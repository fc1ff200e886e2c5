/**
 * The library through `Deno.dlopen`. V8 calls C directly from optimized code here:
 * about 6 ns for the call and 8 ns for each view, whatever memory lies below it
 * (shared, resizable, WASM, beyond 2^32 bytes).
 *
 * Nothing here prompts: permissions are asked about with `querySync`, which only
 * tells, and each for the very path that will be used.
 *
 * @module
 */

import type { Backend, Candidate } from "./backend.ts";
import {
  candidateDirectories,
  LIBRARIES,
  loadBackend,
  PREFIX,
} from "./load.ts";
import type { System } from "./load.ts";
import { libraryOf } from "./native.ts";
import type { Library, MinimumLengths, Symbols } from "./native.ts";

/** The part of `Deno` that is used here; other runtimes have no type for it. */
interface DenoNamespace {
  readonly build: { readonly os: string; readonly arch: string };
  readonly env: { get(name: string): string | undefined };
  readonly permissions: {
    querySync(descriptor: PermissionQuery): { readonly state: string };
  };
  uid(): number | null;
  realPathSync(path: string): string;
  lstatSync(
    path: string,
  ): { uid: number | null; gid: number | null; mode: number | null };
  makeTempDirSync(options: { dir: string; prefix: string }): string;
  writeFileSync(
    path: string,
    data: Uint8Array,
    options: { createNew: boolean; mode: number },
  ): void;
  removeSync(path: string): void;
  dlopen(
    path: string,
    symbols: Record<string, { parameters: readonly string[]; result: string }>,
  ): { readonly symbols: Symbols };
}

interface PermissionQuery {
  readonly name: "env" | "ffi" | "read" | "sys" | "write";
  readonly path?: string;
  readonly variable?: string;
  readonly kind?: "uid";
}

/** Measured by `benches/crossover.ts`: mask 40 B, 20 ns against 20; scan 43 ns against 61. */
const MINIMUM = { mask: 40, maskInto: 28, scan: 24 };

function open(deno: DenoNamespace, path: string): Library {
  const { symbols } = deno.dlopen(path, {
    wsframe_mask: {
      parameters: ["buffer", "f64", "f64", "i32"],
      result: "void",
    },
    wsframe_mask_into: {
      parameters: ["buffer", "f64", "buffer", "f64", "f64", "i32"],
      result: "void",
    },
    wsframe_scan: {
      parameters: [
        ...["buffer", "f64", "f64", "buffer", "f64"],
        ...["buffer", "u32", "u32", "f64"],
      ],
      result: "u32",
    },
    wsframe_cpu: { parameters: [], result: "u32" },
    wsframe_use_kernel: { parameters: ["u32"], result: "u32" },
  });
  return libraryOf(symbols);
}

function granted(deno: DenoNamespace, query: PermissionQuery): boolean {
  return deno.permissions.querySync(query).state === "granted";
}

function denoSystem(deno: DenoNamespace): System {
  return {
    platform: deno.build.os === "windows" ? "win32" : deno.build.os,
    environment(variable) {
      if (!granted(deno, { name: "env", variable })) return undefined;
      try {
        return deno.env.get(variable);
      } catch {
        return undefined; // it is not Unicode
      }
    },
    realPath(path) {
      if (!granted(deno, { name: "read", path })) return path;
      try {
        return deno.realPathSync(path);
      } catch {
        return path;
      }
    },
    ownership(path) {
      const missing = [
        granted(deno, { name: "read", path }) ? "" : " --allow-read",
        granted(deno, { name: "sys", kind: "uid" }) ? "" : " --allow-sys=uid",
      ].join("");
      if (missing) {
        return `not permitted to see who owns ${path}: add${missing}`;
      }
      const { uid, gid, mode } = deno.lstatSync(path);
      const user = deno.uid();
      return uid === null || gid === null || mode === null || user === null
        ? "its owner is not to be known"
        : { uid, gid, mode, user };
    },
    // --allow-write=PATH, not of everything
    isConfined: () => !granted(deno, { name: "write" }),
    makeDirectory: (dir) => deno.makeTempDirSync({ dir, prefix: PREFIX }),
    writeFile: (path, bytes) =>
      deno.writeFileSync(path, bytes, { createNew: true, mode: 0o700 }),
    removeFile: (path) => deno.removeSync(path),
    removeDirectory: (path) => deno.removeSync(path),
  };
}

/** Those that may be written to and opened from; asked one by one, since the first will do. */
function* permitted(
  deno: DenoNamespace,
  directories: readonly string[],
): Generator<string> {
  for (const path of directories) {
    if (
      granted(deno, { name: "ffi", path }) &&
      granted(deno, { name: "write", path })
    ) yield path;
  }
}

/** The flags that are missing for the directory where fewest are. */
function missingFlags(
  deno: DenoNamespace,
  directories: readonly string[],
): string[] {
  let fewest: string[] | undefined;
  for (const path of directories) {
    const missing = (["ffi", "write"] as const)
      .filter((name) => !granted(deno, { name, path }))
      .map((name) => `--allow-${name}=${path}`);
    if (fewest === undefined || missing.length < fewest.length) {
      fewest = missing;
    }
  }
  return fewest ?? [];
}

/** Opens the backend; `minimum` is for tests and benches. */
export function openDenoFfi(
  minimum: MinimumLengths = MINIMUM,
): Backend | string {
  const deno = (globalThis as unknown as { Deno?: DenoNamespace }).Deno;
  if (deno?.dlopen === undefined) return "this is not Deno";
  const system = denoSystem(deno);
  const directories = candidateDirectories(system);
  if (permitted(deno, directories).next().done) {
    const flags = missingFlags(deno, directories).join(" ");
    return `not permitted: add ${flags}`;
  }
  const arch = deno.build.arch === "x86_64" ? "x64" : "arm64";
  return loadBackend(
    "deno-ffi",
    minimum,
    LIBRARIES[`${system.platform}-${arch}`],
    system,
    permitted(deno, directories),
    (path) => open(deno, path),
  );
}

/** The library, called by the FFI of Deno. */
export const denoFfi: Candidate = {
  name: "deno-ffi",
  open: () => openDenoFfi(),
};
