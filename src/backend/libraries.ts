/**
 * The libraries that native/build.ts made, by operating system and architecture.
 *
 * @module
 */

import type { EmbeddedLibrary } from "./decode.ts";
import * as linuxArm64 from "./embedded/linux_arm64.ts";
import * as linuxX64 from "./embedded/linux_x64.ts";
import * as macosArm64 from "./embedded/macos_arm64.ts";
import * as macosX64 from "./embedded/macos_x64.ts";
import * as windowsX64 from "./embedded/windows_x64.ts";

/** Keys as in `process.platform` and `process.arch`. */
export const LIBRARIES: Readonly<Record<string, EmbeddedLibrary>> = {
  "darwin-arm64": macosArm64,
  "darwin-x64": macosX64,
  "linux-arm64": linuxArm64,
  "linux-x64": linuxX64,
  "win32-x64": windowsX64,
};
