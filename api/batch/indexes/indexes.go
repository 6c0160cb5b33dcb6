// Package indexes is the text in which a Job's status and its success policy name sets of completion indexes:
// "1,3-5,7", rising numbers, three or more in a row written as the first and the last of them. It is read and written
// for 100,000 indexes at every change of a Job, so that a set stays a list of intervals.
package indexes

import (
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// Interval is the indexes from First to Last, both included.
type Interval struct{ First, Last int }

// Set is rising intervals that neither overlap nor touch. The zero Set is empty.
type Set []Interval

// Parse reads a set of indexes below limit. The error is the API's own words for what is wrong with the text first.
func Parse(text string, limit int) (Set, error) {
	var out Set
	if text == "" {
		return out, nil
	}
	last := -1
	for part := range strings.SplitSeq(text, ",") {
		ends := strings.Split(part, "-")
		if len(ends) > 2 {
			return nil, fmt.Errorf("the fragment %q violates the requirement that an index interval can have at most two parts separated by '-'", part)
		}
		first, err := number(ends[0], limit, last)
		if err != nil {
			return nil, err
		}
		last = first
		if len(ends) == 2 {
			if last, err = number(ends[1], limit, first); err != nil {
				return nil, err
			}
		}
		out = out.with(first, last)
	}
	return out, nil
}

// number reads one index that must be above previous and below limit.
func number(text string, limit, previous int) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, fmt.Errorf("cannot convert string to integer for index: %q", text)
	}
	if n >= limit {
		return 0, fmt.Errorf("too large index: %q", text)
	}
	if previous >= n {
		return 0, fmt.Errorf("non-increasing order, previous: %d, current: %d", previous, n)
	}
	return n, nil
}

// Read is Parse for a text that this program or its kind wrote: it leaves out what is not below limit, and what cannot
// be read.
func Read(text string, limit int) Set {
	var out Set
	if text == "" {
		return out
	}
	for part := range strings.SplitSeq(text, ",") {
		from, to, isRange := strings.Cut(part, "-")
		first, err := strconv.Atoi(from)
		last := first
		if err == nil && isRange {
			last, err = strconv.Atoi(to)
		}
		if last = min(last, limit-1); err == nil && first <= last && (len(out) == 0 || first > out[len(out)-1].Last) {
			out = out.with(first, last)
		}
	}
	return out
}

// Of is the set of the given numbers, in any order.
func Of(numbers []int) Set {
	sorted := slices.Compact(slices.Sorted(slices.Values(numbers)))
	var out Set
	for _, n := range sorted {
		out = out.with(n, n)
	}
	return out
}

// with appends an interval that begins after the last one, joined to it where they touch.
func (s Set) with(first, last int) Set {
	if n := len(s); n > 0 && s[n-1].Last+1 >= first {
		s[n-1].Last = max(s[n-1].Last, last)
		return s
	}
	return append(s, Interval{first, last})
}

// String writes the set as Parse reads it.
func (s Set) String() string {
	var b strings.Builder
	for _, i := range s {
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(i.First))
		if i.Last > i.First {
			b.WriteByte(separator(i))
			b.WriteString(strconv.Itoa(i.Last))
		}
	}
	return b.String()
}

// separator: two in a row are no shorter as a range.
func separator(i Interval) byte {
	if i.Last == i.First+1 {
		return ','
	}
	return '-'
}

// Len is the number of indexes.
func (s Set) Len() (n int) {
	for _, i := range s {
		n += i.Last - i.First + 1
	}
	return n
}

// Has reports whether n is in the set.
func (s Set) Has(n int) bool {
	at := sort.Search(len(s), func(i int) bool { return s[i].Last >= n })
	return at < len(s) && s[at].First <= n
}

// Union is what is in either set.
func (s Set) Union(o Set) Set {
	all := slices.Concat(s, o)
	slices.SortFunc(all, func(a, b Interval) int { return a.First - b.First })
	var out Set
	for _, i := range all {
		out = out.with(i.First, i.Last)
	}
	return out
}

// Intersect is what is in both sets.
func (s Set) Intersect(o Set) Set {
	var out Set
	for i, j := 0, 0; i < len(s) && j < len(o); {
		if first, last := max(s[i].First, o[j].First), min(s[i].Last, o[j].Last); first <= last {
			out = out.with(first, last)
		}
		if s[i].Last < o[j].Last {
			i++
		} else {
			j++
		}
	}
	return out
}
