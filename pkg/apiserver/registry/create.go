package registry

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/resources"
	"bonsai/pkg/apiserver/admission"
	"bonsai/pkg/apiserver/storage"
)

// nameAttempts is how often a generated name that is taken is drawn again.
const nameAttempts = 8

// Create implements Store.
func (g *Generic) Create(ctx context.Context, ns string, obj runtime.Object,
	opts *metav1.CreateOptions) (runtime.Object, error) {
	_, created, err := g.CreateItem(ctx, ns, "", obj, opts)
	return created, err
}

// CreateItem stores obj, which it changes, and returns what was stored: another object if admission replaced it. name
// is the object's where the request gives it, in a URL, else "". The item's revision in a dry run is the version that
// obj had, mostly 0.
func (g *Generic) CreateItem(ctx context.Context, ns, name string, obj runtime.Object,
	opts *metav1.CreateOptions) (*storage.Item, runtime.Object, error) {
	return g.createNoted(ctx, ns, name, obj, opts, false)
}

// createNoted is CreateItem of an object whose managedFields are made, or not.
//
// A generated name is drawn after mutating admission, which sees no name, and before validating admission, which sees
// it. If the name is taken, run gets another one, at most nameAttempts times; mutating admission runs once.
func (g *Generic) createNoted(ctx context.Context, ns, name string, obj runtime.Object, opts *metav1.CreateOptions,
	noted bool) (*storage.Item, runtime.Object, error) {
	access, err := meta.Accessor(obj)
	if err != nil {
		return nil, nil, fmt.Errorf("create %s: %w", g.gr, err)
	}
	if err := fitNamespace(g.Row, access, ns); err != nil {
		return nil, nil, err
	}
	wipeSystemMetadata(access)
	def := g.defaults(ctx, nil)
	if def != nil {
		def(obj)
	}
	if !noted {
		if err := g.note(ctx, g.writer(ctx, opts.FieldManager, ""), nil, obj); err != nil {
			return nil, nil, err
		}
	}
	a := g.attributes(ctx, admission.Create, ns, access.GetName(), "")
	a.Object, a.Options, a.DryRun = obj, opts, isDryRun(opts.DryRun)
	if access, err = g.admit(ctx, a, def); err != nil {
		return nil, nil, err
	}
	OwnersOnce(access, ownersChanged, a.Warn)
	if err := fitNamespace(g.Row, access, ns); err != nil {
		return nil, nil, err
	}
	if name != "" && access.GetName() != name { // as the client sent it, or as admission left it
		return nil, nil, otherName(access.GetName(), name)
	}
	prefix := access.GetGenerateName()
	generated := access.GetName() == "" && prefix != ""
	for attempt := 1; ; attempt++ {
		if generated {
			access.SetName(prefix[:min(len(prefix), maxGenerated)] + g.Random(suffixLen))
		}
		c := creation{g, a, access}
		item, err := c.run(ctx)
		if generated && apierrors.IsAlreadyExists(err) {
			if attempt < nameAttempts {
				continue
			}
			err = apierrors.NewGenerateNameConflict(g.gr, access.GetName(), 1)
		}
		if err != nil {
			return nil, nil, err
		}
		return item, a.Object, nil
	}
}

// creation is an object that is about to be stored: a.Object, whose metadata is access.
type creation struct {
	*Generic
	a      *admission.Attributes
	access metav1.Object
}

// run prepares, validates and stores the object, whose name is settled. A later attempt gets the object as the one
// before left it.
//
// The strategy comes before the hook, which may read the fields that the strategy fills in. The hook comes before the
// validation, which must see what the hook allocated. Validating admission is last and sees what will be stored.
// Whatever fails after the hook, its done gives back what it reserved, also on a panic.
func (c *creation) run(ctx context.Context) (item *storage.Item, err error) {
	a, access, s := c.a, c.access, &c.Row.Strategy
	wipeSystemMetadata(access)
	access.SetUID(uuid.NewUUID())
	access.SetCreationTimestamp(metav1.NewTime(c.Now()).Rfc3339Copy())
	if s.SpecChanged != nil {
		access.SetGeneration(1)
	}
	if s.EarlyWarnings != nil {
		for _, w := range s.EarlyWarnings(a.Object) {
			a.Warn(w)
		}
	}
	if s.PrepareCreate != nil {
		s.PrepareCreate(a.Object)
	}
	committed := false
	if c.Hook != nil {
		done, err := c.Hook.BeforeCreate(ctx, a.Object, a.DryRun)
		if err != nil {
			return nil, err
		}
		defer func() { done(committed) }()
	}
	if err := c.validate(ctx); err != nil {
		return nil, err
	}
	a.Name = access.GetName()
	if s.Warnings != nil {
		for _, w := range s.Warnings(a.Object, nil) {
			a.Warn(w)
		}
	}
	if c.Admission != nil {
		if err := c.Admission.Validate(ctx, a); err != nil {
			return nil, err
		}
	}
	if s.Canonicalize != nil {
		s.Canonicalize(a.Object)
	}
	item, err = c.insert(ctx)
	committed = err == nil
	return item, err
}

// insert stores the object, which must be new: what else is wrong with it has been told before.
func (c *creation) insert(ctx context.Context) (*storage.Item, error) {
	a, access := c.a, c.access
	v, err := version(access)
	// Kubernetes, too, takes what is no version for none, and does not look at one in a dry run
	if err == nil && v != 0 && !a.DryRun {
		return nil, errors.New("resourceVersion should not be set on objects to be created")
	}
	draft, err := c.codec.Draft(a.Object)
	if err != nil {
		return nil, err
	}
	draft.TTL = c.Row.TTL
	key := c.key(access.GetNamespace(), access.GetName())
	var item *storage.Item
	if a.DryRun {
		// A dry run reserves nothing: the name that is free now may be taken when the real create comes.
		if _, err := c.Storage.Get(ctx, key, 0); err == nil {
			return nil, c.taken(ctx)
		} else if !errors.Is(err, storage.ErrNotFound) {
			return nil, c.apiError(access.GetName(), err)
		}
		item = storage.NewItem(key, draft.Value, int64(v), *draft.Facts)
	} else if item, err = c.Storage.Create(ctx, key, draft); errors.Is(err, storage.ErrExists) {
		return nil, c.taken(ctx)
	} else if err != nil {
		return nil, c.apiError(access.GetName(), err)
	}
	if !a.DryRun {
		c.wrote(item)
	}
	if err := setVersion(a.Object, item); err != nil {
		return nil, err
	}
	return item, nil
}

// taken is the 409 for a name that another object has, and says so if that one is about to go. It reads the other
// object only for these words: if that fails, or the object has gone by now, the plain 409 stays.
func (c *creation) taken(ctx context.Context) error {
	access := c.access
	err := apierrors.NewAlreadyExists(c.gr, access.GetName())
	if access.GetGenerateName() != "" {
		err = apierrors.NewGenerateNameConflict(c.gr, access.GetName(), 1)
	}
	item, getErr := c.Storage.Get(ctx, c.key(access.GetNamespace(), access.GetName()), 0)
	if getErr != nil {
		return err
	}
	if other, metaErr := c.codec.Metadata(item); metaErr == nil && other.DeletionTimestamp != nil {
		err.ErrStatus.Message = "object is being deleted: " + err.ErrStatus.Message
	}
	return err
}

// validate checks metadata and the kind's own rules; all problems are reported at once (422).
func (c *creation) validate(ctx context.Context) error {
	obj, access, s := c.a.Object, c.access, &c.Row.Strategy
	path, validateName := field.NewPath("metadata"), validation.ValidateNameFunc(validation.NameIsDNSSubdomain)
	if s.ValidateName != nil {
		validateName = s.ValidateName
	}
	meta := validation.ValidateObjectMetaAccessor(access, c.Row.Namespaced, validateName, path)
	meta = append(meta, validateFinalizers(c.Row, access, path)...)
	var errs field.ErrorList
	seen, err := c.asVersion(ctx, obj, nil)
	if err != nil {
		return err
	}
	if seen != nil {
		errs, _ = seen.Validate("", seen.obj, nil)
	} else if s.Validate != nil {
		errs = s.Validate(obj)
	}
	if errs = append(meta, errs...); len(errs) > 0 {
		return invalid(c.codec.GVK().GroupKind(), access.GetName(), errs)
	}
	return nil
}

// validateFinalizers wants names without a domain to be Kubernetes' own, where the kind does.
func validateFinalizers(row *resources.Row, access metav1.Object, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if row.PlainFinalizers {
		return nil
	}
	for i, f := range access.GetFinalizers() {
		standard := f == "kubernetes" || f == metav1.FinalizerOrphanDependents || f == metav1.FinalizerDeleteDependents
		if !standard && !strings.Contains(f, "/") {
			errs = append(errs, field.Invalid(path.Child("finalizers").Index(i), f,
				"name is neither a standard finalizer name nor is it fully qualified"))
		}
	}
	return errs
}

// maxGenerated is how much of a generateName prefix is used, so that names stay within 63 characters.
const maxGenerated = 63 - suffixLen

const suffixLen = 5

// fitNamespace sets the object's namespace from the request's and refuses another one.
func fitNamespace(row *resources.Row, access metav1.Object, ns string) error {
	if !row.Namespaced {
		access.SetNamespace("")
		return nil
	}
	switch access.GetNamespace() {
	case ns:
	case "":
		access.SetNamespace(ns)
	default:
		return apierrors.NewBadRequest(
			"the namespace of the provided object does not match the namespace sent on the request")
	}
	return nil
}

// wipeSystemMetadata drops what only the system may set. The generation is not among it: a kind that counts none keeps
// what a client creates it with, as in Kubernetes.
func wipeSystemMetadata(access metav1.Object) {
	access.SetSelfLink("")
	access.SetDeletionTimestamp(nil)
	access.SetDeletionGracePeriodSeconds(nil)
}
