package write

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"

	"bonsai/pkg/kubectl/resource"
)

// Prune are --prune and --prune-allowlist: objects that were applied once, and are in the files no more, are to go.
type Prune struct {
	On bool
	// Allowed are the kinds of --prune-allowlist, as GROUP/VERSION/KIND; without any, prunable are the kinds to look
	// among.
	Allowed []string

	kinds []*meta.RESTMapping
}

// AddFlags adds the flags; usage says what --prune is for.
func (p *Prune) AddFlags(set *pflag.FlagSet, usage string) {
	set.BoolVar(&p.On, "prune", false, usage)
	set.StringArrayVar(&p.Allowed, "prune-allowlist", []string{},
		"Overwrite the default allowlist with <group/version/kind> for --prune")
}

// prunable are the kinds that are looked among without an allow-list, in this order.
func prunable() []string {
	return []string{
		"core/v1/ConfigMap", "core/v1/Endpoints", "core/v1/Namespace", "core/v1/PersistentVolumeClaim",
		"core/v1/PersistentVolume", "core/v1/Pod",
		"core/v1/ReplicationController", "core/v1/Secret", "core/v1/Service", "batch/v1/Job", "batch/v1/CronJob",
		"networking.k8s.io/v1/Ingress",
		"apps/v1/DaemonSet", "apps/v1/Deployment", "apps/v1/ReplicaSet", "apps/v1/StatefulSet",
	}
}

// Complete reads the allow-list and finds its kinds.
func (p *Prune) Complete(c *resource.Client) error {
	if !p.On {
		return nil
	}
	allowed := p.Allowed
	if len(allowed) == 0 {
		allowed = prunable()
	}
	for _, text := range allowed {
		parts := strings.Split(text, "/")
		if len(parts) != 3 {
			return fmt.Errorf("invalid GroupVersionKind format: %v, please follow <group/version/kind>", text)
		}
		gvk := schema.GroupVersionKind{Group: parts[0], Version: parts[1], Kind: parts[2]}
		if gvk.Group == "core" {
			gvk.Group = ""
		}
		m, err := c.MappingFor(gvk)
		if meta.IsNoMatchError(err) {
			return errors.New(err.Error()) // of a flag, not of an object
		}
		if err != nil {
			return err
		}
		p.kinds = append(p.kinds, m)
	}
	return nil
}

// Find returns the objects that selector chooses, that client-side apply has written, and that are not among applied:
// those of namespaces, and then those in none.
func (p *Prune) Find(ctx context.Context, c *resource.Client, namespaces sets.Set[string], selector string,
	applied sets.Set[types.UID]) ([]*resource.Info, error) {
	if len(p.Allowed) == 0 {
		klog.Warning("Deprecated: kubectl apply will no longer prune non-namespaced resources by default when used with the --namespace flag in a future release. To preserve the current behaviour, list the resources you want to target explicitly in the --prune-allowlist flag.")
	}
	var out []*resource.Info
	look := func(namespaced bool, ns string) error {
		for _, m := range p.kinds {
			if namespaced != (m.Scope.Name() == meta.RESTScopeNameNamespace) {
				continue
			}
			infos, err := c.Select(ctx, m, ns, selector)
			if err != nil {
				return err
			}
			for _, i := range infos {
				if _, ok := i.Object.GetAnnotations()[LastAppliedAnnotation]; ok && !applied.Has(i.Object.GetUID()) {
					out = append(out, i)
				}
			}
		}
		return nil
	}
	for _, ns := range sets.List(namespaces) {
		if err := look(true, ns); err != nil {
			return nil, err
		}
	}
	return out, look(false, "")
}
