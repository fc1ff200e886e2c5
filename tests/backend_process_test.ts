/** The backends in processes and workers of their own: permissions, crowds, binaries. */

import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import process from "node:process";
import { describe, it } from "node:test";
import { assert, assertEquals, assertMatch } from "@std/assert";
import type { BackendName } from "../src/backend/backend.ts";
import {
  command,
  firstMessage,
  programPath,
  run,
  RUNTIME,
} from "./programs/start.ts";

const NATIVE = `${RUNTIME}-${
  RUNTIME === "node" ? "api" : "ffi"
}` as BackendName;

/** What tests/programs/backends.ts prints. */
interface Report {
  used: { name: BackendName };
  right: boolean;
  backends: { name: BackendName; available: boolean; reason: string }[];
}

/** Runs it, and checks what is so everywhere: right results, and nothing on stderr. */
function report(
  args: readonly string[],
  env: Record<string, string> = {},
): Report {
  const { status, stdout, stderr } = run(args, env);
  assertEquals({ status, stderr }, { status: 0, stderr: "" });
  const report: Report = JSON.parse(stdout);
  assert(report.right);
  return report;
}

function reasonOf(report: Report, name: BackendName): string {
  return report.backends.find((backend) => backend.name === name)!.reason;
}

function withDirectory<T>(action: (directory: string) => T): T {
  const directory = mkdtempSync(`${tmpdir()}/test-`);
  try {
    return action(directory);
  } finally {
    rmSync(directory, { recursive: true });
  }
}

describe("a process", () => {
  it("uses the library and leaves no file", () => {
    withDirectory((TMPDIR) => {
      const flags = RUNTIME === "deno" ? ["--allow-all"] : [];
      const { used } = report(command("backends.ts", flags), { TMPDIR });
      assertEquals(used.name, NATIVE);
      // tsx, where Node needs it, has files of its own there
      const left = readdirSync(TMPDIR).filter((name) => /^wsframe/.test(name));
      assertEquals(left, []);
    });
  });

  it("has the engines without a library in ./web", () => {
    const { stdout, stderr } = run(command("web.ts", []));
    assertEquals(stderr, "");
    assertEquals(JSON.parse(stdout), {
      used: "wasm",
      names: ["wasm", "portable"],
    });
  });

  it("does what WSFRAME_BACKEND says", () => {
    const flags = RUNTIME === "deno" ? ["--allow-all"] : [];
    for (const name of ["wasm", "portable"]) {
      const env = { WSFRAME_BACKEND: name };
      assertEquals(
        report(command("backends.ts", flags), env).used.name,
        name as BackendName,
      );
    }
  });
});

describe("workers", () => {
  it("open the library, many at once", async () => {
    const messages = await Promise.all(
      Array.from({ length: 12 }, () => firstMessage("worker.ts")),
    );
    for (const message of messages) {
      assertEquals(message, { name: NATIVE, right: true });
    }
  });
});

if (RUNTIME === "deno") {
  describe("Deno permissions", () => {
    const needed = (flags: string) => `not permitted: add ${flags}`;
    /** Flags, and the reason why the library may not be opened: "available" where it may. */
    const sets: [flags: string, reason: string][] = [
      // without any flag, node:child_process would start Deno with --allow-all
      ["--deny-net", needed("--allow-ffi=/tmp --allow-write=/tmp")],
      ["--allow-ffi", needed("--allow-write=/tmp")],
      ["--allow-ffi=/tmp", needed("--allow-write=/tmp")],
      ["--allow-write", needed("--allow-ffi=/tmp")],
      ["--allow-ffi --allow-write=/usr", needed("--allow-write=/tmp")],
      ["--allow-ffi=/usr --allow-write=/tmp", needed("--allow-ffi=/tmp")],
      ["--allow-all --deny-ffi", needed("--allow-ffi=/tmp")],
      ["--allow-all --deny-write", needed("--allow-write=/tmp")],
      ["--allow-all --deny-env --deny-read", "available"],
      ["--allow-ffi --allow-write=/tmp", "available"],
      ["--allow-ffi=/tmp --allow-write=/tmp", "available"],
      ["--allow-ffi=/var/tmp --allow-write=/var/tmp", "available"],
      ["--allow-all", "available"],
    ];
    const env = {
      TMPDIR: "",
      XDG_RUNTIME_DIR: "",
      XDG_CACHE_HOME: "",
      HOME: "",
    };

    for (const [flags, reason] of sets) {
      it(`${flags}: ${reason}`, () => {
        const args = command("backends.ts", flags.split(" "));
        const seen = report(args, env);
        assertEquals(reasonOf(seen, "deno-ffi"), reason);
        assertEquals(
          seen.used.name,
          reason === "available" ? "deno-ffi" : "wasm",
        );
      });
    }

    it("are never asked for on a terminal", () => {
      for (const [flags] of sets) {
        const args = command("backends.ts", flags.split(" "));
        const line = args.map((arg) => `'${arg}'`).join(" ");
        // util-linux; it gives the program a terminal on which Deno would ask
        const { status, stdout } = run(
          ["script", "--quiet", "--return", "--command", line, "/dev/null"],
          env,
        );
        assertEquals(status, 0, stdout);
        assertMatch(stdout.trim(), /^\{.*\}$/, flags);
      }
    });

    it("reach the directory that TMPDIR names, where it may be read", () => {
      withDirectory((TMPDIR) => {
        const flags = [
          "--allow-ffi",
          `--allow-write=${TMPDIR}`,
          "--allow-env=TMPDIR",
        ];
        const { used } = report(command("backends.ts", flags), { TMPDIR });
        assertEquals(used.name, "deno-ffi");
        assertEquals(readdirSync(TMPDIR), []);
      });
    });
  });
}

if (RUNTIME === "bun") {
  describe("bun build --compile", () => {
    it("gives a binary that uses the library", () => {
      withDirectory((directory) => {
        const binary = `${directory}/program`;
        const built = run([
          process.execPath,
          ...["build", "--compile", programPath("backends.ts")],
          ...["--outfile", binary],
        ]);
        assertEquals(built.status, 0, built.stderr);
        assert(existsSync(binary));
        assertEquals(report([binary]).used.name, "bun-ffi");
      });
    });
  });
}

if (RUNTIME === "node") {
  describe("Node's switches", () => {
    it("--no-addons: the next backend, with the reason", () => {
      const seen = report(command("backends.ts", ["--no-addons"]));
      assertEquals(seen.used.name, "wasm");
      assertMatch(reasonOf(seen, "node-api"), /addons is disabled/);
    });
  });
}

// The permission model lets nothing load TypeScript before Node does so itself.
if (
  RUNTIME === "node" && process.allowedNodeEnvironmentFlags.has("--permission")
) {
  describe("Node's permission model", () => {
    const READ = ["--permission", "--allow-fs-read=*"];
    const ADDONS = "--allow-addons";

    it("names the flag to add", () => {
      const seen = report(command("backends.ts", READ));
      assertEquals(seen.used.name, "wasm");
      assertMatch(
        reasonOf(seen, "node-api"),
        /^not permitted: .*--allow-addons/,
      );
    });

    it("lets the library be written where it may", () => {
      withDirectory((TMPDIR) => {
        const env = { TMPDIR };
        const quiet = [...READ, ADDONS, "--disable-warning=SecurityWarning"];
        const without = report(command("backends.ts", quiet), env);
        assertMatch(reasonOf(without, "node-api"), /--allow-fs-write/);
        const flags = [...quiet, `--allow-fs-write=${TMPDIR}/*`];
        const { used } = report(command("backends.ts", flags), env);
        assertEquals(used.name, "node-api");
        assertEquals(readdirSync(TMPDIR), []);
      });
    });
  });
}
