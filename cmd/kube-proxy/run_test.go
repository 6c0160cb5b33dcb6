package main

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestKeepServing: a server whose port is taken is tried every five seconds, or, with bindAddressHardFail, ends the
// process.
func TestKeepServing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var said bytes.Buffer
		log, began, tries, taken := slog.New(slog.NewTextHandler(&said, nil)), time.Now(), 0,
			errors.New("address already in use")
		run := func() error {
			if tries++; tries == 3 {
				cancel()
				return ctx.Err()
			}
			return taken
		}
		err := (&settings{}).keepServing(ctx, run, log)
		if !errors.Is(err, context.Canceled) || tries != 3 || time.Since(began) != 10*time.Second ||
			strings.Count(said.String(), "already in use") != 2 {
			t.Errorf("%v, %d tries in %s: %s", err, tries, time.Since(began), &said)
		}
		if err := (&settings{hardFail: true}).keepServing(t.Context(), func() error {
			return taken
		}, log); !errors.Is(err, taken) {
			t.Error(err)
		}
	})
}
