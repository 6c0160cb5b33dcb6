package main

import (
	"errors"
	"time"

	"github.com/spf13/cobra"
)

// wait is the value of --wait: a duration above zero.
type wait time.Duration

func (w *wait) String() string { return time.Duration(*w).String() }

func (w *wait) Type() string { return "duration" }

func (w *wait) Set(text string) error {
	d, err := time.ParseDuration(text)
	if err == nil && d <= 0 {
		err = errors.New("must be more than 0, as 90s")
	}
	*w = wait(d)
	return err
}

// waitFlag gives a command --wait, which is kept in d, and returns d. The time begins again with each progress
// (host.WithPatience), so it is no bound on the whole command.
func waitFlag(c *cobra.Command, d *time.Duration, what string) *time.Duration {
	*d = 5 * time.Minute
	c.Flags().Var((*wait)(d), "wait", "how long to wait for "+what+" to be ready while nothing progresses")
	return d
}
