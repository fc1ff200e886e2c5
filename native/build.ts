/**
 * Compiles the C sources and writes one module per platform to
 * src/backend/embedded/: `deno task native`. With `--check` it builds into memory
 * only and fails where the committed modules are not what the sources give.
 *
 * @module
 */

import { checksum } from "../src/backend/native.ts";

const NATIVE: URL = new URL("./", import.meta.url);
const EMBEDDED: URL = new URL("../src/backend/embedded/", import.meta.url);

/** Translation units; the headers beside them are part of the source hash. */
const UNITS: readonly string[] = ["wsframe.c", "node_api.c"];

const COMPILER = "clang-19";

const COMMON: readonly string[] = [
  "-std=c11",
  "-O3",
  "-ffreestanding",
  // or loops that copy become calls of memcpy, which nobody provides
  "-fno-builtin",
  "-fvisibility=hidden",
  "-fno-stack-protector",
  "-fno-unwind-tables",
  "-fno-asynchronous-unwind-tables",
  "-fno-ident",
  "-fmerge-all-constants",
  "-Wall",
  "-Wextra",
  "-Werror",
  "-nostdlib",
  "-fuse-ld=lld",
];

const ELF: readonly string[] = [
  "-shared",
  "-fPIC",
  "-Wl,--strip-all,--build-id=none,--hash-style=gnu",
  // few pages, and no padding in the file between them
  "-Wl,-z,norelro,-z,noseparate-code",
];

const MACH_O: readonly string[] = [
  "-dynamiclib",
  "-Wl,-install_name,wsframe.dylib",
  "-Wl,-undefined,dynamic_lookup",
  // bound when opened: lazy binding would import dyld_stub_binder
  "-Wl,-fixup_chains",
  "-Wl,-platform_version,macos,12.0,12.0",
  "-Wl,-x,-S",
  // macOS may refuse a library that names no other
  "-Wl,-needed_library,libSystem.tbd",
  // one writable segment, not two: segments are whole pages
  "-Wl,-no_data_const",
];

interface Platform {
  /** Name of the generated module. */
  readonly name: string;
  readonly flags: readonly string[];
  /** Size limit in bytes. */
  readonly limit: number;
}

const PLATFORMS: readonly Platform[] = [
  {
    name: "linux_x64",
    flags: [
      "--target=x86_64-linux-gnu",
      ...ELF,
      "-Wl,-z,max-page-size=4096",
    ],
    limit: 32768,
  },
  {
    // kernels with pages of 64 KiB exist: the default page alignment stays
    name: "linux_arm64",
    flags: ["--target=aarch64-linux-gnu", ...ELF],
    limit: 32768,
  },
  {
    name: "macos_x64",
    flags: ["--target=x86_64-apple-macos12", ...MACH_O],
    limit: 32768,
  },
  {
    name: "macos_arm64",
    // Pages of 16 KiB: one of code, one for the six pointers to napi_* functions, then the
    // symbols (1.3 KiB), which have to begin a page and to come last. 6 KiB are not zero.
    flags: ["--target=arm64-apple-macos12", ...MACH_O],
    limit: 36864,
  },
  {
    name: "windows_x64",
    flags: [
      "--target=x86_64-windows-msvc",
      "-shared",
      // the platform's ABI asks for them
      "-fasynchronous-unwind-tables",
      "-Wl,-noentry,-Brepro",
      "-Wl,-nodefaultlib",
    ],
    limit: 32768,
  },
  {
    name: "wasm",
    flags: [
      "--target=wasm32",
      "-msimd128",
      "-mbulk-memory",
      "-mnontrapping-fptoint",
      "-Wl,--no-entry,--strip-all",
      "-Wl,--export-dynamic,--export=__heap_base",
      // nothing here needs more stack, and an overflow traps instead of writing over data
      "-Wl,--stack-first,-z,stack-size=4096",
    ],
    limit: 8192,
  },
];

async function exists(url: URL): Promise<boolean> {
  try {
    await Deno.stat(url);
    return true;
  } catch {
    return false;
  }
}

async function run(args: readonly string[]): Promise<string> {
  let output: Deno.CommandOutput;
  try {
    output = await new Deno.Command(COMPILER, { args: [...args], cwd: NATIVE })
      .output();
  } catch {
    throw new Error(
      `${COMPILER} was not found: the Debian packages clang-19 and lld-19 have what this needs`,
    );
  }
  const { success, stdout, stderr } = output;
  if (!success) {
    throw new Error(
      `${COMPILER} failed:\n${new TextDecoder().decode(stderr)}`,
    );
  }
  return new TextDecoder().decode(stdout);
}

/** SHA-256 over the names and contents of everything that the libraries are made of. */
async function sourceHash(): Promise<string> {
  const names: string[] = [];
  for await (const { name } of Deno.readDir(NATIVE)) {
    const isSource = UNITS.includes(name) || /\.(h|tbd)$/.test(name);
    if (isSource) names.push(name);
  }
  let text = "";
  for (const name of names.sort()) {
    const source = await Deno.readTextFile(new URL(name, NATIVE));
    text += `${name} ${source.length}\n${source}`;
  }
  const digest = await crypto.subtle.digest(
    "SHA-256",
    new TextEncoder().encode(text),
  );
  return new Uint8Array(digest).toHex();
}

async function compile(platform: Platform, dir: string): Promise<Uint8Array> {
  const units = platform.name === "wasm" ? ["wsframe.c"] : UNITS;
  const file = `${dir}/${platform.name}`;
  await run([...COMMON, ...platform.flags, ...units, "-o", file]);
  const bytes = await Deno.readFile(file);
  if (bytes.length > platform.limit) {
    throw new Error(
      `${platform.name} has ${bytes.length} bytes, more than ${platform.limit}`,
    );
  }
  return bytes;
}

/** Shorter runs of zero bytes stay in the text. */
const MIN_ZEROS = 256;

/** The library as base64 text and the lengths of runs of zeros, which fill up pages. */
function piecesOf(bytes: Uint8Array): (string | number)[] {
  const pieces: (string | number)[] = [];
  let start = 0;
  for (let at = 0; at < bytes.length; at++) {
    let end = at;
    while (bytes[end] === 0) end++;
    if (end - at >= MIN_ZEROS) {
      pieces.push(bytes.subarray(start, at).toBase64(), end - at);
      start = end;
    }
    at = Math.max(at, end);
  }
  pieces.push(bytes.subarray(start).toBase64());
  return pieces;
}

function moduleText(
  platform: Platform,
  bytes: Uint8Array,
  hash: string,
  compiler: string,
): string {
  const flags = [...COMMON, ...platform.flags].join(" ");
  return `// @generated by native/build.ts (\`deno task native\`). Do not edit.
// source: sha256 ${hash}
// compiler: ${compiler}
// flags: ${flags}
// library: ${bytes.length} bytes

/** The library for this platform in base64; a number is a run of so many zero bytes. */
export const LIBRARY: readonly (string | number)[] = [
${piecesOf(bytes).map((piece) => `  ${JSON.stringify(piece)},\n`).join("")}];

/** The checksum of the library. */
export const CHECKSUM: number = ${checksum(bytes)};
`;
}

async function main(args: readonly string[]): Promise<number> {
  const check = args.includes("--check");
  const compiler = (await run(["--version"])).split("\n")[0];
  const hash = await sourceHash();
  const dir = await Deno.makeTempDir({ prefix: "wsframe-native-" });
  let stale = 0;
  try {
    if (!check) await Deno.mkdir(EMBEDDED, { recursive: true });
    for (const platform of PLATFORMS) {
      const bytes = await compile(platform, dir);
      const text = moduleText(platform, bytes, hash, compiler);
      const url = new URL(`${platform.name}.ts`, EMBEDDED);
      if (!check) {
        await Deno.writeTextFile(url, text);
        console.log(`${platform.name}: ${bytes.length} bytes`);
        continue;
      }
      const committed = await exists(url) ? await Deno.readTextFile(url) : "";
      if (committed === text) {
        console.log(`${platform.name}: as committed`);
        continue;
      }
      stale++;
      console.error(`${platform.name}: ${difference(committed, text)}`);
    }
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
  if (stale > 0) {
    console.error(
      `${stale} of ${PLATFORMS.length} modules in src/backend/embedded are not what native/ gives: run "deno task native" and commit`,
    );
    return 1;
  }
  return 0;
}

/** Says which lines differ: the header names hash, compiler and flags. */
function difference(committed: string, built: string): string {
  if (committed === "") return "the module is missing";
  const left = committed.split("\n");
  const differing = built.split("\n").filter((line, i) => line !== left[i])
    .map((line) =>
      line.startsWith("//") ? line.slice(3).split(":")[0] : "bytes"
    );
  return `${[...new Set(differing)].join(", ")} differ`;
}

if (import.meta.main) {
  Deno.exit(
    await main(Deno.args).catch((error: Error) => {
      console.error(error.message);
      return 1;
    }),
  );
}
