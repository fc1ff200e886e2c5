/** Opening the embedded library: damaged ones, unusable directories, nothing left behind. */

import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import process from "node:process";
import { describe, it } from "node:test";
import {
  assert,
  assertEquals,
  assertMatch,
  assertStringIncludes,
  assertThrows,
} from "@std/assert";
import {
  candidateDirectories,
  LIBRARIES,
  loadBackend,
  openLibrary,
  processSystem,
} from "../src/backend/load.ts";
import type { Process, System } from "../src/backend/load.ts";
import { checksum, decode, selfTest } from "../src/backend/native.ts";
import type { Library } from "../src/backend/native.ts";
import * as portable from "../src/backend/portable.ts";

const SYSTEM: System = processSystem(process as unknown as Process);
const EMBEDDED = LIBRARIES[`${process.platform}-${process.arch}`]!;
const MINIMUM = { mask: 1, maskInto: 1, scan: 1 };

/** Runs with an empty directory, which must be empty again afterwards. */
function withDirectory(run: (directory: string) => void): void {
  const directory = mkdtempSync(`${tmpdir()}/test-`);
  try {
    run(directory);
    assertEquals(readdirSync(directory), []);
  } finally {
    rmSync(directory, { recursive: true });
  }
}

/** TypeScript in the place of a library, to see what the self-test sees. */
function typescript(changes: Partial<Library> = {}): Library {
  return {
    holds: (bytes, end) => end <= bytes.length,
    mask: portable.mask,
    maskInto: portable.maskInto,
    scan: portable.scan,
    cpu: () => 3,
    useKernel: (kernel) => kernel || 2,
    ...changes,
  };
}

describe("openLibrary()", () => {
  it("has a private file opened in a private directory, and removes both", () => {
    withDirectory((directory) => {
      const result = openLibrary(EMBEDDED, SYSTEM, [directory], (path) => {
        assertEquals(
          new Uint8Array(readFileSync(path)),
          new Uint8Array(decode(EMBEDDED)),
        );
        const [name] = readdirSync(directory);
        assertMatch(name!, /^wsframe-/);
        assertEquals(statSync(`${directory}/${name}`).mode & 0o777, 0o700);
        assertEquals(statSync(path).mode & 0o077, 0);
        return "opened";
      });
      assertEquals(result, "opened");
    });
  });

  it("goes on to the next directory where one cannot be used", () => {
    withDirectory((directory) => {
      const file = `${directory}/file`;
      writeFileSync(file, "");
      let opened = 0;
      const open = (path: string) => {
        // as where files may not be executed
        if (++opened === 1) throw new Error("failed to map segment");
        return path;
      };
      const directories = [`${directory}/missing`, file, directory, directory];
      const path = openLibrary(EMBEDDED, SYSTEM, directories, open);
      assertEquals(opened, 2);
      assertStringIncludes(path, `${directory}/wsframe-`);
      rmSync(file);
    });
  });

  /** Opens in a directory of which `ownership` says who may change it and those above. */
  function openOwned(
    directory: string,
    ownership: System["ownership"],
    changes: Partial<System> = {},
  ): string {
    const makeDirectory = () => SYSTEM.makeDirectory(tmpdir());
    const system = { ...SYSTEM, makeDirectory, ...changes, ownership };
    return openLibrary(EMBEDDED, system, [directory], () => "opened");
  }

  const PLACES: [uid: number, gid: number, mode: number, good: boolean][] = [
    [1000, 1000, 0o700, true],
    [1000, 1000, 0o755, true],
    [0, 0, 0o1777, true],
    [0, 0, 0o755, true],
    [0, 0, 0o775, true],
    [1000, 0, 0o770, true],
    [1000, 1000, 0o770, false],
    [0, 50, 0o775, false],
    [0, 0, 0o777, false],
    [1001, 1001, 0o700, false],
    [1001, 0, 0o1777, false],
  ];
  const SAFE = { uid: 0, gid: 0, mode: 0o755, user: 1000 };

  it("uses no directory in which another user may change things", () => {
    for (const unsafe of ["/x/mine/tmp", "/x/mine", "/x", "/"]) {
      for (const [uid, gid, mode, good] of PLACES) {
        const open = () =>
          openOwned(
            "/x/mine/tmp",
            (path) => path === unsafe ? { ...SAFE, uid, gid, mode } : SAFE,
          );
        if (good) assertEquals(open(), "opened");
        else assertThrows(open, Error, `what is in ${unsafe}`);
      }
    }
  });

  it("looks at the system's own directories, but not above them", () => {
    const realPath = (path: string) => `/private${path}`;
    for (const directory of ["/tmp", "/var/tmp"]) {
      for (const [uid, gid, mode, good] of PLACES) {
        const seen: string[] = [];
        const open = () =>
          openOwned(directory, (path) => {
            seen.push(path);
            return { uid, gid, mode, user: 1000 };
          }, { realPath });
        if (good) assertEquals(open(), "opened");
        else assertThrows(open, Error, "another user");
        assertEquals(seen, [`/private${directory}`]);
      }
    }
  });

  it("uses only those where nothing is to be known, except on Windows", () => {
    const unknown = () => "not to be known";
    assertEquals(openOwned("/tmp", unknown), "opened");
    assertEquals(openOwned("/var/tmp", unknown), "opened");
    for (const directory of ["/tmp/mine", "/dev/shm"]) {
      assertThrows(
        () => openOwned(directory, unknown),
        Error,
        `${directory}: not to be known`,
      );
    }
    assertEquals(
      openOwned("C:\\Temp", unknown, { platform: "win32" }),
      "opened",
    );
  });

  it("sees a directory above that all may write to", () => {
    withDirectory((directory) => {
      const mine = `${directory}/mine`;
      mkdirSync(mine, { mode: 0o700 });
      const open = () => openLibrary(EMBEDDED, SYSTEM, [mine], () => "opened");
      for (const mode of [0o700, 0o1777]) {
        chmodSync(directory, mode);
        assertEquals(open(), "opened");
      }
      chmodSync(directory, 0o777);
      assertThrows(open, Error, `what is in ${directory}`);
      rmdirSync(mine);
    });
  });

  it("tells the reason for each directory, and leaves nothing in any", () => {
    withDirectory((directory) => {
      const { message } = assertThrows(
        () =>
          openLibrary(EMBEDDED, SYSTEM, [`${directory}/a`, directory], () => {
            throw new Error("will not open");
          }),
        Error,
      );
      assertMatch(message, /\/a: .*ENOENT.*; .*: will not open$/);
    });
    assertThrows(
      () => openLibrary(EMBEDDED, SYSTEM, [], () => null),
      Error,
      "no directory",
    );
  });

  it("never gives a damaged library to be opened", () => {
    const { LIBRARY, CHECKSUM } = EMBEDDED;
    const [text] = LIBRARY as string[];
    const flip = (at: number) => {
      const other = text[at] === "A" ? "B" : "A";
      return text.slice(0, at) + other + text.slice(at + 1);
    };
    const damaged = [
      "",
      "?",
      text.slice(0, -4),
      // in front: Node 20 ignores what follows padding
      "AAAA" + text,
      ...[0, 100, text.length >> 1, text.length - 8].map(flip),
    ].map((text) => [text, ...LIBRARY.slice(1)]);
    for (const LIBRARY of [...damaged, [], [text, 1], [-1]]) {
      const library = { LIBRARY, CHECKSUM };
      const reason = loadBackend(
        "portable",
        MINIMUM,
        library,
        SYSTEM,
        [tmpdir()],
        () => {
          throw new Error("it was opened");
        },
      );
      assertEquals(
        reason,
        "the embedded library is damaged: its checksum differs",
      );
    }
  });

  it("knows when there is no library for the machine", () => {
    assertEquals(
      loadBackend(
        "portable",
        MINIMUM,
        undefined,
        SYSTEM,
        [],
        () => typescript(),
      ),
      "there is no library for this operating system and CPU",
    );
  });
});

describe("embedded libraries", () => {
  it("are what their checksums say, and small", () => {
    for (const library of Object.values(LIBRARIES)) {
      const { length } = decode(library);
      assert(length < 36_000);
      // runs of zeros, which fill up pages, are not stored
      assert(library.LIBRARY.join("").length < 15_000);
    }
  });

  it("are decoded in the same way with what an older engine has", () => {
    const scope = globalThis as { Buffer?: unknown };
    const constructor = Uint8Array as { fromBase64?: unknown };
    const { Buffer } = scope;
    const { fromBase64 } = constructor;
    const expected = Object.values(LIBRARIES).map(decode);
    const same = () =>
      assertEquals(
        Object.values(LIBRARIES).map((library) =>
          new Uint8Array(decode(library))
        ),
        expected.map((bytes) => new Uint8Array(bytes)),
      );
    try {
      constructor.fromBase64 = undefined;
      same();
      scope.Buffer = undefined;
      same();
    } finally {
      scope.Buffer = Buffer;
      if (fromBase64 === undefined) delete constructor.fromBase64;
      else constructor.fromBase64 = fromBase64;
    }
  });
});

describe("checksum()", () => {
  it("sees every changed bit, and a changed length", () => {
    const bytes = new Uint8Array(101).map((_, i) => i * 59);
    const sum = checksum(bytes);
    for (let bit = 0; bit < 8 * bytes.length; bit++) {
      const changed = bytes.slice();
      changed[bit >> 3]! ^= 1 << (bit & 7);
      assert(checksum(changed) !== sum, `bit ${bit}`);
    }
    assert(checksum(new Uint8Array(5)) !== checksum(new Uint8Array(6)));
  });
});

describe("candidateDirectories()", () => {
  const directories = (
    platform: string,
    env: Record<string, string | undefined>,
  ) =>
    candidateDirectories({
      platform,
      environment: (name) => env[name],
      realPath: (path) => path,
    });

  it("begins with the one that the user chose", () => {
    const env = { TMPDIR: "/mine", HOME: "/home/me" };
    assertEquals(directories("linux", env), [
      "/mine",
      "/tmp",
      "/var/tmp",
      "/dev/shm",
      "/home/me/.cache",
    ]);
  });

  it("resolves links in what variables say, where there is something", () => {
    withDirectory((directory) => {
      const link = `${directory}/link`;
      symlinkSync(".", link);
      const env: Record<string, string> = {
        TMPDIR: link,
        XDG_CACHE_HOME: `${directory}/missing`,
      };
      const found = candidateDirectories({
        ...SYSTEM,
        environment: (name) => env[name],
      });
      assertEquals(found, [
        realpathSync(directory),
        "/tmp",
        "/var/tmp",
        "/dev/shm",
        `${directory}/missing`,
      ]);
      rmSync(link);
    });
  });

  it("takes no relative path, and none twice", () => {
    const env = { TMPDIR: "tmp", XDG_CACHE_HOME: "/tmp", HOME: "" };
    assertEquals(directories("linux", env), ["/tmp", "/var/tmp", "/dev/shm"]);
  });

  it("knows Windows", () => {
    assertEquals(
      directories("win32", { TEMP: "C:\\Users\\me\\Temp", TMP: "temp" }),
      ["C:\\Users\\me\\Temp", "C:\\Windows\\Temp"],
    );
  });
});

describe("selfTest()", () => {
  it("is passed by TypeScript, so its answers are right", () => {
    assertEquals(selfTest(typescript()), "avx2");
    assertEquals(
      selfTest(typescript({ cpu: () => 4, useKernel: () => 4 })),
      "neon",
    );
  });

  it("tries every kernel of the CPU and ends with the best", () => {
    const used: number[] = [];
    const useKernel = (kernel: number) => {
      used.push(kernel);
      return kernel || 2;
    };
    selfTest(typescript({ useKernel }));
    assertEquals(used, [1, 2, 0]);
  });

  it("refuses a library that errs in one function of one kernel", () => {
    let kernel = 0;
    const useKernel = (wanted: number) => kernel = wanted || 2;
    const wrong: Record<string, Partial<Library>> = {
      "masks wrongly": {
        mask(bytes, start, length, key) {
          portable.mask(bytes, start, length - +(kernel === 2), key);
        },
      },
      "avx2 masks wrongly": {
        maskInto(target, targetStart, source, sourceStart, length, key) {
          const shift = +(kernel === 2 && length > 300);
          portable.maskInto(
            target,
            targetStart + shift,
            source,
            sourceStart,
            length,
            key,
          );
        },
      },
      "avx2 scans wrongly": {
        scan(source, start, length, target, targetStart, table, flags, max) {
          const count = portable.scan(
            source,
            start,
            length,
            target,
            targetStart,
            table,
            flags,
            max,
          );
          if (kernel === 2) table[7]! ^= 1;
          return count;
        },
      },
      "sse2 does not start": { useKernel: () => 2 },
      "no kernel for this CPU": { cpu: () => 0 },
    };
    for (const [reason, changes] of Object.entries(wrong)) {
      const library = typescript({ useKernel, ...changes });
      assertThrows(() => selfTest(library), Error, reason);
    }
  });

  it("sees one wrong bit wherever a function writes one", () => {
    const refused = (changes: Partial<Library>) => {
      try {
        selfTest(typescript({ cpu: () => 1, useKernel: () => 1, ...changes }));
        return false;
      } catch {
        return true;
      }
    };
    /** Library functions of which the `nth` call flips a bit of its result's byte `at`. */
    const wrong = (nth: number, at: number): Partial<Library>[] => {
      let calls = 0;
      const flip = (bytes: Uint8Array | Uint32Array, at: number) => {
        if (calls++ === nth) bytes[at]! ^= 4;
      };
      return [{
        mask(bytes, start, length, key) {
          portable.mask(bytes, start, length, key);
          flip(bytes, start + at % length);
        },
      }, {
        maskInto(target, targetStart, source, sourceStart, length, key) {
          portable.maskInto(
            target,
            targetStart,
            source,
            sourceStart,
            length,
            key,
          );
          flip(target, targetStart + at % length);
        },
      }, {
        scan(source, start, length, target, targetStart, table, flags, max) {
          const count = portable.scan(
            source,
            start,
            length,
            target,
            targetStart,
            table,
            flags,
            max,
          );
          if (target !== null && at & 1) flip(target, at >> 1);
          else flip(table, at % table.length);
          return count;
        },
      }];
    };
    for (let at = 0; at < 500; at++) {
      for (const [i, calls] of [4, 8, 3].entries()) {
        for (let nth = 0; nth < calls; nth++) {
          assert(
            refused(wrong(nth, at)[i]!),
            `function ${i}, call ${nth}, byte ${at}`,
          );
        }
      }
    }
  });

  it("makes the loader refuse the library with that reason", () => {
    withDirectory((directory) => {
      assertEquals(
        loadBackend(
          "portable",
          MINIMUM,
          EMBEDDED,
          SYSTEM,
          [directory],
          () => typescript({ mask() {} }),
        ),
        "the self-test failed: kernel sse2 masks wrongly",
      );
    });
  });
});
