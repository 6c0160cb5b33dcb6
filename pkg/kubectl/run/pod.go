package run

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
)

// spec is what the flags say about the pod.
type spec struct {
	name, namespace string
	image, pull     string
	restart         string
	labels, port    string
	env             []string
	annotations     []string
	args            []string
	command         bool
	privileged      bool
	stdin, tty      bool
	leaveStdinOpen  bool
}

// pod builds the pod. Its namespace is set only if the user named one.
func (s *spec) pod() (*corev1.Pod, error) {
	labels, err := s.podLabels()
	if err != nil {
		return nil, err
	}
	annotations, err := parseAnnotations(s.annotations)
	if err != nil {
		return nil, err
	}
	c, err := s.container()
	if err != nil {
		return nil, err
	}
	return &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{Name: s.name, Namespace: s.namespace, Labels: labels, Annotations: annotations},
		Spec: corev1.PodSpec{
			Containers:    []corev1.Container{*c},
			DNSPolicy:     corev1.DNSClusterFirst,
			RestartPolicy: corev1.RestartPolicy(s.restart),
		},
	}, nil
}

func (s *spec) container() (*corev1.Container, error) {
	env, err := parseEnv(s.env)
	if err != nil {
		return nil, err
	}
	c := &corev1.Container{
		Name: s.name, Image: s.image, ImagePullPolicy: corev1.PullPolicy(s.pull), Env: env,
		Stdin: s.stdin, StdinOnce: s.stdin && !s.leaveStdinOpen, TTY: s.tty,
	}
	if s.command {
		c.Command = s.args
	} else {
		c.Args = s.args
	}
	if s.port != "" {
		n, err := s.portNumber()
		if err != nil {
			return nil, err
		}
		c.Ports = []corev1.ContainerPort{{ContainerPort: int32(n)}}
	}
	if s.privileged {
		c.SecurityContext = &corev1.SecurityContext{Privileged: &s.privileged}
	}
	return c, nil
}

// portNumber is the number of --port.
func (s *spec) portNumber() (int, error) {
	n, err := strconv.Atoi(s.port)
	if err != nil {
		return 0, errors.New("--port must be a number")
	}
	return n, nil
}

// podLabels are those of --labels, or run=NAME.
func (s *spec) podLabels() (map[string]string, error) {
	if s.labels == "" {
		return map[string]string{"run": s.name}, nil
	}
	out := map[string]string{}
	for _, pair := range strings.Split(s.labels, ",") {
		k, v, ok := strings.Cut(pair, "=")
		if !ok || k == "" || strings.Contains(v, "=") {
			return nil, fmt.Errorf("unexpected label spec: %s", pair)
		}
		if errs := validation.IsValidLabelValue(v); len(errs) > 0 {
			return nil, fmt.Errorf("invalid label value: %q: %s", pair, strings.Join(errs, ";"))
		}
		out[k] = v
	}
	return out, nil
}

// service builds the service of --expose: it selects the pod by its labels.
func (s *spec) service(pod *corev1.Pod) (*corev1.Service, error) {
	n, err := s.portNumber()
	if err != nil {
		return nil, err
	}
	return &corev1.Service{
		TypeMeta:   metav1.TypeMeta{Kind: "Service", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{Name: s.name, Namespace: s.namespace},
		Spec: corev1.ServiceSpec{
			Ports: []corev1.ServicePort{
				{Port: int32(n), Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromInt32(int32(n))}},
			Selector: pod.Labels,
		},
	}, nil
}

func parseEnv(pairs []string) ([]corev1.EnvVar, error) {
	var out []corev1.EnvVar
	for _, pair := range pairs {
		k, v, ok := strings.Cut(pair, "=")
		if !ok || len(validation.IsCIdentifier(k)) > 0 {
			return nil, fmt.Errorf("invalid env: %v", pair)
		}
		out = append(out, corev1.EnvVar{Name: k, Value: v})
	}
	return out, nil
}

func parseAnnotations(pairs []string) (map[string]string, error) {
	if len(pairs) == 0 {
		return nil, nil
	}
	out := map[string]string{}
	for _, pair := range pairs {
		k, v, ok := strings.Cut(pair, "=")
		if !ok || k == "" {
			return nil, fmt.Errorf("invalid annotations format: %s", pair)
		}
		out[k] = v
	}
	return out, nil
}
