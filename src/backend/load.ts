/**
 * Opens an embedded library: decodes it, writes it to a fresh private directory,
 * has it opened and removes it at once. What lies in a directory already is never
 * looked at.
 *
 * @module
 */

import type { Backend, BackendName } from "./backend.ts";
import { decode, messageOf } from "./decode.ts";
import type { EmbeddedLibrary } from "./decode.ts";
import type { Library } from "./library.ts";
import { nativeBackend } from "./native.ts";
import type { MinimumLengths } from "./native.ts";

/** What loading needs of a runtime. All of it throws where it fails. */
export interface System {
  /** As in `process.platform`. */
  readonly platform: string;
  /** The value of an environment variable, where reading it needs no prompt. */
  environment(name: string): string | undefined;
  /**
   * Who owns a directory, with its mode and the user that this process runs as; undefined
   * where it is not to be known (Windows, or no permission to look).
   */
  ownership?(
    directory: string,
  ): { uid: number; mode: number; user: number } | undefined;
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

/**
 * Directories to write the library to, best first: more than one, because a
 * temporary directory may be read-only or on a file system whose files may not be
 * executed. The working directory is not among them; it is no place for surprises.
 */
export function candidateDirectories(
  system: Pick<System, "platform" | "environment">,
): string[] {
  const variable = (name: string, suffix = "") => {
    const value = system.environment(name);
    return value ? value + suffix : "";
  };
  const directories = system.platform === "win32"
    ? [variable("TEMP"), variable("TMP"), "C:\\Windows\\Temp"]
    : [
      variable("TMPDIR"),
      "/tmp",
      "/var/tmp",
      variable("XDG_RUNTIME_DIR"),
      "/dev/shm",
      variable("XDG_CACHE_HOME"),
      variable("HOME", "/.cache"),
    ];
  // a relative path would depend on the working directory
  const absolute = system.platform === "win32" ? /^[a-z]:[\\/]|^\\\\/i : /^\//;
  return [...new Set(directories)].filter((path) => absolute.test(path));
}

function attempt(action: () => void): void {
  try {
    action();
  } catch {
    // what cannot be removed now (Windows holds the file of an open library) stays
  }
}

/**
 * Throws where somebody else could put another file in the place of ours between its
 * writing and its opening: who owns the directory, or, without the sticky bit, who may
 * write to it.
 */
function checkOwnership(directory: string, system: System): void {
  const owner = system.ownership?.(directory);
  if (owner === undefined) return;
  const { uid, mode, user } = owner;
  const writable = (mode & 0o022) !== 0 && (mode & 0o1000) === 0;
  if (uid !== user && uid !== 0 || writable) {
    throw new Error("another user may change what is in it");
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
  directories: readonly string[],
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
  directories: readonly string[],
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
