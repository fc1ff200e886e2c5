/** Reads the JUnit files that the runtimes' own test runners write. */

/** One test, or one failing suite that none of its tests explains. */
export interface TestResult {
  name: string;
  outcome: "passed" | "failed" | "skipped";
  /** What went wrong, for a failed one. */
  detail: string;
}

const TAG =
  /<(\/?)(testsuite|testcase|failure|skipped)\b((?:\s+[\w-]+="[^"]*")*)\s*(\/?)>/g;

/**
 * The results in `xml`. Bun and Deno put one suite per file around everything:
 * `fileSuites`. Deno lists a `describe` beside its tests, by the same names
 * joined with " > ".
 */
export function parseJUnit(xml: string, fileSuites: boolean): TestResult[] {
  const results: TestResult[] = [];
  const suites: string[] = [];
  let failureFrom = 0;
  for (const tag of xml.matchAll(TAG)) {
    const [whole, closing, kind, attributes, selfClosing] = tag;
    const last = results[results.length - 1];
    if (kind === "testsuite") {
      if (closing) suites.pop();
      else if (!selfClosing) suites.push(attribute(attributes, "name"));
    } else if (kind === "testcase" && !closing) {
      const path = fileSuites ? suites.slice(1) : suites;
      const name = [...path, attribute(attributes, "name")].join(" > ");
      results.push({ name, outcome: "passed", detail: "" });
    } else if (kind === "skipped" && !closing) {
      last.outcome = "skipped";
    } else if (kind === "failure") {
      if (!closing) {
        last.outcome = "failed";
        last.detail = attribute(attributes, "message");
        failureFrom = tag.index + whole.length;
      } else {
        const text = tidy(unescapeXml(xml.slice(failureFrom, tag.index)));
        if (text !== "") last.detail = text;
      }
    }
  }
  return withoutSuites(results);
}

/** Leaves out what stands for a suite, unless only its own hooks failed. */
function withoutSuites(results: TestResult[]): TestResult[] {
  const above = new Set<string>();
  const failedBelow = new Set<string>();
  for (const { name, outcome } of results) {
    for (let at = name.indexOf(" > "); at >= 0; at = name.indexOf(" > ", at)) {
      above.add(name.slice(0, at));
      if (outcome === "failed") failedBelow.add(name.slice(0, at));
      at += 3;
    }
  }
  return results.filter(({ name, outcome }) =>
    !above.has(name) || (outcome === "failed" && !failedBelow.has(name))
  );
}

/** Leaves out the wrapper that Node puts around an error, and inner frames. */
function tidy(detail: string): string {
  return detail
    .replace(/^\s*\[?Error \[ERR_TEST_FAILURE\][^]*?cause: ([^]*)\}\s*$/, "$1")
    .split("\n")
    .filter((line) => !/^\s+at .*\b(node|ext):/.test(line))
    .join("\n").trim();
}

function attribute(attributes: string, name: string): string {
  const match = attributes.match(new RegExp(`\\s${name}="([^"]*)"`));
  return unescapeXml(match?.[1] ?? "");
}

const ENTITIES: Record<string, string> = {
  lt: "<",
  gt: ">",
  amp: "&",
  quot: '"',
  apos: "'",
};

function unescapeXml(text: string): string {
  return text.replace(/&(#x?)?(\w+);/g, (entity, numeric, name) => {
    if (numeric === "#") return String.fromCodePoint(parseInt(name, 10));
    if (numeric === "#x") return String.fromCodePoint(parseInt(name, 16));
    return ENTITIES[name] ?? entity;
  });
}
