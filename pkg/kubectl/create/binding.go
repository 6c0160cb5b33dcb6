package create

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/pflag"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// subjectFlags are who a binding is for.
type subjectFlags struct{ users, groups, accounts []string }

func (s *subjectFlags) add(set *pflag.FlagSet) {
	set.StringArrayVar(&s.users, "user", nil,
		"Usernames to bind to the role. The flag can be repeated to add multiple users.")
	set.StringArrayVar(&s.groups, "group", nil,
		"Groups to bind to the role. The flag can be repeated to add multiple groups.")
	set.StringArrayVar(&s.accounts, "serviceaccount", nil,
		"Service accounts to bind to the role, in the format <namespace>:<name>. The flag can be repeated to add multiple service accounts.")
}

func (s *subjectFlags) subjects() ([]rbacv1.Subject, error) {
	var out []rbacv1.Subject
	for _, u := range s.users {
		out = append(out, rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: u})
	}
	for _, g := range s.groups {
		out = append(out, rbacv1.Subject{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: g})
	}
	for _, a := range s.accounts {
		ns, name, ok := strings.Cut(a, ":")
		if !ok || ns == "" || name == "" || strings.Contains(name, ":") {
			return nil, errors.New("serviceaccount must be <namespace>:<name>")
		}
		out = append(out, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: ns, Name: name})
	}
	return out, nil
}

func roleBinding() kind {
	var s subjectFlags
	var clusterRole, role string
	return kind{
		use:     "rolebinding NAME --clusterrole=NAME|--role=NAME [--user=username] [--group=groupname] [--serviceaccount=namespace:serviceaccountname] [--dry-run=server|client|none]",
		example: "  # Give a role to a user and a group\n  kubectl create rolebinding edit --clusterrole=edit --user=ann --group=team\n\n  # Give it to a service account\n  kubectl create rolebinding view --role=view --serviceaccount=dev:robot",
		short:   "Create a role binding for a particular role or cluster role",
		long:    "Create a role binding for a particular role or cluster role.",
		failed:  "failed to create rolebinding: ",
		flags: func(set *pflag.FlagSet) {
			set.StringVar(&clusterRole, "clusterrole", "", "ClusterRole this RoleBinding should reference")
			set.StringVar(&role, "role", "", "Role this RoleBinding should reference")
			s.add(set)
		},
		build: func(_ context.Context, g *generator) (runtime.Object, error) {
			if (clusterRole == "") == (role == "") {
				return nil, errors.New("exactly one of clusterrole or role must be specified")
			}
			subjects, err := s.subjects()
			if err != nil {
				return nil, err
			}
			ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role}
			if role == "" {
				ref.Kind, ref.Name = "ClusterRole", clusterRole
			}
			return &rbacv1.RoleBinding{TypeMeta: rbac("RoleBinding"), ObjectMeta: g.meta(), Subjects: subjects,
				RoleRef: ref}, nil
		},
	}
}

func clusterRoleBinding() kind {
	var s subjectFlags
	var clusterRole string
	return kind{
		use:      "clusterrolebinding NAME --clusterrole=NAME [--user=username] [--group=groupname] [--serviceaccount=namespace:serviceaccountname] [--dry-run=server|client|none]",
		example:  "  # Give a cluster role to a user and a group, in all namespaces\n  kubectl create clusterrolebinding admins --clusterrole=cluster-admin --user=ann --group=team",
		short:    "Create a cluster role binding for a particular cluster role",
		long:     "Create a cluster role binding for a particular cluster role.",
		failed:   "failed to create clusterrolebinding: ",
		required: []string{"clusterrole"}, cluster: true,
		flags: func(set *pflag.FlagSet) {
			set.StringVar(&clusterRole, "clusterrole", "", "ClusterRole this ClusterRoleBinding should reference")
			s.add(set)
		},
		build: func(_ context.Context, g *generator) (runtime.Object, error) {
			subjects, err := s.subjects()
			if err != nil {
				return nil, err
			}
			ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: clusterRole}
			return &rbacv1.ClusterRoleBinding{TypeMeta: rbac("ClusterRoleBinding"), ObjectMeta: g.meta(),
				Subjects: subjects, RoleRef: ref}, nil
		},
	}
}

func rbac(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{Kind: kind, APIVersion: rbacv1.SchemeGroupVersion.String()}
}
