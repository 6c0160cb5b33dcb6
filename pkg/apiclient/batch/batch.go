// Package batch gives access to the kinds of batch/v1 that components use.
package batch

import (
	batchv1 "k8s.io/api/batch/v1"

	"bonsai/pkg/apiclient"
)

// Jobs gives access to jobs.
func Jobs(c *apiclient.Client) *apiclient.Resource[*batchv1.Job] {
	return apiclient.NewResource(c, batchv1.SchemeGroupVersion, "jobs", &batchv1.Job{})
}

// CronJobs gives access to cronjobs.
func CronJobs(c *apiclient.Client) *apiclient.Resource[*batchv1.CronJob] {
	return apiclient.NewResource(c, batchv1.SchemeGroupVersion, "cronjobs", &batchv1.CronJob{})
}
