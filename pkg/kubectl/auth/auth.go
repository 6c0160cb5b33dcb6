// Package auth says who the user is and what the user may do.
package auth

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"strings"

	"github.com/spf13/cobra"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/pkg/kubectl/cli"
	"bonsai/pkg/kubectl/printers"
	"bonsai/pkg/kubectl/resource"
)

// NewCommand returns "kubectl auth".
func NewCommand(f *cli.Factory, streams cli.IOStreams) *cobra.Command {
	cmd := &cobra.Command{
		Use: "auth", Short: "Inspect authorization", Long: "Inspect authorization.",
		RunE: cli.Group,
	}
	cmd.AddCommand(canI(f, streams), newReconcile(f, streams), whoami(f, streams))
	return cmd
}

// review posts a review and fills it with the answer. It does not ask first whether the server has the kind.
func review(ctx context.Context, f *cli.Factory, gvk schema.GroupVersionKind, object runtime.Object) error {
	c, err := f.Resources()
	if err != nil {
		return err
	}
	plural, _ := meta.UnsafeGuessKindToResource(gvk) // right for the three reviews
	m := &meta.RESTMapping{Resource: plural, GroupVersionKind: gvk, Scope: meta.RESTScopeRoot}
	object.GetObjectKind().SetGroupVersionKind(gvk)
	u, err := c.Create(ctx, m, "", object, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	return resource.FromUnstructured(u, object)
}

// self asks who the user is, of old servers in the versions of v1.27 and v1.26.
func self(ctx context.Context, f *cli.Factory) (*authenticationv1.SelfSubjectReview, error) {
	for _, version := range []string{"v1", "v1beta1", "v1alpha1"} {
		r := &authenticationv1.SelfSubjectReview{}
		gv := schema.GroupVersion{Group: authenticationv1.GroupName, Version: version}
		switch err := review(ctx, f, gv.WithKind("SelfSubjectReview"), r); {
		case apierrors.IsNotFound(err):
		case apierrors.IsForbidden(err):
			return nil, errors.New("the selfsubjectreviews API is not enabled in the cluster or you do not have permission to call it")
		default:
			return r, err
		}
	}
	return nil, errors.New("the selfsubjectreviews API is not enabled in the cluster")
}

func whoami(f *cli.Factory, streams cli.IOStreams) *cobra.Command {
	flags := printers.NewFlags()
	cmd := &cobra.Command{
		Use: "whoami", DisableFlagsInUseLine: true,
		Example: "# Who the server takes me for\nkubectl auth whoami\n\n# The same in JSON\nkubectl auth whoami -o json", Short: "Experimental: Check self subject attributes", Long: "Experimental: Check who you are and your attributes (groups, extra).",
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := self(cmd.Context(), f)
			if err != nil {
				return err
			}
			if flags.Output != "" {
				p, err := flags.Printer("")
				if err != nil {
					return err
				}
				return p.Print(r, streams.Out)
			}
			out := printers.NewAligner(streams.Out)
			out.Row("ATTRIBUTE", "VALUE")
			u := r.Status.UserInfo
			out.Row("Username", u.Username)
			if u.UID != "" {
				out.Row("UID", u.UID)
			}
			if len(u.Groups) > 0 {
				out.Row("Groups", fmt.Sprint(u.Groups))
			}
			keys := make([]string, 0, len(u.Extra))
			for k := range u.Extra {
				keys = append(keys, k)
			}
			sort.Strings(keys)
			for _, k := range keys {
				out.Row("Extra: "+k, fmt.Sprint([]string(u.Extra[k])))
			}
			return out.Flush()
		},
	}
	flags.AddFlags(cmd.Flags())
	return cmd
}

func canI(f *cli.Factory, streams cli.IOStreams) *cobra.Command {
	var list, all, quiet, noHeaders bool
	var subresource string
	cmd := &cobra.Command{
		Use:     "can-i VERB [TYPE | TYPE/NAME | NONRESOURCEURL]",
		Example: "# May I create pods, in any namespace?\nkubectl auth can-i create pods --all-namespaces\n\n# May I read the logs of pods?\nkubectl auth can-i get pods --subresource=log\n\n# May a service account list deployments?\nkubectl auth can-i list deployments.apps --as=system:serviceaccount:dev:robot\n\n# May I read this path?\nkubectl auth can-i get /logs/\n\n# All that I may do in a namespace\nkubectl auth can-i --list --namespace=dev", Short: "Check whether an action is allowed", Long: "Check whether an action is allowed.",
		RunE: func(cmd *cobra.Command, args []string) error {
			namespace, _, err := f.Namespace()
			if err != nil {
				return err
			}
			if all {
				namespace = ""
			}
			if list {
				if len(args) > 0 {
					return fmt.Errorf("list option must be specified with no arguments")
				}
				return rules(cmd.Context(), f, streams, namespace, noHeaders)
			}
			if len(args) != 2 {
				return fmt.Errorf("you must specify two arguments: verb resource or verb resource/resourceName.\nSee 'kubectl auth can-i -h' for help and examples.")
			}
			if subresource != "" && strings.HasPrefix(args[1], "/") {
				return errors.New("--subresource can not be used with NonResourceURL")
			}
			return ask(cmd.Context(), f, streams, spec(f, streams, args, namespace, subresource), quiet)
		},
	}
	cmd.Flags().BoolVar(&list, "list", false, "If true, prints all allowed actions.")
	cmd.Flags().BoolVarP(&all, "all-namespaces", "A", false, "If true, check the specified action in all namespaces.")
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "If true, suppress output and just return the exit code.")
	cmd.Flags().BoolVar(&noHeaders, "no-headers", false, "If true, prints allowed actions without headers")
	cmd.Flags().StringVar(&subresource, "subresource", "", "SubResource such as pod/log or deployment/scale")
	return cmd
}

// spec is the question; resources that the server does not know are asked about as they are written, after a warning.
func spec(f *cli.Factory, streams cli.IOStreams, args []string, namespace,
	subresource string) authorizationv1.SelfSubjectAccessReviewSpec {
	warnVerb(streams.ErrOut, args[0], strings.HasPrefix(args[1], "/"))
	if strings.HasPrefix(args[1], "/") {
		return authorizationv1.SelfSubjectAccessReviewSpec{
			NonResourceAttributes: &authorizationv1.NonResourceAttributes{Verb: args[0], Path: args[1]}}
	}
	kind, name, _ := strings.Cut(args[1], "/")
	a := &authorizationv1.ResourceAttributes{Verb: args[0], Namespace: namespace, Name: name, Subresource: subresource}
	gr := schema.ParseGroupResource(kind)
	a.Group, a.Resource = gr.Group, gr.Resource
	c, err := f.Resources()
	if err != nil || kind == "*" {
		return authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: a}
	}
	m, err := c.Mapping(kind)
	if err != nil {
		fmt.Fprintf(streams.ErrOut, "Warning: the server doesn't have a resource type '%s'%s\n\n", gr.Resource,
			inGroup(gr.Group))
		return authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: a}
	}
	a.Group, a.Resource = m.Resource.Group, m.Resource.Resource
	if m.Scope.Name() != "namespace" && namespace != "" {
		fmt.Fprintf(streams.ErrOut, "Warning: resource '%s' is not namespace scoped%s\n\n", a.Resource,
			inGroup(a.Group))
	}
	return authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: a}
}

func inGroup(group string) string {
	if group == "" {
		return ""
	}
	return fmt.Sprintf(" in group '%s'", group)
}

func ask(ctx context.Context, f *cli.Factory, streams cli.IOStreams, s authorizationv1.SelfSubjectAccessReviewSpec,
	quiet bool) error {
	r := &authorizationv1.SelfSubjectAccessReview{Spec: s}
	if err := review(ctx, f, authorizationv1.SchemeGroupVersion.WithKind("SelfSubjectAccessReview"), r); err != nil {
		return err
	}
	answer := "yes"
	if !r.Status.Allowed {
		answer = "no"
		if r.Status.Reason != "" {
			answer += " - " + r.Status.Reason
		}
		if r.Status.EvaluationError != "" {
			answer += " - " + r.Status.EvaluationError
		}
	}
	if !quiet {
		fmt.Fprintln(streams.Out, answer)
	}
	if !r.Status.Allowed {
		return cli.Silent()
	}
	return nil
}

func rules(ctx context.Context, f *cli.Factory, streams cli.IOStreams, namespace string, noHeaders bool) error {
	r := &authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: namespace}}
	if err := review(ctx, f, authorizationv1.SchemeGroupVersion.WithKind("SelfSubjectRulesReview"), r); err != nil {
		return err
	}
	out := printers.NewAligner(streams.Out)
	if !noHeaders {
		out.Row("Resources", "Non-Resource URLs", "Resource Names", "Verbs")
	}
	for _, row := range printers.RuleRows(ruleList(&r.Status)) {
		out.Row(row[0], row[1], row[2], row[3])
	}
	if r.Status.Incomplete {
		fmt.Fprintf(streams.ErrOut, "Warning: the list may be incomplete: %v\n", r.Status.EvaluationError)
	}
	return out.Flush()
}
