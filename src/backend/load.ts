/**
 * Opens an embedded library: decodes it, writes it to a fresh private directory,
 * has it opened and removes it at once. What lies in a directory already is never
 * looked at.
 *
 * @module
 */

import type { Backend, BackendName } from "./backend.ts";
import * as linuxArm64 from "./embedded/linux_arm64.ts";
import * as linuxX64 from "./embedded/linux_x64.ts";
import * as macosArm64 from "./embedded/macos_arm64.ts";
import * as macosX64 from "./embedded/macos_x64.ts";
import * as windowsX64 from "./embedded/windows_x64.ts";
import { decode, messageOf, nativeBackend } from "./native.ts";
import type { EmbeddedLibrary, Library, MinimumLengths } from "./native.ts";

/** The libraries that native/build.ts made; keys as in `process.platform` and `process.arch`. */
export const LIBRARIES: Readonly<Record<string, EmbeddedLibrary>> = {
  "darwin-arm64": macosArm64,
  "darwin-x64": macosX64,
  "linux-arm64": linuxArm64,
  "linux-x64": linuxX64,
  "win32-x64": windowsX64,
};

/** What a directory's inode says, and the user that this process runs as. */
export interface Ownership {
  readonly uid: number;
  readonly gid: number;
  readonly mode: number;
  readonly user: number;
}

/** What loading needs of a runtime. All of it throws where it fails. */
export interface System {
  /** As in `process.platform`. */
  readonly platform: string;
  /** The value of an environment variable, where reading it needs no prompt. */
  environment(name: string): string | undefined;
  /** The path without symbolic links; as it is where it cannot be resolved. */
  realPath(path: string): string;
  /**
   * Who may change what is in a directory, or why that is not to be known. Does not
   * follow a symbolic link. Not asked on Windows.
   */
  ownership(path: string): Ownership | string;
  /** Whether only places that the user named may be written to, who so vouches for them. */
  isConfined(): boolean;
  /** Makes a new directory in `parent` that only this user may enter (mode 0700); returns its path. */
  makeDirectory(parent: string): string;
  /** Writes a file that must not exist yet. */
  writeFile(path: string, bytes: Uint8Array): void;
  removeFile(path: string): void;
  /** Removes an empty directory. */
  removeDirectory(path: string): void;
}

/** The beginning of the name of every directory that is made. */
export const PREFIX = "wsframe-";

/** Temporary directories that are the system's own. */
const SYSTEM_DIRECTORIES: readonly string[] = ["/tmp", "/var/tmp"];

/**
 * Directories to write the library to, best first: more than one, because a
 * temporary directory may be read-only or on a file system whose files may not be
 * executed. The working directory is not among them; it is no place for surprises.
 * Links in those from variables are resolved, so that what is checked is what is used.
 */
export function candidateDirectories(
  system: Pick<System, "platform" | "environment" | "realPath">,
): string[] {
  const windows = system.platform === "win32";
  const variable = (name: string, suffix = "") => {
    const value = system.environment(name);
    if (!value) return "";
    return windows || !value.startsWith("/")
      ? value
      : system.realPath(value + suffix);
  };
  const directories = windows
    ? [variable("TEMP"), variable("TMP"), "C:\\Windows\\Temp"]
    : [
      variable("TMPDIR"),
      ...SYSTEM_DIRECTORIES,
      variable("XDG_RUNTIME_DIR"),
      "/dev/shm",
      variable("XDG_CACHE_HOME"),
      variable("HOME", "/.cache"),
    ];
  return directories.filter((path, i) =>
    // a relative path would depend on the working directory
    (windows ? /^[a-z]:[\\/]|^\\\\/i.test(path) : path.startsWith("/")) &&
    directories.indexOf(path) === i
  );
}

function attempt(action: () => void): void {
  try {
    action();
  } catch {
    // what cannot be removed now (Windows holds the file of an open library) stays
  }
}

/** A directory and all those above it. */
function* upward(path: string): Generator<string> {
  for (let end = path.length; end > 0; end = path.lastIndexOf("/", end - 1)) {
    yield path.slice(0, end);
  }
  yield "/";
}

/**
 * Throws where another user could exchange our file between its writing and its opening.
 * That is whoever owns the directory or one above it, and whoever may write to one of
 * them, unless its sticky bit is set. Of groups only root's is trusted: who else is in
 * one, even in the user's own, is not to be seen (and the same bits may stand for an
 * access control list). The system's own directories are taken for well placed, and for
 * well made where nothing is to be known.
 */
function checkOwnership(directory: string, system: System): void {
  if (system.platform === "win32") return;
  const fixed = SYSTEM_DIRECTORIES.includes(directory);
  const paths = fixed ? [system.realPath(directory)] : upward(directory);
  for (const path of paths) {
    const owner = system.ownership(path);
    if (typeof owner === "string") {
      if (fixed || system.isConfined()) return;
      throw new Error(owner);
    }
    const { uid, gid, mode, user } = owner;
    const writable = (mode & (gid === 0 ? 0o002 : 0o022)) !== 0 &&
      (mode & 0o1000) === 0;
    if (uid !== user && uid !== 0 || writable) {
      throw new Error(`another user may change what is in ${path}`);
    }
  }
}

function openIn<T>(
  parent: string,
  bytes: Uint8Array,
  system: System,
  open: (path: string) => T,
): T {
  checkOwnership(parent, system);
  const directory = system.makeDirectory(parent);
  const path = `${directory}/wsframe.node`;
  try {
    system.writeFile(path, bytes);
    return open(path);
  } finally {
    attempt(() => system.removeFile(path));
    attempt(() => system.removeDirectory(directory));
  }
}

/**
 * Writes the library to the first of `directories` from which `open` can open it.
 * Throws an error with the reason for each directory where none is.
 */
export function openLibrary<T>(
  library: EmbeddedLibrary,
  system: System,
  directories: Iterable<string>,
  open: (path: string) => T,
): T {
  const bytes = decode(library);
  /** The directories of each reason. */
  const refused: Map<string, string[]> = new Map();
  for (const directory of directories) {
    try {
      return openIn(directory, bytes, system, open);
    } catch (error) {
      const reason = messageOf(error);
      refused.set(reason, [...refused.get(reason) ?? [], directory]);
    }
  }
  const reasons = Array.from(
    refused,
    ([reason, places]) => `${places.join(", ")}: ${reason}`,
  );
  throw new Error(reasons.join("; ") || "no directory to write the library to");
}

/** The whole way of a native backend from the embedded library to the tested backend. */
export function loadBackend(
  name: BackendName,
  minimum: MinimumLengths,
  library: EmbeddedLibrary | undefined,
  system: System,
  directories: Iterable<string>,
  open: (path: string) => Library,
): Backend | string {
  if (library === undefined) {
    return "there is no library for this operating system and CPU";
  }
  try {
    return nativeBackend(
      name,
      openLibrary(library, system, directories, open),
      minimum,
    );
  } catch (error) {
    return messageOf(error);
  }
}

/** The part of `process` that is used here. */
export interface Process {
  readonly platform: string;
  readonly arch: string;
  readonly versions: { readonly node?: string; readonly bun?: string };
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly permission?: { has(scope: string, reference?: string): boolean };
  /** Node 20.16, Bun 1.2. */
  getBuiltinModule?(name: string): unknown;
  dlopen(module: { exports: unknown }, path: string): void;
  /** Not on Windows. */
  getuid?(): number;
}

interface FileSystem {
  realpathSync(path: string): string;
  lstatSync(path: string): { uid: number; gid: number; mode: number };
  mkdtempSync(prefix: string): string;
  writeFileSync(
    path: string,
    data: Uint8Array,
    options: { flag: string; mode: number },
  ): void;
  unlinkSync(path: string): void;
  rmdirSync(path: string): void;
}

/** `process`, where this runtime is the one asked for; Bun and Deno call themselves Node, too. */
export function processOf(runtime: "node" | "bun"): Process | undefined {
  const scope = globalThis as { process?: Process; Deno?: unknown };
  // Deno first: looking at its `process` makes it load Node's, which takes 13 ms
  if (scope.Deno !== undefined) return undefined;
  const versions = scope.process?.versions;
  if (versions?.node === undefined) return undefined;
  const actual = versions.bun === undefined ? "node" : "bun";
  return actual === runtime ? scope.process : undefined;
}

/** Node's file system as the loader uses it; throws where it is not to be had. */
export function processSystem(process: Process): System {
  const fs = process.getBuiltinModule?.("node:fs") as FileSystem;
  return {
    platform: process.platform,
    environment: (name) => process.env[name],
    realPath(path) {
      try {
        return fs.realpathSync(path);
      } catch {
        return path;
      }
    },
    ownership(path) {
      const user = process.getuid?.();
      if (user === undefined) return "this process has no user";
      const { uid, gid, mode } = fs.lstatSync(path);
      return { uid, gid, mode, user };
    },
    isConfined: () => false,
    makeDirectory: (parent) => fs.mkdtempSync(`${parent}/${PREFIX}`),
    writeFile: (path, bytes) =>
      fs.writeFileSync(path, bytes, { flag: "wx", mode: 0o700 }),
    removeFile: (path) => fs.unlinkSync(path),
    removeDirectory: (path) => fs.rmdirSync(path),
  };
}
