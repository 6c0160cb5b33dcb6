package images

import (
	"cmp"
	"slices"
	"time"

	"bonsai/pkg/kubelet/runtime"
)

// Policy is when unused images are removed. Above High percent of disk use, images that have been on the node for
// MinAge go until Low percent is reached. Those that were unused for MaxAge go in any case, if it is not zero.
type Policy struct {
	High, Low      int
	MinAge, MaxAge time.Duration
}

// disk is the file system that holds the images, in bytes.
type disk struct{ capacity, available uint64 }

// seen is when an image was first seen on the node and when a container last used it.
type seen struct{ first, used time.Time }

// track returns the next state of known: new images are entered, vanished ones dropped. used has the ids that
// containers use now.
func track(known map[string]seen, present []runtime.Image, used map[string]bool, now time.Time) map[string]seen {
	next := make(map[string]seen, len(present))
	for _, img := range present {
		s, ok := known[img.ID]
		if !ok {
			s.first = now
		}
		if used[img.ID] {
			s.used = now
		}
		next[img.ID] = s
	}
	return next
}

// Reason is why an unused image is removed, in upstream's words.
type Reason string

// The reasons: the disk is too full, or the image was unused for too long.
const (
	forSpace Reason = "space"
	forAge   Reason = "age"
)

// victim is an image that is to be removed.
type victim struct {
	id     string
	size   uint64
	reason Reason
}

// victims chooses the images to remove to free so many bytes, the longest unused first. Pinned images never go. It is
// pure.
func victims(p Policy, need int64, present []runtime.Image, known map[string]seen, used map[string]bool,
	now time.Time) []victim {
	candidates := slices.DeleteFunc(slices.Clone(present), func(i runtime.Image) bool {
		return i.Pinned || used[i.ID] || now.Sub(known[i.ID].first) < p.MinAge
	})
	slices.SortStableFunc(candidates, func(a, b runtime.Image) int {
		return cmp.Or(known[a.ID].used.Compare(known[b.ID].used), known[a.ID].first.Compare(known[b.ID].first))
	})
	var out []victim
	for _, c := range candidates {
		s := known[c.ID]
		last := s.used
		if last.IsZero() {
			last = s.first
		}
		old := p.MaxAge > 0 && now.Sub(last) > p.MaxAge
		v := victim{c.ID, c.Size, forSpace}
		switch {
		case old:
			v.reason = forAge
		case need <= 0:
			continue
		}
		out = append(out, v)
		need -= int64(c.Size)
	}
	return out
}

// toFree returns how many bytes must go, 0 or less for none.
func toFree(p Policy, d disk) int64 {
	if d.capacity == 0 || p.High >= 100 {
		return 0
	}
	use := 100 - int(d.available*100/d.capacity)
	if use < p.High {
		return 0
	}
	return int64(d.capacity)*int64(100-p.Low)/100 - int64(d.available)
}
