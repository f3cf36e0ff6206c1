function value(row, place) {
  const cell = row.cells[place];
  return cell.dataset.v === undefined ? cell.textContent : parseFloat(cell.dataset.v);
}
const UNITS = {ns: 1, us: 1e3, ms: 1e6, s: 1e9, min: 6e10, B: 1, kB: 1e3, MB: 1e6, GB: 1e9, TB: 1e12};
function figure(text) {
  const found = /^([+-]?[\d,]*\.?\d+) ?([a-zA-Z%]*)$/.exec(text.trim());
  return found ? parseFloat(found[1].replaceAll(',', '')) * (UNITS[found[2]] || 1) : NaN;
}
function written(x, y) {
  const a = figure(x), b = figure(y);
  if (Number.isNaN(a) || Number.isNaN(b)) {
    return Number.isNaN(a) - Number.isNaN(b) || x.localeCompare(y, 'en', {numeric: true});
  }
  return a - b;
}
function sort(button) {
  const th = button.closest('th'), body = th.closest('table').tBodies[0];
  const place = th.cellIndex, numeric = th.classList.contains('n');
  const before = th.getAttribute('aria-sort');
  const up = before === 'none' ? !numeric : before === 'descending';
  for (const other of th.parentNode.cells) if (other.hasAttribute('aria-sort')) other.setAttribute('aria-sort', 'none');
  th.setAttribute('aria-sort', up ? 'ascending' : 'descending');
  const known = row => !numeric || !Number.isNaN(value(row, place));
  const rows = [...body.rows];
  rows.sort((a, b) => {
    if (!known(a) || !known(b)) return known(b) - known(a);
    const x = value(a, place), y = value(b, place);
    const order = numeric ? x - y : written(x, y);
    return up ? order : -order;
  });
  body.append(...rows);
}
for (const button of document.querySelectorAll('th button')) {
  button.addEventListener('click', () => sort(button));
}
