// What the pages of the console get on top, where a browser runs scripts. Without it everything works.

// Times in the reader's zone, whose name is shown; the UTC time stays in the title.
for (const time of document.querySelectorAll('time[datetime]')) {
  const date = new Date(time.dateTime);
  if (Number.isNaN(date.getTime())) continue;
  time.title = time.textContent;
  time.textContent = date.toLocaleString(undefined, {
    year: 'numeric', month: 'short', day: 'numeric', hour: '2-digit', minute: '2-digit', timeZoneName: 'short',
  });
}

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
