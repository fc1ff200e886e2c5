/** The backends in processes and workers of their own: permissions, crowds, binaries. */

import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  rmSync,
  symlinkSync,
} from "node:fs";
import { tmpdir } from "node:os";
import process from "node:process";
import { describe, it } from "node:test";
import { assert, assertEquals, assertMatch } from "@std/assert";
import type { BackendName } from "../src/backend/backend.ts";
import { MODULES, Program } from "./interop/programs.ts";
import { command, programPath, run, RUNTIME } from "./programs/start.ts";

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
  // resolved, as the library does it: macOS has a link on the way
  const directory = realpathSync(mkdtempSync(`${tmpdir()}/test-`));
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
});

describe("WSFRAME_BACKEND", () => {
  /** What the first uses throw, in a process that has this setting. */
  function thrown(name: string): string[] {
    const flags = RUNTIME === "deno" ? ["--allow-env"] : [];
    const { status, stdout, stderr } = run(command("first_use.ts", flags), {
      WSFRAME_BACKEND: name,
    });
    assertEquals({ status, stderr }, { status: 0, stderr: "" });
    return JSON.parse(stdout);
  }

  const all = ["bun-ffi", "deno-ffi", "node-api", "wasm", "portable"];

  it("is the engine that is used, where there is such a one", () => {
    const flags = RUNTIME === "deno" ? ["--allow-all"] : [];
    for (const name of [NATIVE, "wasm", "portable"] as const) {
      const env = { WSFRAME_BACKEND: name };
      assertEquals(report(command("backends.ts", flags), env).used.name, name);
    }
    const none = report(command("backends.ts", flags), { WSFRAME_BACKEND: "" });
    assertEquals(none.used.name, NATIVE);
  });

  it("throws on every use where it is unknown", () => {
    const error = `RangeError: Expected WSFRAME_BACKEND to be one of ${
      all.map((name) => `"${name}"`).join(", ")
    }, got "turbo"`;
    assertEquals(thrown("turbo"), [error, error, error]);
  });

  it("throws with the reason where it is not available", () => {
    const others = all.filter((name) => /-/.test(name) && name !== NATIVE);
    assertEquals(others.length, 2);
    for (const name of others) {
      const [runtime] = name.split("-");
      for (const error of thrown(name)) {
        assertMatch(
          error.toLowerCase(),
          RegExp(
            `^rangeerror: cannot use the backend "${name}" that ` +
              `wsframe_backend asks for: this is not ${runtime}`,
          ),
        );
      }
    }
  });
});

describe("variables that are not UTF-8", () => {
  /** Runs a program from a shell: what `spawnSync` is given is text, and that is UTF-8. */
  const sh = (variables: string, args: readonly string[]) => {
    const line = args.map((arg) => `'${arg}'`).join(" ");
    return run(["sh", "-c", `bad=$(printf '\\377'); ${variables} ${line}`]);
  };
  const flags = RUNTIME === "deno" ? ["--allow-all"] : [];

  it("name no engine", () => {
    const { status, stdout, stderr } = sh(
      "WSFRAME_BACKEND=$bad",
      command("first_use.ts", flags),
    );
    assertEquals({ status, stderr }, { status: 0, stderr: "" });
    for (const error of JSON.parse(stdout)) {
      assertMatch(
        error,
        /^RangeError: Expected WSFRAME_BACKEND .*, got "\ufffd"$/,
      );
    }
  });

  it("name no directory, and the next is used", () => {
    const { status, stdout, stderr } = sh(
      "XDG_RUNTIME_DIR=/$bad XDG_CACHE_HOME=/$bad " +
        // tsx, where Node 20 needs it, does not start without its directory
        (RUNTIME === "node" ? "" : "TMPDIR=/$bad HOME=/$bad"),
      command("backends.ts", flags),
    );
    assertEquals({ status, stderr }, { status: 0, stderr: "" });
    assertEquals(JSON.parse(stdout).used.name, NATIVE);
  });
});

/** Programs as this runtime starts them fastest: Node from JavaScript, as users have it. */
function crowdPrograms(folder: string): { command: string[]; worker: string } {
  if (RUNTIME !== "node") {
    return {
      command: command("crowd.ts", RUNTIME === "deno" ? ["--allow-all"] : []),
      worker: programPath("worker.ts"),
    };
  }
  const { status, stderr } = run([
    `${MODULES}esbuild/bin/esbuild`,
    ..."--bundle --platform=node --log-level=error".split(" "),
    `--outdir=${folder}`,
    programPath("crowd.ts"),
    programPath("worker.ts"),
  ]);
  assertEquals({ status, stderr }, { status: 0, stderr: "" });
  return {
    command: [process.execPath, `${folder}/crowd.js`],
    worker: `${folder}/worker.js`,
  };
}

describe("a crowd", () => {
  it("of 200 workers in 4 processes opens the library at once", async () => {
    const folder = mkdtempSync(`${tmpdir()}/test-`);
    const TMPDIR = mkdtempSync(`${folder}/tmp-`);
    try {
      const { command, worker } = crowdPrograms(folder);
      const crowds = Array.from(
        { length: 4 },
        () => new Program([...command, "50", worker], { TMPDIR }).ended,
      );
      for (const { code, stdout, stderr } of await Promise.all(crowds)) {
        assertEquals({ code, stderr }, { code: 0, stderr: "" });
        assertEquals(
          JSON.parse(stdout),
          new Array(50).fill({ name: NATIVE, right: true }),
        );
      }
      assertEquals(readdirSync(TMPDIR), []);
    } finally {
      rmSync(folder, { recursive: true });
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

    /** Runs it on a terminal, where Deno would ask and wait for the answer. */
    function assertNoPrompt(
      args: readonly string[],
      env: Record<string, string>,
    ): void {
      const line = args.map((arg) => `'${arg}'`).join(" ");
      const { status, stdout } = run( // util-linux
        ["script", "--quiet", "--return", "--command", line, "/dev/null"],
        { ...env, WSFRAME_BACKEND: "portable" },
      );
      assertEquals(status, 0, stdout);
      assertMatch(stdout.trim(), /^\{.*\}$/, line);
    }

    it("are never asked for on a terminal", () => {
      for (const [flags] of sets) {
        assertNoPrompt(command("backends.ts", flags.split(" ")), env);
      }
    });

    it("decide whether WSFRAME_BACKEND is read", () => {
      const may = ["--allow-ffi", "--allow-write=/tmp"];
      const used = (flags: string[], env: Record<string, string>) =>
        report(command("backends.ts", flags), env).used.name;
      const wasm = { WSFRAME_BACKEND: "wasm" };
      assertEquals(used(may, wasm), "deno-ffi");
      assertEquals(used([...may, "--allow-env=HOME"], wasm), "deno-ffi");
      assertEquals(
        used([...may, "--allow-env", "--deny-env=WSFRAME_BACKEND"], wasm),
        "deno-ffi",
      );
      assertEquals(used([...may, "--allow-env=WSFRAME_BACKEND"], wasm), "wasm");
      // Not even a name that is none is noticed.
      assertEquals(used(may, { WSFRAME_BACKEND: "turbo" }), "deno-ffi");
    });

    it("reach the directory that TMPDIR names, where its owner may be seen", () => {
      withDirectory((TMPDIR) => {
        const may = [
          `--allow-ffi=${TMPDIR}`,
          "--allow-write",
          "--allow-env=TMPDIR",
        ];
        const see = ["--allow-read", "--allow-sys=uid"];
        const { used } = report(
          command("backends.ts", [...may, ...see]),
          { TMPDIR },
        );
        assertEquals(used.name, "deno-ffi");
        assertEquals(readdirSync(TMPDIR), []);

        const reason = (flags: string[]) =>
          reasonOf(
            report(command("backends.ts", [...may, ...flags]), { TMPDIR }),
            "deno-ffi",
          );
        for (
          const [flags, missing] of [
            [[], "--allow-read --allow-sys=uid"],
            [[`--allow-read=${TMPDIR}`], "--allow-sys=uid"],
            [["--allow-read"], "--allow-sys=uid"],
            [["--allow-sys=uid"], "--allow-read"],
            [[`--allow-read=${TMPDIR}`, "--allow-sys"], "--allow-read"],
          ] as const
        ) {
          assertMatch(
            reason([...flags]),
            RegExp(`^${TMPDIR}: not permitted .*: add ${missing}$`),
          );
        }
      });
    });

    it("reach a directory that they name", () => {
      withDirectory((TMPDIR) => {
        const may = [`--allow-write=${TMPDIR}`, "--allow-env=TMPDIR"];
        for (const ffi of ["--allow-ffi", `--allow-ffi=${TMPDIR}`]) {
          const args = command("backends.ts", [ffi, ...may]);
          assertEquals(report(args, { TMPDIR }).used.name, "deno-ffi");
          assertEquals(readdirSync(TMPDIR), []);
        }
      });
    });

    it("for a link do not reach where it leads", () => {
      withDirectory((directory) => {
        const open = `${directory}/open`;
        mkdirSync(open);
        chmodSync(open, 0o777);
        const TMPDIR = `${directory}/link`;
        symlinkSync(open, TMPDIR);
        const may = [
          `--allow-ffi=${TMPDIR}`,
          "--allow-write",
          "--allow-env=TMPDIR",
        ];
        for (
          const flags of [
            may,
            [...may, `--allow-read=${TMPDIR}`],
            [...may, "--allow-read", "--allow-sys=uid"],
          ]
        ) {
          const args = command("backends.ts", flags);
          const { used } = report(args, { TMPDIR });
          assertEquals(used.name, "wasm", flags.join(" "));
          assertNoPrompt(args, { TMPDIR });
        }
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
