package auth

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	rbacv1client "k8s.io/client-go/kubernetes/typed/rbac/v1"
	"k8s.io/component-helpers/auth/rbac/reconciliation"

	"bonsai/pkg/kubectl/cli"
	"bonsai/pkg/kubectl/resource"
	"bonsai/pkg/kubectl/write"
)

// reconcile is "auth reconcile": roles get the rules that they lack, bindings the subjects.
type reconcile struct {
	write.Base
	files resource.Files
	// rules and subjects remove what the file does not say.
	rules, subjects bool

	roles      *rbacv1client.RbacV1Client
	namespaces corev1client.NamespaceInterface
}

func newReconcile(f *cli.Factory, streams cli.IOStreams) *cobra.Command {
	o := &reconcile{Base: write.Base{Flags: write.NewFlags("kubectl"), IOStreams: streams}}
	cmd := &cobra.Command{
		Use:   "reconcile -f FILENAME",
		Short: "Reconciles rules for RBAC role, role binding, cluster role, and cluster role binding objects",
		Long: "Reconciles rules for RBAC role, role binding, cluster role, and cluster role binding objects.\n\n" +
			" What is missing is created, and the namespace for it if need be. Roles that are there get the rules of the file, and lose others with --remove-extra-permissions; bindings get the subjects, and lose others with --remove-extra-subjects.\n\n" +
			" Rules are compared by what they allow, which apply cannot do.",
		Example: "  # Bring roles and bindings to what a file says\n  kubectl auth reconcile -f my-rbac-rules.yaml",
		RunE:    cli.RunE(f, o),
	}
	set := cmd.Flags()
	o.Flags.AddFlags(set)
	o.files.AddFlags(set, "Filename, directory, or URL to files identifying the resource to reconcile.")
	set.BoolVar(&o.rules, "remove-extra-permissions", false, "If true, removes extra permissions added to roles")
	set.BoolVar(&o.subjects, "remove-extra-subjects", false, "If true, removes extra subjects added to rolebindings")
	return cmd
}

// Complete gets the clients.
func (o *reconcile) Complete(f *cli.Factory, _ *cobra.Command, _ []string) error {
	if o.files.Empty() {
		return write.NoFiles()
	}
	if err := o.Flags.Complete(o.ErrOut); err != nil {
		return fmt.Errorf("error accessing --dry-run flag for command reconcile: %w", err)
	}
	if o.DryRun == write.DryRunServer {
		return errors.New("--dry-run=server for command reconcile is not supported yet")
	}
	if err := o.CompleteWith(f); err != nil {
		return err
	}
	cfg, err := f.RESTConfig()
	if err != nil {
		return err
	}
	cfg.ContentType, cfg.AcceptContentTypes = resource.JSON, resource.JSON
	if o.roles, err = rbacv1client.NewForConfig(cfg); err != nil {
		return err
	}
	core, err := corev1client.NewForConfig(cfg)
	if err != nil {
		return err
	}
	o.namespaces = core.Namespaces()
	return nil
}

// Validate checks -o.
func (o *reconcile) Validate() error {
	_, err := o.Printer("reconciled")
	return err
}

// Run reconciles one object after the other, and goes on after one that cannot be.
func (o *reconcile) Run(ctx context.Context) error {
	docs, err := o.Client.Read(ctx, o.files)
	var errs []error
	for _, d := range docs {
		if err := o.one(d.Object); err != nil {
			errs = append(errs, err)
		}
	}
	if err != nil {
		errs = append(errs, err)
	}
	if len(errs) == 1 {
		return errs[0]
	}
	return utilerrors.NewAggregate(errs)
}

// one reconciles u; what is no object of RBAC is left out.
func (o *reconcile) one(u *unstructured.Unstructured) error {
	gvk := u.GroupVersionKind()
	if gvk.Group != rbacv1.GroupName {
		return nil
	}
	if gvk.Version != rbacv1.SchemeGroupVersion.Version {
		return fmt.Errorf("only %s is supported: not *%s.%s", rbacv1.SchemeGroupVersion, gvk.Version, gvk.Kind)
	}
	if gvk.Kind == "Role" || gvk.Kind == "RoleBinding" {
		switch own := u.GetNamespace(); {
		case own == "":
			u.SetNamespace(o.Namespace)
		case o.Explicit && own != o.Namespace:
			return fmt.Errorf("the namespace from the provided object %q does not match the namespace %q. You must pass '--namespace=%s' to perform this operation.", own, o.Namespace, own)
		}
	}
	var typed runtime.Object
	var made runtime.Object
	var err error
	switch gvk.Kind {
	case "Role":
		role := &rbacv1.Role{}
		typed, err = role, resource.FromUnstructured(u, role)
	case "ClusterRole":
		role := &rbacv1.ClusterRole{}
		typed, err = role, resource.FromUnstructured(u, role)
	case "RoleBinding":
		binding := &rbacv1.RoleBinding{}
		typed, err = binding, resource.FromUnstructured(u, binding)
	case "ClusterRoleBinding":
		binding := &rbacv1.ClusterRoleBinding{}
		typed, err = binding, resource.FromUnstructured(u, binding)
	}
	if err != nil {
		return err
	}
	if made, err = o.bring(typed); err != nil || made == nil {
		return err
	}
	made.GetObjectKind().SetGroupVersionKind(gvk)
	return o.Show("reconciled", made)
}

// bring has the library do it, and returns the object as it is then.
func (o *reconcile) bring(typed runtime.Object) (runtime.Object, error) {
	switch x := typed.(type) {
	case *rbacv1.Role:
		return o.role(reconciliation.RoleRuleOwner{Role: x},
			reconciliation.RoleModifier{Client: o.roles, NamespaceClient: o.namespaces})
	case *rbacv1.ClusterRole:
		return o.role(reconciliation.ClusterRoleRuleOwner{ClusterRole: x},
			reconciliation.ClusterRoleModifier{Client: o.roles.ClusterRoles()})
	case *rbacv1.RoleBinding:
		return o.binding(reconciliation.RoleBindingAdapter{RoleBinding: x},
			reconciliation.RoleBindingClientAdapter{Client: o.roles, NamespaceClient: o.namespaces})
	case *rbacv1.ClusterRoleBinding:
		return o.binding(reconciliation.ClusterRoleBindingAdapter{ClusterRoleBinding: x},
			reconciliation.ClusterRoleBindingClientAdapter{Client: o.roles.ClusterRoleBindings()})
	}
	return nil, nil
}

func (o *reconcile) role(role reconciliation.RuleOwner, client reconciliation.RuleOwnerModifier) (runtime.Object,
	error) {
	r, err := (&reconciliation.ReconcileRoleOptions{Role: role, Client: client, Confirm: o.DryRun == write.DryRunNone,
		RemoveExtraPermissions: o.rules}).Run()
	if err != nil {
		return nil, err
	}
	o.say(r.Operation, r.Protected)
	told(o, "missing rules added:", r.MissingRules)
	if o.rules {
		told(o, "extra rules removed:", r.ExtraRules)
	}
	return r.Role.GetObject(), nil
}

func (o *reconcile) binding(binding reconciliation.RoleBinding,
	client reconciliation.RoleBindingModifier) (runtime.Object, error) {
	r, err := (&reconciliation.ReconcileRoleBindingOptions{RoleBinding: binding, Client: client,
		Confirm: o.DryRun == write.DryRunNone, RemoveExtraSubjects: o.subjects}).Run()
	if err != nil {
		return nil, err
	}
	o.say(r.Operation, r.Protected)
	told(o, "missing subjects added:", r.MissingSubjects)
	if o.subjects {
		told(o, "extra subjects removed:", r.ExtraSubjects)
	}
	return r.RoleBinding.GetObject(), nil
}

// say tells what is to be done, if anything is.
func (o *reconcile) say(operation reconciliation.ReconcileOperation, protected bool) {
	if operation == reconciliation.ReconcileNone {
		return
	}
	out := ""
	if protected {
		out = fmt.Sprintf(", but object opted out (%s: false)", rbacv1.AutoUpdateAnnotationKey)
	}
	fmt.Fprintf(o.ErrOut, "\treconciliation required %s%s\n", operation, out)
}

// told tells what was added or removed.
func told[T any](o *reconcile, title string, items []T) {
	if len(items) == 0 {
		return
	}
	fmt.Fprintf(o.ErrOut, "\t%s\n", title)
	for _, i := range items {
		fmt.Fprintf(o.ErrOut, "\t\t%+v\n", i)
	}
}
