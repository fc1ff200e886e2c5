/**
 * Builds and runs the C tests in every way that this machine can, and looks at what
 * the shipped libraries export and import: `deno task native:test`. What a missing
 * tool keeps from running is named; under CI=true it is a failure.
 *
 * @module
 */

import * as linuxArm64 from "../../src/backend/embedded/linux_arm64.ts";
import * as linuxX64 from "../../src/backend/embedded/linux_x64.ts";
import * as macosArm64 from "../../src/backend/embedded/macos_arm64.ts";
import * as macosX64 from "../../src/backend/embedded/macos_x64.ts";
import * as wasm from "../../src/backend/embedded/wasm.ts";
import * as windowsX64 from "../../src/backend/embedded/windows_x64.ts";
import { decode, type EmbeddedLibrary } from "../../src/backend/native.ts";

const NATIVE: URL = new URL("../", import.meta.url);
const TESTS: readonly string[] = [
  "test/main.c",
  "test/mask_test.c",
  "test/scan_test.c",
];
const WARNINGS: readonly string[] = ["-std=c11", "-Wall", "-Wextra", "-Werror"];
const SANITIZERS: readonly string[] = [
  "-g",
  "-O1",
  "-fsanitize=address,undefined",
  "-fno-sanitize-recover=all",
];

interface Way {
  readonly name: string;
  /** The compiler and what this way adds to its flags. */
  readonly compile: readonly string[];
  /** The shipped library to open; absent: wsframe.c is compiled in. */
  readonly library?: EmbeddedLibrary;
  /** What runs the program, if not the machine itself. */
  readonly emulator?: readonly string[];
  /** The kernels that must be found there. */
  readonly kernels?: string;
  /** May be missing in CI, too. */
  readonly optional?: boolean;
}

const ARM64_ROOT = "/usr/aarch64-linux-gnu";

const WAYS: readonly Way[] = [
  { name: "sources", compile: ["clang-19", "-O2"] },
  {
    name: "sources under ASan and UBSan",
    compile: ["clang-19", ...SANITIZERS],
  },
  {
    name: "linux_x64, glibc",
    compile: ["clang-19", "-O2"],
    library: linuxX64,
  },
  {
    name: "linux_x64, CPU without AVX2 (qemu)",
    compile: ["clang-19", "-O2"],
    library: linuxX64,
    emulator: ["qemu-x86_64", "-cpu", "Nehalem"],
    kernels: "1",
  },
  { name: "linux_x64, musl", compile: ["musl-gcc", "-O2"], library: linuxX64 },
  {
    name: "linux_arm64 (qemu)",
    compile: ["aarch64-linux-gnu-gcc", "-O2"],
    library: linuxArm64,
    emulator: ["qemu-aarch64", "-L", ARM64_ROOT],
  },
  {
    name: "windows_x64 (wine)",
    compile: [
      "x86_64-w64-mingw32-gcc",
      "-O2",
      "-D__USE_MINGW_ANSI_STDIO=1",
    ],
    library: windowsX64,
    emulator: ["wine"],
    optional: true,
  },
];

const FUNCTIONS: readonly string[] = [
  "wsframe_cpu",
  "wsframe_mask",
  "wsframe_mask_into",
  "wsframe_scan",
  "wsframe_use_kernel",
];
const NODE_API: RegExp = /^napi_[a-z_]+$/;

let passed = 0;
let failed = 0;
let notRun = 0;

class ToolMissing extends Error {}

async function run(
  command: readonly string[],
  env: Record<string, string> = {},
): Promise<{ ok: boolean; text: string }> {
  let output: Deno.CommandOutput;
  try {
    output = await new Deno.Command(command[0], {
      args: command.slice(1),
      cwd: NATIVE,
      env,
    }).output();
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) {
      throw new ToolMissing(`${command[0]} was not found`);
    }
    throw error;
  }
  const decoder = new TextDecoder();
  return {
    ok: output.success,
    text: decoder.decode(output.stdout) +
      (output.success ? "" : decoder.decode(output.stderr)),
  };
}

function check(ok: boolean, message: string): void {
  if (ok) passed++;
  else {
    failed++;
    console.log(`failed: ${message}`);
  }
}

async function runWay(way: Way, dir: string): Promise<void> {
  const program = `${dir}/test.exe`;
  const build = await run([
    ...way.compile,
    ...WARNINGS,
    ...(way.library ? ["-DLIBRARY_FROM_FILE"] : ["wsframe.c"]),
    ...TESTS,
    "-o",
    program,
  ]);
  if (!build.ok) {
    check(false, `${way.name} does not compile:\n${build.text}`);
    return;
  }
  // Windows looks for a name without a suffix under another name
  const library = `${dir}/library.dll`;
  if (way.library) {
    await Deno.writeFile(library, decode(way.library));
  }
  const result = await run(
    [...way.emulator ?? [], program, ...(way.library ? [library] : [])],
    { WINEPREFIX: `${dir}/wine`, WINEDEBUG: "-all" },
  );
  // Each program makes millions of checks; here it is one, that all of them hold.
  const good = result.ok && /^[1-9]\d* passed, 0 failed$/m.test(result.text);
  check(good, `${way.name}\n${result.text}`);
  if (way.kernels) {
    const kernels = [...result.text.matchAll(/^kernel (\d+)/gm)].map((m) =>
      m[1]
    );
    check(
      kernels.join(" ") === way.kernels,
      `${way.name} ran kernels ${kernels}, not ${way.kernels}`,
    );
  }
  console.log(`${way.name}: ${result.text.trim().replaceAll(/\s*\n/g, "; ")}`);
}

/** Names of the symbols that `llvm-nm` lists with these flags. */
async function symbols(flags: readonly string[]): Promise<string[]> {
  const { text } = await run(["llvm-nm-19", "--just-symbol-name", ...flags]);
  return text.split("\n").filter((line) => line !== "")
    .map((line) => line.trim().replace(/^_/, ""));
}

async function inspect(
  name: string,
  library: EmbeddedLibrary,
  dir: string,
): Promise<void> {
  const file = `${dir}/${name}`;
  const bytes = decode(library);
  await Deno.writeFile(file, bytes);
  if (name === "wasm") {
    const module = new WebAssembly.Module(bytes);
    const exports = WebAssembly.Module.exports(module).map((e) => e.name);
    for (const wanted of [...FUNCTIONS, "memory", "__heap_base"]) {
      check(exports.includes(wanted), `wasm exports ${wanted}`);
    }
    check(WebAssembly.Module.imports(module).length === 0, "wasm imports");
    return;
  }
  if (name === "windows_x64") {
    const { text } = await run([
      "llvm-readobj-19",
      "--coff-exports",
      "--coff-imports",
      file,
    ]);
    for (const wanted of FUNCTIONS) {
      check(text.includes(`Name: ${wanted}\n`), `${name} exports ${wanted}`);
    }
    check(!text.includes("Import {"), `${name} imports something: ${text}`);
    return;
  }
  const dynamic = name.startsWith("linux") ? ["--dynamic"] : [];
  const exports = await symbols([...dynamic, "--defined-only", file]);
  for (const wanted of [...FUNCTIONS, "napi_register_module_v1"]) {
    check(exports.includes(wanted), `${name} exports ${wanted}`);
  }
  const imports = await symbols([...dynamic, "--undefined-only", file]);
  check(
    imports.every((symbol) => NODE_API.test(symbol)),
    `${name} imports ${imports}`,
  );
  if (name.startsWith("linux")) {
    const { text } = await run(["llvm-readelf-19", "-dlV", file]);
    // no libc of any version, and nothing that loaders from before 2022 cannot do
    check(
      !/NEEDED|VERNEED|RELR/.test(text),
      `${name} needs more than a loader`,
    );
    check(/GNU_STACK.* RW /.test(text), `${name} has an executable stack`);
  }
}

async function attempt(
  name: string,
  optional: boolean,
  work: (dir: string) => Promise<void>,
): Promise<void> {
  const dir = await Deno.makeTempDir({ prefix: "wsframe-native-test-" });
  try {
    await work(dir);
  } catch (error) {
    if (!(error instanceof ToolMissing)) throw error;
    notRun++;
    console.log(`${name}: not run, ${error.message}`);
    if (Deno.env.get("CI") === "true" && !optional) failed++;
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
}

async function main(): Promise<number> {
  for (const way of WAYS) {
    await attempt(way.name, way.optional ?? false, (dir) => runWay(way, dir));
  }
  await attempt("exports and imports", false, async (dir) => {
    const libraries: Record<string, EmbeddedLibrary> = {
      linux_x64: linuxX64,
      linux_arm64: linuxArm64,
      macos_x64: macosX64,
      macos_arm64: macosArm64,
      windows_x64: windowsX64,
      wasm,
    };
    for (const [name, library] of Object.entries(libraries)) {
      await inspect(name, library, dir);
    }
  });
  if (notRun > 0) console.log(`${notRun} not run`);
  console.log(`${passed} passed, ${failed} failed`);
  return failed > 0 || passed === 0 ? 1 : 0;
}

if (import.meta.main) Deno.exit(await main());
