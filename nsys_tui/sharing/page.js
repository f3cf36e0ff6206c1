function value(row, place) {
  const cell = row.cells[place];
  return cell.dataset.v === undefined ? cell.textContent : parseFloat(cell.dataset.v);
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
    const order = numeric ? x - y : x.localeCompare(y, 'en', {numeric: true});
    return up ? order : -order;
  });
  body.append(...rows);
}
for (const button of document.querySelectorAll('th button')) {
  button.addEventListener('click', () => sort(button));
}
