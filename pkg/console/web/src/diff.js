// Lines that differ between two texts.

const longest = 4000 // lines; more is shown without looking for what stayed

// diff returns [sign, line] for each line: ' ' stayed, '-' only in a, '+' only in b.
export function diff(a, b) {
  const x = a.split('\n')
  const y = b.split('\n')
  if (x.length > longest || y.length > longest) return [...x.map((l) => ['-', l]), ...y.map((l) => ['+', l])]
  let start = 0
  while (start < x.length && start < y.length && x[start] === y[start]) start++
  let end = 0
  while (end < x.length - start && end < y.length - start && x[x.length - 1 - end] === y[y.length - 1 - end]) end++
  const p = x.slice(start, x.length - end)
  const q = y.slice(start, y.length - end)
  // common[i][j] is the length of the longest common sequence of p from i and q from j.
  const common = Array.from({ length: p.length + 1 }, () => new Uint16Array(q.length + 1))
  for (let i = p.length - 1; i >= 0; i--)
    for (let j = q.length - 1; j >= 0; j--)
      common[i][j] = p[i] === q[j] ? common[i + 1][j + 1] + 1 : Math.max(common[i + 1][j], common[i][j + 1])
  const out = x.slice(0, start).map((l) => [' ', l])
  let i = 0
  let j = 0
  while (i < p.length || j < q.length) {
    if (i < p.length && j < q.length && p[i] === q[j]) {
      out.push([' ', p[i]])
      i++
      j++
    } else if (j >= q.length || (i < p.length && common[i + 1][j] >= common[i][j + 1])) out.push(['-', p[i++]])
    else out.push(['+', q[j++]])
  }
  return [...out, ...x.slice(x.length - end).map((l) => [' ', l])]
}
