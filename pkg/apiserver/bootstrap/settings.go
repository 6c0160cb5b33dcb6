package bootstrap

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
)

// Authentication is what servers behind this one read in kube-system/extension-apiserver-authentication: whose client
// certificates to believe. Contents are PEM; empty fields are left out.
type Authentication struct {
	ClientCA, RequestHeaderCA                                                    string
	AllowedNames, UsernameHeaders, UIDHeaders, GroupHeaders, ExtraHeaderPrefixes []string
}

func (b *Bootstrap) authentication(ctx context.Context) error {
	settings, err := b.cfg.Authentication()
	if err != nil {
		return err
	}
	data, err := settings.data()
	if err != nil {
		return err
	}
	want := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "extension-apiserver-authentication"},
		Data:       data}
	return b.ensure(ctx, corev1.Resource("configmaps"), want, func(obj runtime.Object) (bool, error) {
		have, ok := obj.(*corev1.ConfigMap)
		if !ok {
			return false, fmt.Errorf("%T is not a ConfigMap", obj)
		}
		changed := !maps.Equal(have.Data, data)
		have.Data = data
		return changed, nil
	})
}

func (a *Authentication) data() (map[string]string, error) {
	data := map[string]string{}
	if a.ClientCA != "" {
		data["client-ca-file"] = a.ClientCA
	}
	if a.RequestHeaderCA == "" {
		return data, nil
	}
	data["requestheader-client-ca-file"] = a.RequestHeaderCA
	for key, list := range map[string][]string{
		"requestheader-allowed-names":        a.AllowedNames,
		"requestheader-username-headers":     a.UsernameHeaders,
		"requestheader-uid-headers":          a.UIDHeaders,
		"requestheader-group-headers":        a.GroupHeaders,
		"requestheader-extra-headers-prefix": a.ExtraHeaderPrefixes,
	} {
		if list == nil {
			list = []string{}
		}
		b, err := json.Marshal(list)
		if err != nil {
			return nil, fmt.Errorf("encoding %s: %w", key, err)
		}
		data[key] = string(b)
	}
	return data, nil
}

func (b *Bootstrap) priorityClasses(ctx context.Context) error {
	for _, c := range systemPriorityClasses() {
		if err := b.ensure(ctx, schedulingv1.Resource("priorityclasses"), c, nil); err != nil {
			return err
		}
	}
	return nil
}

func systemPriorityClasses() []*schedulingv1.PriorityClass {
	class := func(name string, value int32, description string) *schedulingv1.PriorityClass {
		return &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value,
			Description: description, PreemptionPolicy: ptr.To(corev1.PreemptLowerPriority)}
	}
	return []*schedulingv1.PriorityClass{
		class("system-node-critical", 2000001000,
			"Used for system critical pods that must not be moved from their current node."),
		class("system-cluster-critical", 2000000000,
			"Used for system critical pods that must run in the cluster, but can be moved to another node if necessary."),
	}
}
