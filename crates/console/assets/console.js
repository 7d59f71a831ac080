// What the pages of the console get on top, where a browser runs scripts. Without it everything works.

// Times in the reader's zone, whose name is shown; the UTC time stays in the title.
function inZone(time) {
  const date = new Date(time.dateTime);
  if (Number.isNaN(date.getTime())) return;
  time.title = time.textContent;
  time.textContent = date.toLocaleString(undefined, {
    year: 'numeric', month: 'short', day: 'numeric', hour: '2-digit', minute: '2-digit', timeZoneName: 'short',
  });
}
document.querySelectorAll('time[datetime]').forEach(inZone);

// A button beside each text to copy, and one place that says that it was copied.
const told = document.createElement('p');
told.className = 'hidden';
told.setAttribute('role', 'status');
document.body.append(told);
if (navigator.clipboard) {
  for (const text of document.querySelectorAll('pre[data-copy]')) {
    const button = document.createElement('button');
    button.type = 'button';
    button.className = 'quiet copy';
    button.textContent = 'Copy';
    button.addEventListener('click', async () => {
      try {
        await navigator.clipboard.writeText(text.textContent);
        button.textContent = 'Copied';
        told.textContent = 'Copied';
      } catch {
        told.textContent = 'The browser did not allow to copy';
      }
      setTimeout(() => { button.textContent = 'Copy'; told.textContent = ''; }, 2000);
    });
    text.after(button);
  }
}

// A slash leads to the search field, unless something is being typed.
document.addEventListener('keydown', (event) => {
  const isTyping = event.target.closest?.('input, select, textarea, [contenteditable]');
  const search = document.getElementById('q');
  if (event.key !== '/' || isTyping || event.ctrlKey || event.metaKey || event.altKey || !search) return;
  event.preventDefault();
  search.focus();
});

// A page with a session is not shown again from the browser's memory after signing out.
addEventListener('pageshow', (event) => { if (event.persisted) location.reload(); });

// New entries of the audit log, while the page is seen. What is being read stays where it is: rows wait for a button then.
// Rows are made of texts and of links to this console alone.
const MOST_ROWS = 200;

function part({ text, link, title, kind, time }) {
  const inner = document.createElement(time ? 'time' : kind === 'code' ? 'code' : kind ? 'span' : 'bdi');
  inner.textContent = text;
  if (kind && kind !== 'code') inner.className = kind;
  if (time) {
    inner.dateTime = time;
    inZone(inner);
  }
  if (title) inner.title = title;
  if (!link?.startsWith('/console/')) return inner;
  const anchor = document.createElement('a');
  anchor.href = link;
  anchor.append(inner);
  return anchor;
}

function rowOf(cells, heads) {
  const row = document.createElement('tr');
  row.setAttribute('role', 'row');
  cells.forEach((parts, at) => {
    const cell = document.createElement(at ? 'td' : 'th');
    cell.setAttribute('role', at ? 'cell' : 'rowheader');
    if (at) cell.dataset.label = heads[at];
    else cell.scope = 'row';
    const inner = at ? document.createElement('div') : cell;
    parts.forEach((one, number) => inner.append(...(number ? [document.createElement('br')] : []), part(one)));
    if (at) cell.append(inner);
    row.append(cell);
  });
  return row;
}

function watch(place) {
  const [reload, box] = place.children;
  const heads = [...box.querySelectorAll('th')].map((head) => head.textContent);
  const rows = box.querySelector('tbody');
  const button = (text, onClick) => {
    const made = document.createElement('button');
    made.type = 'button';
    made.className = 'quiet';
    made.textContent = text;
    made.addEventListener('click', onClick);
    return made;
  };
  const state = document.createElement('span');
  state.className = 'small';
  state.setAttribute('role', 'status');
  let source, after, isOn = false, waiting = [];

  const isRead = () => place.parentElement.querySelector('table :focus')
    || !getSelection().isCollapsed || place.getBoundingClientRect().top < 0;
  function close() {
    source?.close();
    source = undefined;
  }
  function stop(text) {
    close();
    isOn = false;
    toggle.textContent = 'Watch live';
    state.textContent = text;
  }
  function add() {
    for (const { cells } of waiting) rows.prepend(rowOf(cells, heads));
    while (rows.rows.length > MOST_ROWS) rows.lastElementChild.remove();
    state.textContent = `${waiting.length} new`;
    waiting = [];
    box.hidden = false;
    more.hidden = true;
  }
  function open() {
    if (source || !isOn || document.hidden) return;
    const address = new URL(place.dataset.live, location.href);
    if (after) address.searchParams.set('after', after);
    source = new EventSource(address);
    source.onopen = () => { state.textContent = 'Live'; };
    source.onerror = () => {
      if (source?.readyState === EventSource.CLOSED) stop('Live view ended: reload the page');
      else state.textContent = 'Connecting again';
    };
    source.addEventListener('end', (event) => stop(JSON.parse(event.data).text));
    source.addEventListener('entry', (event) => {
      after = event.lastEventId;
      waiting = [...waiting, JSON.parse(event.data)].slice(-MOST_ROWS);
      if (!isRead()) return add();
      more.textContent = `Show ${waiting.length} new`;
      more.hidden = false;
    });
  }
  const toggle = button('Watch live', () => {
    if (isOn) return stop('Paused');
    isOn = true;
    toggle.textContent = 'Pause';
    open();
  });
  const more = button('', () => {
    add();
    toggle.focus({ preventScroll: true });
  });
  more.hidden = true;
  reload.replaceChildren(toggle, ' ', more, ' ', state);
  document.addEventListener('visibilitychange', () => (document.hidden ? close() : open()));
}
document.querySelectorAll('[data-live]').forEach(watch);
