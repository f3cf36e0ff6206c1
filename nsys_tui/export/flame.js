// Frames carry their place as data attributes (x and width as parts of the whole), so that zooming
// needs no layout of its own. Of all frames one can be reached by Tab; arrows go on from there.
function flame(svg) {
  const wide = +svg.dataset.wide, left = +svg.dataset.left, all = s => [...svg.querySelectorAll(s)];
  const frames = all('.frame').map(g => ({
    g, rect: g.querySelector('rect'), text: g.querySelector('text'),
    name: g.dataset.name, x: +g.dataset.x, w: +g.dataset.w, depth: +g.dataset.depth}));
  if (!frames.length) return;
  const [info] = all('.info'), [hits] = all('.hits');
  function fit(name, room) {
    const count = Math.floor(room / 6.6), chars = [...name];
    let used = 0;
    if (count < 3) return '';
    const over = chars.findIndex(char => (used += char > '\u10ff' ? 2 : 1) > count);
    return over < 0 ? name : chars.slice(0, over - 1).join('') + '\u2026';
  }
  const holds = (a, b) => b.x >= a.x - 1e-8 && b.x + b.w <= a.x + a.w + 1e-8;
  function zoom(to) {
    if (svg.parentElement) svg.parentElement.scrollLeft = 0;
    for (const f of frames) {
      const above = f.depth < to.depth && holds(f, to);
      f.g.style.display = above || (f.depth >= to.depth && holds(to, f)) ? '' : 'none';
      f.g.classList.toggle('above', above);
      const x = above ? left : left + (f.x - to.x) / to.w * wide;
      const w = above ? wide : f.w / to.w * wide;
      f.rect.setAttribute('x', x); f.rect.setAttribute('width', Math.max(w, 0.1));
      f.text.setAttribute('x', x + 3); f.text.textContent = fit(f.name, w - 4);
    }
  }
  function search() {
    const text = prompt('Regular expression to look for (empty clears):', '');
    if (text === null) return;
    let test = null;
    try { test = text ? new RegExp(text) : null; }
    catch (e) { hits.textContent = String(e); return; }
    let spans = [];
    for (const f of frames) {
      const found = test !== null && test.test(f.name);
      f.g.classList.toggle('found', found);
      if (found) spans.push([f.x, f.x + f.w]);
    }
    spans.sort((a, b) => a[0] - b[0]);
    let share = 0, end = 0;
    for (const [a, b] of spans) {
      share += Math.max(0, b - Math.max(a, end));
      end = Math.max(end, b);
    }
    hits.textContent = test ? 'matched ' + (100 * share).toFixed(1) + '% in ' + spans.length : '';
  }
  function beside(f, key) {
    const down = key === 'ArrowDown' ? 1 : key === 'ArrowUp' ? -1 : 0;
    const near = frames.filter(o => o.depth === f.depth + down && o.g.style.display !== 'none');
    if (down > 0) return near.filter(o => holds(f, o)).sort((a, b) => b.w - a.w)[0];
    if (down < 0) return near.find(o => holds(o, f));
    const sign = key === 'ArrowRight' ? 1 : -1;
    return near.filter(o => sign * (o.x - f.x) > 0).sort((a, b) => sign * (a.x - b.x))[0];
  }
  function focus(f) {
    for (const o of frames) o.g.setAttribute('tabindex', o === f ? 0 : -1);
    f.g.focus();
  }
  function pressed(act) {
    return e => { if (e.key === 'Enter' || e.key === ' ') { e.preventDefault(); act(); } };
  }
  for (const f of frames) {
    f.g.addEventListener('click', () => { focus(f); zoom(f); });
    f.g.addEventListener('keydown', pressed(() => zoom(f)));
    f.g.addEventListener('keydown', e => {
      if (e.key === 'Escape') zoom(frames[0]);
      if (!e.key.startsWith('Arrow')) return;
      e.preventDefault();
      const to = beside(f, e.key);
      if (to) focus(to);
    });
    const tip = f.g.querySelector('title').textContent;
    for (const how of ['mouseover', 'focus']) {
      f.g.addEventListener(how, () => { info.textContent = tip; });
    }
  }
  for (const [name, act] of [['.reset', () => zoom(frames[0])], ['.search', search]]) {
    for (const button of all(name)) {
      button.addEventListener('click', act);
      button.addEventListener('keydown', pressed(act));
    }
  }
}
document.querySelectorAll('svg.flame').forEach(flame);
