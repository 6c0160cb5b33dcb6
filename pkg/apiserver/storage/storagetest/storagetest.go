// Package storagetest holds the contract of storage.Interface as tests, one per sentence of its documentation. Every
// implementation runs Suite.
package storagetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"bonsai/pkg/apiserver/storage"
)

// Prefix is the resource that Suite writes; a storage with a FactsTable registers Facts for it.
const Prefix = "/registry/things/"

// patience bounds every wait of the suite.
const patience = 20 * time.Second

// Facts reads the values of the suite: "<label value>;<anything>". The label is "color", the field metadata.name is
// left empty.
func Facts(value []byte) (storage.Facts, error) {
	color, _, ok := strings.Cut(string(value), ";")
	if !ok {
		return storage.Facts{}, fmt.Errorf("no label in %q", value)
	}
	return storage.NewFacts(&[]string{"metadata.name"}, map[string]string{"color": color}, nil), nil
}

// Table returns a FactsTable that knows Prefix.
func Table() *storage.FactsTable {
	t := &storage.FactsTable{}
	t.Register(Prefix, Facts)
	return t
}

// Compacter is a storage that can forget its history up to a revision.
type Compacter interface {
	Compact(ctx context.Context, revision int64) error
}

// Suite checks the storage that start returns, a fresh and empty one at each call; start cleans up after the test. A
// storage that is a Compacter is checked for expiry too.
func Suite(t *testing.T, start func(t *testing.T) storage.Interface) {
	for name, test := range map[string]func(*env){
		"Create":                       testCreate,
		"CreateIsExclusive":            testCreateRace,
		"Get":                          testGet,
		"GetSeesAcknowledgedWrites":    testGetLinearizable,
		"GetNotOlderThan":              testGetNotOlderThan,
		"GetFuture":                    testGetFuture,
		"Update":                       testUpdate,
		"UpdateLosesNothing":           testUpdateRace,
		"UpdateError":                  testUpdateError,
		"UpdateUnchanged":              testUpdateUnchanged,
		"AskedOnce":                    testAskedOnce,
		"Delete":                       testDelete,
		"DeleteCheck":                  testDeleteCheck,
		"DeleteAndCreate":              testDeleteCreate,
		"Revision":                     testRevision,
		"Facts":                        testFacts,
		"TTL":                          testTTL,
		"Context":                      testContext,
		"List":                         testList,
		"ListPrefix":                   testListPrefix,
		"ListFilter":                   testListFilter,
		"ListSeesAcknowledgedWrites":   testListLinearizable,
		"ListNotOlderThan":             testListNotOlderThan,
		"ListExact":                    testListExact,
		"ListFuture":                   testListFuture,
		"ListPages":                    testPages,
		"ListPagesFiltered":            testPagesFiltered,
		"ListPagesUnderWrites":         testPagesUnderWrites,
		"ListPagesAtLatest":            testPagesAtLatest,
		"ListBadContinue":              testBadContinue,
		"ListExpired":                  testListExpired,
		"Watch":                        testWatch,
		"WatchPrefix":                  testWatchPrefix,
		"WatchFromThePast":             testWatchPast,
		"WatchFromZero":                testWatchZero,
		"WatchInitial":                 testWatchInitial,
		"WatchInitialMany":             testWatchInitialMany,
		"WatchFilter":                  testWatchFilter,
		"WatchWithoutGap":              testWatchNoGap,
		"WatchManyReaders":             testWatchMany,
		"WatchProgress":                testWatchProgress,
		"WatchExpired":                 testWatchExpired,
		"WatchStop":                    testWatchStop,
		"WatchContext":                 testWatchContext,
		"WatchFromTheFuture":           testWatchFuture,
		"ListThenWatchWithoutGap":      testListWatch,
		"ItemsShareEncodings":          testEncodings,
		"ChangeMaySeeOldButNotWriteIt": testStaleChange,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			t.Cleanup(cancel)
			test(&env{T: t, ctx: ctx, s: start(t)})
		})
	}
}

// env is one test's storage with the words the tests are written in; all of them fail the test on an unexpected error.
type env struct {
	*testing.T
	ctx context.Context
	s   storage.Interface
}

var tick atomic.Int64 // makes values differ

// draft returns a value with the label and something unique.
func draft(color string) storage.Draft {
	return storage.Draft{Value: fmt.Appendf(nil, "%s;%d", color, tick.Add(1))}
}

func key(name string) string { return Prefix + "ns/" + name }

func (e *env) create(name, color string) *storage.Item {
	e.Helper()
	item, err := e.s.Create(e.ctx, key(name), draft(color))
	if err != nil {
		e.Fatalf("create %s: %v", name, err)
	}
	return item
}

func (e *env) update(name, color string) *storage.Item {
	e.Helper()
	item, err := e.s.Update(e.ctx, key(name), func(*storage.Item) (storage.Draft, error) { return draft(color), nil })
	if err != nil {
		e.Fatalf("update %s: %v", name, err)
	}
	return item
}

func (e *env) delete(name string) *storage.Item {
	e.Helper()
	item, err := e.s.Delete(e.ctx, key(name), func(*storage.Item) error { return nil })
	if err != nil {
		e.Fatalf("delete %s: %v", name, err)
	}
	return item
}

func (e *env) list(prefix string, opts storage.ListOptions) *storage.List {
	e.Helper()
	l, err := e.s.List(e.ctx, prefix, opts)
	if err != nil {
		e.Fatalf("list %s %+v: %v", prefix, opts, err)
	}
	return l
}

func (e *env) revision() int64 {
	e.Helper()
	r, err := e.s.Revision(e.ctx)
	if err != nil {
		e.Fatalf("revision: %v", err)
	}
	return r
}

func (e *env) wantErr(err, want error) {
	e.Helper()
	if !errors.Is(err, want) {
		e.Fatalf("error %v, want %v", err, want)
	}
}

func (e *env) wantNames(l *storage.List, want ...string) {
	e.Helper()
	if got := names(l.Items); strings.Join(got, " ") != strings.Join(want, " ") {
		e.Fatalf("listed %v, want %v", got, want)
	}
}

// compact drops the history up to revision, or skips the test.
func (e *env) compact(revision int64) {
	e.Helper()
	c, ok := e.s.(Compacter)
	if !ok {
		e.Skip("the storage has no Compact method")
	}
	if err := c.Compact(e.ctx, revision); err != nil {
		e.Fatalf("compact: %v", err)
	}
}

func names(items []*storage.Item) []string {
	out := make([]string, 0, len(items))
	for _, i := range items {
		out = append(out, i.Key[strings.LastIndexByte(i.Key, '/')+1:])
	}
	return out
}

// red keeps the items with color=red.
func red(i *storage.Item) bool { return i.Facts.Labels().Get("color") == "red" }
