package portforward

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func TestTranslatePort(t *testing.T) {
	t.Parallel()
	pod := &corev1.Pod{Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}}}}}}
	service := &corev1.Service{Spec: corev1.ServiceSpec{ClusterIP: "10.0.0.1", Ports: []corev1.ServicePort{
		{Name: "web", Port: 80, TargetPort: intstr.FromString("http")},
		{Name: "tls", Port: 443, TargetPort: intstr.FromInt32(8443)},
	}}}
	for _, c := range []struct {
		arg     string
		service *corev1.Service
		want    string
	}{
		{"5000", nil, "5000"}, {":5000", nil, ":5000"}, {"1:5000", nil, "1:5000"}, {"http", nil, "8080"},
		{"1:http", nil, "1:8080"},
		{"80", service, "80:8080"}, {"tls", service, "443:8443"}, {":web", service, ":8080"},
		{"9:443", service, "9:8443"},
	} {
		if got, err := translatePort(c.arg, c.service, pod); err != nil || got != c.want {
			t.Errorf("%s: %q (%v), want %q", c.arg, got, err, c.want)
		}
	}
	if _, err := translatePort("81", service, pod); err == nil {
		t.Error("a port the service does not have was accepted")
	}
}

// TestUDP: what is no connection cannot be forwarded, which is told before somebody waits for an answer.
func TestUDP(t *testing.T) {
	t.Parallel()
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Ports: []corev1.ContainerPort{
		{Name: "dns", ContainerPort: 53, Protocol: corev1.ProtocolUDP},
		{Name: "dns-tcp", ContainerPort: 53, Protocol: corev1.ProtocolTCP},
		{Name: "log", ContainerPort: 514, Protocol: corev1.ProtocolUDP}}}}}}
	service := &corev1.Service{Spec: corev1.ServiceSpec{ClusterIP: "10.0.0.1", Ports: []corev1.ServicePort{
		{Name: "dns", Port: 53, Protocol: corev1.ProtocolUDP, TargetPort: intstr.FromInt32(5353)},
		{Name: "web", Port: 80, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromInt32(514)}}}}
	for _, c := range []struct {
		arg     string
		service *corev1.Service
		want    string
	}{
		{"53", nil, ""}, {"dns", nil, ""}, {"8080", nil, ""}, {"514", nil, "514"}, {"1:log", nil, "log"},
		{"53", service, "53"}, {":dns", service, "dns"}, {"80", service, ""},
	} {
		_, err := translatePort(c.arg, c.service, pod)
		if c.want == "" && err != nil ||
			c.want != "" && (err == nil || err.Error() != "UDP protocol is not supported for "+c.want) {
			t.Errorf("%s: %v, want %q", c.arg, err, c.want)
		}
	}
}
