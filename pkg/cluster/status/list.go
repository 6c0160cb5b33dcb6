package status

import (
	"fmt"
	"io"
	"text/tabwriter"

	"bonsai/pkg/cluster/plan"
)

// PrintList prints clusters, one on a line. state says in a word what a cluster does. A cluster whose configuration
// cannot be read has no name.
func PrintList(all []plan.Config, state func(plan.Config) string, out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 8, 3, ' ', 0)
	fmt.Fprintln(w, "NAME\tSTATE\tNODES\tAPI SERVER\tPODS\tSERVICES\tCONTEXT\tDATA")
	for _, c := range all {
		if c.Name == "" {
			fmt.Fprintf(w, "?\tunreadable\t?\t?\t?\t?\t?\t%s\n", c.DataDir)
			continue
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%s\t%s\t%s\t%s\n", c.Name, state(c), len(c.Nodes), c.LocalServer(),
			plan.CommaList(c.Networks().Pods()), plan.CommaList(c.Networks().Services()), c.Context(), c.DataDir)
	}
	return w.Flush()
}
