// The pictures of docs/guides/console.md. They are written to the directory SHOTS, with pngquant; without it, there is
// nothing to do. The shop has a namespace of its own, and the page a clock that stands: ages are the same each time.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'

import { go, kubectl, own, phone, start, visit } from './harness.js'
import { raise } from './scene.js'

const { SHOTS } = process.env
const most = 80 << 10 // bytes of a picture
const namespace = 'shop'
const group = 'shop.example'

test('pictures of every view', { skip: !SHOTS && 'SHOTS names no directory' }, async (t) => {
  own(namespace)
  t.after(() => kubectl(`delete crd orders.${group} --wait=false`))
  await raise(namespace, group)
  const created = Date.parse(JSON.parse(kubectl(`get namespace ${namespace} -o json`)).metadata.creationTimestamp)
  const link = await start()
  mkdirSync(SHOTS, { recursive: true })

  const open = async (options) => {
    const page = await visit(t, link, options)
    await page.clock.setFixedTime(created + 5.5 * 60 * 1000)
    return page
  }
  const shoot = async (page, name) => {
    await page.mouse.move(0, 0)
    const path = join(SHOTS, `${name}.png`)
    const { width, height } = page.viewportSize()
    const end = await page.evaluate(() =>
      Math.max(...[...document.querySelectorAll('#main > div, .body')].map((e) => e.getBoundingClientRect().bottom)),
    )
    await page.screenshot({
      path,
      animations: 'disabled',
      caret: 'hide',
      clip: { x: 0, y: 0, width, height: Math.min(end + 24, height) },
    })
    execFileSync('pngquant', ['--force', '--strip', '--speed', '1', '--output', path, '64', path])
    const { size } = statSync(path)
    assert.ok(size <= most, `${path} has ${size} bytes`)
  }
  const pod = (page, name) =>
    page
      .locator('#main')
      .getByRole('button', { name: new RegExp(`\\b${name}`) })
      .first()
  const tab = async (page, name, shown) => {
    await page.getByRole('tab', { name, exact: true }).click()
    await page.locator('#panel').locator(shown).first().waitFor()
  }

  for (const [scheme, end] of [
    ['light', ''],
    ['dark', '-dark'],
  ]) {
    const page = await open({ colorScheme: scheme })
    await go(page, 'Cluster', namespace)
    await page.getByRole('button', { name: new RegExp(`Pod ${namespace}/mail-0`) }).waitFor()
    await shoot(page, `cluster${end}`)
    await pod(page, 'search-0').click()
    await page.locator('#panel .sentence').waitFor()
    await shoot(page, `why${end}`)
  }

  const page = await open()
  await go(page, 'Workloads', namespace)
  await pod(page, 'mail-0').waitFor()
  await shoot(page, 'workloads')
  await pod(page, 'database-0').click()
  await tab(page, 'Life', '.waterfall')
  await shoot(page, 'life')
  await tab(page, 'Log', '.log:not(:empty)')
  await shoot(page, 'log')
  await page.keyboard.press('Escape')
  await go(page, 'Services', namespace)
  await page.getByRole('region', { name: `Service ${namespace}/web` }).waitFor()
  await shoot(page, 'services')
  await go(page, 'Events', namespace)
  await page.locator('#main tbody tr').nth(5).waitFor()
  await shoot(page, 'events')
  await go(page, 'Resources', namespace)
  await page.getByLabel('Kind').selectOption({ label: `orders.${group}` })
  await page.getByRole('button', { name: 'order-1004' }).waitFor()
  await shoot(page, 'resources')
  await page.getByLabel('Kind').selectOption({ label: 'configmaps' })
  await page.getByRole('button', { name: 'settings' }).click()
  await tab(page, 'YAML', 'textarea')
  const area = page.getByRole('textbox', { name: 'YAML' })
  await area.fill(
    (await area.inputValue()).replace('items-per-page: "20"', 'items-per-page: "50"').replace('EUR', 'CHF'),
  )
  await page.getByRole('button', { name: 'Show what would change' }).click()
  await page.locator('.diff').waitFor()
  await page.getByRole('button', { name: 'Apply this change' }).scrollIntoViewIfNeeded()
  await shoot(page, 'yaml')

  const small = await open({ viewport: phone })
  await go(small, 'Cluster', namespace)
  await pod(small, 'mail-0').waitFor()
  await shoot(small, 'phone-cluster')
  await pod(small, 'search-0').click()
  await small.locator('#panel .sentence').waitFor()
  await shoot(small, 'phone-why')
})
