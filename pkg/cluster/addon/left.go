package addon

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"bonsai/pkg/cluster/plan"
)

// PrintLeft prints how to delete the objects of the add-ons that old has and c has not. Nobody deletes them without the
// user: they may hold data. `up` prints this after the steps of a start that succeeded.
func PrintLeft(c plan.Config, old plan.Config, out io.Writer) error {
	for _, a := range plan.OptionalAddons {
		if !old.HasAddon(a.Name) || c.HasAddon(a.Name) {
			continue
		}
		objects, err := Read(old, a.Name)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "The add-on %s is off, and its objects are still there. To delete them:\n", a.Name)
		named := map[string][]string{} // by namespace: one command of kubectl has one namespace
		for _, obj := range objects {
			gvk := obj.GroupVersionKind()
			kind := strings.ToLower(gvk.Kind)
			if gvk.Group != "" {
				kind += "." + gvk.Group
			}
			named[obj.GetNamespace()] = append(named[obj.GetNamespace()], kind+"/"+obj.GetName())
		}
		for _, namespace := range slices.Sorted(maps.Keys(named)) {
			where := ""
			if namespace != "" {
				where = " -n " + namespace
			}
			fmt.Fprintf(out, "  kubectl --context %s%s delete --ignore-not-found %s\n", c.Context(), where,
				strings.Join(named[namespace], " "))
		}
	}
	return nil
}
