// The fusion of some cases, as metarank.py has it: who beats whom how often becomes one scale.

const SMOOTHING = 0.5;

/** Wins of each method over each other one, ties counting half, and how often they met; cases as they weigh. */
function tally(cases, count) {
  const won = range(count).map(() => new Float64Array(count));
  const met = range(count).map(() => new Float64Array(count));
  for (const entry of cases) {
    const there = range(count).filter((at) => known(entry.rank[at]));
    for (const a of there)
      for (const b of there) {
        if (a === b) continue;
        met[a][b] += entry.weight;
        won[a][b] += entry.weight * (entry.rank[a] < entry.rank[b] ? 1 : entry.rank[a] === entry.rank[b] ? 0.5 : 0);
      }
  }
  return { won, met };
}

/** The Meta-Rank of every method in these cases; null for one without a rank, or if no one scale fits. */
function fuse({ won, met }) {
  const there = range(met.length).filter((at) => met[at].some((times) => times > 0));
  const kappa = Array(met.length).fill(null);
  const solved = solve(
    there.map((a) => there.map((b) => 1 / there.length + (a === b ? there.filter((c) => met[a][c]).length : met[a][b] ? -1 : 0))),
    there.map((a) => there.reduce((sum, b) => sum + (met[a][b] ? Math.log((won[a][b] + SMOOTHING) / (met[a][b] - won[a][b] + SMOOTHING)) : 0), 0)),
  );
  if (solved) there.forEach((at, place) => { kappa[at] = solved[place]; });
  return kappa;
}

/** Solves a linear system by elimination; null if it has no one solution. */
function solve(matrix, right) {
  const rows = matrix.map((row, at) => [...row, right[at]]), size = rows.length;
  for (let at = 0; at < size; at += 1) {
    const best = range(size).slice(at).reduce((top, row) => (Math.abs(rows[row][at]) > Math.abs(rows[top][at]) ? row : top), at);
    if (Math.abs(rows[best][at]) < 1e-9) return null;
    [rows[at], rows[best]] = [rows[best], rows[at]];
    for (let row = 0; row < size; row += 1) {
      const factor = row === at ? 0 : rows[row][at] / rows[at][at];
      if (factor) for (let k = at; k <= size; k += 1) rows[row][k] -= factor * rows[at][k];
    }
  }
  return rows.map((row, at) => row[size] / row[at]);
}
