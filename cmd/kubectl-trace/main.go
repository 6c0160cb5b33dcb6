// Command kubectl-trace shows where the time goes in an object's life. It is a plug-in of kubectl, any make and version
// of it: a file of this name in $PATH is run as "kubectl trace". It only reads, so it works with any cluster.
package main

import (
	"context"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"golang.org/x/term"

	"bonsai/pkg/kubectl/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop() // a second signal ends the process: the first one's handler is gone by then
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], terminal{IOStreams: cli.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr},
		columns: columns(os.Stdout), plain: os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb",
		ascii: !unicode(os.Getenv), now: time.Now}))
}

// columns returns the width of the terminal that f is, 0 if it is none.
func columns(f *os.File) int {
	if !term.IsTerminal(int(f.Fd())) {
		return 0
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil || width <= 0 {
		return 80
	}
	return width
}

// unicode reports whether the locale has Unicode's characters: the first of these variables that is set decides.
// Without any it is assumed, as in containers, where nobody sets them and terminals have it.
func unicode(getenv func(string) string) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := strings.ToLower(getenv(name)); v != "" {
			return strings.Contains(v, "utf-8") || strings.Contains(v, "utf8")
		}
	}
	return true
}
