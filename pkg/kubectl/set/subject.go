package set

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"bonsai/pkg/kubectl/cli"
	"bonsai/pkg/kubectl/resource"
)

const rbacGroup = "rbac.authorization.k8s.io"

// subject is "set subject".
type subject struct {
	setter
	users, groups, accounts []string
}

func newSubject(f *cli.Factory, streams cli.IOStreams) *cobra.Command {
	o := &subject{setter: newSetter(streams, "subjects updated", "failed to patch subjects to rolebinding:")}
	cmd := &cobra.Command{
		Use:     "subject (-f FILENAME | TYPE NAME) [--user=username] [--group=groupname] [--serviceaccount=namespace:serviceaccountname] [--dry-run=server|client|none]",
		Short:   "Update the user, group, or service account in a role binding or cluster role binding",
		Long:    "Update the user, group, or service account in a role binding or cluster role binding.",
		Example: "  # Update a cluster role binding for serviceaccount1\n  kubectl set subject clusterrolebinding admin --serviceaccount=namespace:serviceaccount1",
		RunE:    cli.RunE(f, o),
	}
	set := cmd.Flags()
	o.addFlags(set)
	o.target.AddSelector(set)
	set.StringArrayVar(&o.users, "user", nil, "Usernames to bind to the role")
	set.StringArrayVar(&o.groups, "group", nil, "Groups to bind to the role")
	set.StringArrayVar(&o.accounts, "serviceaccount", nil, "Service accounts to bind to the role")
	return cmd
}

// Complete gets the client.
func (o *subject) Complete(f *cli.Factory, _ *cobra.Command, args []string) error {
	o.args = args
	return o.CompleteWith(f)
}

// Validate requires somebody to bind.
func (o *subject) Validate() error {
	if len(o.users)+len(o.groups)+len(o.accounts) == 0 {
		return errors.New("you must specify at least one value of user, group or serviceaccount")
	}
	for _, a := range o.accounts {
		if ns, name, ok := strings.Cut(a, ":"); !ok || ns == "" || name == "" || strings.Contains(name, ":") {
			return errors.New("serviceaccount must be <namespace>:<name>")
		}
	}
	return o.setter.Validate()
}

// Run adds the subjects that the binding does not have yet, and removes none.
func (o *subject) Run(ctx context.Context) error {
	return o.update(ctx, func(i *resource.Info, u *unstructured.Unstructured) error {
		if k := u.GetKind(); k != "RoleBinding" && k != "ClusterRoleBinding" {
			return fmt.Errorf("%s/%s setting subjects is only supported for RoleBinding/ClusterRoleBinding",
				i.Mapping.Resource.Resource, i.Name)
		}
		have, _ := u.Object["subjects"].([]any)
		for _, s := range o.subjects() {
			if !slices.ContainsFunc(have, func(e any) bool { return reflect.DeepEqual(e, s) }) {
				have = append(have, s)
			}
		}
		u.Object["subjects"] = have
		return nil
	})
}

// subjects returns the users, groups and service accounts as subjects of a binding; service accounts are in the core
// group.
func (o *subject) subjects() []any {
	var out []any
	for _, n := range o.users {
		out = append(out, map[string]any{"apiGroup": rbacGroup, "kind": "User", "name": n})
	}
	for _, n := range o.groups {
		out = append(out, map[string]any{"apiGroup": rbacGroup, "kind": "Group", "name": n})
	}
	for _, n := range o.accounts {
		ns, name, _ := strings.Cut(n, ":")
		out = append(out, map[string]any{"kind": "ServiceAccount", "name": name, "namespace": ns})
	}
	return out
}
