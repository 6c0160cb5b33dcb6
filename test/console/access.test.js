// The page without a mouse, by ear, in both schemes, on a phone. axe-core has the rules of WCAG 2.2 that a machine can
// check: names, roles, contrast of text.
import assert from 'node:assert/strict'
import { before, test } from 'node:test'

import axe from 'axe-core'

import { go, kubectl, own, phone, start, views, visit } from './harness.js'
import { raise } from './scene.js'

const namespace = own(`console-access-${process.pid}`)
const group = `access${process.pid}.example`
const tabs = { Why: '.sentence', Life: '.waterfall', Log: '.log', Events: 'table', YAML: 'textarea' }
let link

before(
  async () => {
    await raise(namespace, group)
    link = await start()
  },
  { timeout: 300000 },
)
test.after(() => kubectl(`delete crd orders.${group} --wait=false`))

// flaws are what axe finds wrong.
async function flaws(page) {
  // Not as a tag in the page, which its policy forbids.
  await page.evaluate(axe.source)
  const { violations } = await page.evaluate(() =>
    globalThis.axe.run(document, {
      runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'],
    }),
  )
  return violations.map(
    (v) =>
      `${v.impact} ${v.id}: ${v.nodes
        .slice(0, 3)
        .map((n) => `${n.html.slice(0, 200)} ${n.failureSummary}`)
        .join(' | ')}`,
  )
}

// details opens a pod of the scene.
async function details(page) {
  await go(page, 'Cluster', namespace)
  await page
    .locator('#main')
    .getByRole('button', { name: `Pod ${namespace}/database-0: Ready` })
    .click()
}

for (const colorScheme of ['light', 'dark']) {
  test(`axe finds nothing wrong, ${colorScheme}`, async (t) => {
    const page = await visit(t, link, { colorScheme })
    for (const view of views) {
      await go(page, view, namespace)
      await page
        .locator('#main')
        .getByRole('button', { name: /database|settings/ })
        .first()
        .waitFor()
      assert.deepEqual(await flaws(page), [], view)
    }
    await details(page)
    for (const [tab, shown] of Object.entries(tabs)) {
      await page.getByRole('tab', { name: tab, exact: true }).click()
      await page.locator('#panel').locator(shown).first().waitFor()
      assert.deepEqual(await flaws(page), [], tab)
    }
  })

  test(`what is drawn stands out, ${colorScheme}`, async (t) => {
    const page = await visit(t, link, { colorScheme })
    await details(page)
    await page.getByRole('tab', { name: 'Life' }).click()
    await page.locator('.waterfall rect').first().waitFor()
    // The contrast of WCAG 1.4.11 between a drawing and the ground around it, 3 to 1 at least.
    const weak = await page.evaluate(() => {
      const parts = (c) =>
        c
          .match(/[\d.]+/g)
          .slice(0, 3)
          .map((x) => x / 255)
          .map((x) => (x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4))
      const light = (c) => parts(c).reduce((sum, x, i) => sum + x * [0.2126, 0.7152, 0.0722][i], 0)
      const ground = (e) => {
        for (let at = e.parentElement; at; at = at.parentElement) {
          const c = getComputedStyle(at).backgroundColor
          if (c !== 'rgba(0, 0, 0, 0)') return c
        }
        throw new Error('no ground')
      }
      const drawn = [
        ['.square', 'borderTopColor'],
        ['.card', 'borderLeftColor'],
        ['rect', 'fill'],
        ['select', 'borderTopColor'],
        ['input', 'borderTopColor'],
      ]
      return drawn.flatMap(([selector, property]) => {
        const all = [...document.querySelectorAll(selector)].filter((e) => e.getBoundingClientRect().width > 0)
        if (all.length === 0) return [`no ${selector}`]
        return all
          .map((e) => {
            const [a, b] = [light(getComputedStyle(e)[property]), light(ground(e))]
            const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05)
            return contrast < 3 && `${selector} ${e.className} ${contrast.toFixed(2)}`
          })
          .filter(Boolean)
      })
    })
    assert.deepEqual(weak, [])
  })
}

// focus describes where the focus is, and checks that it can be seen: drawn, inside the window, and not covered.
async function focus(page) {
  const at = await page.evaluate(() => {
    const e = document.activeElement
    const { outlineStyle, outlineWidth } = getComputedStyle(e)
    const r = e.getBoundingClientRect()
    const [x, y] = [
      Math.min(r.left + r.width / 2, innerWidth - 1),
      Math.min(r.top + Math.min(r.height / 2, 20), innerHeight - 1),
    ]
    const over = document.elementFromPoint(x, y)
    return {
      name: `${e.tagName} ${e.getAttribute('aria-label') ?? e.textContent.slice(0, 120)}`.trim(),
      id: e.id,
      role: e.getAttribute('role'),
      drawn: e === document.body || (outlineStyle !== 'none' && parseFloat(outlineWidth) >= 2),
      seen: e === document.body || e.contains(over) || over?.contains(e),
      body: e === document.body,
    }
  })
  assert.ok(at.drawn, `the focus on ${at.name} is not drawn`)
  assert.ok(at.seen, `${at.name} has the focus and cannot be seen`)
  return at
}

// tabTo presses Tab until the focus is where wanted says.
async function tabTo(page, what, wanted) {
  for (let i = 0; i < 600; i++) {
    await page.keyboard.press('Tab')
    const at = await focus(page)
    if (wanted(at)) return at
  }
  throw new Error(`the focus never comes to ${what}`)
}

test('every view and all details, with the keyboard alone', async (t) => {
  const page = await visit(t, link)
  await page.getByLabel('Namespace').first().selectOption(namespace)
  await page.evaluate(() => document.activeElement.blur())
  await page
    .getByRole('button', { name: new RegExp('database-0') })
    .first()
    .waitFor()
  assert.match((await tabTo(page, 'the first', () => true)).name, /Skip to the content/)
  for (const view of views) {
    await tabTo(page, view, (at) => at.name === `BUTTON ${view}`)
    await page.keyboard.press('Enter')
    await page.waitForFunction((v) => document.title.startsWith(v), view)
    assert.equal((await focus(page)).name, `BUTTON ${view}`, 'the focus does not stay')
    const inside = {
      Cluster: /Pod .*database-0/,
      Workloads: /StatefulSet.*database/,
      Services: /database/,
      Events: /Pod .*-0/,
      Resources: /settings/,
    }[view]
    await page.locator('#main').getByRole('button', { name: inside }).first().waitFor()
    const object = await tabTo(
      page,
      `an object of ${view}`,
      (at) => at.name.startsWith('BUTTON') && inside.test(at.name),
    )
    await page.keyboard.press('Enter')
    await page.locator('#panel [role="tab"][aria-selected="true"]').waitFor()
    const names = await page.getByRole('tab').allTextContents()
    for (const [i, tab] of names.entries()) {
      if (i > 0) await page.keyboard.press('ArrowRight')
      assert.equal((await focus(page)).name, `BUTTON ${tab}`)
      assert.equal(await page.getByRole('tab', { selected: true }).textContent(), tab)
    }
    await page.locator('#panel textarea').waitFor() // the last tab is YAML
    await tabTo(page, 'the YAML', (at) => at.name === 'TEXTAREA YAML')
    await tabTo(page, 'its button', (at) => at.name === 'BUTTON Show what would change') // the text is no trap
    await page.keyboard.press('Escape')
    await page.locator('#panel').waitFor({ state: 'hidden' })
    assert.equal((await focus(page)).name, object.name, 'the focus does not come back')
  }
})

test('the focus comes back to an object that was drawn again, and to the view when it has gone', async (t) => {
  const page = await visit(t, link)
  await go(page, 'Services', namespace)
  for (const gone of [false, true]) {
    kubectl(`create service externalname passing -n ${namespace} --external-name=a.example`)
    const service = page.getByRole('region', { name: `Service ${namespace}/passing` })
    await service.getByRole('button').focus()
    await page.keyboard.press('Enter')
    await page.locator('#panel .sentence').waitFor()
    if (gone) {
      kubectl(`delete service passing -n ${namespace}`)
      await service.waitFor({ state: 'detached' })
    } else {
      kubectl(`patch service passing -n ${namespace} -p {"spec":{"externalName":"b.example"}}`)
      await service.getByText('b.example').waitFor()
    }
    await page.keyboard.press('Escape')
    await page.locator('#panel').waitFor({ state: 'hidden' })
    const at = await page.evaluate(() => document.activeElement.id || document.activeElement.textContent)
    assert.equal(at, gone ? 'main' : 'passing')
    if (!gone) kubectl(`delete service passing -n ${namespace}`)
    if (!gone) await service.waitFor({ state: 'detached' })
  }
})

test('a change does not take a click away that is under way, nor a selection', async (t) => {
  const page = await visit(t, link)
  await go(page, 'Workloads', namespace)
  await page.getByRole('button', { name: new RegExp(`StatefulSet database 2/2`) }).hover()
  await page.evaluate(() => getSelection().selectAllChildren(document.querySelector('#main .row strong')))
  const selected = await page.evaluate(() => String(getSelection()))
  assert.notEqual(selected, '')
  await page.mouse.down()
  kubectl(`scale statefulset/database -n ${namespace} --replicas=1`)
  await page.getByRole('button', { name: new RegExp(`StatefulSet database 1/1`) }).waitFor()
  assert.equal(await page.evaluate(() => String(getSelection())), selected)
  await page.mouse.up()
  await page.getByRole('heading', { name: `StatefulSet ${namespace}/database` }).waitFor()
  kubectl(`scale statefulset/database -n ${namespace} --replicas=2`)
  await page.getByRole('button', { name: new RegExp(`StatefulSet database 2/2`) }).waitFor()
})

test('Escape leaves a changed text alone at first', async (t) => {
  const page = await visit(t, link)
  await go(page, 'Resources', namespace)
  await page.getByRole('button', { name: 'settings', exact: true }).click()
  await page.getByRole('tab', { name: 'YAML' }).click()
  await page.getByRole('textbox', { name: 'YAML' }).fill('changed')
  await page.keyboard.press('Escape')
  assert.equal(await page.getByRole('textbox', { name: 'YAML' }).inputValue(), 'changed')
  await page.keyboard.press('Escape')
  await page.locator('#panel').waitFor({ state: 'hidden' })
})

test('a phone shows all, and keeps the focus out of what is covered', async (t) => {
  for (const colorScheme of ['light', 'dark']) {
    const page = await visit(t, link, { viewport: phone, colorScheme, hasTouch: true })
    const fits = async (what) => {
      const wide = await page.evaluate(
        () =>
          [...document.querySelectorAll('body, body > *, .body')]
            .map((e) => Math.max(e.getBoundingClientRect().right, e.scrollWidth) - innerWidth)
            .concat(document.documentElement.scrollWidth - innerWidth)
            .sort((a, b) => b - a)[0],
      )
      assert.ok(wide <= 0, `${what} is ${wide} pixels too wide`)
    }
    for (const view of views) {
      await go(page, view, namespace)
      await fits(view)
      assert.deepEqual(await flaws(page), [], view)
    }
    await details(page)
    for (const [tab, shown] of Object.entries(tabs)) {
      await page.getByRole('tab', { name: tab, exact: true }).click()
      await page.locator('#panel').locator(shown).first().waitFor()
      await fits(tab)
      assert.deepEqual(await flaws(page), [], tab)
    }
    for (let i = 0; i < 12; i++) {
      await page.keyboard.press('Tab')
      assert.ok(
        await page.evaluate(() => document.activeElement === document.body || document.activeElement.closest('#panel')),
        'the focus is behind the details',
      )
    }
    await page.getByRole('button', { name: 'Close' }).click()
    await page.getByRole('button', { name: 'Events', exact: true }).click() // which was covered
  }
})
