package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"bonsai/pkg/safetext"
	"bonsai/pkg/tour"
)

// tourOptions are the flags of `bonsai tour`.
type tourOptions struct {
	list, yes           bool
	kubeconfig, context string
}

func tourCommand() *cobra.Command {
	o := &tourOptions{}
	c := &cobra.Command{
		Use:   "tour [CHAPTER]...",
		Short: "Walk through what a cluster does, step by step, on a running one",
		Long: "Walk through what a cluster does, step by step, on a running one: what happens, who does it, where " +
			"that is in\n" +
			"the code, and what changes in the object. Each chapter works in a namespace of its own, bonsai-tour, " +
			"and deletes it.",
		Example: "  bonsai tour\n  bonsai tour pod service\n  bonsai tour --list",
		RunE:    func(cmd *cobra.Command, args []string) error { return o.run(cmd, args) },
	}
	c.Flags().BoolVar(&o.list, "list", false, "list the chapters, and do nothing")
	c.Flags().BoolVar(&o.yes, "yes", false, "go on without waiting for the Enter key")
	c.Flags().StringVar(&o.kubeconfig, "kubeconfig", "",
		"kubeconfig to use; like kubectl, $KUBECONFIG or ~/.kube/config if it is empty")
	c.Flags().StringVar(&o.context, "context", "", "context of the kubeconfig; its current one if it is empty")
	return c
}

func (o *tourOptions) run(cmd *cobra.Command, args []string) error {
	chapters, err := tour.Chapters()
	if err != nil {
		return err
	}
	if o.list {
		for _, c := range chapters {
			fmt.Fprintf(cmd.OutOrStdout(), "%-12s %s\n", c.Name, c.Title)
		}
		return nil
	}
	chosen, err := choose(chapters, args)
	if err != nil {
		return err
	}
	path, err := beside("kubectl")
	if err != nil {
		return err
	}
	p := &tour.Player{Out: cmd.OutOrStdout(), Width: o.width(), Next: o.next(cmd.Context(), cmd.InOrStdin(),
		cmd.OutOrStdout()),
		Kubectl: func(ctx context.Context, args []string, input string) (string, error) {
			return o.kubectl(ctx, path, args, input)
		}}
	for _, c := range chosen {
		if err := p.Play(cmd.Context(), c); err != nil {
			return err
		}
	}
	return nil
}

// choose returns the chapters of these names, all for none.
func choose(chapters []tour.Chapter, names []string) ([]tour.Chapter, error) {
	if len(names) == 0 {
		return chapters, nil
	}
	var chosen []tour.Chapter
	for _, name := range names {
		i := slices.IndexFunc(chapters, func(c tour.Chapter) bool { return c.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no chapter %q: bonsai tour --list names them", name)
		}
		chosen = append(chosen, chapters[i])
	}
	return chosen, nil
}

// width is the terminal's, at most what is easy to read.
func (o *tourOptions) width() int {
	const most, usual = 90, 80
	if columns, _, err := term.GetSize(int(os.Stdout.Fd())); err == nil {
		return min(columns, most)
	}
	return usual
}

// next returns what waits for the Enter key. The end of the input, q and the end of ctx leave the tour.
func (o *tourOptions) next(ctx context.Context, in io.Reader, out io.Writer) func() bool {
	if o.yes {
		return func() bool { return ctx.Err() == nil }
	}
	lines := make(chan string)
	// The goroutine ends with the process: nothing can take back a read of a terminal.
	read := sync.OnceFunc(func() {
		go func() {
			defer close(lines)
			for s := bufio.NewScanner(in); s.Scan(); {
				lines <- s.Text()
			}
		}()
	})
	return func() bool {
		read()
		fmt.Fprint(out, "\n[Enter goes on, q leaves] ")
		select {
		case line, ok := <-lines:
			return ok && !strings.HasPrefix(strings.TrimSpace(line), "q")
		case <-ctx.Done():
			return false
		}
	}
}

// kubectl runs kubectl and returns what it printed, errors included: the tour shows them.
func (o *tourOptions) kubectl(ctx context.Context, path string, args []string, input string) (string, error) {
	if o.kubeconfig != "" {
		args = append([]string{"--kubeconfig", o.kubeconfig}, args...)
	}
	if o.context != "" {
		args = append([]string{"--context", o.context}, args...)
	}
	const most = 1 << 20
	out := &bounded{most: most}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), out, out
	err := cmd.Run()
	if _, ended := errors.AsType[*exec.ExitError](err); err != nil && !ended {
		return "", fmt.Errorf("run %s: %w", path, safetext.Error(err))
	}
	return out.text.String(), nil
}
