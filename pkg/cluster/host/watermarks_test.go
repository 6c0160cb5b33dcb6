package host

import "testing"

func TestHighPages(t *testing.T) {
	t.Parallel()
	// Linux 6.1 on a machine of 4 GiB.
	const zoneinfo = `Node 0, zone      DMA
  per-node stats
      nr_inactive_anon 1024
  pages free     3712
        boost    0
        min      65
        low      81
        high     97
        spanned  4095
  pagesets
    cpu: 0
              count: 0
              high:  4
              batch: 1
Node 0, zone    DMA32
  pages free     9923
        min      8436
        low      10545
        high     12654
Node 0, zone  Movable
        high     0
`
	if pages := highPages(zoneinfo); pages != 97+12654 {
		t.Errorf("%d", pages)
	}
	if kept := KeptFree(); kept < 0 || kept > 64<<30 {
		t.Errorf("this machine keeps %d bytes", kept)
	}
}
