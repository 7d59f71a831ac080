// The printed table: a line, its target, what was measured, and whether that is met.

const units = {
  rate: (value) => `${value.toFixed(0)}/s`,
  times: (value) => `${value.toFixed(2)}x`,
  percent: (value) => `${value.toFixed(1)} %`,
  milliseconds: (value) => `${value.toFixed(2)} ms`,
  seconds: (value) => `${value.toFixed(2)} s`,
  megabytes: (value) => `${value.toFixed(1)} MB`,
  count: (value) => `${value}`,
};

/** Targets: the measured value must not fall below, or not exceed, a number. */
export const atLeast = (least) => ({ sign: '>=', bound: least, holds: (value) => value >= least });
export const atMost = (most) => ({ sign: '<=', bound: most, holds: (value) => value <= most });

export class Table {
  #rows = [];
  missed = 0;

  /** A row; one without a target is for comparison. */
  row(line, unit, value, target) {
    const shown = units[unit];
    const isMet = target?.holds(value);
    if (isMet === false) this.missed += 1;
    const verdict = target ? (isMet ? 'met' : 'MISSED') : '';
    this.#rows.push([line, target ? `${target.sign} ${shown(target.bound)}` : '', shown(value), verdict]);
  }

  toString() {
    const head = ['line', 'target', 'measured', 'verdict'];
    const width = (at) => Math.max(...[head, ...this.#rows].map((row) => row[at].length));
    const widths = head.map((_, at) => width(at));
    const rule = widths.map((of) => '-'.repeat(of));
    return [head, rule, ...this.#rows].map((row) => `| ${row.map((cell, at) => cell.padEnd(widths[at])).join(' | ')} |`).join('\n');
  }
}
