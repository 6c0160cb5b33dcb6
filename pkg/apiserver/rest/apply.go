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
func (x *exchange) readApply(p purpose) (accepted, *configuration, *metav1.PatchOptions, error) {
	a, err := x.negotiate(p)
	if err != nil {
		return a, nil, nil, err
	}
	opts, err := fromQuery(x.query, metav1.Convert_url_Values_To_v1_PatchOptions)
	if err != nil {
		return a, nil, nil, err
	}
	if err := invalidOptions("PatchOptions", validation.ValidatePatchOptions(opts, types.ApplyYAMLPatchType)); err != nil {
		return a, nil, nil, err
	}
	config, err := x.config(opts)
	if err != nil {
		return a, nil, nil, err
	}
	return a, config, opts, nil
}

// configuration is what is applied.
type configuration struct {
	*unstructured.Unstructured
	// twice tells of keys that it names twice: refused where the client wants strict validation, else with a warning of each.
	twice  error
	strict bool
}

// merged makes the metadata of obj, into which the configuration has been merged, what ObjectMeta has: in an object without a Go type a label may be
// null. And it tells of what is named twice: as in Kubernetes once the configuration has been merged, and not in the way of a conflict.
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
		return apierrors.NewBadRequest(fmt.Sprintf("error strict decoding YAML: error converting YAML to JSON: %v", c.twice))
	}
	for _, line := range warningLines(c.twice) {
		x.warn(line)
	}
	return nil
}

// config reads the configuration of a server-side apply.
func (x *exchange) config(opts *metav1.PatchOptions) (*configuration, error) {
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
		return nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding YAML: %v", err))
	}
	if opts.FieldValidation != metav1.FieldValidationIgnore {
		_, config.twice = sigsyaml.YAMLToJSONStrict(body)
		config.strict = opts.FieldValidation == metav1.FieldValidationStrict
	}
	return config, nil
}

// apply makes the body what the manager has applied of an object, or of what subresource writes of it.
func (x *exchange) apply(subresource string) error {
	a, config, opts, err := x.readApply(forObject)
	if err != nil {
		return err
	}
	item, obj, created, err := x.res.Store.ApplyItem(x.context(), x.info.Namespace, x.info.Name, subresource, &registry.Application{
		Config: config.Unstructured, Options: opts, Merged: func(obj runtime.Object) error { return config.merged(x, obj) },
		MayCreate: func() error {
			if err := x.stillTaken(config.Unstructured); err != nil {
				return err
			}
			return x.mayCreate()
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

// applyWith is apply to a subresource that has a kind of its own.
func (x *exchange) applyWith(rw registry.ReadWriter, row *resources.Row) error {
	a, config, opts, err := x.readApply(forPart)
	if err != nil {
		return err
	}
	ctx, update := x.context(), registry.PatchToUpdate(opts)
	out, err := rw.Update(ctx, x.info.Namespace, x.info.Name, x.partChange(update, func(current runtime.Object) (runtime.Object, error) {
		obj, err := x.Fields.Apply(ctx, row, x.writer(row, opts.FieldManager), current.DeepCopyObject(), config.DeepCopy(), opts.Force != nil && *opts.Force)
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

// applies tells whether a PATCH asks for server-side apply.
func (x *exchange) applies() bool { return x.Fields != nil && bodyType(x.r) == typeApply }

// writer is in whose name an object that no store keeps is written, in the version of row.
func (x *exchange) writer(row *resources.Row, manager string) registry.Writer {
	return registry.Writer{Name: cmp.Or(manager, registry.ManagerOf(x.r.UserAgent())), Version: row.GVK.Version, Subresource: x.info.Subresource, At: x.Now()}
}

// note has the field manager note a write of an object that no store keeps; live is nil for a new one.
func (x *exchange) note(row *resources.Row, manager string, live, obj runtime.Object) error {
	if _, err := meta.Accessor(obj); err != nil || x.Fields == nil {
		return nil // nothing to note it in
	}
	return x.Fields.Update(x.r.Context(), row, x.writer(row, manager), live, obj)
}
