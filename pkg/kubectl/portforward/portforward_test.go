package portforward

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func TestTranslatePort(t *testing.T) {
	t.Parallel()
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}}}}}}
	service := &corev1.Service{Spec: corev1.ServiceSpec{ClusterIP: "10.0.0.1", Ports: []corev1.ServicePort{
		{Name: "web", Port: 80, TargetPort: intstr.FromString("http")}, {Name: "tls", Port: 443, TargetPort: intstr.FromInt32(8443)},
	}}}
	for _, c := range []struct {
		arg     string
		service *corev1.Service
		want    string
	}{
		{"5000", nil, "5000"}, {":5000", nil, ":5000"}, {"1:5000", nil, "1:5000"}, {"http", nil, "8080"}, {"1:http", nil, "1:8080"},
		{"80", service, "80:8080"}, {"tls", service, "443:8443"}, {":web", service, ":8080"}, {"9:443", service, "9:8443"},
	} {
		if got, err := translatePort(c.arg, c.service, pod); err != nil || got != c.want {
			t.Errorf("%s: %q (%v), want %q", c.arg, got, err, c.want)
		}
	}
	if _, err := translatePort("81", service, pod); err == nil {
		t.Error("a port the service does not have was accepted")
	}
}
