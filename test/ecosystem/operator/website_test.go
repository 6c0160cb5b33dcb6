package operator

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"bonsai/test/ecosystem/operator/v1"
	"bonsai/test/ecosystem/operator/v1alpha1"
)

// TestOperator runs the operator and uses it in the way of its users.
func TestOperator(t *testing.T) {
	s := start(t)
	address := freeAddress(t)
	first, stop := s.manage(t, address, true)
	waitFor(t, "the webhook server", func() error { return first.GetWebhookServer().StartedChecker()(nil) })
	<-first.Elected()

	t.Run("life", s.testLife)
	t.Run("webhooks", s.testWebhooks)
	t.Run("versions", s.testVersions)
	t.Run("apply", s.testApply)
	t.Run("metrics", func(t *testing.T) { s.testMetrics(t, "https://"+address+"/metrics") })
	t.Run("election", func(t *testing.T) {
		second, _ := s.manage(t, "0", false)
		waitFor(t, "the second manager's cache", func() error {
			if !second.GetCache().WaitForCacheSync(t.Context()) {
				return errors.New("not yet")
			}
			return nil
		})
		select {
		case <-second.Elected():
			t.Fatal("two leaders")
		default:
		}
		stop()
		select {
		case <-second.Elected():
		case <-t.Context().Done():
			t.Fatal("no leader follows")
		}
	})
}

// site is a Website of one page.
func (s *suite) site(name string) *v1.Website {
	return &v1.Website{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name},
		Spec: v1.WebsiteSpec{Pages: map[string]string{"index.html": "hello"}}}
}

// available is nil once the controller has said so of site's newest generation. Where there are no controllers of
// Deployments, it plays theirs.
func (s *suite) available(t *testing.T, site *v1.Website) func() error {
	return func() error {
		if err := s.client.Get(t.Context(), client.ObjectKeyFromObject(site), site); err != nil {
			return err
		}
		if c := meta.FindStatusCondition(site.Status.Conditions, "Available"); c != nil &&
			c.Status == metav1.ConditionTrue &&
			c.ObservedGeneration == site.Generation && site.Status.ObservedGeneration == site.Generation {
			return nil
		}
		if !onCluster() {
			var d appsv1.Deployment
			if err := s.client.Get(t.Context(), client.ObjectKeyFromObject(site), &d); err != nil {
				return err
			}
			before := d.DeepCopy()
			d.Status.Replicas, d.Status.ReadyReplicas = *d.Spec.Replicas, *d.Spec.Replicas
			if err := s.client.Status().Patch(t.Context(), &d, client.MergeFrom(before)); err != nil {
				return err
			}
		}
		return fmt.Errorf("status %+v", site.Status)
	}
}

// testLife follows a Website from its creation to its end.
func (s *suite) testLife(t *testing.T) {
	ctx, site := t.Context(), s.site("life")
	if err := s.client.Create(ctx, site); err != nil {
		t.Fatal(err)
	}
	if site.Spec.Replicas == nil || *site.Spec.Replicas != 1 {
		t.Errorf("replicas that the webhook defaults: %v", site.Spec.Replicas)
	}
	waitFor(t, "available", s.available(t, site))
	if !controllerutil.ContainsFinalizer(site, finalizer) {
		t.Errorf("finalizers: %v", site.Finalizers)
	}
	var pages, outside corev1.ConfigMap
	if err := s.client.Get(ctx, client.ObjectKeyFromObject(site), &pages); err != nil ||
		!metav1.IsControlledBy(&pages, site) || pages.Data["index.html"] != "hello" {
		t.Errorf("pages %v %v, %v", pages.OwnerReferences, pages.Data, err)
	}
	namesKey := client.ObjectKey{Namespace: s.namespace, Name: names}
	if err := s.client.Get(ctx, namesKey, &outside); err != nil || outside.Data["life"] != string(site.UID) {
		t.Errorf("names: %v, %v", outside.Data, err)
	}
	waitFor(t, "its event", func() error {
		var l eventsv1.EventList
		if err := s.client.List(ctx, &l, client.InNamespace(s.namespace)); err != nil {
			return err
		}
		for _, e := range l.Items {
			if e.Regarding.UID == site.UID && e.Reason == "PagesWritten" && e.Related.Name == "life" &&
				e.ReportingController == "website-controller" {
				return nil
			}
		}
		return fmt.Errorf("among %d", len(l.Items))
	})

	pages.Data = map[string]string{"index.html": "defaced"}
	if err := s.client.Update(ctx, &pages); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the owned object as it was", func() error {
		if err := s.client.Get(ctx, client.ObjectKeyFromObject(site), &pages); err != nil ||
			pages.Data["index.html"] != "hello" {
			return fmt.Errorf("%v, %v", pages.Data, err)
		}
		return nil
	})

	scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 2}}
	if err := s.client.SubResource("scale").Update(ctx, site, client.WithSubResourceBody(scale)); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "available with two replicas", s.available(t, site))
	if *site.Spec.Replicas != 2 || site.Generation != 2 || site.Status.Replicas != 2 {
		t.Errorf("scaled: %v replicas, generation %d, %+v", *site.Spec.Replicas, site.Generation, site.Status)
	}
	var found v1.WebsiteList
	if err := s.client.List(ctx, &found, client.InNamespace(s.namespace),
		client.MatchingFields{"spec.replicas": "2"}); err != nil || len(found.Items) != 1 {
		t.Errorf("by field: %d found, %v", len(found.Items), err)
	}

	if err := s.client.Delete(ctx, site, client.PropagationPolicy(metav1.DeletePropagationForeground),
		client.Preconditions{UID: &site.UID}); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "its name taken out", func() error {
		if err := s.client.Get(ctx, namesKey, &outside); err != nil || outside.Data["life"] != "" {
			return fmt.Errorf("%v, %v", outside.Data, err)
		}
		return nil
	})
	if !onCluster() { // nobody collects garbage here
		site.Finalizers = nil
		if err := s.client.Patch(ctx, site,
			client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
			t.Fatal(err)
		}
	}
	for _, o := range []client.Object{&v1.Website{}, &appsv1.Deployment{}, &corev1.ConfigMap{}} {
		if _, ok := o.(*v1.Website); !ok && !onCluster() {
			continue
		}
		waitFor(t, fmt.Sprintf("%T gone", o), func() error {
			if err := s.client.Get(ctx, client.ObjectKeyFromObject(site), o); !apierrors.IsNotFound(err) {
				return fmt.Errorf("finalizers %v, %w", o.GetFinalizers(), err)
			}
			return nil
		})
	}
}

// testWebhooks sends what the schema, its rules and the webhooks refuse or warn of.
func (s *suite) testWebhooks(t *testing.T) {
	refused := func(what, want string, is func(error) bool, err error) {
		t.Helper()
		if !is(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", what, err)
		}
	}
	ctx := t.Context()
	site := s.site("many")
	site.Spec.Replicas = new(int32(6))
	refused("too many replicas",
		`admission webhook "validate.websites.sites.example.com" denied the request: spec.replicas: 6 is more than 5`,
		apierrors.IsForbidden, s.client.Create(ctx, site))
	site.Spec.Replicas = new(int32(-1))
	refused("the schema", "spec.replicas in body should be greater than or equal to 0", apierrors.IsInvalid,
		s.client.Create(ctx, site))
	site = s.site("rule")
	site.Spec.Pages["photo.png"] = ""
	refused("the schema's rule", "pages must be .html files", apierrors.IsInvalid, s.client.Create(ctx, site))

	site = s.site("kept")
	site.Labels = map[string]string{keepLabel: ""}
	if err := s.client.Create(ctx, site, client.DryRunAll); err != nil || site.Spec.Replicas == nil {
		t.Errorf("dry run: %v, %+v", err, site.Spec)
	}
	site.ResourceVersion, site.UID = "", ""
	if err := s.client.Create(ctx, site); err != nil {
		t.Fatal(err)
	}
	refused("deletion", "label sites.example.com/keep keeps it", apierrors.IsForbidden, s.client.Delete(ctx, site))
	if err := s.client.Patch(ctx, site,
		client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":null}}`))); err != nil {
		t.Fatal(err)
	}
	if err := s.client.Delete(ctx, site); err != nil {
		t.Error(err)
	}
}

// testVersions writes in one version what is read in the other.
func (s *suite) testVersions(t *testing.T) {
	ctx := t.Context()
	old := &v1alpha1.Website{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "versions"},
		Spec: v1alpha1.WebsiteSpec{HTML: "old"}}
	if err := s.client.Create(ctx, old); err != nil {
		t.Fatal(err)
	}
	if old.Spec.Replicas == nil || *old.Spec.Replicas != 1 { // the webhook wants v1, and is asked in it
		t.Errorf("replicas of the old version: %v", old.Spec.Replicas)
	}
	site := &v1.Website{}
	waitFor(t, "pages in the new version", func() error {
		if err := s.client.Get(ctx, client.ObjectKeyFromObject(old), site); err != nil {
			return err
		}
		if site.Spec.Pages["index.html"] != "old" {
			return fmt.Errorf("%+v", site.Spec)
		}
		site.Spec.Pages["more.html"] = "more"
		return s.client.Update(ctx, site)
	})
	var list v1alpha1.WebsiteList
	if err := s.client.List(ctx, &list, client.InNamespace(s.namespace)); err != nil {
		t.Fatal(err)
	}
	for _, o := range list.Items {
		if o.Name == old.Name &&
			(o.Spec.HTML != "old" || o.Annotations["sites.example.com/pages"] != `{"more.html":"more"}`) {
			t.Errorf("listed in the old version: %+v %v", o.Spec, o.Annotations)
		}
	}
	waitFor(t, "an update in the old version", func() error {
		if err := s.client.Get(ctx, client.ObjectKeyFromObject(old), old); err != nil {
			return err
		}
		old.Spec.HTML = "newer"
		return s.client.Update(ctx, old)
	})
	if err := s.client.Get(ctx, client.ObjectKeyFromObject(old), site); err != nil ||
		site.Spec.Pages["index.html"] != "newer" || site.Spec.Pages["more.html"] != "more" {
		t.Errorf("back in the new version: %+v, %v", site.Spec, err)
	}
	if err := s.client.Delete(ctx, old); err != nil {
		t.Error(err)
	}
}

// testApply has two appliers agree and disagree on a Website, and looks at whose the Deployment's fields are.
func (s *suite) testApply(t *testing.T) {
	ctx := t.Context()
	apply := func(owner, page string, options ...client.ApplyOption) error {
		o := &unstructured.Unstructured{
			Object: map[string]any{"spec": map[string]any{"pages": map[string]any{"index.html": page}}}}
		o.SetAPIVersion(v1.Group + "/v1")
		o.SetKind("Website")
		o.SetNamespace(s.namespace)
		o.SetName("applied")
		return s.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(o),
			append(options, client.FieldOwner(owner))...)
	}
	if err := apply("anne", "one"); err != nil {
		t.Fatal(err)
	}
	if err := apply("bert", "one"); err != nil {
		t.Errorf("the same by another: %v", err)
	}
	err := apply("bert", "two")
	if !apierrors.IsConflict(err) ||
		!strings.Contains(err.Error(), `Apply failed with 1 conflict: conflict with "anne": .spec.pages.index.html`) {
		t.Errorf("another value: %v", err)
	}
	if err := apply("bert", "two", client.ForceOwnership); err != nil {
		t.Errorf("forced: %v", err)
	}
	site := s.site("applied")
	waitFor(t, "available", s.available(t, site))
	var d appsv1.Deployment
	if err := s.client.Get(ctx, client.ObjectKeyFromObject(site), &d); err != nil {
		t.Fatal(err)
	}
	var operation metav1.ManagedFieldsOperationType
	for _, m := range d.ManagedFields {
		if m.Manager == manager {
			operation = m.Operation
		}
	}
	if operation != metav1.ManagedFieldsOperationApply {
		t.Errorf("managers of the Deployment: %+v", d.ManagedFields)
	}
	resourceVersion := d.ResourceVersion
	if err := s.client.Apply(ctx, deployment(site), client.FieldOwner(manager)); err != nil {
		t.Error(err)
	}
	if err := s.client.Get(ctx, client.ObjectKeyFromObject(site), &d); err != nil ||
		d.ResourceVersion != resourceVersion {
		t.Errorf("an apply that changes nothing: version %s, then %s, %v", resourceVersion, d.ResourceVersion, err)
	}
	if err := s.client.Delete(ctx, site); err != nil {
		t.Error(err)
	}
}

// testMetrics reads the manager's metrics as a service account that may and as one that may not.
func (s *suite) testMetrics(t *testing.T, url string) {
	ctx := t.Context()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, GenerateName: "reader-"}}
	if err := s.client.Create(ctx, account); err != nil {
		t.Fatal(err)
	}
	token := &authenticationv1.TokenRequest{}
	if err := s.client.SubResource("token").Create(ctx, account, token); err != nil {
		t.Fatal(err)
	}
	// it signs for itself
	trusting := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	t.Cleanup(trusting.CloseIdleConnections)
	read := func(token string) (int, string, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return 0, "", err
		}
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		resp, err := trusting.Do(req)
		if err != nil {
			return 0, "", err
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		return resp.StatusCode, string(body), err
	}
	waitFor(t, "the metrics server, which refuses who has no token", func() error {
		if code, _, err := read(""); code != http.StatusUnauthorized {
			return fmt.Errorf("%d, %w", code, err)
		}
		return nil
	})
	if code, _, err := read(token.Status.Token); code != http.StatusForbidden {
		t.Errorf("without the right: %d, %v", code, err)
	}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{GenerateName: "metrics-reader-"},
		Rules: []rbacv1.PolicyRule{{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}}}
	if err := s.client.Create(ctx, role); err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: role.Name},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name}}}
	if err := s.client.Create(ctx, binding); err != nil {
		t.Fatal(err)
	}
	for _, o := range []client.Object{role, binding, account} {
		defer func() {
			if err := s.client.Delete(ctx, o); err != nil {
				t.Error(err)
			}
		}()
	}
	second := &authenticationv1.TokenRequest{} // of the first one it is remembered for some seconds that it may not
	if err := s.client.SubResource("token").Create(ctx, account, second); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "metrics", func() error {
		code, body, err := read(second.Status.Token)
		if code != http.StatusOK ||
			!strings.Contains(body, `controller_runtime_reconcile_total{controller="website",result="success"}`) ||
			!strings.Contains(body, `leader_election_master_status{name="website-operator"} 1`) {
			return fmt.Errorf("%d: %.300s, %w", code, body, err)
		}
		return nil
	})
}

// freeAddress is a port of loopback that was free a moment ago.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
