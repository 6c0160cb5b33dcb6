package rest

import (
	"cmp"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	sigsyaml "sigs.k8s.io/yaml"

	"bonsai/api/resources"
	"bonsai/pkg/apiserver/registry"
)

// typeApply is the media type of what server-side apply is asked for with; JSON is YAML.
const typeApply = string(types.ApplyYAMLPatchType)

// readApply reads the options and the configuration of a server-side apply.
func readApply(x *exchange, p purpose) (accepted, *configuration, *metav1.PatchOptions, error) {
	a, err := x.negotiate(p)
	if err != nil {
		return a, nil, nil, err
	}
	opts, err := fromQuery(x.query, metav1.Convert_url_Values_To_v1_PatchOptions)
	if err != nil {
		return a, nil, nil, err
	}
	if err := invalidOptions("PatchOptions",
		validation.ValidatePatchOptions(opts, types.ApplyYAMLPatchType)); err != nil {
		return a, nil, nil, err
	}
	config, err := readConfiguration(x, opts)
	if err != nil {
		return a, nil, nil, err
	}
	return a, config, opts, nil
}

// configuration is what is applied.
type configuration struct {
	*unstructured.Unstructured
	// twice tells of keys that it names twice: refused where the client wants strict validation, else with a warning of
	// each.
	twice  error
	strict bool
}

// merged makes the metadata of obj, into which the configuration has been merged, what ObjectMeta has: in an object
// without a Go type a label may be null. And it tells of what is named twice: as in Kubernetes once the configuration
// has been merged, and not in the way of a conflict.
func (c *configuration) merged(x *exchange, obj runtime.Object) error {
	if u, ok := obj.(runtime.Unstructured); ok {
		if _, err := fitMetadata(u.UnstructuredContent()); err != nil {
			return registry.Plain(err)
		}
	}
	switch {
	case c.twice == nil:
		return nil
	case c.strict:
		return apierrors.NewBadRequest(
			fmt.Sprintf("error strict decoding patch: error converting YAML to JSON: %v", c.twice))
	}
	for _, line := range warningLines(c.twice) {
		x.warn(line)
	}
	return nil
}

// readConfiguration reads the configuration of a server-side apply. Plain JSON takes a fast path, which also checks the
// bounds; what that does not read goes through the YAML decoder. Duplicate keys are looked for in a second pass, as the
// first one cannot report them.
func readConfiguration(x *exchange, opts *metav1.PatchOptions) (*configuration, error) {
	body, err := readBody(x.r)
	if err != nil {
		return nil, err
	}
	x.auditPatch(body)
	if plain, ok := plainConfig(body, bodyBounds(x.MaxValues)); ok {
		return &configuration{Unstructured: &unstructured.Unstructured{Object: plain}}, nil
	}
	if err := x.bounded(body, nil); err != nil {
		return nil, err
	}
	config := &configuration{Unstructured: &unstructured.Unstructured{Object: map[string]any{}}}
	if err := yaml.Unmarshal(body, &config.Object); err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding patch: %v", err))
	}
	if opts.FieldValidation != metav1.FieldValidationIgnore {
		_, config.twice = sigsyaml.YAMLToJSONStrict(body)
		config.strict = opts.FieldValidation == metav1.FieldValidationStrict
	}
	return config, nil
}

// serveApply makes the body what the manager has applied of an object, or of what subresource writes of it.
func serveApply(x *exchange, subresource string) error {
	a, config, opts, err := readApply(x, forObject)
	if err != nil {
		return err
	}
	item, obj, created, err := x.res.Store.ApplyItem(x.context(), x.info.Namespace, x.info.Name, subresource,
		&registry.Application{
			Config: config.Unstructured, Options: opts, Merged: func(obj runtime.Object) error {
				return config.merged(x, obj)
			},
			MayCreate: func() error {
				// The request was authorized as a patch; whether it creates shows only now.
				if err := stillTaken(x, config.Unstructured); err != nil {
					return err
				}
				return mayCreate(x)
			},
		})
	if err != nil {
		return err
	}
	if err := x.share(a, item, obj); err != nil {
		return err
	}
	code := http.StatusOK
	if created {
		code = http.StatusCreated
	}
	return x.writeStored(a, code, item)
}

// serveApplyWith is apply to a subresource that has a kind of its own. It never creates: the parent must exist. Each
// attempt merges copies, as the merge may change both.
func serveApplyWith(x *exchange, rw registry.ReadWriter, row *resources.Row) error {
	a, config, opts, err := readApply(x, forPart)
	if err != nil {
		return err
	}
	ctx, update := x.context(), registry.PatchToUpdate(opts)
	out, err := rw.Update(ctx, x.info.Namespace, x.info.Name,
		partChange(x, update, func(current runtime.Object) (runtime.Object, error) {
			by, force := writerFor(x, row, opts.FieldManager), opts.Force != nil && *opts.Force
			obj, err := x.Fields.Apply(ctx, row, by, current.DeepCopyObject(), config.DeepCopy(), force)
			if err != nil {
				return nil, registry.Plain(err)
			}
			return obj, config.merged(x, obj)
		}), update)
	if err != nil {
		return err
	}
	return x.writePart(rw, a, out)
}

// applies reports whether a PATCH asks for server-side apply.
func (x *exchange) applies() bool { return x.Fields != nil && bodyType(x.r) == typeApply }

// writerFor is in whose name an object that no store keeps is written, in the version of row.
func writerFor(x *exchange, row *resources.Row, manager string) registry.Writer {
	return registry.Writer{Name: cmp.Or(manager, registry.ManagerOf(x.r.UserAgent())), Version: row.GVK.Version,
		Subresource: x.info.Subresource, At: x.Now()}
}

// noteManager has the field manager note a write of an object that no store keeps; live is nil for a new one.
func noteManager(x *exchange, row *resources.Row, manager string, live, obj runtime.Object) error {
	if _, err := meta.Accessor(obj); err != nil || x.Fields == nil {
		return nil // nothing to note it in
	}
	return x.Fields.Update(x.r.Context(), row, writerFor(x, row, manager), live, obj)
}
