package rollout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"text/tabwriter"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/kubectl/resource"
)

// causeAnnotation holds the reason for a template, for people.
const causeAnnotation = "kubernetes.io/change-cause"

func history(ctx context.Context, o *options, i *resource.Info) error {
	w, err := decode(i, fmt.Sprintf("no history viewer has been implemented for %q",
		i.Mapping.GroupVersionKind.GroupKind()))
	if err != nil {
		return err
	}
	all, err := w.history(ctx, o.client)
	if err != nil {
		return err
	}
	switch {
	case o.revision > 0:
		return o.showRevision(i, w, all)
	case o.Print.Template != "" && o.Print.Output == "":
		return o.showObjects(revision{object: w.object()}) // without -o, a template is laid over the workload
	case o.Print.Output != "":
		return o.showObjects(all...)
	}
	fmt.Fprintf(o.Out, "%s \n", i.ResourceName())
	if len(all) == 0 {
		fmt.Fprintln(o.Out, "No rollout history found.")
		return nil
	}
	t := tabwriter.NewWriter(o.Out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "REVISION\tCHANGE-CAUSE")
	for _, r := range all {
		cause := r.cause
		if cause == "" {
			cause = "<none>"
		}
		fmt.Fprintf(t, "%d\t%s\n", r.number, cause)
	}
	fmt.Fprintln(t)
	return t.Flush()
}

// showRevision prints the pod template of one revision, its object with -o, or, with --template and no -o, the
// workload. If there is no history at all, a missing revision is an error only with -o, as in upstream's kubectl.
func (o *options) showRevision(i *resource.Info, w workload, all []revision) error {
	n := slices.IndexFunc(all, func(r revision) bool { return r.number == o.revision })
	switch {
	case n < 0 && (len(all) > 0 || o.Print.Output != ""):
		return errors.New("unable to find the specified revision")
	case o.Print.Output != "":
		return o.showObjects(all[n])
	case o.Print.Template != "":
		return o.showObjects(revision{object: w.object()})
	}
	fmt.Fprintf(o.Out, "%s with revision #%d\n", i.ResourceName(), o.revision)
	if n < 0 {
		fmt.Fprintln(o.Out, "No rollout history found.")
		return nil
	}
	r := all[n]
	if _, ok := w.(*deployment); ok && r.cause != "" {
		metav1.SetMetaDataAnnotation(&r.template.ObjectMeta, causeAnnotation, r.cause)
	}
	o.template(o.Out, r.template)
	fmt.Fprintln(o.Out)
	return nil
}

// showObjects prints the revisions' objects in the format of -o.
func (o *options) showObjects(all ...revision) error {
	p, err := o.Printer("")
	if err != nil {
		return err
	}
	for _, r := range all {
		if err := p.Print(r.object, o.Out); err != nil {
			return err
		}
	}
	return nil
}
