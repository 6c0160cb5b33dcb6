package bootstrap

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// tokenTracking says since when the use of tokens in secrets is noted on them. A day that nobody can read is today:
// what was unused before it is not known to be unused.
func (b *Bootstrap) tokenTracking(ctx context.Context) error {
	const since = "since"
	today := time.Now().UTC().Format(time.DateOnly)
	want := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem,
			Name: "kube-apiserver-legacy-service-account-token-tracking"},
		Data: map[string]string{since: today}}
	return b.ensure(ctx, corev1.Resource("configmaps"), want, func(obj runtime.Object) (bool, error) {
		have, ok := obj.(*corev1.ConfigMap)
		if !ok {
			return false, fmt.Errorf("%T is not a ConfigMap", obj)
		}
		if _, err := time.Parse(time.DateOnly, have.Data[since]); err == nil {
			return false, nil
		}
		have.Data = want.Data
		return true, nil
	})
}
