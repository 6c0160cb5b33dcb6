package create

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// deployment is "create deployment": one container for each image, named after it.
func deployment() kind {
	var images []string
	var replicas, port int32
	return kind{
		use:     "deployment NAME --image=image -- [COMMAND] [args...]",
		aliases: []string{"deploy"},
		short:   "Create a deployment with the specified name",
		long:    "Create a deployment with the specified name.",
		example: "  # Create a deployment named my-dep that runs the nginx image with 3 replicas\n  kubectl create deployment my-dep --image=nginx --replicas=3",
		failed:  "failed to create deployment: ", required: []string{"image"}, commanded: true,
		flags: func(set *pflag.FlagSet) {
			set.StringSliceVar(&images, "image", nil,
				"Image names to run. A deployment can have multiple images set for multi-container pod.")
			set.Int32Var(&port, "port", -1, "The containerPort that this deployment exposes.")
			set.Int32VarP(&replicas, "replicas", "r", 1, "Number of replicas to create. Default is 1.")
		},
		build: func(_ context.Context, g *generator) (runtime.Object, error) {
			if len(images) > 1 && len(g.command) > 0 {
				return nil, errors.New("cannot specify multiple --image options and command")
			}
			labels := map[string]string{"app": g.name}
			d := &appsv1.Deployment{
				TypeMeta:   metav1.TypeMeta{Kind: "Deployment", APIVersion: "apps/v1"},
				ObjectMeta: g.meta(),
				Spec: appsv1.DeploymentSpec{
					Replicas: &replicas,
					Selector: &metav1.LabelSelector{MatchLabels: labels},
					Template: corev1.PodTemplateSpec{
						ObjectMeta: metav1.ObjectMeta{Labels: labels},
						Spec:       corev1.PodSpec{Containers: containers(images, g.command)},
					},
				},
			}
			d.Labels = labels
			if port >= 0 {
				d.Spec.Template.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: port}}
			}
			return d, nil
		},
	}
}

func containers(images, command []string) []corev1.Container {
	var out []corev1.Container
	for _, image := range images {
		out = append(out, corev1.Container{Name: containerName(image), Image: image, Command: command})
	}
	return out
}

// containerName is the image's last path element without tag and digest.
func containerName(image string) string {
	name := image[strings.LastIndexByte(image, '/')+1:]
	name, _, _ = strings.Cut(name, "@")
	name, _, _ = strings.Cut(name, ":")
	return strings.ReplaceAll(name, "_", "-")
}
