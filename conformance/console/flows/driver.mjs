// Uses a page as a person does: with a mouse, or with the keys of a keyboard alone.

/** Stops of the Tab key after which something counts as out of reach. */
const STOPS = 400;

class Driver {
  constructor(page) {
    // A machine that runs other suites as well is slow.
    page.setDefaultTimeout(90_000);
    this.page = page;
  }

  /** Does something that leads to another page, and waits for it. */
  async leaving(act) {
    await Promise.all([this.page.waitForEvent('domcontentloaded'), act()]);
  }

  async link(place, name) {
    const link = place.getByRole('link', { name, exact: true });
    await this.leaving(() => this.press(link));
  }

  async button(name) {
    const button = this.page.locator('main').getByRole('button', { name, exact: true });
    await this.leaving(() => this.press(button));
  }

  /** Lets the session change something, if it only reads. */
  async unlock() {
    const button = this.page.locator('header form.changes').getByRole('button', { name: 'Unlock changes for 15 minutes' });
    if (await button.count() > 0) await this.leaving(() => this.press(button));
  }
}

export class Mouse extends Driver {
  async press(target) {
    await target.click();
  }

  async type(field, text) {
    if (await isChoice(field)) await field.selectOption(text);
    else await field.fill(text);
  }
}

export class Keyboard extends Driver {
  async press(target) {
    await this.reach(target);
    await this.page.keyboard.press('Enter');
  }

  async type(field, text) {
    const { keyboard } = this.page;
    await this.reach(field);
    const typesChoice = await isChoice(field);
    if (!typesChoice) await keyboard.press('ControlOrMeta+A');
    await keyboard.type(typesChoice ? await field.locator(`option[value="${text}"]`).textContent() : text);
    const typed = await field.inputValue();
    if (typed !== text) throw new Error(`the keyboard typed ${JSON.stringify(typed)} in place of ${JSON.stringify(text)}`);
  }

  /** Presses Tab until the target has the focus, which must be visible. */
  async reach(target) {
    const { keyboard } = this.page;
    const one = await target.elementHandle();
    const isBelow = await one.evaluate((element) => document.querySelector('main').contains(element));
    const isFresh = await one.evaluate(() => document.activeElement === document.body);
    if (isBelow && isFresh) {
      // The first stop skips the navigation.
      await keyboard.press('Tab');
      await keyboard.press('Enter');
    }
    for (let stops = 0; stops < STOPS; stops += 1) {
      const outline = await one.evaluate((element) => (document.activeElement === element ? getComputedStyle(element).outlineStyle : ''));
      if (outline === 'none') throw new Error(`no visible focus: ${await one.evaluate((element) => element.outerHTML)}`);
      if (outline) return;
      await keyboard.press('Tab');
    }
    throw new Error(`the keyboard does not reach ${await one.evaluate((element) => element.outerHTML)}`);
  }
}

const isChoice = (field) => field.evaluate((element) => element instanceof HTMLSelectElement);
