// Command kubectl-trace shows where the time goes in an object's life. It is a plug-in of kubectl, any make and version
// of it: a file of this name in $PATH is run as "kubectl trace". It only reads, so it works with any cluster.
package main

import (
	"context"
	"os"
	"strings"
	"time"

	"bonsai/cmd/internal/plugin"
	"bonsai/pkg/kubectl/cli"
)

func main() {
	plugin.Main(func(ctx context.Context) int {
		return run(ctx, os.Args[1:], terminal{
			IOStreams: cli.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr},
			columns:   plugin.Columns(os.Stdout), plain: os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb",
			ascii: !unicode(os.Getenv), now: time.Now})
	})
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
