/** Starts other programs, bounded in time. */

/** How a program ended. */
export interface Ended {
  /** Its exit code; 124 when it ran past its limit, 127 when it did not start. */
  code: number;
  /** Standard output and error together. */
  output: string;
  seconds: number;
}

/** Seconds in which a stopped program's own children must let go of its output. */
const GRACE = 5;

/** Runs `args` for at most `limit` seconds and collects what it prints; never rejects. */
export async function run(
  [program, ...args]: string[],
  options: { limit: number; cwd?: string; env?: Record<string, string> },
): Promise<Ended> {
  const started = performance.now();
  let code: number, output: string;
  const timers: ReturnType<typeof setTimeout>[] = [];
  try {
    const child = new Deno.Command(program, {
      args,
      cwd: options.cwd,
      env: { NO_COLOR: "1", ...options.env },
      stdin: "null",
      stdout: "piped",
      stderr: "piped",
    }).spawn();
    const late = new Promise<undefined>((resolve) => {
      timers.push(
        setTimeout(() => child.kill("SIGKILL"), options.limit * 1000),
        setTimeout(() => resolve(undefined), (options.limit + GRACE) * 1000),
      );
    });
    const ended = await Promise.race([child.output(), late]);
    const decoder = new TextDecoder();
    output = ended
      ? decoder.decode(ended.stdout) + decoder.decode(ended.stderr)
      : "";
    code = ended && ended.signal !== "SIGKILL" ? ended.code : 124;
    if (code === 124) output += `\nRan past ${options.limit} s and was stopped`;
  } catch (error) {
    code = 127;
    output = String(error);
  }
  for (const timer of timers) clearTimeout(timer);
  return { code, output, seconds: (performance.now() - started) / 1000 };
}

/** The path of a `file:` URL. */
export function fromFileUrl(url: URL): string {
  return decodeURIComponent(url.pathname);
}
