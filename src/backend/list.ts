/**
 * All engines, in the order in which they are tried. A new one is one line here.
 *
 * @module
 */

import { webCandidates } from "./list_web.ts";
import { setCandidates } from "./select.ts";

setCandidates([...webCandidates]);

export { backend, backends, useBackend } from "./select.ts";
export type { BackendInfo, BackendStatus } from "./select.ts";
