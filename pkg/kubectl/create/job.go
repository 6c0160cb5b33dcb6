package create

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/pflag"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"bonsai/pkg/kubectl/resource"
)

// batch is the type of a kind of the batch group.
func batch(kind string) metav1.TypeMeta { return metav1.TypeMeta{Kind: kind, APIVersion: "batch/v1"} }

// job is "create job": one container called as the job, or what a cron job would run.
func job() kind {
	var image, from string
	return kind{
		use:     "job NAME --image=image [--from=cronjob/name] -- [COMMAND] [args...]",
		short:   "Create a job with the specified name",
		long:    "Create a job with the specified name.",
		example: "  # Create a job with a command\n  kubectl create job my-job --image=busybox -- date\n\n  # Create a job from a cron job named \"a-cronjob\"\n  kubectl create job test-job --from=cronjob/a-cronjob",
		failed:  "failed to create job: ", commanded: true,
		flags: func(set *pflag.FlagSet) {
			set.StringVar(&image, "image", "", "Image name to run.")
			set.StringVar(&from, "from", "",
				"The name of the resource to create a Job from (only CronJob is supported).")
		},
		build: func(ctx context.Context, g *generator) (runtime.Object, error) {
			switch {
			case (image == "") == (from == ""):
				return nil, errors.New("either --image or --from must be specified")
			case from != "" && len(g.command) > 0:
				return nil, errors.New("cannot specify --from and command")
			case from != "":
				return g.scheduled(ctx, from)
			}
			return &batchv1.Job{
				TypeMeta: batch("Job"), ObjectMeta: g.meta(),
				Spec: batchv1.JobSpec{Template: g.oneContainer(image, corev1.RestartPolicyNever)},
			}, nil
		},
	}
}

// oneContainer returns a pod template with one container, which is named like the new object.
func (g *generator) oneContainer(image string, restart corev1.RestartPolicy) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		Containers:    []corev1.Container{{Name: g.name, Image: image, Command: g.command}},
		RestartPolicy: restart,
	}}
}

// scheduled returns the job that the cron job called from (cronjob/NAME) would run now. The cron job owns it, so it
// counts in its history and is deleted with it; an annotation marks it as started by hand.
func (g *generator) scheduled(ctx context.Context, from string) (runtime.Object, error) {
	infos, err := g.Client.Resolve(ctx, resource.Request{Args: []string{from}, Namespace: g.Namespace})
	if err != nil {
		return nil, err
	}
	if len(infos) != 1 {
		return nil, errors.New("from must be an existing cronjob")
	}
	c := &batchv1.CronJob{}
	if of := infos[0].Mapping.GroupVersionKind; of != batchv1.SchemeGroupVersion.WithKind("CronJob") {
		return nil, fmt.Errorf("unknown object type *%s.%s", of.Version, of.Kind)
	}
	if err := resource.FromUnstructured(infos[0].Object, c); err != nil {
		return nil, fmt.Errorf("decode %s: %w", from, err)
	}
	t := c.Spec.JobTemplate
	j := &batchv1.Job{TypeMeta: batch("Job"), ObjectMeta: g.meta(), Spec: t.Spec}
	j.Labels = t.Labels
	j.Annotations = map[string]string{"cronjob.kubernetes.io/instantiate": "manual"}
	for k, v := range t.Annotations {
		j.Annotations[k] = v
	}
	yes := true
	j.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "batch/v1", Kind: "CronJob", Name: c.Name, UID: c.UID, Controller: &yes,
	}}
	return j, nil
}

// cronJob is "create cronjob": a job by a schedule.
func cronJob() kind {
	var image, schedule, restart string
	return kind{
		use:     "cronjob NAME --image=image --schedule='0/5 * * * ?' -- [COMMAND] [args...] [flags]",
		aliases: []string{"cj"},
		short:   "Create a cron job with the specified name",
		long:    "Create a cron job with the specified name.",
		example: "  # Create a cron job with a command\n  kubectl create cronjob my-job --image=busybox --schedule=\"*/1 * * * *\" -- date",
		failed:  "failed to create cronjob: ", required: []string{"image", "schedule"}, commanded: true,
		flags: func(set *pflag.FlagSet) {
			set.StringVar(&image, "image", "", "Image name to run.")
			set.StringVar(&schedule, "schedule", "", "A schedule in the Cron format the job should be run with.")
			set.StringVar(&restart, "restart", "", "job's restart policy. supported values: OnFailure, Never")
		},
		build: func(_ context.Context, g *generator) (runtime.Object, error) {
			policy := corev1.RestartPolicy(restart)
			if policy == "" {
				policy = corev1.RestartPolicyOnFailure
			}
			return &batchv1.CronJob{
				TypeMeta: batch("CronJob"), ObjectMeta: g.meta(),
				Spec: batchv1.CronJobSpec{Schedule: schedule, JobTemplate: batchv1.JobTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Name: g.name},
					Spec:       batchv1.JobSpec{Template: g.oneContainer(image, policy)},
				}},
			}, nil
		},
	}
}
